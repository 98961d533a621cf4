"""The parts of linear queries in product form: for each attribute, which terms weigh its cells, and how.

A term is a product Π_k g_k(t[k]) over the attributes; where g_k is 1 everywhere, nothing is stored (Equation 9 of the
history paper, with S the attributes that are stored). Each kind of query is a sum of such products (section 3.2 there);
as plain data for JSON, what is 1 everywhere is left out, and a run of cells is two numbers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from veilcube.errors import QueryError
from veilcube.schema import Attribute, Ordinal, Region, Schema
from veilcube.system import Floats, Integers, read_numbers, require_cells

Term: TypeAlias = Mapping[int, Floats]  # the weights of the cells, by axis; axes left out are 1 everywhere


@dataclass(frozen=True, eq=False)
class Factor:
    """One attribute's share: ``rows[i]`` are the weights of its cells in term ``terms[i]``; other terms have 1."""

    terms: Integers
    rows: Floats

    def __post_init__(self) -> None:
        self.terms.setflags(write=False)
        self.rows.setflags(write=False)

    @classmethod
    def of_rows(cls, terms: Integers, rows: Floats) -> "Factor":
        """Return the factor of these rows, those that are 1 everywhere left out."""
        kept = np.flatnonzero((rows != 1.0).any(axis=1))
        return cls(terms[kept], np.ascontiguousarray(rows[kept]))

    def take(self, wanted: Integers, all_terms: int) -> "Factor":
        """Return the factor of chosen terms, renumbered in the order of ``wanted``."""
        position = np.full(all_terms, -1, dtype=np.int64)
        position[self.terms] = np.arange(self.terms.size)
        found = position[wanted]
        kept = np.flatnonzero(found >= 0)
        return Factor(kept, self.rows[found[kept]])

    def dense(self, all_terms: int) -> Floats:
        """Return the weights of every term, (terms, cells)."""
        weights = np.ones((all_terms, self.rows.shape[1]))
        weights[self.terms] = self.rows
        return weights


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
        rows = [_checked_row(terms[number][axis], size) for number in numbers]
        stacked = np.array(rows, dtype=np.float64).reshape(len(rows), size)
        factors.append(Factor.of_rows(np.array(numbers, dtype=np.int64), stacked))
    return tuple(factors)


def terms_of_region(region: Region) -> list[Term]:
    """Return a region as one term for each of its disjoint boxes."""
    return [
        {axis: mask.astype(np.float64) for axis, mask in enumerate(box.axes) if mask is not None}
        for box in region.boxes
    ]


def product_of(one: Term, other: Term) -> Term:
    """Return the term that weighs each cell by both."""
    shared = {axis: one[axis] * other[axis] for axis in one.keys() & other.keys()}
    return {**one, **other, **shared}


def factors_of_ranges(shape: Sequence[int], low: Integers, high: Integers, terms: Integers) -> tuple[Factor, ...]:
    """Return blocks of cells, inclusive indices (blocks, attributes), as the terms of these numbers."""
    factors = []
    for axis, size in enumerate(shape):
        narrowed = np.flatnonzero((low[:, axis] > 0) | (high[:, axis] < size - 1))
        require_cells(size * (narrowed.size + 1), 16, "linear queries", "use coarser bins or fewer queries")
        cells = np.arange(size)
        rows = (cells >= low[narrowed, axis, np.newaxis]) & (cells <= high[narrowed, axis, np.newaxis])
        factors.append(Factor(terms[narrowed], rows.astype(np.float64)))
    return tuple(factors)


def joined(first: Factor, second: Factor) -> Factor:
    """Return two factors over disjoint sets of terms as one, its terms in order."""
    terms = np.concatenate([first.terms, second.terms])
    order = np.argsort(terms, kind="stable")
    return Factor(terms[order], np.concatenate([first.rows, second.rows])[order])


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
        for number, weights in zip(factor.terms.tolist(), factor.rows, strict=True):
            terms[number][name] = _plain_weights(weights)
    listed: list[list[object]] = [[] for _ in range(queries)]
    for query, term in zip(owner.tolist(), terms, strict=True):
        listed[query].append(term)
    return list(listed)


def _plain_weights(weights: Floats) -> object:
    """Return [first, last] for a run of ones, {"cells": [...]} for other sets, {"weights": [...]} for the rest."""
    chosen = np.flatnonzero(weights)
    if chosen.size and (weights[chosen] == 1.0).all():
        first, last = int(chosen[0]), int(chosen[-1])
        return [first, last] if last - first + 1 == chosen.size else {"cells": chosen.tolist()}
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


def _read_weights(data: object, size: int) -> Floats:
    weights = np.zeros(size)
    if isinstance(data, list) and len(data) == 2 and all(type(end) is int for end in data):
        if not 0 <= data[0] <= data[1] < size:
            raise QueryError(_NOT_WELL_FORMED)
        weights[data[0] : data[1] + 1] = 1.0
        return weights
    cells = data.get("cells") if isinstance(data, Mapping) else None
    if isinstance(cells, list):
        if not all(type(cell) is int and 0 <= cell < size for cell in cells):
            raise QueryError(_NOT_WELL_FORMED)
        weights[cells] = 1.0
        return weights
    listed = data.get("weights") if isinstance(data, Mapping) else None
    if not isinstance(listed, list) or not all(type(weight) in (int, float) for weight in listed):
        raise QueryError(_NOT_WELL_FORMED)
    try:
        return np.array(listed, dtype=np.float64)
    except OverflowError as problem:
        raise QueryError(_NOT_WELL_FORMED) from problem
