"""Long domains as segments: cells of an attribute that no past query tells apart are one, and nothing is lost.

The log-weights of maximum entropy are sums of past queries, so inside a segment, where all of these are constant, the
solution is the prior. A history of q ranges has at most 2q + 1 segments on each attribute, whatever the number of
cells. Questions may cut segments: for them the segments are cut further, and each piece has the prior's part of its
segment. The errors of a segment's cells are known by how many they are and how alike: Σ x² = X² Σ p² / (Σ p)².
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import cast

import numpy as np

from veilcube.analyst.history.base import Shares
from veilcube.analyst.history.max_entropy.error import ErrorModel, RefinedBelief, TableBelief, TableShape
from veilcube.analyst.history.max_entropy.tables import MOST_TABLE_CELLS, query_supports
from veilcube.analyst.history.max_entropy.universe import Rows, Universe
from veilcube.query import Factor, LinearQueries
from veilcube.schema import Ordinal, Schema
from veilcube.system import Floats, Integers

# Questions that are answered on one set of segments, at most; fewer where these would be many.
_MOST_AT_ONCE = 256
_SEED = 20120327


@dataclass(frozen=True, eq=False)
class Segments:
    """Each attribute cut at ``edges``, from 0 to its number of cells."""

    schema: Schema
    prior: tuple[Shares, ...]
    edges: tuple[Integers, ...]

    @classmethod
    def of(cls, queries: LinearQueries, prior: tuple[Shares, ...]) -> "Segments":
        """Return the fewest segments inside which every query is constant."""
        ends = tuple(np.array([0, size], dtype=np.int64) for size in queries.schema.shape)
        return cls(queries.schema, prior, ends).cut_by(queries)

    def cut_by(self, queries: LinearQueries) -> "Segments":
        """Return the segments cut where any of the queries changes its weight."""
        edges = (np.union1d(edges, _changes(part)) for edges, part in zip(self.edges, queries.parts, strict=True))
        return replace(self, edges=tuple(edges))

    def cut_whole(self, axes: Sequence[int]) -> "Segments":
        """Return the segments with every cell of some attributes on its own."""
        shape = self.schema.shape
        return replace(
            self,
            edges=tuple(np.arange(shape[axis] + 1) if axis in axes else self.edges[axis] for axis in range(len(shape))),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many segments each attribute has."""
        return tuple(edges.size - 1 for edges in self.edges)

    def merged(self, queries: LinearQueries) -> LinearQueries:
        """Return queries that are constant in every segment as queries of segments."""
        names = zip(queries.schema.names, self.shape, strict=True)
        schema = Schema([Ordinal(name, 0, size - 1) for name, size in names])
        parts = tuple(_merged(part, edges) for part, edges in zip(queries.parts, self.edges, strict=True))
        return LinearQueries(schema, parts, queries.owner, queries.count)

    def masses(self, axis: int) -> Floats:
        """Return the prior of each segment of an attribute."""
        return self.prior[axis].mass(self.edges[axis][:-1], self.edges[axis][1:])

    def cells(self, axes: Sequence[int]) -> Floats:
        """Return how many cells each combination of segments has, flat."""
        return _crossed([np.diff(self.edges[axis]).astype(np.float64) for axis in axes])

    def likeness(self, axes: Sequence[int]) -> Floats:
        """Return Σ p² over (Σ p)² of the cells of each combination of segments, flat."""
        return _crossed([self.prior[axis].concentration(self.edges[axis]) for axis in axes])

    def parents(self, finer: "Segments", axis: int) -> Integers:
        """Return the segment that holds each of the finer ones."""
        found = np.searchsorted(self.edges[axis], finer.edges[axis][:-1], side="right") - 1
        return np.asarray(found, dtype=np.int64)

    def draw(self, rows: Rows, random: np.random.Generator) -> Integers:
        """Return a cell of every segment in ``rows``, drawn by the prior."""
        found = np.empty(rows.shape, dtype=np.int64)
        for axis, (edges, shares) in enumerate(zip(self.edges, self.prior, strict=True)):
            column = rows[:, axis]
            found[:, axis] = shares.draw(edges[column], edges[column + 1], random.random(len(rows)))
        return found

    def pieces(self, queries: LinearQueries) -> Iterator[tuple[Integers, "Segments"]]:
        """Yield the positions of queries that are answered together, and the segments that they need."""
        supports, which = query_supports(queries)
        for number, axes in enumerate(supports):
            members, at_once = np.flatnonzero(which == number), _MOST_AT_ONCE
            while at_once > 1 and prod(self.shape[axis] + 2 * at_once for axis in axes) > MOST_TABLE_CELLS // 8:
                at_once //= 2
            for start in range(0, members.size, at_once):
                piece = members[start : start + at_once]
                yield piece, self.cut_by(queries[piece])


def _changes(part: Factor) -> Integers:
    """Return the cells at which the weight of some term differs from that of the cell before."""
    runs = np.setdiff1d(np.arange(part.terms.size), part.mixed)
    ends = [part.low[runs], part.end[runs]]
    if part.mixed.size:
        ends.append(np.flatnonzero((part.table[:, 1:] != part.table[:, :-1]).any(axis=0)) + 1)
    return np.concatenate(ends)


def _merged(part: Factor, edges: Integers) -> Factor:
    low, end = np.searchsorted(edges, part.low), np.searchsorted(edges, part.end)
    low[part.mixed] = end[part.mixed] = 0
    table = part.table[:, edges[:-1]] if part.mixed.size else np.empty((0, edges.size - 1))
    return Factor(part.terms, edges.size - 1, low, end, part.mixed, table)


def _crossed(factors: Sequence[Floats]) -> Floats:
    return reduce(lambda one, other: np.multiply.outer(one, other).ravel(), factors, np.ones(1))


@dataclass(frozen=True, eq=False)
class SegmentedUniverse:
    """A distribution over segments, asked on finer ones or on cells."""

    inner: Universe
    segments: Segments
    finer: Segments

    @property
    def chains(self) -> int | None:
        """How many independent chains its marginals come from; None where they are exact."""
        return self.inner.chains

    @property
    def pool(self) -> Rows:
        """Some rows of it, as numbers of the finer segments."""
        cells = self.segments.draw(self.inner.pool, np.random.default_rng(_SEED))
        columns = [
            np.searchsorted(edges, cells[:, axis], side="right") - 1 for axis, edges in enumerate(self.finer.edges)
        ]
        return np.stack(columns, axis=1).astype(np.int32)

    def marginal(self, axes: tuple[int, ...]) -> Floats:
        """Return the probability of every finer segment: the prior's part of that of the segment around it."""
        found = self.inner.marginal(axes)
        for place, axis in enumerate(axes):
            parents = self.segments.parents(self.finer, axis)
            parts = self.finer.masses(axis) / self.segments.masses(axis)[parents]
            found = np.take(found, parents, axis=place) * parts.reshape(
                [-1 if i == place else 1 for i in range(len(axes))]
            )
        return found

    def rows(self, count: int) -> Iterator[Rows]:
        """Draw rows, as numbers of cells."""
        random = np.random.default_rng(_SEED)
        for rows in self.inner.rows(count):
            yield self.segments.draw(rows, random)


def refine_errors(errors: ErrorModel, segments: Segments, finer: Segments) -> ErrorModel:
    """Return what is left unknown, told of the finer segments."""
    tables, beliefs = [], []
    for table, belief in zip(errors.tables, cast("tuple[TableBelief, ...]", errors.beliefs), strict=True):
        parents, part = np.zeros(1, dtype=np.int64), np.ones(1)
        for axis in table.axes:
            above = segments.parents(finer, axis)
            mass = finer.masses(axis) / segments.masses(axis)[above]
            parents = np.add.outer(parents * segments.shape[axis], above).ravel()
            part = np.multiply.outer(part, mass).ravel()
        many = finer.cells(table.axes) / segments.cells(table.axes)[parents]
        basic = belief.counts + errors.rate**2 * np.square(belief.counts) * segments.likeness(table.axes)
        raised = np.maximum(belief.prior / belief.wider - basic, 0.0)[parents] * many
        counts = belief.counts[parents] * part
        spread = counts + errors.rate**2 * np.square(counts) * finer.likeness(table.axes) + raised
        tables.append(TableShape(table.axes, tuple(finer.shape[axis] for axis in table.axes)))
        beliefs.append(RefinedBelief(belief, parents, belief.wider * spread))
    return replace(errors, tables=tuple(tables), beliefs=tuple(beliefs), likeness=finer.likeness)
