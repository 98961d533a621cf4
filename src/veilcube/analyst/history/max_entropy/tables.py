"""The log-weights of a maximum entropy model as tables: one for each set of attributes that queries share.

A model is p_w(t) ∝ p0(t) exp Σ_i w_i f_i(t) (Equation 36 of the history paper). Every query f_i weighs a few attributes
only, so Σ_i w_i f_i is a sum of small tables θ_S(t[S]); the universe of all cells never appears. A group holds the
queries of one such set S, gives their table (``log_weights``), and reads their expectations off p's marginal over S.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from veilcube.errors import QueryError
from veilcube.query import LinearQueries
from veilcube.system import Floats, Integers

# A table is held whole, in as many copies as it has attributes.
MOST_TABLE_CELLS = 1 << 21
# The weights of all cells in the queries of one group are written out up to this many entries.
MOST_WEIGHTS = 1 << 25
_ENTRIES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class TableGroup:
    """Queries that weigh the attributes ``axes`` only, at the positions ``members`` of the whole history.

    ``cells`` is the flat cell of each query where every query counts one cell of the table (marginals), else None.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    members: Integers
    owner: Integers
    factors: tuple[Floats, ...]

    @property
    def size(self) -> int:
        """How many cells the table has."""
        return prod(self.shape)

    @cached_property
    def cells(self) -> Integers | None:
        """The flat cell that each query counts, if each counts one."""
        if not self.axes or self.owner.size != self.members.size:
            return None
        indices = []
        for factor in self.factors:
            if not ((factor == 0) | (factor == 1)).all() or (factor.sum(axis=1) != 1).any():
                return None
            indices.append(factor.argmax(axis=1))
        return np.asarray(np.ravel_multi_index(tuple(indices), self.shape), dtype=np.int64)

    @property
    def is_of_cells(self) -> bool:
        """Whether every query counts one cell of the table, or all of it."""
        if self.cells is not None or not self.axes:
            return True
        if self.owner.size != self.members.size:
            return False
        sizes = np.prod([factor.sum(axis=1) for factor in self.factors], axis=0)
        counts = np.all([((factor == 0) | (factor == 1)).all(axis=1) for factor in self.factors], axis=0)
        return bool((counts & ((sizes == 1) | (sizes == self.size))).all())

    def log_weights(self, weights: Floats) -> Floats:
        """Return θ_S = Σ_i w_i f_i for the weights of the group's queries."""
        if self.cells is not None:
            return np.asarray(np.bincount(self.cells, weights, self.size).reshape(self.shape), dtype=np.float64)
        if not self.axes:
            return np.asarray(np.dot(weights[self.owner], np.ones(self.owner.size)))
        table = np.zeros((self.shape[0], self.size // self.shape[0]))
        for part in self._parts():
            first = self.factors[0][part] * weights[self.owner[part], np.newaxis]
            table += first.T @ self._rest(part)
        return table.reshape(self.shape)

    def expectations(self, table: Floats) -> Floats:
        """Return Σ_cells table · f_i for every query of the group."""
        if self.cells is not None:
            return np.asarray(table.reshape(-1)[self.cells])
        if not self.axes:
            return np.asarray(np.bincount(self.owner, minlength=self.members.size) * float(table), dtype=np.float64)
        flat = table.reshape(self.shape[0], -1)
        terms = np.empty(self.owner.size)
        for part in self._parts():
            terms[part] = np.einsum("tr,tr->t", self.factors[0][part] @ flat, self._rest(part))
        return np.asarray(np.bincount(self.owner, terms, self.members.size), dtype=np.float64)

    @cached_property
    def dense(self) -> Floats | None:
        """The weight of every cell of the table in every query, or None where that would be too much."""
        if self.cells is not None or not self.axes or self.members.size * self.size > MOST_WEIGHTS:
            return None
        weights = np.zeros((self.members.size, self.size))
        for part in self._parts():
            products = self.factors[0][part][:, :, np.newaxis] * self._rest(part)[:, np.newaxis, :]
            np.add.at(weights, self.owner[part], products.reshape(products.shape[0], -1))
        return weights

    def magnitude(self) -> "TableGroup":
        """Return the group of |f|, each term's weights made positive."""
        return TableGroup(self.axes, self.shape, self.members, self.owner, tuple(map(np.abs, self.factors)))

    def squared(self) -> "TableGroup":
        """Return the group of the squares of all terms."""
        return TableGroup(self.axes, self.shape, self.members, self.owner, tuple(map(np.square, self.factors)))

    def _parts(self) -> list[slice]:
        at_once = max(1, _ENTRIES_AT_ONCE // max(self.size, 1))
        return [slice(start, start + at_once) for start in range(0, self.owner.size, at_once)]

    def _rest(self, part: slice) -> Floats:
        """Return the products of all factors but the first, (terms, cells of the other axes)."""
        rest = np.ones((len(self.factors[0][part]), 1))
        for factor in self.factors[1:]:
            rest = (rest[:, :, np.newaxis] * factor[part][:, np.newaxis, :]).reshape(len(rest), -1)
        return rest


def query_supports(queries: LinearQueries) -> tuple[list[tuple[int, ...]], Integers]:
    """Return the distinct sets of attributes that queries weigh, and the number of each query's set."""
    mentioned = np.zeros((len(queries), len(queries.schema)), dtype=np.bool_)
    for axes, terms in queries.term_groups():
        mentioned[np.ix_(queries.owner[terms], np.array(axes, dtype=np.int64))] = True
    distinct, which = np.unique(mentioned, axis=0, return_inverse=True)
    return [tuple(np.flatnonzero(row).tolist()) for row in distinct], which.ravel().astype(np.int64)


def group_queries(queries: LinearQueries) -> tuple[TableGroup, ...]:
    """Sort queries into groups by the attributes they weigh; a set inside another one joins the smallest of these.

    A query that weighs so many attributes that its table could not be held is refused.
    """
    shape = queries.schema.shape
    supports, which = query_supports(queries)
    homes = [_home(axes, supports, shape) for axes in supports]
    if any(table_cells(shape, axes) > MOST_TABLE_CELLS for axes in homes):
        raise QueryError(
            "a query of the history weighs attributes that have more than "
            f"{MOST_TABLE_CELLS:,} cells together, which maximum entropy cannot hold; leave such queries out, "
            "or answer from them with KernelPCA"
        )
    grouped = []
    for home in dict.fromkeys(homes):
        inside = [index for index, other in enumerate(homes) if other == home]
        grouped.append(make_group(queries, home, np.flatnonzero(np.isin(which, inside))))
    return tuple(grouped)


def _home(axes: tuple[int, ...], supports: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The smallest table that nothing larger holds; ties go to the first."""
    holding = [other for other in supports if set(axes) <= set(other) and table_cells(shape, other) <= MOST_TABLE_CELLS]
    largest = [one for one in holding if not any(set(one) < set(other) for other in holding)]
    return min(largest, key=lambda one: table_cells(shape, one)) if largest else axes


def table_cells(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """Return how many cells the table over some attributes has."""
    return prod(shape[axis] for axis in axes)


def make_group(queries: LinearQueries, axes: tuple[int, ...], members: Integers) -> TableGroup:
    """Return the group of the queries at ``members``, which weigh no attributes but ``axes``."""
    chosen = queries[members]
    factors = tuple(chosen.parts[axis].dense(chosen.owner.size) for axis in axes)
    return TableGroup(axes, tuple(queries.schema.shape[axis] for axis in axes), members, chosen.owner, factors)
