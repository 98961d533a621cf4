"""Least squares on an adaptive release: noisy cells and the noisy totals of regions, two laws of noise.

The moments of the noise weights are put in units of the cells' noise, so that intervals are made as for any linear
answer. Where the regions were chosen from the noisy cells themselves, the choice follows the noise a little, and naive
intervals are too short: those are widened by a measured factor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimates
from veilcube.analyst.estimate.grouping import group_cells
from veilcube.analyst.estimate.intervals import with_intervals
from veilcube.analyst.estimate.linear_groups import LinearGroups
from veilcube.analyst.estimate.region_noise import RegionNoise
from veilcube.operators import IdentityOperator, RegionCounts
from veilcube.operators.block_sums import BlockSums
from veilcube.operators.cells_and_regions import CellsAndRegions
from veilcube.operators.moments import Moments
from veilcube.operators.regions import Blocks
from veilcube.release import ReleaseRecord
from veilcube.schema import Region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Small regions are often outliers of the noise that growing picked out, so questions about few cells stray further.
WIDENING_OF_CHOSEN_REGIONS, WIDENING_OF_FEW_CELLS = 1.3, 2.2
FEW_CELLS = 16


def is_adaptive(record: ReleaseRecord) -> bool:
    """Whether a release is of cells and regions."""
    kinds = [type(measurement.operator) for measurement in record.measurements]
    return kinds == [IdentityOperator, RegionCounts]


def blocks_of(record: ReleaseRecord) -> Blocks | None:
    """Return the grid that the regions are, if they were planned as one and are one.

    Regions that were chosen by the noise and happen to be a grid are still chosen.
    """
    regions, strategy = record.measurements[1].operator, record.plan.get("strategy")
    is_planned = isinstance(strategy, Mapping) and strategy.get("partition") == "blocks"
    if not is_planned or not isinstance(regions, RegionCounts):
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


@dataclass(frozen=True, eq=False)
class UnitMoments:
    """The moments of answers from cells and regions, in units of the noise of one cell, widened if need be."""

    answers: CellsAndRegions
    is_chosen: bool

    def noise_weights(self, query: Floats) -> Floats:
        """Return by how much each noise enters the answer to a query that weighs every cell, in units of the cells'."""
        weights: Floats = self.answers.noise_weights(query) / np.sqrt(self._unit)
        return weights * self._widening(np.asarray(np.count_nonzero(query)))

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of each block."""
        return self._in_units(self.answers.moments_of_rectangles(low, high), (high - low + 1).prod(axis=1))

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of a region of the cube; shape ()."""
        size = np.asarray(sum(box.cells for box in region.boxes))
        return self._in_units(self.answers.moments_of_region(region), size)

    @property
    def _unit(self) -> float:
        # Noise so small that its variance is not a number above 0 enters no answer.
        return self.answers.cell_variance or np.inf

    def _widening(self, sizes: Integers) -> Floats:
        return widening_of(sizes) if self.is_chosen else np.ones(sizes.shape)

    def _in_units(self, moments: Moments, sizes: Integers) -> Moments:
        unit = self._unit / self._widening(sizes) ** 2
        second, fourth, sixth = moments.second / unit, moments.fourth / unit / unit, moments.sixth / unit / unit / unit
        return Moments(second, fourth, sixth, bounded=moments.bounded)


class AdaptiveEstimate:
    """The least-squares answers of an adaptive release."""

    def __init__(self, record: ReleaseRecord) -> None:
        cells, regions = record.measurements
        if not isinstance(regions.operator, RegionCounts):
            raise TypeError("the second measurement of an adaptive release is of regions")
        grid = blocks_of(record)
        self.answers = CellsAndRegions(regions.operator, cells.noise.variance, regions.noise.variance, grid)
        self.is_chosen = grid is None
        self._noise, self._moments = cells.noise, UnitMoments(self.answers, self.is_chosen)
        self._cells = self.answers.solve(cells.values, regions.values)
        self._cells.setflags(write=False)
        self._block_sums = BlockSums(self._cells)

    def cells(self) -> Floats:
        """Return the least-squares estimate of every cell."""
        return self._cells.copy()

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        moments = self._moments.moments_of_rectangles(low, high)
        return with_intervals(self._block_sums(low, high), moments, self._noise, confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        moments = self._moments.moments_of_region(region)
        value = group_cells(self._cells, region, ())[0]
        return with_intervals(value, moments, self._noise, confidence)

    def grouped(self, region: Region, axes: Sequence[int]) -> LinearGroups:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        sums, sizes = group_cells(self._cells, region, axes)
        return LinearGroups(sums, sizes, self._noise, RegionNoise(self._moments, region, tuple(axes)))


def widening_of(sizes: Integers) -> Floats:
    """Return by how much intervals are widened for questions of so many cells where regions were chosen."""
    few = np.minimum(FEW_CELLS / np.maximum(sizes, 1), 1.0)
    return np.asarray(WIDENING_OF_CHOSEN_REGIONS + (WIDENING_OF_FEW_CELLS - WIDENING_OF_CHOSEN_REGIONS) * few)
