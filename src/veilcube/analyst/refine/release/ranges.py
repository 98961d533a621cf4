"""What facts about a release leave open of any other count, given that counts are never negative.

Cells that lie in the same boxes of facts are one group, and every table of counts is one number for each group. Where
groups and facts are few, the least and the greatest value of a question are two linear programs: the rows of a group
may all lie in the cells that a question shares with it, or all outside. Where they are many, each fact is looked at on
its own: what lies inside a region of at most c rows has at most c, what holds one of at least c rows has at least c.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from veilcube.analyst.estimate import Estimates
from veilcube.analyst.refine.facts import Boxes, BoxSums, ReleaseFacts
from veilcube.analyst.refine.release.amended import Questions
from veilcube.analyst.refine.release.count_feasibility import (
    cells_in_groups,
    group_classes,
    group_weights,
    sizes_of_groups,
)
from veilcube.analyst.refine.release.covariance import shared_cells
from veilcube.schema import Region
from veilcube.system import Floats

# Entries of a program of which two for each question take a few milliseconds.
_MOST_ENTRIES = 2_000
_MOST_KEPT = 100_000
_ENTRIES_AT_ONCE = 1 << 22
_MOST_BOXES = 1_000
# HiGHS meets constraints to 1e-7, so that ranges are off by far less than a row.
_LARGEST = 1e6
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class FactRanges:
    """The least and the greatest count that facts allow any question; ``cut`` cuts intervals there."""

    facts: ReleaseFacts
    _found: dict[bytes, float] = field(default_factory=dict, repr=False)

    def cut(self, found: Estimates, questions: Questions, confidence: float) -> Estimates:
        """Return intervals without what no table that obeys the facts has; they lose no coverage by it.

        An estimate that the facts moved would be left with a sliver of its interval, or nothing: before it is cut, it
        reaches as far around the value as it is wide.
        """
        del confidence
        least, greatest = (np.full(found.value.shape, end) for end in (-np.inf, np.inf))
        least[questions.held], greatest[questions.held] = self.of(questions.sums)
        half = (found.high - found.low) / 2
        is_cut = (least > found.low) | (greatest < found.high)
        low = np.where(is_cut, np.minimum(found.low, found.value - half), found.low)
        high = np.where(is_cut, np.maximum(found.high, found.value + half), found.high)
        value = _without_rounding(found.value, least, greatest)
        # The value obeys the facts, but cells of least squares may be negative.
        low = np.minimum(np.clip(low, least, greatest), value)
        high = np.maximum(np.clip(high, least, greatest), value)
        return Estimates(value, low, high, found.stddev, found.estimator)

    def of(self, sums: BoxSums) -> tuple[Floats, Floats]:
        """Return the least and the greatest count of each sum of disjoint boxes."""
        at_once = max(1, _ENTRIES_AT_ONCE // max(1, len(self.facts.sums.boxes)))
        ends = np.empty((2, len(sums)))
        for start in range(0, len(sums), at_once):
            rows = np.arange(start, min(start + at_once, len(sums)))
            some = sums.take(rows)
            ends[:, rows] = self._by_single_facts(some) if self._classes is None else self._by_programs(some)
        return ends[0], ends[1]

    def of_values(self, region: Region, axis: int, low: Floats, high: Floats) -> tuple[float, float]:
        """Return the least and the greatest sum, over the rows of a region, of values between ``low`` and ``high``.

        These are the ends for each cell of an attribute. Where facts are too many for programs, nothing is told.
        """
        if self._classes is None:
            return -np.inf, np.inf
        sums = BoxSums.of_regions(region.shape, [region])
        may_lie_outside = cells_in_groups(sums, self._classes)[0] < self._sizes - 0.5
        least, greatest = np.where(may_lie_outside, 0.0, np.inf), np.where(may_lie_outside, 0.0, -np.inf)
        for box in region.boxes:
            met, smallest, largest = np.ones(1, dtype=np.bool_), np.zeros(1), np.zeros(1)
            for place, kinds in enumerate(self._classes):
                inside = (kinds > 0) & box.mask(place)
                met = np.logical_and.outer(met, inside.any(axis=1)).ravel()
                first, last = np.zeros((2, len(kinds)))
                if place == axis:
                    first = np.where(inside, low, np.inf).min(axis=1)
                    last = np.where(inside, high, -np.inf).max(axis=1)
                smallest, largest = np.add.outer(smallest, first).ravel(), np.add.outer(largest, last).ravel()
            least = np.where(met, np.minimum(least, smallest), least)
            greatest = np.where(met, np.maximum(greatest, largest), greatest)
        return self._solve(least), -self._solve(-greatest)

    def _by_programs(self, sums: BoxSums) -> Floats:
        shared = cells_in_groups(sums, self._classes or [])
        least = [self._extreme(chosen, 1) for chosen in shared > self._sizes - 0.5]
        greatest = [-self._extreme(chosen, -1) for chosen in shared > 0.5]
        return np.array([least, greatest])

    @cached_property
    def _classes(self) -> list[Floats] | None:
        """The classes of cells whose products are the groups, where these are few enough for programs."""
        return group_classes(self.facts.sums, _MOST_ENTRIES)

    @cached_property
    def _sizes(self) -> Floats:
        return sizes_of_groups(self._classes or [])

    @cached_property
    def _weights(self) -> Floats:
        return group_weights(self.facts.sums, self._classes or [])

    def _extreme(self, chosen: NDArray[np.bool_], sign: int) -> float:
        """Return the least value of sign times the count of some groups, from what was found before if it was."""
        if sign == 1 and not chosen.any():
            return 0.0
        key = bytes([sign + 1]) + np.packbits(chosen).tobytes()
        if key not in self._found:
            if len(self._found) >= _MOST_KEPT:
                self._found.clear()
            self._found[key] = self._solve(sign * chosen.astype(np.float64))
        return self._found[key]

    def _solve(self, objective: Floats) -> float:
        """Return the least value of a sum of groups under the facts; -inf where the program has no certain end."""
        is_equality, size = self.facts.is_equality, max(1.0, float(np.abs(self.facts.constants).max()) / _LARGEST)
        constants = self.facts.constants / size
        outcome = linprog(
            objective,
            A_ub=self._weights[~is_equality],
            b_ub=constants[~is_equality],
            A_eq=self._weights[is_equality],
            b_eq=constants[is_equality],
            bounds=(0, None),
            method="highs",
        )
        return float(outcome.fun) * size if outcome.status == 0 else -np.inf

    def _by_single_facts(self, sums: BoxSums) -> Floats:
        facts, weights = self._uniform
        regions = csr_array(abs(facts.sums.matrix) > 0, dtype=np.float64)
        shared = (sums.matrix @ shared_cells(sums.boxes, facts.sums.boxes)) @ regions.T
        own = (sums.matrix @ shared_cells(sums.boxes, _everything(sums.boxes.shape))).reshape(-1, 1)
        whole = regions @ shared_cells(facts.sums.boxes, _everything(sums.boxes.shape)).ravel()
        bounds = facts.constants / weights
        is_above = ((weights > 0) | facts.is_equality) & (shared > own - 0.5)
        is_below = ((weights < 0) | facts.is_equality) & (shared > whole - 0.5)
        greatest = np.where(is_above, bounds, np.inf).min(axis=1, initial=np.inf)
        least = np.where(is_below, bounds, 0.0).max(axis=1, initial=0.0)
        return np.array([least, greatest])

    @cached_property
    def _uniform(self) -> tuple[ReleaseFacts, Floats]:
        """The facts about the count of one region, disjoint boxes of one weight, and that weight."""
        matrix = csr_array(self.facts.sums.matrix)
        rows = [row for row in range(len(self.facts)) if self._is_one_region(matrix, row)]
        facts = self.facts.take(np.array(rows, dtype=np.int64))
        return facts, np.array([matrix.data[matrix.indptr[row]] for row in rows])

    def _is_one_region(self, matrix: csr_array, row: int) -> bool:
        entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
        weights = matrix.data[entries]
        if not 1 <= weights.size <= _MOST_BOXES or weights[0] == 0 or (weights != weights[0]).any():
            return False
        boxes = self.facts.sums.boxes.take(matrix.indices[entries].astype(np.int64))
        return weights.size == 1 or not np.triu(shared_cells(boxes, boxes), 1).any()


def _without_rounding(value: Floats, least: Floats, greatest: Floats) -> Floats:
    """Return values that leave their ranges by what sums of cells round to as the ends of these."""
    near = np.clip(value, least, greatest)
    return np.where(np.abs(value - near) <= _ROUNDING * np.maximum(np.abs(near), 1.0), near, value)


def _everything(shape: tuple[int, ...]) -> Boxes:
    high = np.array([shape], dtype=np.int64) - 1
    return Boxes(shape, np.zeros_like(high), high)
