"""The parts of linear queries in product form: for each attribute, which terms weigh its cells, and how.

A term is a product Π_k g_k(t[k]) over the attributes; where g_k is 1 everywhere, nothing is stored (Equation 9 of the
history paper, with S the attributes that are stored). Each kind of query is a sum of such products (section 3.2 there);
as plain data for JSON, what is 1 everywhere is left out, and a run of cells is two numbers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from veilcube.errors import QueryError
from veilcube.schema import Attribute, Box, Ordinal, Region, Schema
from veilcube.system import Floats, Integers, read_numbers, require_cells

# The weights of the cells, by axis: an array, or a slice of the cells that count; axes left out are 1 everywhere.
Term: TypeAlias = Mapping[int, Floats | slice]


@dataclass(frozen=True, eq=False)
class Factor:
    """One attribute's share: how ``terms`` weigh its ``size`` cells; other terms weigh each of them 1.

    Term i counts the run of cells from ``low[i]`` to before ``end[i]``, so ranges cost two numbers on any attribute.
    The terms at the places ``mixed`` have weights of their own instead, the rows of ``table``.
    """

    terms: Integers
    size: int
    low: Integers
    end: Integers
    mixed: Integers
    table: Floats

    def __post_init__(self) -> None:
        for array in (self.terms, self.low, self.end, self.mixed, self.table):
            array.setflags(write=False)

    @classmethod
    def of_runs(cls, terms: Integers, low: Integers, end: Integers, size: int) -> "Factor":
        """Return the factor of terms that count the cells from ``low`` to before ``end``, none if they meet."""
        kept = np.flatnonzero((low > 0) | (end < size))
        none = np.empty(0, dtype=np.int64)
        return cls(terms[kept], size, low[kept], np.maximum(end, low)[kept], none, np.empty((0, size)))

    @classmethod
    def of_rows(cls, terms: Integers, rows: Floats) -> "Factor":
        """Return the factor of these rows, those that are 1 everywhere left out and runs of ones kept as such."""
        size, chosen = rows.shape[1], rows != 0
        are_ones = ~(chosen & (rows != 1)).any(axis=1)
        many, low = chosen.sum(axis=1), chosen.argmax(axis=1) if size else np.zeros(len(rows), dtype=np.int64)
        end = np.where(many > 0, size - (chosen[:, ::-1].argmax(axis=1) if size else 0), low)
        kept = np.flatnonzero(~(are_ones & (many == size)))
        mixed = np.flatnonzero(~(are_ones & (end - low == many))[kept])
        return cls(terms[kept], size, low[kept], end[kept], mixed, np.ascontiguousarray(rows[kept[mixed]]))

    @property
    def rows(self) -> Floats:
        """The weights of the cells in each of ``terms``, written out."""
        return self.written(np.arange(self.terms.size))

    def written(self, places: Integers) -> Floats:
        """Return the weights of the cells in the terms at some places, written out."""
        require_cells(self.size * (places.size + 1), 16, "linear queries", "use coarser bins or fewer queries")
        return self._weights(np.arange(self.size), slice(None), places)

    def at(self, cells: Integers) -> Floats:
        """Return the weight of each of ``cells`` in each of ``terms``."""
        return self._weights(cells, cells, np.arange(self.terms.size))

    def _weights(self, cells: Integers, columns: Integers | slice, places: Integers) -> Floats:
        low, end = self.low[places, np.newaxis], self.end[places, np.newaxis]
        found = ((cells >= low) & (cells < end)).astype(np.float64)
        if self.mixed.size:
            row = self._rows_of_table[places]
            found[row >= 0] = self.table[row[row >= 0]][:, columns]
        return found

    @cached_property
    def _rows_of_table(self) -> Integers:
        """The row of the table that each place has, -1 for runs."""
        row = np.full(self.terms.size, -1, dtype=np.int64)
        row[self.mixed] = np.arange(self.mixed.size)
        return row

    def take(self, wanted: Integers, all_terms: int) -> "Factor":
        """Return the factor of chosen terms, renumbered in the order of ``wanted``."""
        position = np.full(all_terms, -1, dtype=np.int64)
        position[self.terms] = np.arange(self.terms.size)
        found = position[wanted]
        kept = np.flatnonzero(found >= 0)
        places = found[kept]
        row = self._rows_of_table[places]
        mixed = np.flatnonzero(row >= 0)
        return Factor(kept, self.size, self.low[places], self.end[places], mixed, self.table[row[mixed]])

    def dense(self, all_terms: int) -> Floats:
        """Return the weights of every term, (terms, cells)."""
        require_cells(self.size * (all_terms + 1), 16, "linear queries", "use coarser bins or fewer queries")
        weights = np.ones((all_terms, self.size))
        weights[self.terms] = self.rows
        return weights

    @classmethod
    def join(cls, several: Sequence["Factor"]) -> "Factor":
        """Return factors over disjoint sets of terms as one, its terms in order."""
        terms, row = (np.concatenate([getattr(part, name) for part in several]) for name in ("terms", "_rows_of_table"))
        many, counts = np.cumsum([0, *(part.mixed.size for part in several)]), [part.terms.size for part in several]
        row = np.where(row >= 0, row + np.repeat(many[:-1], counts), -1)
        order = np.argsort(terms, kind="stable")
        row, size = row[order], several[0].size
        low, end = (np.concatenate([getattr(part, name) for part in several])[order] for name in ("low", "end"))
        mixed = np.flatnonzero(row >= 0)
        table = np.concatenate([part.table for part in several])
        return cls(terms[order], size, low, end, mixed, table[row[mixed]])


def read_list(given: object) -> list[object]:
    """Return what should be a list of queries, or of their terms, as a list."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise QueryError("linear queries are a list of queries, each a list of terms; put a single one into a list")
    return list(given)


def read_terms(axes: int, terms: object) -> list[Term]:
    """Return the terms of one query; refuses axes that a schema of ``axes`` attributes does not have."""
    listed = read_list(terms)
    for term in listed:
        if not isinstance(term, Mapping) or not all(_is_axis(key, axes) for key in term):
            raise QueryError(f"a term of a linear query maps axes, numbered 0 to {axes - 1}, to the weights of cells")
    return cast("list[Term]", listed)


def _is_axis(key: object, axes: int) -> bool:
    return isinstance(key, Integral) and not isinstance(key, bool) and 0 <= int(key) < axes


def factors_of_terms(shape: Sequence[int], terms: Sequence[Term]) -> tuple[Factor, ...]:
    """Return terms written one by one as one factor for each attribute."""
    factors = []
    for axis, size in enumerate(shape):
        numbers = [number for number, term in enumerate(terms) if axis in term]
        runs = [number for number in numbers if isinstance(terms[number][axis], slice)]
        ends = [_checked_run(cast("slice", terms[number][axis]), size) for number in runs]
        low, end = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        others = sorted(set(numbers) - set(runs))
        factor = Factor.of_runs(np.array(runs, dtype=np.int64), low, end, size)
        if others:
            stacked = np.array([_checked_row(terms[number][axis], size) for number in others], dtype=np.float64)
            written = Factor.of_rows(np.array(others, dtype=np.int64), stacked.reshape(len(others), size))
            factor = Factor.join([factor, written])
        factors.append(factor)
    return tuple(factors)


def terms_of_region(region: Region) -> list[Term]:
    """Return a region as one term for each of its disjoint boxes; runs of cells are not written out."""
    return [
        {axis: _run_or_row(box, axis) for axis, some in enumerate(box.chosen) if some is not None}
        for box in region.boxes
    ]


def _run_or_row(box: Box, axis: int) -> Floats | slice:
    run = box.run(axis)
    return box.mask(axis).astype(np.float64) if run is None else slice(run.start, run.stop)


def product_of(one: Term, other: Term, shape: Sequence[int]) -> Term:
    """Return the term that weighs each cell by both."""
    shared = {axis: _row(one[axis], shape[axis]) * _row(other[axis], shape[axis]) for axis in one.keys() & other.keys()}
    return {**one, **other, **shared}


def _row(weights: Floats | slice, size: int) -> Floats:
    if not isinstance(weights, slice):
        return weights
    row = np.zeros(size)
    row[weights] = 1.0
    return row


def factors_of_ranges(shape: Sequence[int], low: Integers, high: Integers, terms: Integers) -> tuple[Factor, ...]:
    """Return blocks of cells, inclusive indices (blocks, attributes), as the terms of these numbers."""
    return tuple(Factor.of_runs(terms, low[:, axis], high[:, axis] + 1, size) for axis, size in enumerate(shape))


def _checked_run(given: slice, size: int) -> tuple[int, int]:
    """Return the first cell of a run and the one after its last; it must lie within the attribute."""
    first, end = given.start, given.stop
    if given.step is not None or not _is_axis(first, size + 1) or not _is_axis(end, size + 1) or first > end:
        raise QueryError(
            f"a slice of cells goes from a first one to an end, 0 <= first <= end <= {size}, without steps"
        )
    return int(first), int(end)


def _checked_row(given: object, size: int) -> Floats:
    weights = read_numbers(given, "the weights of a linear query")
    if weights.shape != (size,):
        raise QueryError(f"a query weighs each of an attribute's {size} cells once, but {weights.size} weights came")
    if not np.isfinite(weights).all():
        raise QueryError("the weights of a linear query must be finite numbers; leave out or repair the others")
    return weights


# Singular values below this share of the largest are rounding.
_NEGLIGIBLE = 1e-12
_HIGHEST_POWER = 1000


def moment_term(schema: Schema, powers: Mapping[str, int]) -> Term:
    """Return the query whose answer is the sum over the rows of a product of powers of attributes."""
    if not isinstance(powers, Mapping):
        raise QueryError('a moment is a mapping from attributes to powers, such as {"height": 1, "weight": 1}')
    term: dict[int, Floats] = {}
    for axis, (name, power) in zip(schema.axes(powers), powers.items(), strict=True):
        if isinstance(power, bool) or not isinstance(power, Integral) or power < 0:
            raise QueryError(f"the power of '{name}' in a moment must be a whole number, 0 or more")
        term[axis] = _powers(schema.attributes[axis], int(power))
    return term


def _powers(attribute: Attribute, power: int) -> Floats:
    with np.errstate(over="ignore"):
        found = np.power(_numbers(attribute), float(min(power, _HIGHEST_POWER)))
    if power > _HIGHEST_POWER or not np.isfinite(found).all():
        raise QueryError(f"the power of '{attribute.name}' in a moment leads beyond all numbers; ask for a lower one")
    return np.asarray(found)


def _numbers(attribute: Attribute) -> Floats:
    """Return the number that stands for each cell; stray values have none, and count as 0."""
    if not isinstance(attribute, Ordinal):
        raise QueryError(f"'{attribute.name}' is nominal and has no moments; ask for counts of its values")
    found = np.zeros(attribute.size)
    found[: attribute.regular_size] = attribute.centres()
    return found


def fourier_term(schema: Schema, names: Sequence[str]) -> Term:
    """Return the coefficient Π (-1)^t over the named attributes, t being the number of the cell."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise QueryError("a Fourier term is a list of attributes; put a single name into a list")
    return {axis: np.where(np.arange(schema.shape[axis]) % 2 == 0, 1.0, -1.0) for axis in schema.axes(names)}


def wavelet_term(schema: Schema, nodes: Mapping[str, tuple[int, int, int]]) -> Term:
    """Return the coefficient that is +1 from ``first`` to before ``middle`` and -1 from there to before ``end``.

    Each named attribute has its triple of cell numbers; cells outside of it weigh 0.
    """
    if not isinstance(nodes, Mapping):
        raise QueryError('a wavelet term is a mapping such as {"age": (first, middle, end)} of cell numbers')
    term: dict[int, Floats] = {}
    for axis, (name, node) in zip(schema.axes(nodes), nodes.items(), strict=True):
        size = schema.shape[axis]
        if (
            not isinstance(node, Sequence | np.ndarray)
            or len(node) != 3
            or not all(isinstance(cell, Integral) for cell in node)
        ):
            raise QueryError(f"a wavelet node of '{name}' is three cell numbers: first, middle, end")
        first, middle, end = (int(cell) for cell in node)
        if not 0 <= first < middle < end <= size:
            raise QueryError(f"a wavelet node of '{name}' needs 0 <= first < middle < end <= {size}")
        weights = np.zeros(size)
        weights[first:middle], weights[middle:end] = 1.0, -1.0
        term[axis] = weights
    return term


def function_terms(schema: Schema, names: Sequence[str], table: ArrayLike) -> list[Term]:
    """Return an arbitrary function of one or two attributes as few products.

    A table of rank r needs r of them (its singular value decomposition); one of whole numbers whose smaller side is no
    longer than that is kept row by row, so that its weights stay exact.
    """
    listed = [names] if isinstance(names, str) else names
    axes = [schema.axis(name) for name in listed] if isinstance(listed, Sequence) else []
    sizes = tuple(schema.shape[axis] for axis in axes)
    if len(axes) not in (1, 2) or len(set(axes)) != len(axes):
        raise QueryError("a function is given on one or two different attributes; write others as conditions")
    try:
        values = np.array(table, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.full(sizes, np.nan)
    if values.shape != sizes or not np.isfinite(values).all():
        raise QueryError(f"a function on {', '.join(listed)} needs a finite table of shape {sizes}")
    if len(axes) == 1:
        return [{axes[0]: values}]
    if values.shape[0] > values.shape[1]:
        axes, values = axes[::-1], values.T
    largest = max(float(np.abs(values).max()), 1e-300)  # the squares of larger or smaller numbers would leave floats
    left, strengths, right = np.linalg.svd(values / largest, full_matrices=False)
    rank = int((strengths > _NEGLIGIBLE * max(strengths[0], 1e-300)).sum())
    filled = np.flatnonzero(values.any(axis=1))
    if rank < filled.size:
        return [{axes[0]: left[:, i] * strengths[i], axes[1]: right[i] * largest} for i in range(rank)]
    points = np.eye(values.shape[0])
    return [{axes[0]: points[row], axes[1]: values[row]} for row in filled]


_NOT_WELL_FORMED = "the stored linear queries are not well formed; ask for a new copy of them"


def plain_queries(schema: Schema, factors: Sequence[Factor], owner: Integers, queries: int) -> list[object]:
    """Return for each query the list of its terms, each a mapping from attributes to weights."""
    terms: list[dict[str, object]] = [{} for _ in range(owner.size)]
    for name, factor in zip(schema.names, factors, strict=True):
        for number, low, end in zip(factor.terms.tolist(), factor.low.tolist(), factor.end.tolist(), strict=True):
            terms[number][name] = [low, end - 1] if low < end else {"cells": []}
        for number, weights in zip(factor.terms[factor.mixed].tolist(), factor.table, strict=True):
            terms[number][name] = _plain_weights(weights)
    listed: list[list[object]] = [[] for _ in range(queries)]
    for query, term in zip(owner.tolist(), terms, strict=True):
        listed[query].append(term)
    return list(listed)


def _plain_weights(weights: Floats) -> object:
    """Return {"cells": [...]} for a set with gaps, {"weights": [...]} for the rest."""
    chosen = np.flatnonzero(weights)
    if chosen.size and (weights[chosen] == 1.0).all():
        return {"cells": chosen.tolist()}
    return {"weights": weights.tolist()}


def read_queries(schema: Schema, data: Mapping[str, object]) -> Iterator[list[Term]]:
    """Rebuild the terms of each query from plain data, which is not trusted."""
    queries = data.get("queries") if isinstance(data, Mapping) else None
    if not isinstance(queries, list):
        raise QueryError(_NOT_WELL_FORMED)
    for terms in queries:
        if not isinstance(terms, list):
            raise QueryError(_NOT_WELL_FORMED)
        yield [_read_term(schema, term) for term in terms]


def _read_term(schema: Schema, term: object) -> Term:
    if not isinstance(term, Mapping):
        raise QueryError(_NOT_WELL_FORMED)
    axes = zip(schema.axes(term), term.values(), strict=True)
    return {axis: _read_weights(weights, schema.shape[axis]) for axis, weights in axes}


def _read_weights(data: object, size: int) -> Floats | slice:
    if isinstance(data, list) and len(data) == 2 and all(type(end) is int for end in data):
        if not 0 <= data[0] <= data[1] < size:
            raise QueryError(_NOT_WELL_FORMED)
        return slice(data[0], data[1] + 1)
    cells = data.get("cells") if isinstance(data, Mapping) else None
    if isinstance(cells, list):
        if not all(type(cell) is int and 0 <= cell < size for cell in cells):
            raise QueryError(_NOT_WELL_FORMED)
        if not cells:
            return slice(0, 0)
        require_cells(size, 16, "linear queries", "use coarser bins")
        weights = np.zeros(size)
        weights[cells] = 1.0
        return weights
    listed = data.get("weights") if isinstance(data, Mapping) else None
    if not isinstance(listed, list) or not all(type(weight) in (int, float) for weight in listed):
        raise QueryError(_NOT_WELL_FORMED)
    try:
        return np.array(listed, dtype=np.float64)
    except OverflowError as problem:
        raise QueryError(_NOT_WELL_FORMED) from problem
