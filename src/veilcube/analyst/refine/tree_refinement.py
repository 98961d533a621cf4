"""Refined trees under known facts: their posterior cells moved, with the posterior's own intervals.

A refined tree measures what earlier measurements pointed to, so it has no least-squares estimate and no covariance of
its cells. The posterior means are moved in the metric of their standard deviations, as if those were independent:
answers obey the facts, and no variance is claimed to be smaller, except for what the facts tell for certain.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate import Estimate, Estimates
from veilcube.analyst.estimate.adjusted import AdjustedEstimate
from veilcube.analyst.refine.amended import AmendedEstimate, Questions
from veilcube.analyst.refine.boxes import Boxes, BoxSums
from veilcube.analyst.refine.covariance import variances
from veilcube.analyst.refine.imposing import Imposed
from veilcube.analyst.refine.refined_answers import NOTHING_LEFT, explained_variances
from veilcube.operators.block_sums import BlockSums

Floats = NDArray[np.float64]

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
class Certainty:
    """Makes the intervals of questions that the equalities determine a single point."""

    metric: IndependentCells
    imposed: Imposed

    def amend(self, found: Estimates, questions: Questions, confidence: float) -> Estimates:
        """Return the estimates, certain ones without an interval."""
        del confidence
        is_certain = np.zeros(found.value.shape, dtype=bool)
        is_certain[questions.held] = self._is_certain(questions.sums)
        low, high = np.where(is_certain, found.value, found.low), np.where(is_certain, found.value, found.high)
        return Estimates(found.value, low, high, np.where(is_certain, 0.0, found.stddev))

    def _is_certain(self, sums: BoxSums) -> NDArray[np.bool_]:
        """Return which sums the equalities determine: those without variance left in any metric."""
        own = variances(self.metric, sums)
        explained = explained_variances(self.metric, self.imposed.known, self.imposed.factored, sums)
        return np.asarray(own - explained <= NOTHING_LEFT * own)


def refined_tree_estimate(posterior: Estimate, metric: IndependentCells, imposed: Imposed) -> Estimate:
    """Return posterior answers moved to obey the facts, exact where the facts leave no choice."""
    cells = imposed.refined_cells if imposed.moved_cells is None else imposed.moved_cells
    return AmendedEstimate(AdjustedEstimate(posterior, cells.copy()), Certainty(metric, imposed).amend)
