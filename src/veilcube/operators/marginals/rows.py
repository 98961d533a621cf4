"""The cells of tables of attributes as linear queries."""

from collections.abc import Sequence
from math import prod

import numpy as np

from veilcube.operators.base import queries_of_one_term
from veilcube.operators.marginals.components import Axes
from veilcube.query import Factor, LinearQueries
from veilcube.schema import Schema
from veilcube.system import Floats, Integers


def queries_of_tables(
    schema: Schema, tables: Sequence[Axes], multipliers: Sequence[int]
) -> tuple[LinearQueries, Floats]:
    """Return one query for each cell of each table; the multipliers are those of the tables."""
    sizes = [tuple(schema.shape[axis] for axis in table) for table in tables]
    starts = np.cumsum([0, *(prod(size) for size in sizes)])
    terms: list[list[Integers]] = [[np.empty(0, dtype=np.int64)] for _ in schema]
    cells: list[list[Integers]] = [[np.empty(0, dtype=np.int64)] for _ in schema]
    for table, size, start in zip(tables, sizes, starts, strict=False):
        for axis, chosen in zip(table, np.indices(size).reshape(len(size), -1), strict=True):
            terms[axis].append(start + np.arange(chosen.size))
            cells[axis].append(chosen)
    factors = [
        Factor.of_rows(np.concatenate(terms[axis]), np.eye(size)[np.concatenate(cells[axis])])
        for axis, size in enumerate(schema.shape)
    ]
    each = np.repeat(np.array(multipliers, dtype=np.float64), np.diff(starts))
    return queries_of_one_term(schema, factors, int(starts[-1])), each
