"""How far apart two columns of a product can be when its factors have signs: the sensitivity of exchanging a row.

A row that moves from one cell to another takes column a = Π a_i away and brings b = Π b_i. What matters of two cells of
one axis is a ``ColumnPair``: how often each pair of entries (a_i, b_i) occurs over the axis's rows. Entries that agree
may be lumped as (1, 1), for they only scale what the other axes do; and entries that one column has alone, as (1, 0)
and (0, 1). Then Σ |a - b| is a sum over few combinations, and its largest value over the axes' pairs is exact.

Proved in docs/proofs/wavelets.md.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

# Entries of the two columns in one row.
Entries: TypeAlias = tuple[int, int]

MOST_TERMS = 2_000_000
_LARGEST = 2**60


@dataclass(frozen=True)
class ColumnPair:
    """Two columns that share rows of L1 norm ``same``, cross in some rows, and have others to themselves."""

    same: int
    crossing: tuple[Entries, ...] = ()
    left: int = 0
    right: int = 0

    @property
    def terms(self) -> list[tuple[int, int, int]]:
        """Pairs of entries, and in how many rows they stand."""
        lumped = [(1, 1, self.same), (1, 0, self.left), (0, 1, self.right)]
        return [(a, b, 1) for a, b in self.crossing] + [term for term in lumped if term[2]]

    @property
    def swapped(self) -> "ColumnPair":
        """The same pair the other way round; the crossings of wavelets are symmetric."""
        return ColumnPair(self.same, self.crossing, self.right, self.left)

    def is_closer_than(self, other: "ColumnPair") -> bool:
        """Whether it shares more and has no longer columns: then no product with other axes sets it farther apart.

        A row that both share, split into one for each, turns |x - y| into |x| + |y|; a further row only adds.
        """
        longer = other.same + other.left >= self.same + self.left and other.same + other.right >= self.same + self.right
        return self.crossing == other.crossing and other.same <= self.same and longer


def farthest(pairs: Collection[ColumnPair]) -> tuple[ColumnPair, ...]:
    """Return the pairs, both ways round, without those that are closer than another one.

    Both ways, because it matters which axis's longer column meets which other's.
    """
    groups: dict[tuple[Entries, ...], set[ColumnPair]] = {}
    for pair in pairs:
        groups.setdefault(pair.crossing, set()).update((pair, pair.swapped))
    kept = []
    for group in groups.values():
        kept += [pair for pair in group if not any(other != pair and pair.is_closer_than(other) for other in group)]
    return tuple(kept)


def largest_exchange(axes: Sequence[Sequence[ColumnPair]], norm: int) -> int:
    """Return the largest Σ |a - b| over pairs of columns; 2 ``norm``, which bounds it, if the pairs are too many.

    >>> haar_of_two = (ColumnPair(same=2), ColumnPair(same=1, crossing=((1, -1),)))
    >>> largest_exchange([haar_of_two], 2), largest_exchange([haar_of_two, haar_of_two], 4)
    (2, 4)
    """
    # Cells of a flat axis share nothing, whatever the others do: the bound is attained.
    has_flat = any(not pair.same and not pair.crossing for pairs in axes for pair in pairs)
    terms = prod(len(pairs) * max(len(pair.terms) for pair in pairs) for pairs in axes)
    if has_flat or terms > MOST_TERMS or norm > _LARGEST:
        return 2 * norm
    return max(_distance(chosen) for chosen in product(*axes))


def _distance(chosen: Sequence[ColumnPair]) -> int:
    """Return Σ |Π a_i - Π b_i| for one pair on each axis."""
    ours, theirs, times = (np.ones(1, dtype=np.int64) for _ in range(3))
    for pair in chosen:
        a, b, count = np.array(pair.terms, dtype=np.int64).T
        ours, theirs = np.multiply.outer(ours, a).ravel(), np.multiply.outer(theirs, b).ravel()
        times = np.multiply.outer(times, count).ravel()
    return int((np.abs(ours - theirs) * times).sum())
