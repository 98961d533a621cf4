"""Least squares on an adaptive release: noisy cells and the noisy totals of regions, two laws of noise.

The noises of cells and of totals add up their cumulants, each with those of its own law. Where the regions were chosen
from the noisy cells themselves, the choice follows the noise a little, and naive intervals are too short: those are
widened by a measured factor. A region of few cells may have been chosen because its noise stands out. A question
about such regions as a whole also gets an interval that no choice can spoil: the narrower of that of their totals,
whose noise was drawn afterwards, and that of their cells at a confidence that holds for all sets of as many joined
cells. Small regions are chosen for high noise and count by their cells, large ones by their totals, so that least
squares alone counts too much on the whole: its total is replaced by the best mean of all noisy cells and all noisy
totals, which no choice of regions can bias.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from veilcube.analyst.estimate.base import BlockQueries, CountQueries, Estimates, Table, queries_about_region
from veilcube.analyst.estimate.partition.groups import AdaptiveGroups
from veilcube.laws import NoiseCumulants, half_widths
from veilcube.operators import (
    Blocks,
    CellLists,
    CellsAndRegions,
    PairedMoments,
    group_cells,
)
from veilcube.record import ReleaseRecord
from veilcube.schema import Region
from veilcube.system import Floats, Integers

# Measured: large questions hold many regions whole and follow their choice, a cell or two hardly do.
WIDENING_OF_CHOSEN_REGIONS, WIDENING_OF_FEW_CELLS = 1.3, 1.1
FEW_CELLS = 16
# Whole regions of at most so many cells, often outliers that growing picked out, get an interval that holds whatever
# chose them.
LARGEST_OUTLIER = 64
LARGEST_CONFIDENCE = 1 - 1e-14


def is_adaptive(record: ReleaseRecord) -> bool:
    """Whether a release is of cells and regions."""
    first, last = record.measurements[0], record.measurements[-1]
    return len(record.measurements) == 2 and first.cells is not None and last.parts is not None


def blocks_of(record: ReleaseRecord) -> Blocks | None:
    """Return the grid that the regions are, if they were planned as one and are one.

    Regions that were chosen by the noise and happen to be a grid are still chosen.
    """
    regions, strategy = record.measurements[1].parts, record.plan.get("strategy")
    is_planned = isinstance(strategy, Mapping) and strategy.get("partition") == "blocks"
    if not is_planned or regions is None:
        return None
    labels = regions.chosen
    parts = []
    for axis in range(labels.ndim):
        line = np.moveaxis(labels, axis, 0).reshape(labels.shape[axis], -1)[:, 0]
        parts.append(1 + int(np.count_nonzero(np.diff(line))))
    if np.prod(parts) != regions.regions:
        return None
    grid = Blocks(labels.shape, tuple(parts))
    return grid if np.array_equal(grid.labels, labels) else None


class AdaptiveEstimate:
    """The least-squares answers of an adaptive release."""

    def __init__(self, record: ReleaseRecord) -> None:
        cells, regions = record.measurements
        if regions.parts is None:
            raise TypeError("the second measurement of an adaptive release is of regions")
        grid = blocks_of(record)
        self.answers = CellsAndRegions(regions.parts, cells.noise.variance, regions.noise.variance, grid)
        self.is_chosen = grid is None
        self.cells_measured, self.totals_measured = cells, regions
        self._cells = self.answers.solve(cells.values, regions.values)
        if self.is_chosen:
            self._cells += (self._unbiased_total() - float(self._cells.sum())) / self._cells.size
        self._cells.setflags(write=False)
        self._table = Table(self._cells)

    @cached_property
    def _variances_of_totals(self) -> tuple[float, float]:
        """The variances of the sum of all noisy cells and of that of all noisy totals."""
        cells, totals = (part.values.size * part.noise.variance for part in (self.cells_measured, self.totals_measured))
        return cells, totals

    def _unbiased_total(self) -> float:
        """Return the mean of both sums, weighted by precision."""
        of_cells, of_totals = self._variances_of_totals
        both = of_cells + of_totals
        share = of_totals / both if both > 0 else 1.0
        cells, totals = (float(part.values.sum()) for part in (self.cells_measured, self.totals_measured))
        return share * cells + (1.0 - share) * totals

    @cached_property
    def _added_to_total(self) -> float:
        """By how much the variance of the unbiased total exceeds what least squares has for its own, widened."""
        of_cells, of_totals = self._variances_of_totals
        both = of_cells + of_totals
        unbiased = of_cells * of_totals / both if both > 0 else 0.0
        shape = self._cells.shape
        moments = queries_about_region(Region.everything(shape)).moments(self.answers)
        own = self._widened(moments, np.array([self._cells.size]), np.inf).second
        return max(unbiased - float(own[0]), 0.0)

    def cells(self) -> Floats:
        """Return the least-squares estimate of every cell."""
        return self._cells.copy()

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        return self.ask(BlockQueries(self._cells.shape, low, high), confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        return single(self.ask(queries_about_region(region), confidence))

    def grouped(self, region: Region, axes: Sequence[int]) -> AdaptiveGroups:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        sums, sizes = group_cells(self._cells, region, axes)
        return AdaptiveGroups(sums, sizes, region, tuple(axes), self.answers, self.cumulants, self.ask)

    def ask(self, asked: CountQueries, confidence: float) -> Estimates:
        """Estimate the count of each question."""
        return self.holding_whole_regions(*self.linear(asked, confidence), asked, confidence)

    def linear(self, asked: CountQueries, confidence: float) -> tuple[Estimates, PairedMoments]:
        """Return the answers with the intervals that the moments of their noise give, and these moments."""
        value, moments = asked.sums(self._table), asked.moments(self.answers)
        noise = self.cumulants(moments, asked.sizes, asked.sizes / self._cells.size, largest_weight=1.0)
        width = noise.half_widths(confidence)
        return Estimates(value, value - width, value + width, np.sqrt(noise.second)), moments

    def cumulants(
        self, moments: PairedMoments, sizes: Integers, share: Floats, *, largest_weight: float = np.inf
    ) -> NoiseCumulants:
        """Return the cumulants of the noise of answers about so many cells, widened where regions were chosen.

        A count takes each noise by at most 1, a weighted sum by any weight. ``share`` is the mean weight of all cells:
        that much of the unbiased total is in the answer.
        """
        noise = self._widened(moments, sizes, largest_weight)
        if not self.is_chosen:
            return noise
        return replace(noise, second=noise.second + self._added_to_total * np.square(share))

    def _widened(self, moments: PairedMoments, sizes: Integers, largest_weight: float) -> NoiseCumulants:
        of_laws = (
            NoiseCumulants.of(part.noise, powers.second, powers.fourth, powers.sixth, bounded=powers.bounded)
            for part, powers in ((self.cells_measured, moments.cells), (self.totals_measured, moments.totals))
        )
        cells, totals = of_laws
        both = (cells + totals).with_weights_up_to(largest_weight)
        return both.widened(widening_of(sizes)) if self.is_chosen else both

    def holding_whole_regions(
        self, found: Estimates, moments: PairedMoments, asked: CountQueries, confidence: float
    ) -> Estimates:
        """Return estimates whose intervals hold, for whole regions of few cells, what no choice can spoil."""
        if not self.is_chosen:
            return found
        sizes = asked.sizes
        at = np.flatnonzero((moments.whole == sizes) & (sizes >= 1) & (sizes <= LARGEST_OUTLIER))
        least, greatest = self.after_choice(asked.listed(at), confidence)
        low, high = found.low.copy(), found.high.copy()
        low[at], high[at] = np.minimum(low[at], least), np.maximum(high[at], greatest)
        return Estimates(found.value, low, high, found.stddev)

    def after_choice(self, lists: CellLists, confidence: float) -> tuple[Floats, Floats]:
        """Return for each list of cells that makes up whole regions an interval that holds whatever chose them."""
        labels = self.answers.regions.chosen.ravel()[lists.cells]
        numbers, sizes = np.repeat(np.arange(len(lists)), lists.sizes), self.answers.regions.sizes

        def summed(values: Floats) -> Floats:
            return np.bincount(numbers, weights=values, minlength=len(lists)).astype(np.float64)

        own = summed(self.cells_measured.values.ravel()[lists.cells].astype(np.float64))
        totals, regions = summed((self.totals_measured.values / sizes)[labels]), summed(1 / sizes[labels])
        of_totals = half_widths(self.totals_measured.noise, np.rint(regions).astype(np.int64), confidence)
        of_cells = np.zeros(len(lists))
        neighbours = 2 * sum(size > 1 for size in self._cells.shape)
        for size in np.unique(lists.sizes).tolist():
            sets = self._cells.size * max(neighbours, 1) ** (size - 1)
            level = min(1 - (1 - confidence) / sets, LARGEST_CONFIDENCE)
            width = half_widths(self.cells_measured.noise, np.array([size]), level)
            of_cells[lists.sizes == size] = width[0]
        is_by_totals = of_totals <= of_cells
        middle, width = np.where(is_by_totals, totals, own), np.where(is_by_totals, of_totals, of_cells)
        return middle - width, middle + width


def single(found: Estimates) -> Estimates:
    """Return the estimate of a single question; arrays of shape ()."""
    value, low, high, stddev = (np.asarray(part[0]) for part in (found.value, found.low, found.high, found.stddev))
    return Estimates(value, low, high, stddev)


def widening_of(sizes: Integers) -> Floats:
    """Return by how much intervals are widened for questions of so many cells where regions were chosen."""
    few = np.minimum(FEW_CELLS / np.maximum(sizes, 1), 1.0)
    return np.asarray(WIDENING_OF_CHOSEN_REGIONS + (WIDENING_OF_FEW_CELLS - WIDENING_OF_CHOSEN_REGIONS) * few)
