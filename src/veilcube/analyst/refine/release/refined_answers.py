"""Least squares under known counts, on the whole cube of a release (Ying, Wu and Wang 2013, Theorem 3, for any noise).

With x̂ the least-squares cells, S their covariance and facts B'x = c, the refined cells are
x̂ + S B G^-1 (c - B'x̂), G = B'S B, and a question q has the variance q'S q - k'G^-1 k with k = B'S q, exactly. G and k
are products of one number per attribute (``covariance``); S is applied by the operator's transforms. Inequalities move
the refined cells further, to the nearest ones in the metric of their noise; that is a program over the facts alone.
"""

from dataclasses import dataclass

import numpy as np

from veilcube.analyst.refine.facts import Boxes, BoxSums
from veilcube.analyst.refine.release.covariance import CellCovariance, CellMetric, between, variances
from veilcube.analyst.refine.release.factoring import FactoredFacts
from veilcube.operators import BlockSums, Moments, union_bound
from veilcube.schema import Region
from veilcube.system import Floats, Integers

_ENTRIES_AT_ONCE = 1 << 23
# Up to so many questions of a call, and cells over all of them, noise is written out, and its moments are exact.
_MOST_WRITTEN_OUT, _MOST_CELLS_WRITTEN_OUT = 512, 1 << 22
# What rounding leaves of a variance that the facts remove.
NOTHING_LEFT = 1e-9


@dataclass(frozen=True, eq=False)
class RefinedAnswers:
    """Least-squares answers under equalities: refined cells, and the moments of the noise of any question.

    The second moments are exact. The higher ones are exact where the noise is written out, and otherwise bounds: the
    noise weights of an answer are those before refinement less a part whose squares add up to the variance it loses.
    """

    covariance: CellCovariance
    facts: BoxSums
    factored: FactoredFacts
    refined_cells: Floats

    def solve(self, measurements: Integers) -> Floats:
        """Return the refined cells, which were computed from these very measurements."""
        del measurements
        return self.refined_cells.copy()

    def noise_weights(self, query: Floats) -> Floats:
        """Return the noise weights of a question that weighs every cell: of q - B G^-1 B'S q."""
        spread = self.covariance.spread(query)
        covariances = self.facts.values(BlockSums(spread), spread)
        widening = self.covariance.widening(np.asarray(np.count_nonzero(query)))
        pulled = self.facts.spread(self.factored.solve(covariances))
        # One after the other: marginals refuse a difference of which rounding is all that is left.
        weights = self.covariance.moments.noise_weights(query) - self.covariance.moments.noise_weights(pulled)
        return np.asarray(weights * widening)

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of each block's noise weights."""
        before = self.covariance.moments.moments_of_rectangles(low, high)
        is_held = np.flatnonzero(np.all(high >= low, axis=1))
        held = BoxSums(Boxes(self.refined_cells.shape, low[is_held], high[is_held]))
        listed = Moments(*(power[is_held] for power in _powers(before)), bounded=before.bounded)
        after = self._moments(held, listed, (high - low + 1)[is_held].prod(axis=1))
        found = np.zeros((3, len(low)))
        found[:, is_held] = _powers(after)
        return Moments(*found, bounded=after.bounded)

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of a region; shape ()."""
        before = self.covariance.moments.moments_of_region(region)
        if not region.boxes:
            return before
        listed = Moments(*(np.reshape(power, 1) for power in _powers(before)), bounded=before.bounded)
        after = self._moments(BoxSums.of_regions(region.shape, [region]), listed, np.array([region.cells]))
        return Moments(*(np.reshape(power, ()) for power in _powers(after)), bounded=after.bounded)

    def _moments(self, sums: BoxSums, before: Moments, cells: Integers) -> Moments:
        own = variances(self.covariance, sums)
        explained = np.minimum(explained_variances(self.covariance, self.facts, self.factored, sums), own)
        after = own - explained
        after[after <= NOTHING_LEFT * own] = 0.0
        widening = self.covariance.widening(cells)
        if len(sums) > _MOST_WRITTEN_OUT or len(sums) * self.refined_cells.size > _MOST_CELLS_WRITTEN_OUT:
            lost = Moments(explained, explained**2, explained**3)
            return _times(union_bound(after, [before, lost]), widening)
        singles = (sums.take(np.array([row])).spread(np.ones(1)) for row in range(len(sums)))
        each = [Moments.of_weights(self.noise_weights(query).ravel()) for query in singles]
        fourth, sixth = (np.array([getattr(one, power) for one in each]) for power in ("fourth", "sixth"))
        return Moments(after * widening**2, fourth * (after > 0), sixth * (after > 0))


def explained_variances(covariance: CellMetric, facts: BoxSums, factored: FactoredFacts, sums: BoxSums) -> Floats:
    """Return how much of the variance of each sum the facts take away, k'G^-1 k."""
    found = np.empty(len(sums))
    at_once = max(1, _ENTRIES_AT_ONCE // max(1, len(facts)))
    for start in range(0, len(sums), at_once):
        rows = np.arange(start, min(start + at_once, len(sums)))
        halves = factored.halve(between(covariance, sums.take(rows), facts).T)
        found[rows] = np.einsum("fq,fq->q", halves, halves)
    return found


def _times(moments: Moments, factor: Floats) -> Moments:
    powers = (power * factor**order for power, order in zip(_powers(moments), (2, 4, 6), strict=True))
    return Moments(*powers, bounded=moments.bounded)


def _powers(moments: Moments) -> tuple[Floats, Floats, Floats]:
    return moments.second, moments.fourth, moments.sixth
