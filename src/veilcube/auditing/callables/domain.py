"""Small tables over a domain of records, and the pairs of them that a mechanism must not tell apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from veilcube.privacy import Neighbours

# More tables than these are not listed: then the largest are left out, but for some drawn at random.
MOST_TABLES = 3_000
DRAWN_TABLES = 200

Table = tuple[int, ...]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables, by the places of their records in the domain, in ascending order."""

    left: Table
    right: Table

    @property
    def rows(self) -> int:
        """How many records both tables have together."""
        return len(self.left) + len(self.right)

    @property
    def reversed(self) -> "Pair":
        """The same two tables the other way round."""
        return Pair(self.right, self.left)


@dataclass(frozen=True)
class SmallTables:
    """All tables of up to ``records`` records, or as many as can be looked at, and which are neighbours."""

    domain: Sequence[object]
    records: int
    neighbours: Neighbours
    pairs: tuple[Pair, ...]
    listed: int

    @classmethod
    def of(cls, domain: Sequence[object], records: int, neighbours: Neighbours) -> "SmallTables":
        """List tables and pairs; of too many, all that are smaller, and some larger ones at random."""
        values = range(len(domain))
        sizes_to_list = (size for size in range(records, 0, -1) if comb(len(domain) + size, size) <= MOST_TABLES)
        listed = next(sizes_to_list, 0)
        tables = [rows for size in range(listed + 1) for rows in combinations_with_replacement(values, size)]
        if listed < records:
            rng = np.random.default_rng(0)
            sizes = rng.integers(listed + 1, records + 1, size=DRAWN_TABLES)
            tables += [tuple(sorted(rng.integers(len(domain), size=size).tolist())) for size in sizes]
        found: dict[tuple[Table, Table], None] = {}
        for table in tables:
            larger = [tuple(sorted((*table, value))) for value in values]
            if neighbours is Neighbours.ADD_REMOVE:
                found.update(dict.fromkeys((table, one) for one in larger))
            elif len(table) < records:
                found.update(dict.fromkeys((one, two) for one in larger for two in larger if one < two))
        return cls(domain, records, neighbours, tuple(Pair(*pair) for pair in found), listed)

    def rows_of(self, table: Table) -> list[object]:
        """Return the records of a table as a new list."""
        return [self.domain[place] for place in table]

    def some_pairs(self, most: int, seed: int = 0) -> list[Pair]:
        """Return up to so many pairs: half of them the smallest tables, the others drawn at random."""
        if len(self.pairs) <= most:
            return list(self.pairs)
        ordered = sorted(self.pairs, key=lambda pair: pair.rows)
        first, rest = ordered[: most // 2], ordered[most // 2 :]
        drawn = np.random.default_rng(seed).choice(len(rest), size=most - len(first), replace=False)
        return [*first, *(rest[place] for place in sorted(drawn.tolist()))]

    @property
    def words(self) -> str:
        """Which tables there are, in words."""
        more = "" if self.listed == self.records else f", and {DRAWN_TABLES} of up to {self.records} drawn at random"
        tables = f"all tables of up to {self.listed} records from a domain of {len(self.domain)}{more}"
        return f"{len(self.pairs):,} pairs of neighbours: {tables}"
