"""Estimates that adjust the cells of least squares: their own values, with intervals that least squares guarantees.

An adjusted estimate (non-negative, thresholded) has no law that holds for every table, so its interval is that of least
squares, widened, if need be, to hold the value: it covers at least as often. The standard deviation is that of least
squares. Sums, means, quantiles and distribution functions weigh counts against each other and need unbiased ones: those
are least squares' own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base.portable import Portable, PortableEstimate, Runs, cells_of_runs
from veilcube.analyst.estimate.base.protocol import Estimate, Estimates, GroupedCounts
from veilcube.operators import BlockSums, group_cells
from veilcube.schema import Region
from veilcube.system import Floats


class AdjustedEstimate:
    """Sums of adjusted cells, with the intervals of least squares; ``least`` is the least that a count can be."""

    def __init__(self, unbiased: Estimate, cells: Floats, least: float = -np.inf) -> None:
        cells.setflags(write=False)
        self._unbiased, self._cells, self._least = unbiased, cells, least
        self._block_sums = BlockSums(cells)

    def cells(self) -> Floats:
        """Return the adjusted estimate of every cell."""
        return self._cells.copy()

    def rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64], confidence: float) -> Estimates:
        """Estimate the count of each block."""
        return _adjusted(self._block_sums(low, high), self._unbiased.rectangles(low, high, confidence), self._least)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        value = group_cells(self._cells, region, ())[0]
        return _adjusted(value, self._unbiased.region(region, confidence), self._least)

    def grouped(self, region: Region, axes: Sequence[int]) -> "AdjustedGroups":
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        values, _ = group_cells(self._cells, region, axes)
        return AdjustedGroups(values, self._unbiased.grouped(region, axes), self._least)

    def portable(self, cuts: Sequence[Runs], confidence: float) -> Portable | None:
        """Return how to compute its answers elsewhere: intervals lie around the values of least squares."""
        unbiased = self._unbiased
        found = unbiased.portable(cuts, confidence) if isinstance(unbiased, PortableEstimate) else None
        if found is None:
            return None
        least = self._least if np.isfinite(self._least) else None
        return Portable(cells_of_runs(self._cells, cuts), {**found.intervals, "around": found.values, "least": least})


@dataclass(frozen=True, eq=False)
class AdjustedGroups:
    """Groups whose estimates are adjusted; as linear statistics of the noise they are those of least squares."""

    values: Floats
    unbiased: GroupedCounts
    least: float

    @property
    def counts(self) -> Floats:
        """The unbiased count of each group, which tests of ratios need."""
        return self.unbiased.counts

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many cells of the cube each group holds."""
        return self.unbiased.sizes

    def first(self, size: int) -> "AdjustedGroups":
        """Return the first groups of a single axis only."""
        return AdjustedGroups(self.values[:size], self.unbiased.first(size), self.least)

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's adjusted count with its interval."""
        return _adjusted(self.values, self.unbiased.estimates(confidence), self.least)

    def variance_of(self, weights: Floats) -> float:
        """Return the noise variance of a weighted sum of the unbiased groups."""
        return self.unbiased.variance_of(weights)

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return w such that the noise of a weighted sum of the unbiased groups stays within ±w."""
        return self.unbiased.half_width_of(weights, confidence)

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        return self.unbiased.prefix_variances(inside, outside)

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        return self.unbiased.prefix_half_widths(inside, outside, confidence)


def _adjusted(value: Floats, unbiased: Estimates, least: float) -> Estimates:
    """Return values with the interval of least squares, cut at the least count and widened to hold them."""
    # Sums of a table of floats may come out below the least count by its rounding.
    value = np.maximum(value, least)
    low = np.minimum(np.maximum(unbiased.low, least), value)
    high = np.maximum(np.maximum(unbiased.high, least), value)
    return Estimates(value, low, high, unbiased.stddev)
