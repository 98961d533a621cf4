"""The rows of a release's strategy as linear queries: what each published number measured, in product form."""

from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.operators import IdentityOperator, NodeCounts, Operator, ProductOperator, RegionCounts
from veilcube.operators.marginals import MarginalsOperator
from veilcube.query import LinearQueries
from veilcube.query.linear_factors import Factor
from veilcube.schema import Schema

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_ROWS = 500_000
# Weights of cells that are written out, over all rows: 8 bytes each.
_MOST_WEIGHTS = 1 << 28


@runtime_checkable
class TellsItsRows(Protocol):
    """An operator that says itself what its rows weigh: for each attribute the rows that do, and their weights.

    Attributes that a row does not mention weigh 1; ``multipliers`` are what each published number is divided by.
    """

    def product_rows(self) -> tuple[list[tuple[Integers, Floats]], Floats]:
        """Return (rows, weights of cells) for each attribute, and the multipliers."""


def measured_queries(schema: Schema, operator: Operator, most_rows: int = MOST_ROWS) -> tuple[LinearQueries, Floats]:
    """Return the query that each measurement of an operator answers, and the whole number it was multiplied by."""
    rows = prod(operator.measurement_shape)
    weights = rows * sum(schema.shape)
    if rows > most_rows or (weights > _MOST_WEIGHTS and not isinstance(operator, MarginalsOperator | TellsItsRows)):
        raise QueryError(
            f"the release has {rows:,} measurements over {schema.cells:,} cells, too many to learn from one by one; "
            "ask the release itself, or make one with fewer measurements"
        )
    ones = np.ones(rows)
    if isinstance(operator, TellsItsRows):
        told, multipliers = operator.product_rows()
        return _one_term_each(schema, [Factor.of_rows(*part) for part in told], rows), multipliers
    if isinstance(operator, MarginalsOperator):
        return _marginal_queries(schema, operator)
    if isinstance(operator, NodeCounts):
        return _node_queries(schema, operator), ones
    if isinstance(operator, RegionCounts):
        return _region_queries(schema, operator), ones
    if isinstance(operator, IdentityOperator):
        return _product_queries(schema, [np.eye(size) for size in schema.shape]), ones
    if isinstance(operator, ProductOperator):
        return _product_queries(schema, [axis.adjoint(np.eye(axis.rows)) for axis in operator.axes]), ones
    raise QueryError("the measurements of this strategy cannot be read as history; ask the release itself")


def _one_term_each(schema: Schema, factors: list[Factor], queries: int) -> LinearQueries:
    return LinearQueries(schema, tuple(factors), np.arange(queries, dtype=np.int64), queries)


def _product_queries(schema: Schema, matrices: list[Floats]) -> LinearQueries:
    """Return one query for every combination of the rows of one matrix (rows, cells) for each attribute."""
    combinations = np.indices(tuple(len(matrix) for matrix in matrices)).reshape(len(matrices), -1)
    queries = combinations.shape[1]
    factors = [
        Factor.of_rows(np.arange(queries), matrix[chosen])
        for matrix, chosen in zip(matrices, combinations, strict=True)
    ]
    return _one_term_each(schema, factors, queries)


def _marginal_queries(schema: Schema, operator: MarginalsOperator) -> tuple[LinearQueries, Floats]:
    """Return one query for each cell of each table; the multipliers are those of the tables."""
    sizes = [tuple(schema.shape[axis] for axis in table) for table in operator.tables]
    starts = np.cumsum([0, *(prod(size) for size in sizes)])
    terms: list[list[Integers]] = [[np.empty(0, dtype=np.int64)] for _ in schema]
    cells: list[list[Integers]] = [[np.empty(0, dtype=np.int64)] for _ in schema]
    for table, size, start in zip(operator.tables, sizes, starts, strict=False):
        for axis, chosen in zip(table, np.indices(size).reshape(len(size), -1), strict=True):
            terms[axis].append(start + np.arange(chosen.size))
            cells[axis].append(chosen)
    factors = [
        Factor.of_rows(np.concatenate(terms[axis]), np.eye(size)[np.concatenate(cells[axis])])
        for axis, size in enumerate(schema.shape)
    ]
    multipliers = np.repeat(np.array(operator.multipliers, dtype=np.float64), np.diff(starts))
    return _one_term_each(schema, factors, int(starts[-1])), multipliers


def _node_queries(schema: Schema, operator: NodeCounts) -> LinearQueries:
    """Return the box of each node: the cells whose codes agree with its first cell's in all bits above the level."""
    tree = operator.tree
    first_cells = tree.order[tree.starts(operator.level)[operator.chosen]]
    corners = np.unravel_index(first_cells, schema.shape)
    factors = []
    for codes, corner, below in zip(tree.axes, corners, tree.bits_below(operator.level), strict=True):
        prefixes = codes.values() >> below
        inside = prefixes[np.newaxis, :] == prefixes[corner][:, np.newaxis]
        factors.append(Factor.of_rows(np.arange(first_cells.size), inside.astype(np.float64)))
    return _one_term_each(schema, factors, first_cells.size)


def _region_queries(schema: Schema, operator: RegionCounts) -> LinearQueries:
    """Return each region as its runs of cells along the last attribute, runs that repeat below each other as one."""
    labels = operator.chosen.reshape(-1, schema.shape[-1])
    starts = np.ones(labels.shape, dtype=np.bool_)
    starts[:, 1:] = labels[:, 1:] != labels[:, :-1]
    line, first = np.nonzero(starts)
    last = np.append(first[1:], 0) - 1
    last[last < 0] = labels.shape[1] - 1
    owner = labels[line, first]
    low = np.column_stack([*np.unravel_index(line, schema.shape[:-1] or (1,)), first])[:, -len(schema) :]
    low, high, owner = _stacked(low, np.column_stack([low[:, :-1], last]), owner)
    order = np.argsort(owner, kind="stable")
    factors = []
    for axis, size in enumerate(schema.shape):
        cells = np.arange(size)
        inside = (cells >= low[order, axis, np.newaxis]) & (cells <= high[order, axis, np.newaxis])
        factors.append(Factor.of_rows(np.arange(order.size), inside.astype(np.float64)))
    return LinearQueries(schema, tuple(factors), owner[order], operator.regions)


def _stacked(low: Integers, high: Integers, owner: Integers) -> tuple[Integers, Integers, Integers]:
    """Join boxes of one region that continue each other along an attribute, from the last attribute to the first."""
    for axis in reversed(range(low.shape[1] - 1)):
        others = [column for end in (low, high) for column in np.delete(end, axis, axis=1).T]
        order = np.lexsort([low[:, axis], *others, owner])
        low, high, owner = low[order], high[order], owner[order]
        others = [column[order] for column in others]
        follows = (low[1:, axis] == high[:-1, axis] + 1) & (owner[1:] == owner[:-1])
        for column in others:
            follows &= column[1:] == column[:-1]
        begins = np.concatenate([[True], ~follows])
        ends = np.concatenate([~follows, [True]])
        high = np.where(np.arange(high.shape[1]) == axis, high[ends], high[begins])
        low, owner = low[begins], owner[begins]
    return low, high, owner
