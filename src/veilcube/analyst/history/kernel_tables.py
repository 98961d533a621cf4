"""Queries of many terms on few attributes, as tables over these: inner products by Theorem 2.

A query that is an arbitrary function of two attributes has as many product terms as its table has rank, and pairs of
terms would be too many. Its table, summed over the attributes that another query does not mention, weighted by the
prior, is all that an inner product needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.query import LinearQueries

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Axes = tuple[int, ...]

# Queries whose attributes span no more cells than this are written out.
MOST_CELLS = 20_000


@dataclass(frozen=True, eq=False)
class TableGroup:
    """Queries that weigh the same attributes: ``positions`` among all queries, ``tables`` (queries, sizes...)."""

    axes: Axes
    positions: Integers
    tables: Floats
    prior: Sequence[Floats]
    _summed: dict[Axes, Floats] = field(default_factory=dict, repr=False)

    def on(self, axes: Axes) -> Floats:
        """Return the tables with other attributes summed out under the prior, (queries, cells of ``axes``)."""
        if axes not in self._summed:
            table = self.tables
            for place in reversed(range(len(self.axes))):
                if self.axes[place] not in axes:
                    table = np.tensordot(table, self.prior[self.axes[place]], axes=(place + 1, 0))
            self._summed[axes] = table.reshape(len(table), -1)
        return self._summed[axes]

    def norms(self) -> Floats:
        """Return the inner product of each query with itself."""
        return np.asarray(np.square(self.on(self.axes)) @ _joint(self.prior, self.axes))


@dataclass(frozen=True, eq=False)
class TermGroup:
    """Terms that weigh the same attributes, as products: ``rows`` (terms, cells) for each of ``axes``."""

    axes: Axes
    positions: Integers
    rows: Sequence[Floats]
    prior: Sequence[Floats]

    def on(self, axes: Axes) -> Floats:
        """Return the terms with other attributes summed out under the prior, (terms, cells of ``axes``)."""
        table = np.ones((self.positions.size, 1))
        for axis, rows in zip(self.axes, self.rows, strict=True):
            if axis in axes:
                table = (table[:, :, np.newaxis] * rows[:, np.newaxis, :]).reshape(len(table), -1)
            else:
                table = table * (rows @ self.prior[axis])[:, np.newaxis]
        return table


def products_of_groups(left: TableGroup, right: TableGroup | TermGroup) -> Floats:
    """Return the inner products of two groups: a matrix product over the cells of the attributes they share."""
    shared = tuple(axis for axis in left.axes if axis in right.axes)
    return np.asarray((left.on(shared) * _joint(left.prior, shared)) @ right.on(shared).T)


def _joint(prior: Sequence[Floats], axes: Axes) -> Floats:
    """Return the prior of every combination of cells of some attributes."""
    weights = np.ones(1)
    for axis in axes:
        weights = np.multiply.outer(weights, prior[axis]).ravel()
    return weights


def term_groups(queries: LinearQueries, prior: Sequence[Floats]) -> list[TermGroup]:
    """Return all terms of the queries by the attributes they weigh."""
    groups = []
    for axes, terms in queries.term_groups():
        rows = [queries.parts[axis].rows[np.searchsorted(queries.parts[axis].terms, terms)] for axis in axes]
        groups.append(TermGroup(axes, terms, rows, prior))
    return groups


def split_tables(queries: LinearQueries, prior: Sequence[Floats]) -> tuple[list[TableGroup], Integers]:
    """Return the queries that are better written out, by their attributes, and the positions of all others."""
    many = np.bincount(queries.owner, minlength=len(queries))
    tables: dict[Axes, tuple[list[int], list[Floats]]] = {}
    if (many > 1).any():
        supports = queries.supports()
        ends = np.cumsum(many)
        for query in np.flatnonzero(many > 1).tolist():
            terms = range(int(ends[query] - many[query]), int(ends[query]))
            axes = tuple(sorted({axis for term in terms for axis in supports[term]}))
            if prod(queries.schema.shape[axis] for axis in axes) <= MOST_CELLS:
                numbers, written = tables.setdefault(axes, ([], []))
                numbers.append(query)
                written.append(_table(queries, axes, np.arange(terms.start, terms.stop)))
    groups = [
        TableGroup(axes, np.array(numbers, dtype=np.int64), np.stack(written), prior)
        for axes, (numbers, written) in tables.items()
    ]
    taken = np.concatenate([np.empty(0, dtype=np.int64), *(group.positions for group in groups)])
    return groups, np.setdiff1d(np.arange(len(queries)), taken)


def _table(queries: LinearQueries, axes: Axes, terms: Integers) -> Floats:
    """Return the sum over terms of the outer products of their weights on ``axes``."""
    sizes = tuple(queries.schema.shape[axis] for axis in axes)
    rows = [_rows(queries, axis, terms) for axis in axes] or [np.ones((terms.size, 1))]
    left = np.ones((terms.size, 1))
    for weights in rows[:-1]:
        left = (left[:, :, np.newaxis] * weights[:, np.newaxis, :]).reshape(terms.size, -1)
    return (left.T @ rows[-1]).reshape(sizes)


def _rows(queries: LinearQueries, axis: int, terms: Integers) -> Floats:
    part = queries.parts[axis]
    weights = np.ones((terms.size, part.rows.shape[1]))
    first, last = np.searchsorted(part.terms, [terms[0], terms[-1] + 1])
    weights[part.terms[first:last] - terms[0]] = part.rows[first:last]
    return weights
