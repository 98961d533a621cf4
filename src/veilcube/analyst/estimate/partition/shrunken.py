"""Shrunken estimates of cells: smoothed as far as the data allow, with the totals of regions kept, and blended.

Least squares on cells and regions is smoothed at several scales (``multiscale``), in a plain and in a curved way. Every
region then gets back the total that least squares found, and its cells are made non-negative with that total kept. How
far the answers follow these tables and how far least squares is decided for each size of query (``blending``): where
neighbours are alike they follow, where they are not they do not. Intervals are those of least squares, scaled by how
much smaller the error was estimated to be, and widened (docs/decisions/0007-adaptive.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log2, prod, sqrt

import numpy as np

from veilcube.analyst.estimate.base import (
    BlockQueries,
    CountQueries,
    Estimates,
    Table,
    project_onto_simplex,
    queries_about_region,
)
from veilcube.analyst.estimate.partition.blending import AnswersToBlend, Blend, Blends, Evidence
from veilcube.analyst.estimate.partition.cells_and_regions import AdaptiveEstimate, is_adaptive, single
from veilcube.analyst.estimate.partition.groups import AdaptiveGroups
from veilcube.analyst.estimate.partition.multiscale import CURVED, PLAIN, surroundings
from veilcube.errors import CapacityError
from veilcube.operators import BlockSums, CellsAndRegions, RegionCounts
from veilcube.record import ReleaseRecord
from veilcube.schema import Nominal, Region
from veilcube.system import Floats, Integers, available_memory, compiled, format_bytes, share_out

PROBES = 2
# How often noise is sent through the smoothing again to see how much of it single answers follow.
ECHOES = 8
# An answer so many times further from least squares than noise brings it is biased.
FAR = 2.0
QUERIES_OF_A_SIZE = 1200
# Sizes that are judged lie a factor of four apart; between them weights are interpolated.
BITS_APART = 2
STEP_OF_A_PROBE = 0.1
WIDENING = 1.3
# However well it went, an interval never shrinks below this part of least squares'.
LEAST_SHARE = 0.2
# So many standard deviations of least squares away, smoothing contradicts what was measured.
CONTRADICTION = 1.5
SMOOTHERS = (PLAIN, CURVED)
# Larger cubes are judged by boxes of so many cells.
LARGEST_SAMPLE = 2**16
# The tables, their details at two scales at once, and sums over blocks: measured.
BYTES_PER_CELL = 260
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
        _require_memory(record.schema.cells)
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

    def voices(self, plain: Floats, tables: Sequence[Floats]) -> AnswersToBlend:
        """Return the tables as functions of queries, and how they change when the noisy measurements do."""
        probes = [
            (BlockSums(change), [BlockSums(one) for one in changes])
            for change, changes in self.changes(plain, tables, PROBES)
        ]
        levels = BlockSums(self.levels(tables))
        return AnswersToBlend(plain.shape, BlockSums(plain), [BlockSums(table) for table in tables], levels, probes)

    def changes(self, plain: Floats, tables: Sequence[Floats], times: int) -> Iterator[tuple[Floats, list[Floats]]]:
        """Yield random changes of least squares, as large as its noise, with what each changes in the smooth tables."""
        rng = np.random.default_rng(0)
        for _ in range(times):
            change = self.answers.solve(
                rng.choice([-1.0, 1.0], plain.shape) * np.sqrt(self.answers.cell_variance),
                rng.choice([-1.0, 1.0], self.answers.regions.regions) * np.sqrt(self.answers.region_variance),
            )
            pairs = zip(self(plain + STEP_OF_A_PROBE * change), tables, strict=True)
            yield change, [(after - before) / STEP_OF_A_PROBE for after, before in pairs]

    def levels(self, tables: Sequence[Floats]) -> Floats:
        """Return how much is counted around each cell: hardly any of it is the noise of the cell itself.

        Were it that noise, then queries of a high level would be those of high noise, and the risk of leaving least
        squares, which is high itself there, would be estimated far too low.
        """
        return surroundings(tables[0], self.smoothed)


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
    def _levels(self) -> Table:
        return Table(Shrinking(self._answers, self._smoothed).levels(self._tables))

    @cached_property
    def _summed(self) -> list[Table]:
        return [Table(table) for table in self._tables]

    @cached_property
    def _echoes(self) -> list[tuple[Table, list[Table]]]:
        """Changes of least squares, and of the smooth tables; none of a cube so large that boxes of it are judged."""
        if self._plain.size > LARGEST_SAMPLE:
            return []
        found = Shrinking(self._answers, self._smoothed).changes(self._plain, self._tables, ECHOES)
        return [(Table(change), [Table(one) for one in changes]) for change, changes in found]

    def _least_spread(self, asked: CountQueries, weights: Floats, away: Floats) -> Floats:
        """Return what each answer errs by at least: where smoothing keeps an edge, it keeps noise and lowers the edge.

        ``away`` is how far the answers are from least squares. What noise does not do to that is bias.
        """
        noise, moves = np.zeros_like(away), np.zeros_like(away)
        for plain, others in self._echoes:
            change = asked.sums(plain)
            moved = np.einsum("k...,k...->...", weights, np.array([asked.sums(table) for table in others]) - change)
            noise += np.square(change + moved)
            moves += np.square(moved)
        number = len(self._echoes)
        if not number:
            return noise
        is_bias = np.square(away) > FAR**2 * moves / number
        return np.sqrt(noise / number + np.where(is_bias, np.square(away), 0.0))

    @cached_property
    def _samples(self) -> list[tuple[Integers, AnswersToBlend]]:
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
        weights, _ = self._for_queries(np.ones(self._plain.shape), self._levels.cells)
        blended = self._plain.copy()
        for weight, table in zip(weights, self._tables, strict=True):
            blended += weight * (table - self._plain)
        return blended

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        return self.ask(BlockQueries(self._plain.shape, low, high), confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        return single(self.ask(queries_about_region(region), confidence))

    def grouped(self, region: Region, axes: Sequence[int]) -> AdaptiveGroups:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        return replace(self._unbiased.grouped(region, axes), ask=self.ask)

    def ask(self, asked: CountQueries, confidence: float) -> Estimates:
        """Estimate the count of each question."""
        plain, moments = self._unbiased.linear(asked, confidence)
        others = np.array([asked.sums(table) for table in self._summed])
        weights, shares = self._for_queries(asked.sizes.astype(np.float64), asked.sums(self._levels))
        # Smooth tables keep the totals of regions, so no blend errs less than those do.
        shares = np.maximum(shares, np.sqrt(self._answers.kept_share(moments)))
        away = np.einsum("k...,k...->...", weights, others - plain.value)
        least = self._least_spread(asked, weights, away)
        shares = np.maximum(shares, np.divide(least, plain.stddev, out=np.zeros_like(least), where=plain.stddev > 0))
        value = plain.value + away
        width = (plain.high - plain.value) * shares
        # A lone peak: what was seen there is more than noise explains, so the interval must not leave it out.
        is_far = np.abs(value - plain.value) > CONTRADICTION * plain.stddev
        low = np.where(is_far, np.minimum(value - width, plain.low), value - width)
        high = np.where(is_far, np.maximum(value + width, plain.high), value + width)
        found = Estimates(value, low, high, plain.stddev * shares)
        return self._unbiased.holding_whole_regions(found, moments, asked, confidence)

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
            if is_known:
                judged = sum(prod(shape) for _, shape in sample_boxes(self._plain.shape))
                self._blends[bits] = Blends.by(self._evidence(bits), judged / 2**bits)
            else:
                self._blends[bits] = Blends.none(len(SMOOTHERS))
        return self._blends[bits]

    def _evidence(self, bits: int) -> Evidence:
        found = []
        for corner, voices in self._samples:
            low, high = queries_of_size(voices.shape, bits, QUERIES_OF_A_SIZE // len(self._samples))
            variances = self._answers.moments_of_rectangles(low + corner, high + corner).second
            found.append(voices.evidence(low, high, variances))
        return Evidence.joined(found)


def _require_memory(cells: int) -> None:
    """Refuse cubes whose smooth tables would not fit, before any of them is made."""
    needed, available = cells * BYTES_PER_CELL, available_memory()
    if needed > available:
        raise CapacityError(
            f"estimator 'shrunken' needs about {format_bytes(needed)} for smooth tables, but only "
            f"{format_bytes(available)} of memory are available; use estimator='least_squares'"
        )


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
