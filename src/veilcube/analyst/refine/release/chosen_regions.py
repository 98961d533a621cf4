"""Intervals of a refined release whose regions were chosen by the noise of its cells.

A region of few cells may have been chosen because its noise stands out, and facts do not take that back. So a question
about such regions as a whole keeps the interval that no choice can spoil, as least squares does. Where a known count
makes a question the rest of such regions, its noise is theirs, and so is its interval.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate import LARGEST_OUTLIER, AdaptiveEstimate, Estimates
from veilcube.analyst.refine.facts import ReleaseFacts
from veilcube.analyst.refine.release.amended import Questions
from veilcube.operators import CellLists
from veilcube.system import Integers

# Masks of known counts are written out up to so many cells.
_MOST_ENTRIES = 1 << 24


@dataclass(frozen=True, eq=False)
class ChosenRegions:
    """Widens intervals to what holds whatever chose the regions."""

    adaptive: AdaptiveEstimate
    known: ReleaseFacts

    def amend(self, found: Estimates, questions: Questions, confidence: float) -> Estimates:
        """Return the estimates; those that the facts determine have no noise and stay."""
        asked, sizes = questions.asked, questions.asked.sizes
        held = self.adaptive.holding_whole_regions(found, asked.moments(self.adaptive.answers), asked, confidence)
        low, high = held.low.copy(), held.high.copy()
        for inside, total in self._known_counts:
            many = int(np.count_nonzero(inside))
            for row in np.flatnonzero((sizes < many) & (sizes >= many - LARGEST_OUTLIER)).tolist():
                rest = self._rest(inside, asked.listed(np.array([row])).cells)
                if rest is not None:
                    least, greatest = self.adaptive.after_choice(CellLists(rest, np.array([0, rest.size])), confidence)
                    low[row], high[row] = min(low[row], total - greatest[0]), max(high[row], total - least[0])
        is_open = found.stddev > 0
        low, high = np.where(is_open, low, found.low), np.where(is_open, high, found.high)
        return Estimates(found.value, low, high, found.stddev, found.estimator)

    @cached_property
    def _known_counts(self) -> list[tuple[NDArray[np.bool_], float]]:
        """The cells of each known count of one region, and the count."""
        shape = self.adaptive.answers.regions.chosen.shape
        found: list[tuple[NDArray[np.bool_], float]] = []
        for row in range(min(len(self.known), _MOST_ENTRIES // int(np.prod(shape)))):
            weights = self.known.sums.take(np.array([row])).spread(np.ones(1)).ravel()
            inside = np.abs(weights) > 0.5 * np.abs(weights).max(initial=0.0)
            if inside.any() and np.allclose(weights, inside * weights[inside][0]):
                found.append((inside, float(self.known.constants[row] / weights[inside][0])))
        return found

    def _rest(self, inside: NDArray[np.bool_], cells: Integers) -> Integers | None:
        """Return the cells of a known count that a question inside of it leaves out, if they are whole regions."""
        if not inside[cells].all():
            return None
        left = inside.copy()
        left[cells] = False
        rest = np.flatnonzero(left)
        regions = self.adaptive.answers.regions
        met, many = np.unique(regions.chosen.ravel()[rest], return_counts=True)
        return rest if (regions.sizes[met] == many).all() else None
