"""Linear queries in product form: sums over the rows of a table of Σ_terms Π_attributes weight(cell).

Ranges, sets, moments, Fourier and wavelet terms and boolean expressions all have few terms, and everything that is done
with them (inner products, answers, conditionals) works attribute by attribute, never on the cells of the cube.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import QueryError
from veilcube.query.linear_factors import (
    Factor,
    Term,
    factors_of_ranges,
    factors_of_terms,
    fourier_term,
    function_terms,
    moment_term,
    plain_queries,
    product_of,
    read_list,
    read_queries,
    read_terms,
    terms_of_region,
    wavelet_term,
)
from veilcube.query.predicate import Query, read_query
from veilcube.query.workload import Workload
from veilcube.schema import Schema, require_schema
from veilcube.system import Floats, Integers, read_numbers

Kind = TypeVar("Kind")
_ENTRIES_AT_ONCE = 1 << 22
# A table over a term's attributes is counted whole up to this many cells; beyond it rows are weighed one by one.
_LARGEST_TABLE = 1 << 24


@dataclass(frozen=True, eq=False)
class LinearQueries:
    """Many linear queries over one schema: ``parts`` holds one factor for each attribute, ``owner`` each term's query.

    Terms stand in the order of their queries. ``parts`` leaves out what is 1 everywhere, so wide tables cost what their
    queries mention; ``factors`` writes everything out.

    >>> from veilcube.schema import Nominal, Ordinal
    >>> schema = Schema([Ordinal("age", 17, 19), Nominal("sex", ["Female", "Male"])])
    >>> queries = LinearQueries.conditions(schema, [{"age": (18, 19)}, "age = 17 OR sex = 'Male'"])
    >>> queries.evaluate([[1, 0], [0, 1], [2, 1]]).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """

    schema: Schema
    parts: tuple[Factor, ...]
    owner: Integers
    count: int

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.schema) or (np.diff(self.owner) < 0).any():
            raise QueryError("linear queries need one factor for each attribute, their terms in the order of queries")
        if self.owner.size and not 0 <= self.owner[0] <= self.owner[-1] < self.count:
            raise QueryError("every term of linear queries must belong to one of them")
        self.owner.setflags(write=False)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"LinearQueries({self.count:,} queries over {', '.join(self.schema.names)})"

    @classmethod
    def of_terms(cls, schema: Schema, queries: Iterable[Sequence[Term]]) -> "LinearQueries":
        """Build from the terms of each query; a term maps axes to weights of their cells, or to a slice of them."""
        require_schema(schema, "a list of linear queries")
        listed = [read_terms(len(schema), terms) for terms in read_list(queries)]
        owner = np.repeat(np.arange(len(listed), dtype=np.int64), [len(terms) for terms in listed])
        factors = factors_of_terms(schema.shape, [term for terms in listed for term in terms])
        return cls(schema, factors, owner, len(listed))

    @classmethod
    def of(cls, workload: "Workload | LinearQueries") -> "LinearQueries":
        """Build from a workload of counts; a query that is no block of cells has one term for each of its boxes."""
        if isinstance(workload, LinearQueries):
            return workload
        if not isinstance(workload, Workload):
            raise QueryError("queries are given as a veilcube.Workload or as LinearQueries")
        shape, count = workload.schema.shape, len(workload)
        irregular = {query: terms_of_region(region) for query, region in workload.regions.items()}
        terms_of_query = np.ones(count, dtype=np.int64)
        terms_of_query[list(irregular)] = [len(terms) for terms in irregular.values()]
        starts = np.concatenate([[0], np.cumsum(terms_of_query)])
        blocks = np.setdiff1d(np.arange(count), list(irregular))
        factors = factors_of_ranges(shape, workload.low[blocks], workload.high[blocks], starts[blocks])
        if irregular:
            numbers = [starts[query] + i for query, terms in irregular.items() for i in range(len(terms))]
            others = factors_of_terms(shape, [term for terms in irregular.values() for term in terms])
            positions = np.array(numbers, dtype=np.int64)
            moved = (replace(part, terms=positions[part.terms]) for part in others)
            factors = tuple(Factor.join([ours, theirs]) for ours, theirs in zip(factors, moved, strict=True))
        return cls(workload.schema, factors, np.repeat(np.arange(count, dtype=np.int64), terms_of_query), count)

    @classmethod
    def conditions(cls, schema: Schema, queries: Sequence[Query]) -> "LinearQueries":
        """Build counts from boolean expressions: mappings of conditions, or SQL text."""
        return cls.of(Workload(schema, queries))

    @classmethod
    def everything(cls, schema: Schema) -> "LinearQueries":
        """Build the universal query, which counts all rows."""
        return cls.of_terms(schema, [[{}]])

    @classmethod
    def moments(
        cls, schema: Schema, powers: Sequence[Mapping[str, int]], where: Query | None = None
    ) -> "LinearQueries":
        """Build sums of products of powers, such as ``[{"height": 1, "weight": 1}]``; bins count as their middle.

        With ``where`` they are of the rows that meet a condition.
        """
        terms = [moment_term(schema, entry) for entry in _entries(schema, powers, "moments")]
        if where is None:
            return cls.of_terms(schema, [[term] for term in terms])
        boxes = terms_of_region(read_query(schema, where))
        return cls.of_terms(schema, [[product_of(term, box, schema.shape) for box in boxes] for term in terms])

    @classmethod
    def fourier(cls, schema: Schema, names: Sequence[Sequence[str]]) -> "LinearQueries":
        """Build Fourier (parity) coefficients, one for each list of attributes."""
        return cls.of_terms(
            schema, [[fourier_term(schema, entry)] for entry in _entries(schema, names, "Fourier terms")]
        )

    @classmethod
    def wavelet(cls, schema: Schema, nodes: Sequence[Mapping[str, tuple[int, int, int]]]) -> "LinearQueries":
        """Build wavelet coefficients: for each attribute (first, middle, end), +1 before the middle and -1 after."""
        return cls.of_terms(
            schema, [[wavelet_term(schema, entry)] for entry in _entries(schema, nodes, "wavelet terms")]
        )

    @classmethod
    def function(
        cls, schema: Schema, tables: Mapping[tuple[str, ...], ArrayLike] | Sequence[Mapping[tuple[str, ...], ArrayLike]]
    ) -> "LinearQueries":
        """Build arbitrary functions of one or two attributes: ``{("age", "sex"): table}``, a query for each entry.

        A list of such mappings keeps their order, and so allows many functions of the same attributes.
        """
        require_schema(schema, "a list of functions")
        mappings = [tables] if isinstance(tables, Mapping) else tables
        if not isinstance(mappings, Sequence) or not all(isinstance(mapping, Mapping) for mapping in mappings):
            raise QueryError('functions are a mapping such as {("age", "sex"): table}, or a list of such mappings')
        entries = [entry for mapping in mappings for entry in mapping.items()]
        return cls.of_terms(schema, [function_terms(schema, names, table) for names, table in entries])

    @classmethod
    def concatenate(cls, several: Sequence["LinearQueries"]) -> "LinearQueries":
        """Join queries over one schema, one after the other."""
        if not isinstance(several, Sequence) or not all(isinstance(part, LinearQueries) for part in several):
            raise QueryError("only LinearQueries can be joined; give a list of them")
        if not several:
            raise QueryError("there are no linear queries to join; give at least one")
        schema = several[0].schema
        if any(queries.schema != schema for queries in several):
            raise QueryError("linear queries over different schemas cannot be joined; use one schema for all of them")
        first_term = np.cumsum([0, *(queries.owner.size for queries in several)])
        first_query = np.cumsum([0, *(queries.count for queries in several)])
        factors = []
        for axis in range(len(schema)):
            parts = [queries.parts[axis] for queries in several]
            factors.append(
                Factor.join([replace(part, terms=part.terms + at) for part, at in zip(parts, first_term, strict=False)])
            )
        owner = np.concatenate([queries.owner + start for queries, start in zip(several, first_query, strict=False)])
        return cls(schema, tuple(factors), owner, int(first_query[-1]))

    def __getitem__(self, chosen: slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]) -> "LinearQueries":
        """Return the queries that a slice, a mask or a list of positions chooses, in that order."""
        refusal = f"choose queries with a slice, a mask of length {self.count:,}, or a list of positions below that"
        try:
            wanted = np.arange(self.count)[chosen]
        except (IndexError, TypeError, ValueError) as problem:
            raise QueryError(refusal) from problem
        if wanted.ndim != 1:
            raise QueryError(refusal)
        first = np.searchsorted(self.owner, wanted, side="left")
        many = np.searchsorted(self.owner, wanted, side="right") - first
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        terms = np.repeat(first, many) + within
        factors = tuple(part.take(terms, self.owner.size) for part in self.parts)
        return LinearQueries(self.schema, factors, np.repeat(np.arange(wanted.size), many), wanted.size)

    @property
    def factors(self) -> tuple[Floats, ...]:
        """The weights of every cell in every term, one (terms, cells) array for each attribute."""
        return tuple(part.dense(self.owner.size) for part in self.parts)

    def supports(self) -> tuple[tuple[int, ...], ...]:
        """Return for each term the axes on which its weights are not 1 everywhere."""
        return tuple(tuple(np.flatnonzero(row).tolist()) for row in self._mentioned)

    @cached_property
    def _mentioned(self) -> NDArray[np.bool_]:
        mentioned = np.zeros((self.owner.size, len(self.schema)), dtype=np.bool_)
        for axis, part in enumerate(self.parts):
            mentioned[part.terms, axis] = True
        return mentioned

    def term_groups(self) -> list[tuple[tuple[int, ...], Integers]]:
        """Return the terms of each support: the axes, and the numbers of the terms that weigh exactly these."""
        if not self.owner.size:
            return []
        distinct, which = np.unique(self._mentioned, axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        pieces = np.split(order, np.cumsum(np.bincount(which.ravel(), minlength=len(distinct)))[:-1])
        return [
            (tuple(np.flatnonzero(row).tolist()), terms)
            for row, terms in zip(distinct, pieces, strict=True)
            if terms.size
        ]

    def sum_terms(self, of_terms: Floats) -> Floats:
        """Add up what belongs to each query along the first axis: (terms, ...) to (queries, ...)."""
        if self.owner.size == self.count and (self.owner == np.arange(self.count)).all():
            return of_terms
        ones = np.ones(self.owner.size)
        adding = scipy.sparse.csr_array(
            (ones, (self.owner, np.arange(self.owner.size))), shape=(self.count, self.owner.size)
        )
        return np.asarray(adding @ of_terms, dtype=np.float64)

    def evaluate(self, cells: ArrayLike) -> Floats:
        """Return the weight of rows of a table, given as cell numbers (rows, attributes), in each query."""
        numbers = self._cell_numbers(cells)
        weights = np.ones((self.owner.size, len(numbers)))
        for axis, part in enumerate(self.parts):
            weights[part.terms] *= part.at(numbers[:, axis])
        return self.sum_terms(weights).T

    def count_rows(self, cells: ArrayLike) -> Floats:
        """Return the answers on a table whose rows are given as cell numbers (rows, attributes)."""
        numbers, shape = self._cell_numbers(cells), self.schema.shape

        def table(axes: tuple[int, ...]) -> Floats:
            sizes = tuple(shape[axis] for axis in axes)
            if not axes:
                return np.array(float(len(numbers)))
            flat = np.ravel_multi_index(tuple(numbers[:, axis] for axis in axes), sizes)
            return np.bincount(flat, minlength=prod(sizes)).astype(np.float64).reshape(sizes)

        return self._answers(table, lambda terms: self._weigh_rows(numbers, terms))

    def apply(self, cube: ArrayLike) -> Floats:
        """Return the answers on a whole cube of counts; meant for cubes that fit in memory."""
        counts = read_numbers(cube, "the counts of the cube")
        if counts.shape != self.schema.shape:
            raise QueryError(f"the cube has the shape {counts.shape}, but the schema has {self.schema.shape}")

        def table(axes: tuple[int, ...]) -> Floats:
            outside = tuple(axis for axis in range(counts.ndim) if axis not in axes)
            return np.asarray(counts.sum(axis=outside))

        return self._answers(table, None)

    def _answers(
        self, table: Callable[[tuple[int, ...]], Floats], by_rows: Callable[[Integers], Floats] | None
    ) -> Floats:
        answers = np.zeros(self.owner.size)
        for axes, terms in self.term_groups():
            cells = prod(self.schema.shape[axis] for axis in axes)
            if by_rows is not None and cells > _LARGEST_TABLE:
                answers[terms] = by_rows(terms)
                continue
            counts, at_once = table(axes), max(1, _ENTRIES_AT_ONCE // max(cells, 1))
            for start in range(0, terms.size, at_once):
                piece = terms[start : start + at_once]
                rows = [self._rows_of(axis, piece) for axis in axes]
                answers[piece] = _contract(counts, rows, piece.size)
        return self.sum_terms(answers)

    def _rows_of(self, axis: int, terms: Integers) -> Floats:
        part = self.parts[axis]
        return part.written(np.searchsorted(part.terms, terms))

    def _weigh_rows(self, numbers: Integers, terms: Integers) -> Floats:
        alone = LinearQueries(
            self.schema,
            tuple(part.take(terms, self.owner.size) for part in self.parts),
            np.arange(terms.size, dtype=np.int64),
            terms.size,
        )
        found, at_once = np.zeros(terms.size), max(1, _ENTRIES_AT_ONCE // terms.size)
        for start in range(0, len(numbers), at_once):
            found += alone.evaluate(numbers[start : start + at_once]).sum(axis=0)
        return found

    def _cell_numbers(self, cells: ArrayLike) -> Integers:
        try:
            numbers = np.asarray(cells)
        except (TypeError, ValueError, OverflowError, RecursionError):
            numbers = np.zeros(0)
        if numbers.ndim != 2 or numbers.shape[1] != len(self.schema) or numbers.dtype.kind not in "iu":
            raise QueryError(f"rows are whole cell numbers of shape (rows, {len(self.schema)})")
        if numbers.size and (numbers.min() < 0 or (numbers.max(axis=0) >= np.array(self.schema.shape)).any()):
            raise QueryError(f"a row leaves the cube, whose shape is {self.schema.shape}; cell numbers start at 0")
        return numbers.astype(np.int64, copy=False)

    def to_dict(self) -> dict[str, object]:
        """Return compact plain data for JSON, from which ``from_dict`` rebuilds the queries."""
        return {"queries": plain_queries(self.schema, self.parts, self.owner, self.count)}

    @classmethod
    def from_dict(cls, schema: Schema, data: Mapping[str, object]) -> "LinearQueries":
        """Rebuild from ``to_dict``; the data may come from anywhere."""
        return cls.of_terms(require_schema(schema, "a list of linear queries"), read_queries(schema, data))


def _entries(schema: Schema, entries: Sequence[Kind], what: str) -> Sequence[Kind]:
    require_schema(schema, f"a list of {what}")
    if isinstance(entries, str | bytes) or not isinstance(entries, Sequence):
        raise QueryError(f"{what} are given as a list, one entry for each query; put a single one into a list")
    return entries


def _are_terms(terms: Sequence[object]) -> bool:
    return not isinstance(terms, str | bytes) and all(isinstance(term, Mapping) for term in terms)


def _contract(counts: Floats, rows: Sequence[Floats], terms: int) -> Floats:
    """Return Σ_cells counts(cells) Π_axes rows[axis][term, cell] for each term."""
    if not rows:
        return np.full(terms, float(counts))
    left = (rows[0] @ counts.reshape(rows[0].shape[1], -1)).reshape(terms, *counts.shape[1:])
    for weights in rows[1:]:
        left = np.einsum("tn,tn...->t...", weights, left)
    return np.asarray(left, dtype=np.float64)
