"""The parts of linear queries in product form: for each attribute, which terms weigh its cells, and how.

A term is a product Π_k g_k(t[k]) over the attributes; where g_k is 1 everywhere, nothing is stored (Equation 9 of the
history paper, with S the attributes that are stored).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.schema import Region
from veilcube.system.arguments import read_numbers
from veilcube.system.memory import require_cells

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
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
    """Return the terms of one query; refuses axes that a schema with so many does not have."""
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
