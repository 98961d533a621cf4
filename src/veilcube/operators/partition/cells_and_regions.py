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

from veilcube.operators.base import BlockSums, Moments, union_bound
from veilcube.operators.partition.overlaps import (
    STEPS_OF_A_CALL,
    STEPS_OF_A_QUESTION,
    SUMS,
    CellLists,
    PairedMoments,
    RegionOverlaps,
    add_overlap,
)
from veilcube.operators.partition.regions import Blocks, RegionCounts
from veilcube.schema import Region
from veilcube.system import Floats, Integers, compiled, share_out

# Regions whose share of each query is counted exactly where a query's share of smaller ones is bounded.
MOST_EXACT_REGIONS = 8


@dataclass(frozen=True, eq=False)
class CellsAndRegions:
    """Least squares on cells and regions; variances of their noise may be in any unit.

    Moments are exact: for a grid of ``blocks`` by products over axes, for other regions by going through the cells of a
    question. Where very many large blocks are asked for at once, the largest of them have bounds instead: exact for
    the largest regions and from above for the others, since m² >= m.
    """

    regions: RegionCounts
    cell_variance: float
    region_variance: float
    blocks: Blocks | None = None

    @cached_property
    def gains(self) -> Floats:
        """The share a of each region."""
        together = self.regions.sizes * self.cell_variance + self.region_variance
        # Where neither has noise, cells need no correction.
        gains: Floats = np.divide(self.cell_variance, together, out=np.zeros(together.shape), where=together > 0)
        return gains

    @cached_property
    def overlaps(self) -> RegionOverlaps:
        """What questions hold of each region."""
        return RegionOverlaps(self.regions, self.gains)

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
        cells, pull = self._weights(query)
        return np.concatenate([cells * sqrt(self.cell_variance), pull * sqrt(self.region_variance)])

    def paired_of_query(self, query: Floats) -> PairedMoments:
        """Return the moments of a query that weighs every cell; shape ()."""
        cells, pull = self._weights(query)
        kept = np.asarray(np.square(self.totals(query)) @ (self.gains / self.regions.sizes))
        return PairedMoments(Moments.of_weights(cells), Moments.of_weights(pull), kept, np.zeros(()))

    def _weights(self, query: Floats) -> tuple[Floats, Floats]:
        pull = self.gains * self.totals(query)
        return (query - pull[self.regions.chosen]).ravel(), pull

    def paired_of_rectangles(self, low: Integers, high: Integers) -> PairedMoments:
        """Return the moments of each block."""
        if self.blocks is not None:
            return block_moments(self.blocks, self.cell_variance, self.region_variance, low, high)
        steps = self.overlaps.steps_of_blocks(low, high)
        order = np.argsort(steps, kind="stable")
        is_exact = np.zeros(len(low), dtype=np.bool_)
        is_exact[order] = np.cumsum(steps[order]) <= STEPS_OF_A_CALL + STEPS_OF_A_QUESTION * len(low)
        if len(low) == 1 or is_exact.all():
            return self.overlaps.of_blocks(low, high)
        found, rest = self.overlaps.of_blocks(low[is_exact], high[is_exact]), ~is_exact
        return _merged(is_exact, found, self._bounded(low[rest], high[rest]))

    def paired_of_prefixes(self, lists: CellLists) -> tuple[PairedMoments, PairedMoments]:
        """Return for each k the moments of the first k + 1 lists of cells, and of all lists behind them."""
        backwards = CellLists(lists.cells[::-1], lists.ends[-1] - lists.ends[::-1])
        behind = np.zeros((SUMS, len(lists)))
        behind[:, :-1] = self.overlaps.of_prefixes(backwards)[:, -2::-1]
        return PairedMoments.of_sums(self.overlaps.of_prefixes(lists)), PairedMoments.of_sums(behind)

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of each block's noise weights, in units of one standard deviation each."""
        return self._joined(self.paired_of_rectangles(low, high))

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of any region of the cube, exactly; shape ()."""
        return self._joined(self.overlaps.of_lists(cells_of(region)).at(0))

    def kept_share(self, paired: PairedMoments) -> Floats:
        """Return the share of each variance that comes from the totals of regions.

        A region's total has variance K a v2, and m of its K cells hold the share m² / K² of it; the rest tells how the
        total is spread inside.
        """
        whole = paired.variance(self.cell_variance, self.region_variance)
        part = paired.kept * self.region_variance
        return np.clip(np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0), 0.0, 1.0)

    def _joined(self, paired: PairedMoments) -> Moments:
        cells, totals = paired.cells, paired.totals
        v1, v2 = self.cell_variance, self.region_variance
        second, fourth = cells.second * v1 + totals.second * v2, cells.fourth * v1**2 + totals.fourth * v2**2
        sixth = cells.sixth * v1**3 + totals.sixth * v2**3
        return Moments(second, fourth, sixth, bounded=cells.bounded)

    def _bounded(self, low: Integers, high: Integers) -> PairedMoments:
        """Return bounds: a variance from above, all of it the cells', and no weight above 1 for the higher powers."""
        second = (high - low + 1).prod(axis=1) - self._savings(low, high)
        kept = self._least_kept(low, high)
        for region, cells_of_region in self._largest:
            squares = cells_of_region(low, high).astype(np.float64) ** 2 * self.gains[region]
            second -= squares
            kept += squares / self.regions.sizes[region]
        second = np.maximum(second, 0.0)
        none, rest = np.zeros(len(low)), second * _ratio(self.cell_variance, self.region_variance)
        cells, totals = (Moments(first, *_powers_below(part)) for first, part in ((second, second), (none, rest)))
        return PairedMoments(_as_bounds(cells), _as_bounds(totals), kept, none)

    @cached_property
    def _largest(self) -> list[tuple[int, BlockSums[np.int64]]]:
        """The largest regions, each with the sums of its cells."""
        largest = np.argsort(-self.regions.sizes, kind="stable")[:MOST_EXACT_REGIONS].tolist()
        return [(region, BlockSums((self.regions.chosen == region).astype(np.int64))) for region in largest]

    @cached_property
    def _savings(self) -> BlockSums[np.float64]:
        """What each cell of the smaller regions takes off the variance at least, in units of a cell's."""
        return self._summed_of_smaller(self.gains.copy())

    @cached_property
    def _least_kept(self) -> BlockSums[np.float64]:
        return self._summed_of_smaller(self.gains / self.regions.sizes)

    def _summed_of_smaller(self, of_region: Floats) -> BlockSums[np.float64]:
        of_region[[region for region, _ in self._largest]] = 0.0
        return BlockSums(of_region[self.regions.chosen])


def cells_of(region: Region) -> CellLists:
    """Return a region of the cube as one list of cells."""
    cells = np.flatnonzero(region.mask().ravel()).astype(np.int64)
    return CellLists(cells, np.array([0, cells.size], dtype=np.int64))


def step_moments(
    everything: PairedMoments, parts: tuple[PairedMoments, PairedMoments], inside: float, outside: float
) -> PairedMoments:
    """Return the moments of sums that weigh some cells ``inside`` and the rest of all cells ``outside``.

    Second moments are exact, since those of two parts and of both together tell their product; the others are bounds.
    """
    first, rest = parts
    found = []
    for whole, ours, theirs in (
        (everything.cells, first.cells, rest.cells),
        (everything.totals, first.totals, rest.totals),
    ):
        both = whole.second - ours.second - theirs.second
        second = np.maximum(inside**2 * ours.second + outside**2 * theirs.second + inside * outside * both, 0.0)
        found.append(union_bound(second, [ours, theirs], (inside, outside)))
    both = everything.kept - first.kept - rest.kept
    kept = inside**2 * first.kept + outside**2 * rest.kept + inside * outside * both
    return PairedMoments(found[0], found[1], np.maximum(kept, 0.0), np.zeros(kept.shape))


def _merged(chosen: NDArray[np.bool_], ours: PairedMoments, others: PairedMoments) -> PairedMoments:
    """Return the moments of all questions, those of the chosen ones and of the others."""

    def joined(part: Floats, rest: Floats) -> Floats:
        found = np.empty(chosen.size)
        found[chosen], found[~chosen] = part, rest
        return found

    laws = ((ours.cells, others.cells), (ours.totals, others.totals))
    names = ("second", "fourth", "sixth")
    cells, totals = (
        Moments(*(joined(getattr(part, name), getattr(rest, name)) for name in names), bounded=True)
        for part, rest in laws
    )
    return PairedMoments(cells, totals, joined(ours.kept, others.kept), joined(ours.whole, others.whole))


def _powers_below(second: Floats) -> tuple[Floats, Floats]:
    """Return what the fourth and sixth powers of weights of at most 1 cannot exceed."""
    return np.minimum(second, second**2), np.minimum(second, second**3)


def _as_bounds(moments: Moments) -> Moments:
    return Moments(moments.second, moments.fourth, moments.sixth, bounded=True)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def block_moments(
    blocks: Blocks, cell_variance: float, region_variance: float, low: Integers, high: Integers
) -> PairedMoments:
    """Return the exact moments of rectangles over a grid of blocks, without listing the cells of any."""
    edges, found = blocks.edges, np.zeros((SUMS, len(low)))
    starts = np.cumsum([0, *(axis.size for axis in edges)]).astype(np.int64)
    # Cells without noise need no correction, whatever the totals have.
    settings = (np.concatenate(edges), starts, cell_variance, region_variance if cell_variance > 0 else 1.0)
    lows, highs = (np.ascontiguousarray(ends, dtype=np.int64) for ends in (low, high))
    share_out(lambda start, stop: _block_moments(*settings, lows, highs, found, start, stop), len(low), 256 * len(low))
    return PairedMoments.of_sums(found)


@compiled
def _overlaps(edges: Integers, low: int, high: int, found: Integers) -> int:
    """List the runs that a range meets as (cells held, cells, how many): those that it cuts, and whole ones by length.

    Runs of one axis differ in length by at most one, so the whole ones' total length tells how many are long.
    """
    first = int(np.searchsorted(edges, low, side="right")) - 1
    last = int(np.searchsorted(edges, high, side="right")) - 1
    many, whole_from, whole_to = 0, first, last + 1
    for run in range(first, last + 1, max(last - first, 1)):
        held, cells = min(high + 1, edges[run + 1]) - max(low, edges[run]), edges[run + 1] - edges[run]
        if held < cells:
            found[many, 0], found[many, 1], found[many, 2] = held, cells, 1
            many += 1
            whole_from += run == first
            whole_to -= run == last
    inner = whole_to - whole_from
    if inner > 0:
        short = edges[-1] // (edges.size - 1)
        longer = edges[whole_to] - edges[whole_from] - inner * short
        for length, times in ((short, inner - longer), (short + 1, longer)):
            if times > 0:
                found[many, 0], found[many, 1], found[many, 2] = length, length, times
                many += 1
    return many


@compiled
def _block_moments(
    edges: Integers, starts: Integers, cell_variance: float, region_variance: float, low: Integers, high: Integers,
    found: Floats, first_query: int, last_query: int,
) -> None:  # fmt: skip
    """Fill the sums of powers of the noise weights of rectangles over a grid of blocks."""
    axes = starts.size - 1
    # At most two cut runs and two lengths of whole ones on each axis.
    runs, many = np.empty((axes, 4, 3), dtype=np.int64), np.empty(axes, dtype=np.int64)
    at, sums = np.empty(axes, dtype=np.int64), np.empty(found.shape[0])
    for q in range(first_query, last_query):
        if (low[q] > high[q]).any():
            continue
        for axis in range(axes):
            many[axis] = _overlaps(edges[starts[axis] : starts[axis + 1]], low[q, axis], high[q, axis], runs[axis])
        sums[:] = 0.0
        at[:] = 0
        while at[0] < many[0]:
            held, cells, times = 1.0, 1.0, 1.0
            for axis in range(axes):
                held *= runs[axis, at[axis], 0]
                cells *= runs[axis, at[axis], 1]
                times *= runs[axis, at[axis], 2]
            add_overlap(held, cells, cell_variance / (cells * cell_variance + region_variance), times, sums)
            axis = axes - 1
            at[axis] += 1
            while axis > 0 and at[axis] == many[axis]:
                at[axis] = 0
                axis -= 1
                at[axis] += 1
        found[:, q] = sums
