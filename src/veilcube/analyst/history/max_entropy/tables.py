"""The log-weights of a maximum entropy model as tables: one for each set of attributes that queries share.

A model is p_w(t) ∝ p0(t) exp Σ_i w_i f_i(t) (Equation 36 of the history paper). Every query f_i weighs a few attributes
only, so Σ_i w_i f_i is a sum of small tables θ_S(t[S]); the universe of all cells never appears. A group holds the
queries of one such set S, gives their table (``log_weights``), and reads their expectations off p's marginal over S.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from veilcube.errors import QueryError
from veilcube.query import Factor, LinearQueries
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
    parts: tuple[Factor, ...]

    @property
    def size(self) -> int:
        """How many cells the table has."""
        return prod(self.shape)

    @cached_property
    def factors(self) -> tuple[Floats, ...]:
        """The weights of every term, (terms, cells) for each axis."""
        return tuple(part.dense(self.owner.size) for part in self.parts)

    def factors_of(self, terms: Integers) -> tuple[Floats, ...]:
        """Return the weights of chosen terms, (terms, cells) for each axis."""
        return tuple(part.take(terms, self.owner.size).dense(terms.size) for part in self.parts)

    @cached_property
    def boxes(self) -> tuple[Integers, Integers] | None:
        """The first cells of every term and those beyond its last, (axes, terms), if all terms count boxes of cells."""
        if any(part.mixed.size for part in self.parts):
            return None
        low = np.zeros((len(self.axes), self.owner.size), dtype=np.int64)
        end = np.repeat(np.array(self.shape, dtype=np.int64)[:, np.newaxis], self.owner.size, axis=1)
        for place, part in enumerate(self.parts):
            low[place, part.terms], end[place, part.terms] = part.low, part.end
        return low, end

    @cached_property
    def cells(self) -> Integers | None:
        """The flat cell that each query counts, if each counts one."""
        if not self.axes or self.owner.size != self.members.size or self.boxes is None:
            return None
        low, end = self.boxes
        return np.ravel_multi_index(tuple(low), self.shape).astype(np.int64) if (end - low == 1).all() else None

    @property
    def is_of_cells(self) -> bool:
        """Whether every query counts one cell of the table, or all of it."""
        if self.cells is not None or not self.axes:
            return True
        if self.owner.size != self.members.size or self.boxes is None:
            return False
        sizes = np.prod(self.boxes[1] - self.boxes[0], axis=0)
        return bool(((sizes == 1) | (sizes == self.size)).all())

    @cached_property
    def _corners(self) -> tuple[Integers, Floats] | None:
        """The corners of all boxes in a table of sums, (corners, terms), and their signs; None where rows do as well.

        Weights of a box are added at its corners and summed up along each axis: the work is that of the table, not of
        every cell for every box.
        """
        size, terms, corners = self.size, self.owner.size, 1 << len(self.axes)
        if self.boxes is None or size * terms <= 2 * corners * (size + terms):
            return None
        wider, choices = (
            tuple(cells + 1 for cells in self.shape),
            np.indices((2,) * len(self.axes)).reshape(-1, corners),
        )
        places = [np.ravel_multi_index(tuple(np.choose(row[:, np.newaxis], self.boxes)), wider) for row in choices.T]
        return np.stack(places), np.where((len(self.axes) - choices.sum(axis=0)) % 2, -1.0, 1.0)

    def log_weights(self, weights: Floats) -> Floats:
        """Return θ_S = Σ_i w_i f_i for the weights of the group's queries."""
        if self.cells is not None:
            return np.asarray(np.bincount(self.cells, weights, self.size).reshape(self.shape), dtype=np.float64)
        if not self.axes:
            return np.asarray(np.dot(weights[self.owner], np.ones(self.owner.size)))
        if self._corners is not None:
            return self._added_up(*self._corners, weights[self.owner])
        table = np.zeros((self.shape[0], self.size // self.shape[0]))
        for part in self._slices():
            first = self.factors[0][part] * weights[self.owner[part], np.newaxis]
            table += first.T @ self._rest(part)
        return table.reshape(self.shape)

    def expectations(self, table: Floats) -> Floats:
        """Return Σ_cells table · f_i for every query of the group."""
        if self.cells is not None:
            return np.asarray(table.reshape(-1)[self.cells])
        if not self.axes:
            return np.asarray(np.bincount(self.owner, minlength=self.members.size) * float(table), dtype=np.float64)
        if self._corners is not None:
            places, signs = self._corners
            sums = np.zeros([cells + 1 for cells in self.shape])
            sums[(slice(1, None),) * len(self.axes)] = _summed_up(table)
            return np.bincount(self.owner, signs @ sums.ravel()[places], self.members.size).astype(np.float64)
        flat = table.reshape(self.shape[0], -1)
        terms = np.empty(self.owner.size)
        for part in self._slices():
            terms[part] = np.einsum("tr,tr->t", self.factors[0][part] @ flat, self._rest(part))
        return np.asarray(np.bincount(self.owner, terms, self.members.size), dtype=np.float64)

    @cached_property
    def dense(self) -> Floats | None:
        """The weight of every cell of the table in every query, or None where that would be too much."""
        if self.cells is not None or not self.axes or self.members.size * self.size > MOST_WEIGHTS:
            return None
        weights = np.zeros((self.members.size, self.size))
        for part in self._slices():
            products = self.factors[0][part][:, :, np.newaxis] * self._rest(part)[:, np.newaxis, :]
            np.add.at(weights, self.owner[part], products.reshape(products.shape[0], -1))
        return weights

    def magnitude(self) -> "TableGroup":
        """Return the group of |f|, each term's weights made positive."""
        return replace(self, parts=tuple(replace(part, table=np.abs(part.table)) for part in self.parts))

    def squared(self) -> "TableGroup":
        """Return the group of the squares of all terms."""
        return replace(self, parts=tuple(replace(part, table=np.square(part.table)) for part in self.parts))

    def _added_up(self, places: Integers, signs: Floats, weights: Floats) -> Floats:
        """Return the table of the sum of all boxes, each by its weight."""
        shape = tuple(cells + 1 for cells in self.shape)
        # Beyond a box its weight is taken back: signs of log-weights are those of sums, but for the number of axes.
        each = np.outer(signs if len(self.axes) % 2 == 0 else -signs, weights)
        table = np.asarray(np.bincount(places.ravel(), each.ravel(), prod(shape)), dtype=np.float64).reshape(shape)
        return _summed_up(table)[(slice(None, -1),) * len(self.axes)]

    def _slices(self) -> list[slice]:
        at_once = max(1, _ENTRIES_AT_ONCE // max(self.size, 1))
        return [slice(start, start + at_once) for start in range(0, self.owner.size, at_once)]

    def _rest(self, part: slice) -> Floats:
        """Return the products of all factors but the first, (terms, cells of the other axes)."""
        rest = np.ones((len(self.factors[0][part]), 1))
        for factor in self.factors[1:]:
            rest = (rest[:, :, np.newaxis] * factor[part][:, np.newaxis, :]).reshape(len(rest), -1)
        return rest


def _summed_up(table: Floats) -> Floats:
    """Return the sums of a table up to each cell, along all axes."""
    for axis in range(table.ndim):
        table = np.cumsum(table, axis=axis)
    return table


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
            f"{MOST_TABLE_CELLS:,} cells together, those that no query tells apart counted once, which maximum entropy "
            "cannot hold; leave such queries out, or answer from them with KernelPCA"
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
    shape, parts = queries.schema.shape, tuple(chosen.parts[axis] for axis in axes)
    return TableGroup(axes, tuple(shape[axis] for axis in axes), members, chosen.owner, parts)
