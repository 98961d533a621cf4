"""Non-negative estimates: least squares, then the walk from the root that keeps every total (``walk``).

No cell is below zero and all answers add up, which least squares alone cannot promise; on sparse tables the error is
usually smaller as well, though it is no longer zero on average. The walk only post-processes what is public. Its own
error has no law that holds for every table, so the interval is the one that least squares guarantees, cut at zero and
widened, if need be, to hold the value: it covers at least as often. The standard deviation is that of least squares.
Sums, means, quantiles and distribution functions weigh counts against each other and need unbiased ones: those are
least squares' own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimate, Estimates, GroupedCounts
from veilcube.analyst.estimate.block_sums import BlockSums
from veilcube.analyst.estimate.grouping import group_cells
from veilcube.analyst.estimate.least_squares import LeastSquares
from veilcube.analyst.estimate.walk import walk_halves, walk_tree
from veilcube.operators import Operator, ProductOperator, TreeAxis
from veilcube.release import ReleaseRecord
from veilcube.schema import Region

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Nonnegative:
    """Least squares made non-negative from the root down; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "nonnegative"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether least squares can read the release."""
        return LeastSquares().can_read(record)

    def fit(self, record: ReleaseRecord) -> "NonnegativeEstimate":
        """Return its answers about this release."""
        unbiased = LeastSquares().fit(record)
        return NonnegativeEstimate(unbiased, walked_cells(record.measurements[0].operator, unbiased.cells()))


def walked_cells(operator: Operator, cells: Floats) -> Floats:
    """Return least-squares cells made non-negative, along the measured tree of one axis or else by halves."""
    if isinstance(operator, ProductOperator) and len(operator.axes) == 1 and isinstance(operator.axes[0], TreeAxis):
        return walk_tree(operator.axes[0].shape, cells)
    return walk_halves(cells)


class NonnegativeEstimate:
    """Sums of non-negative cells, with the intervals of least squares."""

    def __init__(self, unbiased: Estimate, cells: Floats) -> None:
        cells.setflags(write=False)
        self._unbiased, self._cells, self._block_sums = unbiased, cells, BlockSums(cells)

    def cells(self) -> Floats:
        """Return the non-negative estimate of every cell."""
        return self._cells.copy()

    def rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64], confidence: float) -> Estimates:
        """Estimate the count of each block."""
        return _nonnegative(self._block_sums(low, high), self._unbiased.rectangles(low, high, confidence))

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        return _nonnegative(group_cells(self._cells, region, ())[0], self._unbiased.region(region, confidence))

    def grouped(self, region: Region, axes: Sequence[int]) -> "NonnegativeGroups":
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        values, _ = group_cells(self._cells, region, axes)
        return NonnegativeGroups(values, self._unbiased.grouped(region, axes))


@dataclass(frozen=True, eq=False)
class NonnegativeGroups:
    """Groups whose estimates are non-negative; as linear statistics of the noise they are those of least squares."""

    values: Floats
    unbiased: GroupedCounts

    @property
    def counts(self) -> Floats:
        """The unbiased count of each group, which tests of ratios need."""
        return self.unbiased.counts

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many cells of the cube each group holds."""
        return self.unbiased.sizes

    def first(self, size: int) -> "NonnegativeGroups":
        """Return the first groups of a single axis only."""
        return NonnegativeGroups(self.values[:size], self.unbiased.first(size))

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's non-negative count with its interval."""
        return _nonnegative(self.values, self.unbiased.estimates(confidence))

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


def _nonnegative(value: Floats, unbiased: Estimates) -> Estimates:
    """Return values with the interval of least squares, cut at zero and widened to hold them."""
    # Sums of a table of floats may come out below zero by its rounding.
    value = np.maximum(value, 0.0)
    low = np.minimum(np.maximum(unbiased.low, 0.0), value)
    high = np.maximum(np.maximum(unbiased.high, 0.0), value)
    return Estimates(value, low, high, unbiased.stddev)
