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

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# The sums of one table's cells over the blocks of a list.
Sums = Callable[[Integers, Integers], Floats]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What queries of one size say: means of d_j d_k, the gains g, and the variance V of least squares."""

    products: Floats
    gains: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class Blend:
    """The weights of the other estimates for queries of one size, and the mean squared error to expect."""

    weights: Floats
    risk: float
    variance: float

    @classmethod
    def none(cls, many: int) -> "Blend":
        """Return least squares alone."""
        return cls(np.zeros(many), 1.0, 1.0)

    @classmethod
    def of(cls, evidence: Sequence[Evidence]) -> "Blend":
        """Return the best weights for what several samples of queries say together."""
        products = np.mean([part.products for part in evidence], axis=0)
        gains = np.mean([part.gains for part in evidence], axis=0)
        variance = float(np.mean([part.variance for part in evidence]))
        weights = least_risk(products, gains)
        risk = variance - 2 * float(weights @ gains) + float(weights @ products @ weights)
        return cls(weights, risk, variance)


def least_risk(products: Floats, gains: Floats) -> Floats:
    """Return the weights β >= 0 with sum at most 1 that minimise β'D β - 2 β'g.

    There are few estimates, so every set of those that take part is tried, with the sum free and held at 1: the best of
    what is allowed is the minimum, since the function is convex.
    """
    many, best, least = len(gains), np.zeros(len(gains)), 0.0
    ridge = 1e-12 * float(np.trace(products)) + 1e-300
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
class Answers:
    """How least squares and the other estimates answer: the tables themselves, and their changes under each probe."""

    shape: tuple[int, ...]
    unbiased: Sums
    others: Sequence[Sums]
    probes: Sequence[tuple[Sums, Sequence[Sums]]]

    def evidence(self, low: Integers, high: Integers, variance: float) -> Evidence:
        """Return what these queries say, whose least-squares answers have this mean variance."""
        plain = self.unbiased(low, high)
        deviations = np.array([other(low, high) - plain for other in self.others])
        moved, own = np.zeros(len(self.others)), 0.0
        for change, changes in self.probes:
            by = change(low, high)
            own += float(by @ by)
            moved += [float(by @ other(low, high)) for other in changes]
        # As a share of the probes' own variance, so that their luck cancels.
        gains = variance * (1 - moved / max(own, 1e-300))
        return Evidence(deviations @ deviations.T / len(low), gains, variance)
