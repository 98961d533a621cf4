"""The k-th largest value of a table, released over a limited domain: its mechanisms as probability laws.

Symbols: r a value of the domain, k the rank (1 is the maximum), A(r) = #{x > r}, B(r) = #{x >= r}, and the utility
u(r) = -max(A(r) - (k-1), k - B(r), 0): minus the number of rows that must be added or removed before r is the k-th
largest. One row more, one less or one exchanged changes both numbers of rows by at most 1, so u has sensitivity 1 under
either relation of neighbours. With p(r) = exp(epsilon (u(r) - max u)/2), the first two mechanisms are
epsilon-differentially private:

* exponential (McSherry and Talwar 2007): P(r) is proportional to p(r);
* permute-and-flip (McKenna and Sheldon 2020): visit the domain in random order and answer with the first value whose
  coin, heads with probability p(r), comes up heads. Its expected shortfall is never the larger of the two;
* tilted permute-and-flip, for a maximum only: a row too high and a row too low need not cost the same, as long as both
  costs add up to epsilon (docs/proofs/rank.md, Theorem 2). It aims at a row shortly below the maximum, pays less for
  passing it and more for staying below it: with k = 1 + floor(1/(10 epsilon)) and the share t = min(3/5, 1 - 1/(2k)),
  p(r) = exp(-epsilon·max(t (A(r) - (k-1)), (1-t) (k - B(r)), 0)), over its largest value. Above epsilon 1/10, k is 1
  and this is permute-and-flip itself.

The sampler is ``veilcube.curator.sampling.rank``; nothing here draws anything.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil, log
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import QueryError, TableError
from veilcube.privacy.budget import EpsilonLike, read_epsilon
from veilcube.privacy.secrecy import Private
from veilcube.system import Floats, Integers

MOST_ROWS = 2**53
# Gauss's rule with 16 nodes on a panel over which the product falls by at most exp(-4) leaves an error below 1e-20, and
# beyond twelve panels the product is below exp(-48).
_NODES_PER_PANEL = 16
_FALL_PER_PANEL = 4.0
_PANELS = 12
# Chosen among 78 settings on clipped Gaussians at epsilon 0.05, and then held to tables that had no part in the choice
# (docs/decisions/0008-distributive.md): a stronger tilt gains more on average but is worse than none on some tables.
_TILTED_ROWS = Fraction(1, 10)
_LARGEST_TILT = Fraction(3, 5)


class RankMethod(StrEnum):
    """The mechanisms; permute-and-flip is more accurate than the exponential one, and tilted it finds maxima best."""

    PERMUTE_AND_FLIP = "permute-and-flip"
    EXPONENTIAL = "exponential"
    TILTED = "tilted"

    @classmethod
    def read(cls, text: str) -> "RankMethod":
        """Return the mechanism a user named."""
        try:
            return cls(text)
        except ValueError:
            raise QueryError(
                f"method='{text}' is not a way to choose a rank; use 'permute-and-flip' or 'exponential', or 'tilted' "
                "for a maximum"
            ) from None


@dataclass(frozen=True, repr=False, eq=False)
class RankCosts(Private):
    """What the values of a domain cost: value r has the exponent ``amounts[r] · rate``, the cheapest amount being 0.

    PRIVATE: the amounts tell how many rows lie between two values.
    """

    amounts: Integers
    rate: Fraction


def rank_costs(counts: ArrayLike, epsilon: EpsilonLike, rank: int, method: RankMethod) -> RankCosts:
    """Return the exponents of a mechanism, as whole amounts times one exact rate: what its sampler works with."""
    budget = read_epsilon(epsilon)
    if method is not RankMethod.TILTED:
        shortfalls = rank_shortfalls(counts, rank)
        return RankCosts(shortfalls - shortfalls.min(), budget / 2)
    if rank != 1:
        raise QueryError("method='tilted' finds a maximum, rank 1; use 'permute-and-flip' for any other rank")
    aimed_at, tilt = _tilt(budget)
    too_low, too_high = _misses(_checked_counts(counts), aimed_at)
    whole = tilt.denominator
    amounts = np.maximum(tilt.numerator * too_low, (whole - tilt.numerator) * too_high)
    return RankCosts(amounts - amounts.min(), budget / whole)


def first_heads_law(exponents: Floats) -> Floats:
    """Return the law of the first coin that shows heads, each with probability exp(-exponent): permute-and-flip."""
    distinct, places = np.unique(exponents - exponents.min(), return_inverse=True)
    how_many = np.bincount(places.ravel()).astype(np.float64)
    return np.asarray(_first_heads(np.exp(-distinct), how_many)[places.ravel()])


def rank_distribution(
    counts: ArrayLike, epsilon: EpsilonLike, rank: int = 1, method: str = RankMethod.PERMUTE_AND_FLIP
) -> Floats:
    """Return the probability with which each value of the domain is the answer for the ``rank``-th largest.

    ``counts`` holds the number of rows at each value of the domain, in ascending order; reverse it for the ``rank``-th
    smallest. The probabilities are a function of the exact counts and hence private, like the counts themselves.

    >>> rank_distribution([0, 1, 2, 0, 1, 0], 1, method="exponential").round(4)
    array([0.0426, 0.0702, 0.1908, 0.1908, 0.3147, 0.1908])
    """
    chosen = RankMethod.read(method)
    costs = rank_costs(counts, epsilon, rank, chosen)
    exponents = float(costs.rate) * costs.amounts.astype(np.float64)
    if chosen is RankMethod.EXPONENTIAL:
        weights = np.exp(-exponents)
        return np.asarray(weights / weights.sum())
    return first_heads_law(exponents)


def rank_reach(values: int, epsilon: EpsilonLike, confidence: float, method: RankMethod) -> int:
    """Return a number of rows that separate the answer from the true value at most, with this probability.

    A value whose exponent is x above the least has probability at most exp(-x), and there are fewer than ``values``
    such values: P(exponent > x) < values·exp(-x), whatever the table is, as long as it has as many rows as the rank.
    For the tilted mechanism it bounds the rows above the answer; nothing bounds how far above all rows it may lie.
    """
    budget = float(read_epsilon(epsilon))
    exponent = log(max(values - 1, 1) / max(1 - confidence, 2.0**-54))  # half of the least tail that a float leaves
    if method is not RankMethod.TILTED:
        return max(ceil(2 * exponent / budget) - 1, 0) if values > 1 else 0
    aimed_at, tilt = _tilt(read_epsilon(epsilon))
    return aimed_at - 1 + ceil((exponent / budget + float(1 - tilt) * aimed_at) / float(tilt))


def rank_shortfalls(counts: ArrayLike, rank: int = 1) -> Integers:
    """Return -u(r) for each value r of the domain: how many rows keep it from being the ``rank``-th largest."""
    rows = _checked_counts(counts)
    if isinstance(rank, bool) or not isinstance(rank, Integral) or not 1 <= rank <= MOST_ROWS:
        raise QueryError("rank must be a whole number from 1, the largest value, to 2**53; correct the rank")
    return np.maximum(*_misses(rows, int(rank)))


def _tilt(epsilon: Fraction) -> tuple[int, Fraction]:
    """Return the rank k that the tilted mechanism aims at and its share t of epsilon for rows above an answer."""
    aimed_at = 1 + min(int(_TILTED_ROWS / epsilon), MOST_ROWS)
    return aimed_at, min(_LARGEST_TILT, 1 - Fraction(1, 2 * aimed_at))


def _misses(rows: Integers, rank: int) -> tuple[Integers, Integers]:
    """Return by how many rows each value lies below the ``rank``-th largest, and by how many above it."""
    at_least = np.cumsum(rows[::-1])[::-1]
    above = at_least - rows
    return np.maximum(above - (rank - 1), 0), np.maximum(rank - at_least, 0)


def _first_heads(heads: Floats, how_many: Floats) -> Floats:
    """Return the probability that one given coin of each kind is the first to come up heads.

    Give each coin j a time that is uniform on [0, 1]: their order is a random permutation, and before time t coin j has
    come up heads with probability p_j t. So P(r) = p_r ∫ Π_{j≠r} (1 - p_j t) dt, a positive integrand in which nothing
    cancels. A coin with p = 1 always ends the game, and max p = 1, so the probabilities add up to 1.
    """
    steepness = float(how_many @ heads)
    panel = min(1.0, _FALL_PER_PANEL / steepness)
    starts = panel * np.arange(_PANELS)
    starts = starts[starts < 1]
    nodes, weights = np.polynomial.legendre.leggauss(_NODES_PER_PANEL)
    integrals = np.zeros(heads.size)
    for start in starts:
        width = min(panel, 1 - start)
        for time, weight in zip(start + width * (1 + nodes) / 2, width * weights / 2, strict=True):
            none_yet = np.exp(float(how_many @ np.log1p(-heads * time)))
            integrals += weight * none_yet / (1 - heads * time)
    return heads * integrals


def _checked_counts(counts: ArrayLike) -> Integers:
    try:
        rows: NDArray[Any] = np.asarray(counts)
    except ValueError:
        rows = np.empty((0, 0))
    if rows.ndim != 1:
        raise TableError("the counts of a ranked attribute must be one list, a count for each value of its domain")
    if rows.size == 0:
        raise QueryError("the domain of a rank is empty; declare at least one value that may be the answer")
    if rows.dtype.kind not in "iu" or int(rows.min()) < 0 or int(rows.max()) > MOST_ROWS:
        raise TableError("the counts of a ranked attribute must be whole numbers from 0 to 2**53; count the rows again")
    # Added up in doubles, because many large counts would wrap around in 64-bit integers.
    if float(rows.sum(dtype=np.float64)) > MOST_ROWS:
        raise TableError("the counts of a ranked attribute must add up to at most 2**53 rows; count the rows again")
    return rows.astype(np.int64)
