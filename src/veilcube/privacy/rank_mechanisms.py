"""The k-th largest value of a table, released over a limited domain: its two mechanisms as probability laws.

Symbols: r a value of the domain, k the rank (1 is the maximum), u(r) = -max(#{x > r} - (k-1), k - #{x >= r}, 0) its
utility: minus the number of rows that must be added or removed before r is the k-th largest. One row more, one less or
one exchanged changes both numbers of rows by at most 1, so u has sensitivity 1 under either relation of neighbours.
With p(r) = exp(epsilon (u(r) - max u)/2), both mechanisms are epsilon-differentially private:

* exponential (McSherry and Talwar 2007): P(r) is proportional to p(r);
* permute-and-flip (McKenna and Sheldon 2020): visit the domain in random order and answer with the first value whose
  coin, heads with probability p(r), comes up heads. Its expected shortfall is never the larger of the two.

The sampler is ``veilcube.curator.noise.rank``; nothing here draws anything.
"""

from enum import StrEnum
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import QueryError, TableError
from veilcube.privacy.budget import EpsilonLike, read_epsilon

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_ROWS = 2**53
# Gauss's rule with 16 nodes on a panel over which the product falls by at most exp(-4) leaves an error below 1e-20, and
# beyond twelve panels the product is below exp(-48).
_NODES_PER_PANEL = 16
_FALL_PER_PANEL = 4.0
_PANELS = 12


class RankMethod(StrEnum):
    """The two mechanisms; at equal epsilon, permute-and-flip is the more accurate one."""

    PERMUTE_AND_FLIP = "permute-and-flip"
    EXPONENTIAL = "exponential"

    @classmethod
    def read(cls, text: str) -> "RankMethod":
        """Return the mechanism a user named."""
        try:
            return cls(text)
        except ValueError:
            raise QueryError(
                f"method='{text}' is not a way to choose a rank; use 'permute-and-flip' or 'exponential'"
            ) from None


def rank_distribution(
    counts: ArrayLike, epsilon: EpsilonLike, rank: int = 1, method: str = RankMethod.PERMUTE_AND_FLIP
) -> Floats:
    """Return the probability with which each value of the domain is the answer for the ``rank``-th largest.

    ``counts`` holds the number of rows at each value of the domain, in ascending order; reverse it for the ``rank``-th
    smallest. The probabilities are a function of the exact counts and hence private, like the counts themselves.

    >>> rank_distribution([0, 1, 2, 0, 1, 0], 1, method="exponential").round(4)
    array([0.0426, 0.0702, 0.1908, 0.1908, 0.3147, 0.1908])
    """
    chosen, rate = RankMethod.read(method), float(read_epsilon(epsilon)) / 2
    shortfalls = rank_shortfalls(counts, rank)
    gaps, places = np.unique(shortfalls - shortfalls.min(), return_inverse=True)
    heads = np.exp(-rate * gaps.astype(np.float64))
    how_many = np.bincount(places.ravel()).astype(np.float64)
    is_exponential = chosen is RankMethod.EXPONENTIAL
    each = heads / float(how_many @ heads) if is_exponential else _first_heads(heads, how_many)
    return np.asarray(each[places.ravel()])


def rank_shortfalls(counts: ArrayLike, rank: int = 1) -> Integers:
    """Return -u(r) for each value r of the domain: how many rows keep it from being the ``rank``-th largest."""
    rows = _checked_counts(counts)
    if isinstance(rank, bool) or not isinstance(rank, Integral) or not 1 <= rank <= MOST_ROWS:
        raise QueryError("rank must be a whole number from 1, the largest value, to 2**53; correct the rank")
    at_least = np.cumsum(rows[::-1])[::-1]
    above = at_least - rows
    return np.maximum(np.maximum(above - (int(rank) - 1), int(rank) - at_least), 0)


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
