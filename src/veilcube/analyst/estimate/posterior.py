"""The posterior mean: non-negative, consistent, and as sure as the data are smooth.

Values are exact posterior means under the Pólya-tree prior of ``veilcube.posterior``. Intervals come from draws of the
joint posterior. A prior may be wrong, so they are calibrated: a spread is widened by WIDENING, cells that nobody
measured alone are taken as being in one place and not spread out, and one step of the grid on which counts are computed
is added (docs/known-limits.md, docs/benchmarks.md for the coverage that this gives). They are not proofs:
``interval="guaranteed"`` gives those.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimates
from veilcube.analyst.estimate.measured_nodes import has_measured_tree, measured_tree
from veilcube.operators.block_sums import BlockSums
from veilcube.operators.grouping import group_cells
from veilcube.posterior import WIDENING, Belief, draw_cells, learn
from veilcube.privacy.deviations import normal_deviations
from veilcube.release import ReleaseRecord
from veilcube.schema import Region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# In a plane the prior bends slopes alike along whole edges of a rectangle, which draws do not show.
FURTHER_IN_A_PLANE = 1.75


@dataclass(frozen=True)
class Posterior:
    """The posterior mean under a prior whose weights are learned from the release; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "posterior"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the measured nodes of the release form a tree of moderate size."""
        return has_measured_tree(record)

    def fit(self, record: ReleaseRecord) -> "PosteriorEstimate":
        """Return its answers about this release."""
        return PosteriorEstimate(record.schema.shape, learn(measured_tree(record)))


class PosteriorEstimate:
    """Sums of posterior means, with intervals from draws."""

    def __init__(self, shape: tuple[int, ...], belief: Belief) -> None:
        self._cells = belief.cells().reshape(shape)
        self._cells.setflags(write=False)
        self._block_sums = BlockSums(self._cells)
        self._belief = belief

    @cached_property
    def _draws(self) -> NDArray[np.float32]:
        further = np.float32(FURTHER_IN_A_PLANE if sum(size > 1 for size in self._cells.shape) > 1 else 1.0)
        return further * draw_cells(self._belief).reshape(-1, *self._cells.shape)

    def cells(self) -> Floats:
        """Return the posterior mean of every cell."""
        return self._cells.copy()

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        total, squares = np.zeros(low.shape[0]), np.zeros(low.shape[0])
        for draw in self._draws:
            sums = BlockSums(draw.astype(np.float64))(low, high)
            total += sums
            squares += np.square(sums)
        count = len(self._draws)
        variance = np.maximum(squares / count - np.square(total / count), 0.0) * count / (count - 1)
        return _estimates(self._block_sums(low, high), np.sqrt(variance), self._belief.step, confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        return self.grouped(region, ()).estimates(confidence)

    def grouped(self, region: Region, axes: Sequence[int]) -> "DrawnGroups":
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        counts, sizes = group_cells(self._cells, region, axes)
        drawn = np.stack([group_cells(draw.astype(np.float64), region, axes)[0] for draw in self._draws])
        return DrawnGroups(counts, sizes, drawn, self._belief.step)


@dataclass(frozen=True, eq=False)
class DrawnGroups:
    """Groups of cells with their posterior means and drawn deviations from them (draws first)."""

    counts: Floats
    sizes: Integers
    draws: Floats
    step: float

    def first(self, size: int) -> "DrawnGroups":
        """Return the first groups of a single axis only."""
        return DrawnGroups(self.counts[:size], self.sizes[:size], self.draws[:, :size], self.step)

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""
        steps = np.where(self.sizes > 0, self.step, 0.0)  # a group without cells is empty for sure
        return _estimates(self.counts, self.draws.std(axis=0, ddof=1), steps, confidence)

    def variance_of(self, weights: Floats) -> float:
        """Return the variance of a weighted sum of the groups, widened as the intervals are."""
        weighted = (self.draws * weights).reshape(len(self.draws), -1).sum(axis=1)
        return float((WIDENING * weighted.std(ddof=1)) ** 2)

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return w such that the error of a weighted sum of the groups stays within ±w."""
        largest = float(np.abs(np.broadcast_to(weights, self.sizes.shape)[self.sizes > 0]).max(initial=0.0))
        return normal_deviations(confidence) * sqrt(self.variance_of(weights)) + largest * self.step

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        upto = np.cumsum(self.draws, axis=1)
        sums = inside * upto + outside * (upto[:, -1:] - upto)
        variances: Floats = np.square(WIDENING * sums.std(axis=0, ddof=1))
        return variances

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        spread = np.sqrt(self.prefix_variances(inside, outside))
        return normal_deviations(confidence) * spread + max(abs(inside), abs(outside)) * self.step


def _estimates(value: Floats, spread: Floats, step: float | Floats, confidence: float) -> Estimates:
    # Sums of a table of floats may come out below zero by its rounding.
    value = np.maximum(np.asarray(value, dtype=np.float64), 0.0)
    stddev = WIDENING * spread
    width = normal_deviations(confidence) * stddev + step
    return Estimates(value, np.maximum(value - width, 0.0), value + width, np.asarray(stddev))
