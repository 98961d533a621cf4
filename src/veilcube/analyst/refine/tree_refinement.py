"""Refined trees under known facts: their posterior cells moved, with the posterior's own intervals.

A refined tree measures what earlier measurements pointed to, so it has no least-squares estimate and no covariance of
its cells. The posterior means are moved in the metric of their standard deviations, as if those were independent:
answers obey the facts, and no variance is claimed to be smaller, except for what the facts tell for certain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate import Estimate, Estimates
from veilcube.analyst.estimate.adjusted import AdjustedEstimate, AdjustedGroups
from veilcube.analyst.refine.boxes import Boxes, BoxSums
from veilcube.analyst.refine.covariance import variances
from veilcube.analyst.refine.imposing import Imposed
from veilcube.analyst.refine.refined_answers import NOTHING_LEFT, explained_variances
from veilcube.operators.block_sums import BlockSums
from veilcube.operators.grouping import group_of
from veilcube.schema import Region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_CELLS_AT_ONCE = 1 << 15
_LEAST_SHARE = 1e-3
_ANY_CONFIDENCE = 0.5


@dataclass(frozen=True, eq=False)
class IndependentCells:
    """A diagonal S: a variance of its own for every cell."""

    variance: Floats

    @classmethod
    def of(cls, posterior: Estimate, shape: tuple[int, ...]) -> "IndependentCells":
        """Return the posterior variance of each cell; none is zero, so that every fact can be met."""
        index = np.indices(shape).reshape(len(shape), -1).T.astype(np.int64)
        parts = (index[start : start + _CELLS_AT_ONCE] for start in range(0, len(index), _CELLS_AT_ONCE))
        deviations = np.concatenate([posterior.rectangles(part, part, _ANY_CONFIDENCE).stddev for part in parts])
        least = _LEAST_SHARE * (deviations.max() or 1.0)
        return cls(np.square(np.maximum(deviations, least)).reshape(shape))

    def spread(self, weights: Floats) -> Floats:
        """Return S u."""
        return self.variance * weights

    def of_boxes(self, left: Boxes, right: Boxes) -> Floats:
        """Return the summed variances of the cells that two boxes share."""
        found = np.empty((len(left), len(right)))
        for row in range(len(left)):
            shared = self.spread(left.take(np.array([row])).spread(np.ones(1)))
            found[row] = right.sums(BlockSums(shared), shared)
        return found

    def of_each(self, boxes: Boxes) -> Floats:
        """Return the summed variances of the cells of each box."""
        return boxes.sums(BlockSums(self.variance), self.variance)


@dataclass(frozen=True, eq=False)
class RefinedTreeGroups(AdjustedGroups):
    """Groups of a refined tree; ``is_certain`` are those that the facts leave no choice."""

    is_certain: NDArray[np.bool_]

    def first(self, size: int) -> "RefinedTreeGroups":
        """Return the first groups of a single axis only."""
        fewer = super().first(size)
        return RefinedTreeGroups(fewer.values, fewer.unbiased, fewer.least, self.is_certain[:size])

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval, a single point where the facts tell it."""
        return _certain(super().estimates(confidence), self.is_certain)


class RefinedTreeEstimate:
    """Posterior answers moved to obey the facts, exact where the facts leave no choice."""

    def __init__(self, posterior: Estimate, metric: IndependentCells, imposed: Imposed) -> None:
        cells = imposed.refined_cells if imposed.moved_cells is None else imposed.moved_cells
        self._adjusted = AdjustedEstimate(posterior, cells.copy())
        self._metric, self._imposed, self._shape = metric, imposed, cells.shape

    def cells(self) -> Floats:
        """Return the refined estimate of every cell."""
        return self._adjusted.cells()

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        found = self._adjusted.rectangles(low, high, confidence)
        held = np.flatnonzero(np.all(high >= low, axis=1))
        is_certain = np.zeros(len(low), dtype=bool)
        is_certain[held] = self._is_certain(BoxSums(Boxes(self._shape, low[held], high[held])))
        return _certain(found, is_certain)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        found = self._adjusted.region(region, confidence)
        if not region.boxes:
            return found
        return _certain(found, self._is_certain(BoxSums.of_regions(region.shape, [region])).reshape(()))

    def grouped(self, region: Region, axes: Sequence[int]) -> "RefinedTreeGroups":
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        groups = self._adjusted.grouped(region, axes)
        is_certain = np.zeros(groups.values.shape, dtype=bool)
        held = np.argwhere(groups.sizes > 0)
        if len(held):
            is_certain[tuple(held.T)] = self._is_certain(_sums_of_groups(region, axes, held))
        return RefinedTreeGroups(groups.values, groups.unbiased, groups.least, is_certain)

    def _is_certain(self, sums: BoxSums) -> NDArray[np.bool_]:
        """Return which sums the equalities determine: those without variance left in any metric."""
        own = variances(self._metric, sums)
        explained = explained_variances(self._metric, self._imposed.known, self._imposed.factored, sums)
        return np.asarray(own - explained <= NOTHING_LEFT * own)


def _sums_of_groups(region: Region, axes: Sequence[int], held: Integers) -> BoxSums:
    rectangle = region.rectangle()
    if rectangle is None:
        return BoxSums.of_regions(region.shape, [group_of(region, axes, index) for index in held.tolist()])
    low, high = (np.broadcast_to(corner, (len(held), len(region.shape))).copy() for corner in rectangle)
    low[:, list(axes)] = high[:, list(axes)] = held
    return BoxSums(Boxes(region.shape, low, high))


def _certain(found: Estimates, is_certain: NDArray[np.bool_]) -> Estimates:
    low, high = np.where(is_certain, found.value, found.low), np.where(is_certain, found.value, found.high)
    return Estimates(found.value, low, high, np.where(is_certain, 0.0, found.stddev))
