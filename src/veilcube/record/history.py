"""History: noisy answers to linear queries that were given at any time, by anyone, as one set of plain public data.

    a = Q x + noise,    Cov(noise) = Σ

Nothing is assumed of the noise but that it is unbiased and its covariance known; a variance of 0 means exact. A release
is a history too: each published number is the answer to a row of its strategy, in product form.
"""

import json
from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import QueryError
from veilcube.operators import Operator
from veilcube.privacy import join_promises
from veilcube.query import LinearQueries, Workload
from veilcube.record.record import ReleaseRecord
from veilcube.record.sharpening import drop_superseded
from veilcube.schema import Schema, require_schema
from veilcube.system import Floats, read_kind, read_numbers, read_whole, require_memory

MOST_ROWS = 500_000
# Weights of cells that are written out, over all rows: 8 bytes each, and half as much again while they are gathered.
_MOST_WEIGHTS, _BYTES_PER_WEIGHT = 1 << 28, 12
# What two exact answers to one query may differ by, relative to their size: rounding in sums of real weights.
_ROUNDING = 1e-9
# Fourth powers of larger answers and variances would leave floating point.
_LARGEST = 1e60


def measured_queries(schema: Schema, operator: Operator, most_rows: int = MOST_ROWS) -> tuple[LinearQueries, Floats]:
    """Return the query that each measurement of an operator answers, and the whole number it was multiplied by."""
    rows = prod(operator.measurement_shape)
    if rows > most_rows or operator.weights_of_queries > _MOST_WEIGHTS:
        raise QueryError(
            f"the release has {rows:,} measurements over {schema.cells:,} cells, too many to learn from one by one; "
            "ask the release itself, or make one with fewer measurements"
        )
    needed = _BYTES_PER_WEIGHT * operator.weights_of_queries
    require_memory(needed, "learning from every measurement of the release", "ask the release itself")
    return operator.queries(schema)


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
    def answered(self) -> "History":
        """Itself: what models learn from says so under this name."""
        return self

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
        if record.known_facts is not None:
            raise QueryError(
                "the record of a refined release holds facts besides measurements; learn from the release itself"
            )
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
