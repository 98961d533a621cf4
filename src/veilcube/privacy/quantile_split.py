"""Many quantiles by recursive splitting: which is drawn when, what each place costs, and what the draws promise.

Symbols: m quantiles q_1 < ... < q_m of N rows. The middle one is drawn first; it splits the domain, and the quantiles
on either side are drawn from the rows on their side alone, so ceil(log2(m+1)) *levels* of draws do it all. A node that
lies between the quantiles q_a and q_b holds about the share q_b - q_a of the rows, and of these q_i is the quantile
f = (q_i - q_a)/(q_b - q_a): no number of rows need be known. In a node of n rows, L(r) of them below the place r and
E(r) at it, r misses by

    miss(r) = max(L(r) - f n, f n - L(r) - E(r), 0) rows,

and one row more or less changes it by at most g = max(f, 1 - f). Permute-and-flip with the exponents
epsilon_l·miss(r)/(2g) is epsilon_l-differentially private; the nodes of a level share no row, so a level costs
epsilon_l and all of them the sum (docs/proofs/rank.md, Theorem 4). The theorem is about one row added or removed; an
exchanged row is two such steps, and a person with k rows is k of them.

A value that many rows share would not split evenly, so each value is first spread over slots: the i-th row of a value
goes to the slot that the bits of i, reversed, name. A row more in the value is a row more in one slot, so neighbouring
tables stay neighbours, and no randomness is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from veilcube.errors import PrivacyError, QueryError, TableError
from veilcube.privacy.budget import EpsilonLike, read_epsilon
from veilcube.privacy.rank_mechanisms import RankCosts
from veilcube.system import Integers

MOST_QUANTILES = 10_000
MOST_ROWS = 2**41
# Shares are fractions of at most this denominator: with at most 2^41 rows every cost is a 64-bit integer, and the
# rounding moves a quantile by less than a row.
LARGEST_DENOMINATOR = 2**20
SLOTS_IN_ALL = 2**20


@dataclass(frozen=True)
class SplitNode:
    """One draw: the quantile ``index`` between ``after`` and ``before``, None for the ends of the domain.

    ``share`` is f, the part of the node's rows that lies below the quantile.
    """

    index: int
    level: int
    after: int | None
    before: int | None
    share: Fraction
    is_last: bool

    @property
    def sensitivity(self) -> Fraction:
        """By how many rows one row more or less may change a miss."""
        return max(self.share, 1 - self.share)


@dataclass(frozen=True)
class QuantileSplit:
    """The draws of some quantiles, from the first level to the last; ``quantiles`` ascend."""

    quantiles: tuple[Fraction, ...]

    @classmethod
    def read(cls, quantiles: Sequence[object]) -> "QuantileSplit":
        """Check what a user wrote: shares between 0 and 1, ascending, none twice."""
        return cls(read_quantiles(quantiles))

    @cached_property
    def nodes(self) -> tuple[SplitNode, ...]:
        """Every draw, a level after the other."""
        found: list[SplitNode] = []
        spans = [(-1, len(self.quantiles))]
        level = 0
        while spans:
            found.extend(self._node(after, before, level) for after, before in spans)
            halves = [half for after, before in spans for half in _halves(after, before)]
            spans = [(after, before) for after, before in halves if before - after > 1]
            level += 1
        return tuple(found)

    @property
    def levels(self) -> int:
        """How many draws a row can take part in."""
        return len(self.quantiles).bit_length()

    def _node(self, after: int, before: int, level: int) -> SplitNode:
        index = (after + before) // 2
        low = self.quantiles[after] if after >= 0 else Fraction(0)
        high = self.quantiles[before] if before < len(self.quantiles) else Fraction(1)
        share = ((self.quantiles[index] - low) / (high - low)).limit_denominator(LARGEST_DENOMINATOR)
        return SplitNode(
            index,
            level,
            None if after < 0 else after,
            None if before == len(self.quantiles) else before,
            share,
            before - after == 2,
        )


def read_quantiles(quantiles: Sequence[object]) -> tuple[Fraction, ...]:
    """Return quantiles as fractions: 0.25 is a quarter."""
    wrong = QueryError(
        f"quantiles must be 1 to {MOST_QUANTILES:,} shares above 0 and below 1, ascending, such as [0.25, 0.5, 0.75]"
    )
    try:
        found = tuple(read_epsilon(quantile) for quantile in quantiles)  # type: ignore[arg-type]
    except (PrivacyError, TypeError) as problem:
        raise wrong from problem
    in_order = all(first < second for first, second in pairwise(found))
    if not 1 <= len(found) <= MOST_QUANTILES or not in_order or found[-1] >= 1:
        raise wrong
    return found


def slots_for(cells: int) -> int:
    """Return over how many slots each value is spread: a power of two, about a million slots in all."""
    return 1 << max((SLOTS_IN_ALL // cells).bit_length() - 1, 0)


def spread_rows(counts: Integers, slots: int) -> Integers:
    """Return the rows of each value spread over its slots, a power of two of them: flat, in ascending order.

    >>> spread_rows(np.array([6, 1]), 4).tolist()
    [2, 1, 2, 1, 1, 0, 0, 0]
    """
    if float(counts.sum(dtype=np.float64)) > MOST_ROWS:
        raise TableError("quantiles are drawn from at most 2**41 rows; count fewer rows")
    turns = np.zeros(1, dtype=np.int64)
    while turns.size < slots:
        turns = np.concatenate((2 * turns, 2 * turns + 1))
    whole, rest = np.divmod(counts, slots)
    return np.asarray(whole[:, np.newaxis] + (turns < rest[:, np.newaxis])).ravel()


def split_costs(rows: Integers, node: SplitNode, epsilon: EpsilonLike) -> RankCosts:
    """Return what each place of a node costs, for a draw that is epsilon-differentially private."""
    part, whole = node.share.numerator, node.share.denominator
    up_to = np.cumsum(rows)
    wanted = part * up_to[-1]
    missed = np.maximum(np.maximum(whole * (up_to - rows) - wanted, wanted - whole * up_to), 0)
    return RankCosts(missed - missed.min(), read_epsilon(epsilon) / (2 * node.sensitivity * whole))


def _halves(after: int, before: int) -> tuple[tuple[int, int], tuple[int, int]]:
    middle = (after + before) // 2
    return (after, middle), (middle, before)
