"""Least squares on any linear strategy: the cells it estimates, and answers with intervals from exact moments.

The estimate of a query is a linear function of the noisy measurements, so it is unbiased, its variance is exact, and
its interval follows from the moments of its noise weights (``privacy.answer_noise``).
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimates, GroupedCounts
from veilcube.analyst.estimate.intervals import with_intervals
from veilcube.analyst.estimate.linear_groups import LinearGroups
from veilcube.analyst.estimate.product_noise import ProductNoise
from veilcube.analyst.estimate.region_noise import RegionNoise
from veilcube.operators import ProductOperator
from veilcube.operators.block_sums import BlockSums
from veilcube.operators.grouping import group_cells
from veilcube.operators.moments import LinearAnswers
from veilcube.privacy.noise import DiscreteLaplace
from veilcube.schema import Region


class LinearEstimate:
    """The least-squares answers of one measurement by any operator that tells its moments."""

    def __init__(self, operator: LinearAnswers, values: NDArray[np.int64], noise: DiscreteLaplace) -> None:
        self._operator, self._values, self._noise = operator, values, noise

    @cached_property
    def _cells(self) -> NDArray[np.float64]:
        cells = self._operator.solve(self._values)
        cells.setflags(write=False)
        return cells

    @cached_property
    def _block_sums(self) -> BlockSums[np.float64]:
        return BlockSums(self._cells)

    def cells(self) -> NDArray[np.float64]:
        """Return the least-squares estimate of every cell."""
        return self._cells.copy()

    def rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64], confidence: float) -> Estimates:
        """Estimate the count of each block."""
        moments = self._operator.moments_of_rectangles(low, high)
        return with_intervals(self._block_sums(low, high), moments, self._noise, confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        moments = self._operator.moments_of_region(region)
        return with_intervals(group_cells(self._cells, region, ())[0], moments, self._noise, confidence)

    def grouped(self, region: Region, axes: Sequence[int]) -> GroupedCounts:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        sums, sizes = group_cells(self._cells, region, axes)
        group_noise = (
            ProductNoise.of(self._operator, region, axes)
            if isinstance(self._operator, ProductOperator)
            else RegionNoise(self._operator, region, tuple(axes))
        )
        return LinearGroups(sums, sizes, self._noise, group_noise)
