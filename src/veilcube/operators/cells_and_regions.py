"""Cells and the regions of a partition measured together: least squares and the exact noise of its answers.

Cells y_i have noise of variance v1, and the total y_p of a region of K cells has noise of variance v2. Least squares
adds to every cell of a region the same share of what its total tells more (the best linear unbiased estimate):

    x_i = y_i + a (y_p - Σ y),    a = v1 / (K v1 + v2),

so a query that holds m of the region's K cells takes the noise of these cells by 1 - m a, of the others by -m a, and of
the total by m a. Its variance is m v1 - m² v1² / (K v1 + v2).
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.block_sums import BlockSums
from veilcube.operators.moments import Moments
from veilcube.operators.parallel import compiled, share_out
from veilcube.operators.region_overlaps import weighted_squares
from veilcube.operators.regions import Blocks, RegionCounts
from veilcube.schema import Region

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Regions whose share of each query is counted exactly; a query's share of smaller ones is bounded.
MOST_EXACT_REGIONS = 8
# Blocks whose cells are gone through one by one.
MOST_LISTED_CELLS = 512


@dataclass(frozen=True, eq=False)
class CellsAndRegions:
    """Least squares on cells and regions; variances of their noise may be in any unit.

    Where the partition is a grid of ``blocks``, the moments of rectangles are exact. Otherwise the second moment is
    exact for the largest regions and from above for the others, since m² >= m.
    """

    regions: RegionCounts
    cell_variance: float
    region_variance: float
    blocks: Blocks | None = None

    @cached_property
    def gains(self) -> Floats:
        """The share a of each region."""
        sizes = self.regions.sizes.astype(np.float64)
        return self.cell_variance / (sizes * self.cell_variance + self.region_variance)

    def solve(self, cells: NDArray[np.generic], totals: NDArray[np.generic]) -> Floats:
        """Return the least-squares estimate of the cells."""
        values = np.asarray(cells, dtype=np.float64)
        more = np.asarray(totals, dtype=np.float64) - self.totals(values)
        return values + (self.gains * more)[self.regions.chosen]

    def totals(self, cells: Floats) -> Floats:
        """Return the sum of the cells of each region."""
        labels, weights = self.regions.chosen.ravel(), cells.ravel()
        return np.bincount(labels, weights=weights, minlength=self.regions.regions).astype(np.float64)

    def noise_weights(self, query: Floats) -> Floats:
        """Return by how much a standard deviation of each noise enters the answer to a query that weighs every cell."""
        pull = self.gains * self.totals(query)
        cells = (query - pull[self.regions.chosen]).ravel() * sqrt(self.cell_variance)
        return np.concatenate([cells, pull * sqrt(self.region_variance)])

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of each block's noise weights, in units of one standard deviation each."""
        if self.blocks is None:
            return self._bounded_moments(low, high)
        return block_moments(self.blocks, self.cell_variance, self.region_variance, low, high)

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of any region of the cube, exactly; shape ()."""
        return Moments(*(np.asarray(power.sum()) for power in self._powers(self._held_by(region))))

    def kept_share_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Return the share of each block's variance that comes from the totals of regions.

        A region's total has variance K a v2, and m of its K cells hold the share m / K of it; the rest tells how the
        total is spread inside. Exact on a grid, where m² / K multiplies over axes, and for blocks of few cells;
        elsewhere exact for the largest regions and from below for the others.
        """
        second = self.moments_of_rectangles(low, high).second
        if self.blocks is not None:
            cells, alike = np.ones(len(low)), np.ones(len(low))
            for axis, edges in enumerate(self.blocks.edges):
                cells *= high[:, axis] - low[:, axis] + 1
                alike *= _squares_over_lengths(edges, low[:, axis], high[:, axis])
            return _share_of(second - self.cell_variance * (cells - alike), second)
        kept = self._least_kept(low, high)
        for region, cells_of in self._largest:
            kept += cells_of(low, high).astype(np.float64) ** 2 * self._kept_by_cells[region]
        few = (high - low + 1).prod(axis=1) <= MOST_LISTED_CELLS
        kept[few] = weighted_squares(self.regions.chosen, self._kept_by_cells, low[few], high[few])
        return _share_of(kept, second)

    def kept_share_of_region(self, region: Region) -> Floats:
        """Return the same share for any region of the cube; shape ()."""
        held = self._held_by(region)
        return _share_of(np.square(held) @ self._kept_by_cells, self._powers(held)[0].sum())

    @cached_property
    def _kept_by_cells(self) -> Floats:
        """What a query's squared number of cells of each region keeps of its total's variance."""
        return self.gains * self.region_variance / self.regions.sizes

    @cached_property
    def _least_kept(self) -> BlockSums[np.float64]:
        kept = self._kept_by_cells.copy()
        kept[[region for region, _ in self._largest]] = 0.0
        return BlockSums(kept[self.regions.chosen])

    def _held_by(self, region: Region) -> Floats:
        """Return how many cells of each of the partition's regions lie in a region of the cube."""
        inside = region.mask().ravel()
        held = np.bincount(self.regions.chosen.ravel()[inside], minlength=self.regions.regions)
        return held.astype(np.float64)

    def _powers(self, chosen: Floats) -> tuple[Floats, Floats, Floats]:
        """Return for each region the sums of powers of the weights of a query that holds so many of its cells."""
        pull, sizes = chosen * self.gains, self.regions.sizes
        ours, others = (1 - pull) ** 2 * self.cell_variance, pull**2 * self.cell_variance
        total = pull**2 * self.region_variance
        first, second, third = (
            chosen * ours**power + (sizes - chosen) * others**power + total**power for power in (1, 2, 3)
        )
        return first, second, third

    @cached_property
    def _largest(self) -> list[tuple[int, BlockSums[np.int64]]]:
        """The largest regions, each with the sums of its cells."""
        largest = np.argsort(-self.regions.sizes, kind="stable")[:MOST_EXACT_REGIONS].tolist()
        return [(region, BlockSums((self.regions.chosen == region).astype(np.int64))) for region in largest]

    @cached_property
    def _savings(self) -> BlockSums[np.float64]:
        """What each cell of the smaller regions takes off the variance at least."""
        saved = self.gains * self.cell_variance
        saved[[region for region, _ in self._largest]] = 0.0
        return BlockSums(saved[self.regions.chosen])

    def _bounded_moments(self, low: Integers, high: Integers) -> Moments:
        second = self.cell_variance * (high - low + 1).prod(axis=1) - self._savings(low, high)
        for region, cells_of in self._largest:
            second -= cells_of(low, high).astype(np.float64) ** 2 * self.gains[region] * self.cell_variance
        second = np.maximum(second, 0.0)
        return Moments(second, second**2, second**3, bounded=True)


def _share_of(part: Floats, whole: Floats) -> Floats:
    """Return which share of a variance a part of it is, up to rounding; none of nothing."""
    return np.clip(np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0), 0.0, 1.0)


def _squares_over_lengths(edges: Integers, low: Integers, high: Integers) -> Floats:
    """Return for each range the sum over the runs of an axis of the squared cells held over the cells of the run."""
    lengths = np.diff(edges).astype(np.float64)
    first, last = (np.searchsorted(edges, ends, side="right") - 1 for ends in (low, high))
    from_first, up_to_last = edges[first + 1] - low, high + 1 - edges[last]
    apart = from_first**2 / lengths[first] + up_to_last**2 / lengths[last] + (edges[last] - edges[first + 1])
    return np.where(first == last, (high - low + 1) ** 2 / lengths[first], apart)


def block_moments(
    blocks: Blocks, cell_variance: float, region_variance: float, low: Integers, high: Integers
) -> Moments:
    """Return the exact moments of rectangles over a grid of blocks, without listing the cells of any."""
    edges, found = blocks.edges, np.empty((3, len(low)))
    starts = np.cumsum([0, *(axis.size for axis in edges)]).astype(np.int64)
    settings = (np.concatenate(edges), starts, cell_variance, region_variance)
    lows, highs = (np.ascontiguousarray(ends, dtype=np.int64) for ends in (low, high))
    share_out(lambda start, stop: _block_moments(*settings, lows, highs, found, start, stop), len(low), 256 * len(low))
    return Moments(*found)


@compiled
def _overlaps(edges: Integers, low: int, high: int, found: Integers) -> int:
    """List the runs that a range meets as (cells held, cells, how many): the two outer ones, and inner ones by length.

    Runs of one axis differ in length by at most one, so the inner ones' total length tells how many are long.
    """
    first = np.searchsorted(edges, low, side="right") - 1
    last = np.searchsorted(edges, high, side="right") - 1
    many = 0
    for run in (first, last):
        if many == 0 or run > first:
            found[many, 0] = min(high + 1, edges[run + 1]) - max(low, edges[run])
            found[many, 1], found[many, 2] = edges[run + 1] - edges[run], 1
            many += 1
    inner = last - first - 1
    if inner > 0:
        short = edges[-1] // (edges.size - 1)
        longer = edges[last] - edges[first + 1] - inner * short
        for length, times in ((short, inner - longer), (short + 1, longer)):
            if times > 0:
                found[many, 0], found[many, 1], found[many, 2] = length, length, times
                many += 1
    return many


@compiled
def _block_moments(
    edges: Integers, starts: Integers, cell_variance: float, region_variance: float, low: Integers, high: Integers,
    moments: Floats, first_query: int, last_query: int,
) -> None:  # fmt: skip
    """Fill the sums of powers of the noise weights of rectangles over a grid of blocks."""
    axes = starts.size - 1
    # At most two cut runs and two lengths of whole ones on each axis.
    runs, many = np.empty((axes, 4, 3), dtype=np.int64), np.empty(axes, dtype=np.int64)
    at = np.empty(axes, dtype=np.int64)
    for q in range(first_query, last_query):
        for axis in range(axes):
            many[axis] = _overlaps(edges[starts[axis] : starts[axis + 1]], low[q, axis], high[q, axis], runs[axis])
        moments[:, q] = 0.0
        at[:] = 0
        while at[0] < many[0]:
            held, cells, times = 1.0, 1.0, 1.0
            for axis in range(axes):
                held *= runs[axis, at[axis], 0]
                cells *= runs[axis, at[axis], 1]
                times *= runs[axis, at[axis], 2]
            pull = held * cell_variance / (cells * cell_variance + region_variance)
            ours, others = (1 - pull) ** 2 * cell_variance, pull * pull * cell_variance
            total = pull * pull * region_variance
            for k in range(3):
                power = k + 1
                moments[k, q] += times * (held * ours**power + (cells - held) * others**power + total**power)
            axis = axes - 1
            at[axis] += 1
            while axis > 0 and at[axis] == many[axis]:
                at[axis] = 0
                axis -= 1
                at[axis] += 1
