"""Every table of up to four records on six cells, and every neighbour of it."""

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.cube import Cube
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Nominal, Ordinal, Schema

LARGEST_TABLE = 4

SCHEMAS = (
    Schema([Ordinal("age", 1, 6)]),
    Schema([Ordinal("age", 1, 3), Nominal("sex", ["Female", "Male"])]),
    Schema([Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": ["Judge", "Clerk", "Dev", "Ops"]})]),
)


def small_tables() -> list[tuple[int, ...]]:
    """Return the multisets of up to four cells out of six: the records of each table."""
    return [records for size in range(LARGEST_TABLE + 1) for records in combinations_with_replacement(range(6), size)]


def cube_of(schema: Schema, records: tuple[int, ...], unit: PrivacyUnit) -> Cube:
    counts = np.bincount(np.array(records, dtype=np.int64), minlength=6)
    return Cube(schema, counts.reshape(schema.shape), unit)


@cache
def neighbour_pairs(
    neighbours: str, max_rows: int
) -> tuple[list[tuple[int, ...]], NDArray[np.int64], NDArray[np.int64]]:
    """Return all tables that occur, and the positions of both tables of every ordered pair of neighbours.

    Neighbours differ in one unit: a record, or a person with up to ``max_rows`` records.
    """
    persons = [rows for size in range(1, max_rows + 1) for rows in combinations_with_replacement(range(6), size)]
    joined = {table: [tuple(sorted(table + person)) for person in persons] for table in small_tables()}
    pairs: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    for table, larger in joined.items():
        if neighbours == "add-remove":
            pairs.update((table, other) for other in larger)
            pairs.update((other, table) for other in larger)
        else:
            pairs.update((left, right) for left in larger for right in larger)
    tables = sorted({table for pair in pairs for table in pair})
    position = {table: index for index, table in enumerate(tables)}
    left, right = np.array([[position[ours], position[theirs]] for ours, theirs in pairs]).T
    return tables, left, right
