"""How far to follow smooth estimates away from least squares: as far as the data say that it pays, by size of query.

Let l be the least-squares answers to the queries of one size, with mean variance V, and s_k other estimates of them.
The risk of l + Σ β_k d_k, with d_k = s_k - l, is V - 2 β'g + β'D β, where D holds the means of d_j d_k, which are seen,
and g_k = V - Cov(s_k, l). The covariance follows from how s_k answers to a small change of the noisy measurements
(Stein's unbiased risk estimate, the derivative by a random probe). The least risk over β >= 0 with sum at most 1 is a
small quadratic program: where smoothing is wrong, d is large and β small.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veilcube.system import Floats, Integers

# Queries are judged apart by how much they count in a cell: the lower half, the next 30%, 15%, and the highest 5%.
SHARES_BELOW = (0.5, 0.8, 0.95)

# Weights are taken in full if so many independent queries speak for them, else in proportion.
ENOUGH_QUERIES = 30
# What must be gained before least squares is left: a share of its variance, and so many standard errors of the gain.
LEAST_GAIN, SURE_GAIN = 0.02, 1.0

# The sums of one table's cells over the blocks of a list.
Sums = Callable[[Integers, Integers], Floats]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What queries of one size say, one by one: deviations d, variances V, their response to probes, and their level.

    ``own`` and ``moved`` are the products of the probes' effects on least squares with those on least squares itself
    and on the other estimates; ``levels`` are what is counted around a cell on average.
    """

    deviations: Floats
    variances: Floats
    own: Floats
    moved: Floats
    levels: Floats

    @classmethod
    def joined(cls, parts: Sequence["Evidence"]) -> "Evidence":
        """Return what several samples say together."""
        names = ("deviations", "variances", "own", "moved", "levels")
        return cls(*(np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names))

    def of(self, chosen: NDArray[np.bool_]) -> "Evidence":
        """Return what some of the queries say."""
        parts = (self.variances[chosen], self.own[chosen], self.moved[:, chosen], self.levels[chosen])
        return Evidence(self.deviations[:, chosen], *parts)


@dataclass(frozen=True, eq=False)
class Blend:
    """The weights of the other estimates for queries of one kind, and the mean squared error to expect.

    ``doubt`` is the standard error of that risk: how well as many queries can tell it.
    """

    weights: Floats
    risk: float
    variance: float
    doubt: float

    @classmethod
    def none(cls, many: int) -> "Blend":
        """Return least squares alone."""
        return cls(np.zeros(many), 1.0, 1.0, 0.0)

    @classmethod
    def by(cls, evidence: Evidence, independent: float) -> "Blend":
        """Return the best weights for what some queries say, which overlap: as if so many of them were independent."""
        count = evidence.levels.size
        products = evidence.deviations @ evidence.deviations.T / count
        variance = float(evidence.variances.mean())
        # As a share of the probes' own variance, so that their luck cancels.
        gains = variance * (1 - evidence.moved.sum(axis=1) / max(float(evidence.own.sum()), 1e-300))
        weights = least_risk(products, gains) * min(1.0, independent / ENOUGH_QUERIES)
        risk = variance - 2 * float(weights @ gains) + float(weights @ products @ weights)
        doubt = float(np.square(weights @ evidence.deviations).std()) / sqrt(max(min(count, independent), 1.0))
        if variance - risk < max(LEAST_GAIN * variance, SURE_GAIN * doubt):
            return cls.none(len(gains))
        return cls(weights, risk, variance, doubt)


@dataclass(frozen=True, eq=False)
class Blends:
    """Blends for queries of one size, by how much they count in a cell: where more lies, smoothing errs more."""

    borders: Floats
    kinds: tuple[Blend, ...]

    @classmethod
    def none(cls, many: int) -> "Blends":
        """Return least squares alone."""
        return cls(np.zeros(0), (Blend.none(many),))

    @classmethod
    def by(cls, evidence: Evidence, independent: float) -> "Blends":
        """Judge the queries of each range of levels on their own; ranges that would be the same or too small are one.

        Queries overlap, so that they are worth only so many ``independent`` ones.
        """
        shares = [share for share in SHARES_BELOW if (1 - share) * independent >= ENOUGH_QUERIES]
        borders = np.unique(np.quantile(evidence.levels, shares))
        kind = np.searchsorted(borders, evidence.levels, side="right")
        present = np.unique(kind)
        share = independent / evidence.levels.size
        kinds = (evidence.of(kind == number) for number in present)
        return cls(borders[present[1:] - 1], tuple(Blend.by(part, share * part.levels.size) for part in kinds))

    def kind_of(self, levels: Floats) -> Integers:
        """Return which blend is for queries of these levels."""
        return np.searchsorted(self.borders, levels, side="right").astype(np.int64)


def least_risk(products: Floats, gains: Floats) -> Floats:
    """Return the weights β >= 0 with sum at most 1 that minimise β'D β - 2 β'g.

    There are few estimates, so every set of those that take part is tried, with the sum free and held at 1: the best of
    what is allowed is the minimum, since the function is convex.
    """
    many, best, least = len(gains), np.zeros(len(gains)), 0.0
    size_of_all = float(np.trace(products))
    if not 0 < size_of_all < np.inf:
        return best  # the other estimates say the same as least squares
    # In units of the deviations, so that nothing leaves the range of a double.
    products, gains, ridge = products / size_of_all, gains / size_of_all, 1e-12
    for size in range(1, many + 1):
        for chosen in map(list, combinations(range(many), size)):
            inner = products[np.ix_(chosen, chosen)] + ridge * np.eye(size)
            free, ones = np.linalg.solve(inner, np.stack([gains[chosen], np.ones(size)], axis=1)).T
            for weights in (free, free + (1 - free.sum()) / ones.sum() * ones):
                value = float(weights @ inner @ weights - 2 * weights @ gains[chosen])
                if weights.min() >= 0 and weights.sum() <= 1 + 1e-9 and value < least:
                    best, least = np.zeros(many), value
                    best[chosen] = weights
    return best


@dataclass(frozen=True, eq=False)
class AnswersToBlend:
    """How least squares and the other estimates answer: the tables themselves, and their changes under each probe."""

    shape: tuple[int, ...]
    unbiased: Sums
    others: Sequence[Sums]
    levels: Sums
    probes: Sequence[tuple[Sums, Sequence[Sums]]]

    def evidence(self, low: Integers, high: Integers, variances: Floats) -> Evidence:
        """Return what these queries say, whose least-squares answers have these variances."""
        plain = self.unbiased(low, high)
        found = np.array([other(low, high) for other in self.others])
        own, moved = np.zeros(len(low)), np.zeros((len(self.others), len(low)))
        for change, changes in self.probes:
            by = change(low, high)
            own += by * by
            moved += by * np.array([other(low, high) for other in changes])
        levels = self.levels(low, high) / (high - low + 1).prod(axis=1)
        return Evidence(found - plain, variances, own, moved, levels)
