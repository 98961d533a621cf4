"""Shrunken estimates of cells: smoothed as far as the data allow, with the totals of regions kept, and blended.

Least squares on cells and regions is smoothed at several scales (``multiscale``), in a plain and in a curved way. Every
region then gets back the total that least squares found, and its cells are made non-negative with that total kept. How
far the answers follow these tables and how far least squares is decided for each size of query (``blending``): where
neighbours are alike they follow, where they are not they do not. Intervals are those of least squares, scaled by how
much smaller the error was estimated to be, and widened (docs/decisions/0007-adaptive.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log2, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.adjusted import AdjustedGroups
from veilcube.analyst.estimate.base import Estimates
from veilcube.analyst.estimate.blending import Answers, Blend, Blends, Evidence
from veilcube.analyst.estimate.cells_and_regions import AdaptiveEstimate, is_adaptive
from veilcube.analyst.estimate.grouping import group_cells
from veilcube.analyst.estimate.multiscale import CURVED, PLAIN
from veilcube.analyst.estimate.walk import project_onto_simplex
from veilcube.operators import RegionCounts
from veilcube.operators.block_sums import BlockSums
from veilcube.operators.cells_and_regions import CellsAndRegions
from veilcube.operators.parallel import compiled, share_out
from veilcube.release import ReleaseRecord
from veilcube.schema import Nominal, Region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PROBES = 2
QUERIES_OF_A_SIZE = 1200
# Sizes that are judged lie a factor of four apart; between them weights are interpolated.
BITS_APART = 2
STEP_OF_A_PROBE = 0.1
WIDENING = 1.3
# However well it went, an interval never shrinks below this part of least squares'.
LEAST_SHARE = 0.2
SMOOTHERS = (PLAIN, CURVED)
# Larger cubes are judged by boxes of so many cells.
LARGEST_SAMPLE = 2**16
BOXES, CELLS_OF_A_BOX = 6, 2**13


@dataclass(frozen=True)
class Shrunken:
    """Smoothing with kept totals, blended with least squares; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "shrunken"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the release is of cells and regions."""
        return is_adaptive(record)

    def fit(self, record: ReleaseRecord) -> "ShrunkenEstimate":
        """Return its answers about this release."""
        smoothed = tuple(not isinstance(attribute, Nominal) for attribute in record.schema)
        return ShrunkenEstimate(AdaptiveEstimate(record), smoothed)


@dataclass(frozen=True, eq=False)
class Shrinking:
    """Turns least-squares cells into smooth ones that keep the totals of their regions."""

    answers: CellsAndRegions
    smoothed: tuple[bool, ...]

    @cached_property
    def _order(self) -> Integers:
        """The cells, region by region."""
        order = np.empty(self.answers.regions.chosen.size, dtype=np.int64)
        _by_region(self.answers.regions.chosen.ravel(), self._ends[:-1].copy(), order)
        return order

    @cached_property
    def _ends(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.answers.regions.sizes)]).astype(np.int64)

    def __call__(self, plain: Floats) -> list[Floats]:
        """Return the smooth tables: smoothed, totals given back, made non-negative."""
        totals, found = self.answers.totals(plain), [plain] * len(SMOOTHERS)

        def work(start: int, stop: int) -> None:
            for number in range(start, stop):
                table = SMOOTHERS[number](plain, self.answers.cell_variance, self.smoothed)
                found[number] = self._with_totals(table, totals)

        _ = self._order  # made before the threads that share it
        share_out(work, len(SMOOTHERS), len(SMOOTHERS) * plain.size)
        return found

    def _with_totals(self, table: Floats, totals: Floats) -> Floats:
        """Return the nearest non-negative table with these totals; a common shift of a region changes nothing."""
        in_order = table.ravel()[self._order]
        _project(in_order, self._ends, totals)
        kept = np.empty_like(in_order)
        kept[self._order] = in_order
        return kept.reshape(table.shape)

    def voices(self, plain: Floats, tables: Sequence[Floats]) -> Answers:
        """Return the tables as functions of queries, and how they change when the noisy measurements do."""
        rng, probes = np.random.default_rng(0), []
        for _ in range(PROBES):
            change = self.answers.solve(
                rng.choice([-1.0, 1.0], plain.shape) * np.sqrt(self.answers.cell_variance),
                rng.choice([-1.0, 1.0], self.answers.regions.regions) * np.sqrt(self.answers.region_variance),
            )
            pairs = zip(self(plain + STEP_OF_A_PROBE * change), tables, strict=True)
            changes = [BlockSums((after - before) / STEP_OF_A_PROBE) for after, before in pairs]
            probes.append((BlockSums(change), changes))
        return Answers(plain.shape, BlockSums(plain), [BlockSums(table) for table in tables], probes)


class ShrunkenEstimate:
    """Blends of least squares and smooth tables."""

    def __init__(self, unbiased: AdaptiveEstimate, smoothed: Sequence[bool]) -> None:
        self._unbiased, self._answers, self._smoothed = unbiased, unbiased.answers, tuple(smoothed)
        self._plain = unbiased.cells()
        self._blends: dict[int, Blends] = {}

    @cached_property
    def _tables(self) -> list[Floats]:
        return Shrinking(self._answers, self._smoothed)(self._plain)

    @cached_property
    def _sums(self) -> list[BlockSums[np.float64]]:
        return [BlockSums(table) for table in self._tables]

    @cached_property
    def _samples(self) -> list[tuple[Integers, Answers]]:
        """Parts of the cube on which blends are judged, by their first cell: all of it, unless it is large."""
        found = []
        for corner, shape in sample_boxes(self._plain.shape):
            part = tuple(slice(first, first + size) for first, size in zip(corner, shape, strict=True))
            _, labels = np.unique(self._answers.regions.chosen[part], return_inverse=True)
            own = replace(self._answers, regions=RegionCounts.of(labels.reshape(shape)), blocks=None)
            shrinking, plain = Shrinking(own, self._smoothed), np.ascontiguousarray(self._plain[part])
            found.append((np.array(corner), shrinking.voices(plain, shrinking(plain))))
        return found

    def cells(self) -> Floats:
        """Return the blended estimate of every cell."""
        level = np.mean(self._tables, axis=0)
        weights, _ = self._for_queries(np.ones(self._plain.shape), level)
        blended = self._plain.copy()
        for weight, table in zip(weights, self._tables, strict=True):
            blended += weight * (table - self._plain)
        return blended

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        unbiased = self._unbiased.rectangles(low, high, confidence)
        sizes = (high - low + 1).astype(np.float64).prod(axis=1)
        others = np.array([table(low, high) for table in self._sums])
        return self._blended(unbiased, others, sizes, self._answers.kept_share_of_rectangles(low, high))

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        others = np.array([group_cells(table, region, ())[0] for table in self._tables])
        size = np.asarray(float(sum(box.cells for box in region.boxes)))
        kept = self._answers.kept_share_of_region(region)
        return self._blended(self._unbiased.region(region, confidence), others, size, kept)

    def grouped(self, region: Region, axes: Sequence[int]) -> AdjustedGroups:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        unbiased = self._unbiased.grouped(region, axes)
        others = np.array([group_cells(table, region, axes)[0] for table in self._tables])
        weights, _ = self._for_queries(unbiased.sizes.astype(np.float64), others.mean(axis=0))
        values = unbiased.counts + np.einsum("k...,k...->...", weights, others - unbiased.counts)
        return AdjustedGroups(values, unbiased, -np.inf)

    def _blended(self, unbiased: Estimates, others: Floats, sizes: Floats, kept: Floats) -> Estimates:
        weights, shares = self._for_queries(sizes, others.mean(axis=0))
        # Smooth tables keep the totals of regions, so no blend errs less than those do.
        shares = np.maximum(shares, np.sqrt(kept))
        value = unbiased.value + np.einsum("k...,k...->...", weights, others - unbiased.value)
        width = (unbiased.high - unbiased.value) * shares
        return Estimates(value, value - width, value + width, unbiased.stddev * shares)

    def _for_queries(self, sizes: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """Return each query's weights, and its interval's share of that of least squares: between two sizes' own."""
        size, count = np.maximum(sizes, 1.0).ravel(), counts.ravel()
        position = np.log2(size)
        lower = np.floor(position / BITS_APART).astype(np.int64) * BITS_APART
        weights, shares = np.zeros((len(SMOOTHERS), size.size)), np.zeros(size.size)
        for bits in np.unique(np.concatenate([lower, lower + BITS_APART])).tolist():
            amount = np.maximum(1 - np.abs(position - bits) / BITS_APART, 0.0)
            blends = self._blends_of(bits)
            kind = blends.kind_of(count / size)
            weights += amount * np.array([blend.weights for blend in blends.kinds]).T[:, kind]
            shares += amount * np.array([_share(blend) for blend in blends.kinds])[kind]
        return weights.reshape(-1, *sizes.shape), shares.reshape(sizes.shape)

    def _blends_of(self, bits: int) -> Blends:
        """Return the blends for queries of about 2^bits cells; least squares alone where no sample is that large."""
        if bits not in self._blends:
            largest = max(prod(shape) for _, shape in sample_boxes(self._plain.shape))
            is_known = largest == self._plain.size or 2**bits <= largest
            self._blends[bits] = Blends.by(self._evidence(bits)) if is_known else Blends.none(len(SMOOTHERS))
        return self._blends[bits]

    def _evidence(self, bits: int) -> Evidence:
        found = []
        for corner, voices in self._samples:
            low, high = queries_of_size(voices.shape, bits, QUERIES_OF_A_SIZE // len(self._samples))
            variances = self._answers.moments_of_rectangles(low + corner, high + corner).second
            found.append(voices.evidence(low, high, variances))
        return Evidence.joined(found)


def _share(blend: Blend) -> float:
    """Return what part of the interval of least squares is left."""
    if not blend.weights.any() or blend.variance <= 0:
        return 1.0
    return max(WIDENING * sqrt(max(blend.risk, 0.0) + blend.doubt) / sqrt(blend.variance), LEAST_SHARE)


def sample_boxes(shape: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the corner and the shape of each part on which blends are judged: the whole cube, or boxes all over it."""
    if prod(shape) <= LARGEST_SAMPLE:
        return [((0,) * len(shape), shape)]
    side, rng = np.array(shape, dtype=np.int64), np.random.default_rng(0)
    while side.prod() > CELLS_OF_A_BOX:
        longest = int(np.argmax(side))
        side[longest] = -(-side[longest] // 2)
    corners = rng.integers(0, np.array(shape, dtype=np.int64) - side, size=(BOXES, len(shape)), endpoint=True)
    return [(tuple(corner), tuple(side.tolist())) for corner in corners.tolist()]


def queries_of_size(shape: tuple[int, ...], bits: int, many: int) -> tuple[Integers, Integers]:
    """Return random blocks of about 2^bits cells, always the same ones: sides of any proportions that fit."""
    rng = np.random.default_rng(bits)
    room = np.array([log2(size) for size in shape])
    wanted = min(bits, log2(prod(shape)))
    cut = rng.dirichlet(np.ones(len(shape)), many) * wanted
    for _ in range(len(shape)):  # what does not fit along one axis goes to the others
        over = np.maximum(cut - room, 0.0)
        cut = np.minimum(cut, room)
        free = room - cut
        cut += over.sum(axis=1, keepdims=True) * free / np.maximum(free.sum(axis=1, keepdims=True), 1e-12)
    lengths = np.clip(np.rint(2**cut).astype(np.int64), 1, np.array(shape))
    low = rng.integers(0, np.array(shape) - lengths, endpoint=True)
    return low, low + lengths - 1


@compiled
def _by_region(labels: Integers, place: Integers, order: Integers) -> None:
    """Sort the cells by their labels: counting, since the size of every region is known."""
    for cell in range(labels.size):
        order[place[labels[cell]]] = cell
        place[labels[cell]] += 1


@compiled
def _project(values: Floats, ends: Integers, totals: Floats) -> None:
    for region in range(totals.size):
        project_onto_simplex(values, ends[region], ends[region + 1], totals[region])
