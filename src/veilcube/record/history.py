"""History: noisy answers to linear queries that were given at any time, by anyone, as one set of plain public data.

    a = Q x + noise,    Cov(noise) = Σ

Nothing is assumed of the noise but that it is unbiased and its covariance known; a variance of 0 means exact.

The rows of a release's strategy as linear queries: what each published number measured, in product form.
"""

import json
from collections.abc import Sequence
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import QueryError
from veilcube.operators import IdentityOperator, MarginalsOperator, NodeCounts, Operator, ProductOperator, RegionCounts
from veilcube.privacy import join_promises
from veilcube.query import Factor, LinearQueries, Workload
from veilcube.record.record import ReleaseRecord
from veilcube.record.sharpening import drop_superseded
from veilcube.schema import Schema, require_schema
from veilcube.system import Floats, Integers, read_kind, read_numbers, read_whole

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


# What two exact answers to one query may differ by, relative to their size: rounding in sums of real weights.
_ROUNDING = 1e-9
# Fourth powers of larger answers and variances would leave floating point.
_LARGEST = 1e60


class History:
    """Queries, their noisy answers, and the noise: variances, or a whole covariance matrix; immutable.

    >>> from veilcube.schema import Ordinal
    >>> schema = Schema([Ordinal("age", 17, 90)])
    >>> History(schema, Workload(schema, [{"age": (30, 39)}]), [125.0], [200.0])
    History(1 answer over age)
    """

    def __init__(
        self,
        schema: Schema,
        workload: Workload | LinearQueries,
        values: ArrayLike,
        variances: ArrayLike,
        *,
        privacy: str = "",
    ) -> None:
        require_schema(schema, "a history")
        if not isinstance(privacy, str):
            raise QueryError("the privacy of a history is its promise in words; give a text or leave it out")
        queries = LinearQueries.of(workload)
        if queries.schema != schema:
            raise QueryError("the queries of the history are for another schema; build them with the history's schema")
        if len(queries) == 0:
            raise QueryError("the history is empty, so it teaches nothing; give at least one query with its answer")
        answers = _numbers(values, "answers")
        if answers.shape != (len(queries),):
            raise QueryError(f"a history has one answer for each query: {len(queries)}, not an array {answers.shape}")
        self._schema, self._queries, self._values = schema, queries, answers
        self._variances, self._covariance = _read_noise(_numbers(variances, "variances"), len(queries))
        self._promises: tuple[str, ...] = (privacy,) if privacy else ()
        for array in (self._values, self._variances):
            array.setflags(write=False)
        _refuse_contradictions(queries[self._variances == 0], answers[self._variances == 0])

    @property
    def schema(self) -> Schema:
        """The schema the queries are about."""
        return self._schema

    @property
    def queries(self) -> LinearQueries:
        """The queries, in product form."""
        return self._queries

    @property
    def values(self) -> Floats:
        """The noisy answers."""
        return self._values

    @property
    def variances(self) -> Floats:
        """The variance of each answer's noise; 0 where the answer is exact."""
        return self._variances

    @property
    def covariance(self) -> Floats | None:
        """The covariance matrix of the noise, or None where all of it is independent."""
        return self._covariance

    @property
    def privacy(self) -> str:
        """The privacy promises under which the answers were given, in words; what they cost adds up."""
        return join_promises(self._promises)

    @property
    def promises(self) -> tuple[str, ...]:
        """The promise of each source, one for each time that something was spent."""
        return self._promises

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"History({len(self):,} answer{'s' * (len(self) > 1)} over {', '.join(self._schema.names)})"

    def __getitem__(self, chosen: slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]) -> "History":
        """Return the part of the history that a slice, a mask or a list of positions chooses."""
        queries = self._queries[chosen]
        noise = self._variances[chosen] if self._covariance is None else self._covariance[chosen][:, chosen]
        return History(self._schema, queries, self._values[chosen], noise)._under(self._promises)

    def _under(self, promises: tuple[str, ...]) -> "History":
        """Set the promises of a history that was just made, and that nobody else holds yet."""
        self._promises = promises
        return self

    @classmethod
    def merge(cls, *histories: "History") -> "History":
        """Join histories of one table whose noise is independent of each other's; their promises are all kept."""
        if not histories or not all(isinstance(history, History) for history in histories):
            raise QueryError("there is no history to merge; give at least one veilcube.History, and nothing else")
        schema = histories[0].schema
        if any(history.schema != schema for history in histories):
            raise QueryError("the histories are for different schemas; only answers about one schema can be merged")
        if len(histories) == 1:
            return histories[0]
        queries = LinearQueries.concatenate([history.queries for history in histories])
        values = np.concatenate([history.values for history in histories])
        promises = tuple(promise for history in histories for promise in history.promises)
        return cls(schema, queries, values, _joined_noise(histories))._under(promises)

    @classmethod
    def of_release(cls, record: ReleaseRecord, *, most_rows: int = MOST_ROWS) -> "History":
        """Return every measurement of a release as a query with its answer and the exact variance of its noise."""
        read_kind(record, ReleaseRecord, "a history is read from the record of a release, release.record")
        most_rows = read_whole(most_rows, "most_rows", 1)
        parts = []
        for measurement in drop_superseded(record.measurements):
            queries, multipliers = measured_queries(record.schema, measurement.operator, most_rows)
            if len(queries):
                values = measurement.values.ravel() / multipliers
                variances = measurement.noise.variance / np.square(multipliers)
                parts.append(cls(record.schema, queries, values, variances))
        # One statement is about all measurements of a release together.
        return cls.merge(*parts)._under((record.statement.words,))


def _numbers(values: ArrayLike, what: str) -> Floats:
    numbers = read_numbers(values, f"the {what} of a history").copy()
    if not np.isfinite(numbers).all():
        raise QueryError(f"the {what} of a history must be finite; leave out the queries that have none")
    if (np.abs(numbers) > _LARGEST).any():
        raise QueryError(f"the {what} of a history must not be beyond {_LARGEST:g}; leave out the queries with such")
    return numbers


def _read_noise(noise: Floats, queries: int) -> tuple[Floats, Floats | None]:
    """Return the variances, and the covariance matrix if the noise of different answers is not independent."""
    if noise.ndim == 0:
        noise = np.full(queries, float(noise))
    if noise.shape not in ((queries,), (queries, queries)):
        raise QueryError(f"a history has {queries} variances, or a covariance matrix of that size, not {noise.shape}")
    variances = np.diagonal(noise).copy() if noise.ndim == 2 else noise
    if (variances < 0).any():
        raise QueryError("a variance of the history is below 0; give the square of the noise's standard deviation")
    if noise.ndim == 1 or not np.count_nonzero(noise - np.diag(variances)):
        return variances, None
    # An entry's square is at most the product of its variances; so exact answers have none but zeros.
    limit = np.outer(np.sqrt(variances), np.sqrt(variances))
    if (np.abs(noise - noise.T) > _ROUNDING * limit).any() or (np.abs(noise) > limit * (1 + _ROUNDING)).any():
        raise QueryError("the covariance matrix of the history is not one: it must be symmetric and not indefinite")
    symmetric = (noise + noise.T) / 2
    symmetric.setflags(write=False)
    return variances, symmetric


def _joined_noise(histories: Sequence[History]) -> Floats:
    if all(history.covariance is None for history in histories):
        return np.concatenate([history.variances for history in histories])
    ends = np.cumsum([0, *(len(history) for history in histories)])
    noise = np.zeros((int(ends[-1]), int(ends[-1])))
    for start, history in zip(ends, histories, strict=False):
        part = slice(start, start + len(history))
        noise[part, part] = np.diag(history.variances) if history.covariance is None else history.covariance
    return noise


def _refuse_contradictions(queries: LinearQueries, values: Floats) -> None:
    """Refuse two exact answers to one query that disagree."""
    if len(queries) < 2:
        return
    known: dict[str, float] = {}
    listed = queries.to_dict()["queries"]
    for query, value in zip(listed if isinstance(listed, list) else [], values.tolist(), strict=True):
        key = json.dumps(sorted(json.dumps(term, sort_keys=True) for term in query))
        earlier = known.setdefault(key, value)
        if abs(earlier - value) > _ROUNDING * max(abs(earlier), abs(value)):
            raise QueryError(
                "the history contradicts itself: one query has two exact answers that disagree; "
                "remove the wrong one or give both the variance they have"
            )
