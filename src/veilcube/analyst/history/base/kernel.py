"""Inner products of linear queries under a product prior, without touching the universe (Theorems 1 and 2).

    <q, r> = Σ_t p(t) q(t) r(t) = Σ_terms Σ_terms Π_k Σ_θ p_k(θ) g_k(θ) h_k(θ)

Attributes that neither term mentions contribute 1, one that only one term mentions contributes that term's mean, and
one that both mention contributes a matrix product over the attribute's cells; so the work follows what is mentioned.
A query that is an arbitrary function of two attributes has too many terms for pairs of them: it is kept as a table,
which is summed over the attributes that another query does not mention, weighted by the prior (Theorem 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from veilcube.analyst.history.base.shares import Shares, Weighed, weigh
from veilcube.query import LinearQueries
from veilcube.system import Floats, Integers

Axes = tuple[int, ...]

# Queries whose attributes span no more cells than this are written out.
MOST_CELLS = 20_000


@dataclass(frozen=True, eq=False)
class TableGroup:
    """Queries that weigh the same attributes: ``positions`` among all queries, ``tables`` (queries, sizes...)."""

    axes: Axes
    positions: Integers
    tables: Floats
    prior: Sequence[Shares]
    _summed: dict[Axes, Floats] = field(default_factory=dict, repr=False)

    def on(self, axes: Axes) -> Floats:
        """Return the tables with other attributes summed out under the prior, (queries, cells of ``axes``)."""
        if axes not in self._summed:
            table = self.tables
            for place in reversed(range(len(self.axes))):
                if self.axes[place] not in axes:
                    table = np.tensordot(table, self.prior[self.axes[place]].values, axes=(place + 1, 0))
            self._summed[axes] = table.reshape(len(table), -1)
        return self._summed[axes]

    def norms(self) -> Floats:
        """Return the inner product of each query with itself."""
        return np.asarray(np.square(self.on(self.axes)) @ _joint(self.prior, self.axes))


@dataclass(frozen=True, eq=False)
class TermGroup:
    """Terms at ``positions`` that weigh the same attributes, as products: ``places`` in the factors of these."""

    axes: Axes
    positions: Integers
    places: Sequence[Integers]
    factors: Sequence[Weighed]

    def on(self, axes: Axes) -> Floats:
        """Return the terms with other attributes summed out under the prior, (terms, cells of ``axes``)."""
        table = np.ones((self.positions.size, 1))
        for axis, places in zip(self.axes, self.places, strict=True):
            if axis in axes:
                rows = self.factors[axis].part.written(places)
                table = (table[:, :, np.newaxis] * rows[:, np.newaxis, :]).reshape(len(table), -1)
            else:
                table = table * self.factors[axis].means[places][:, np.newaxis]
        return table


def products_of_groups(left: TableGroup, right: TableGroup | TermGroup) -> Floats:
    """Return the inner products of two groups: a matrix product over the cells of the attributes they share."""
    shared = tuple(axis for axis in left.axes if axis in right.axes)
    return np.asarray((left.on(shared) * _joint(left.prior, shared)) @ right.on(shared).T)


def _joint(prior: Sequence[Shares], axes: Axes) -> Floats:
    """Return the prior of every combination of cells of some attributes."""
    weights = np.ones(1)
    for axis in axes:
        weights = np.multiply.outer(weights, prior[axis].values).ravel()
    return weights


def term_groups(queries: LinearQueries, prior: Sequence[Shares]) -> list[TermGroup]:
    """Return all terms of the queries by the attributes they weigh."""
    groups, factors = [], weigh(queries.parts, prior)
    for axes, terms in queries.term_groups():
        places = [np.searchsorted(queries.parts[axis].terms, terms) for axis in axes]
        groups.append(TermGroup(axes, terms, places, factors))
    return groups


def split_tables(queries: LinearQueries, prior: Sequence[Shares]) -> tuple[list[TableGroup], Integers]:
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
    weights = np.ones((terms.size, part.size))
    first, last = np.searchsorted(part.terms, [terms[0], terms[-1] + 1])
    weights[part.terms[first:last] - terms[0]] = part.written(np.arange(first, last))
    return weights


# Pairs of terms that are worked on at a time, which bounds the memory of working copies; and queries, for norms.
_PAIRS_AT_ONCE = 1 << 21
_NORMS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class ProductKernel:
    """Inner products under the prior Π_k p_k, ``given`` as the shares of each attribute or its probabilities."""

    given: Sequence[Shares | Floats]

    @cached_property
    def prior(self) -> tuple[Shares, ...]:
        """The shares of each attribute."""
        return tuple(Shares.of(part) for part in self.given)

    def means(self, queries: LinearQueries) -> Floats:
        """Return <q, 1>, the mean of each query under the prior: its inner product with the universal query."""
        products = np.ones(queries.owner.size)
        for factor in weigh(queries.parts, self.prior):
            products[factor.part.terms] *= factor.means
        return queries.sum_terms(products)

    def slices(self, queries: LinearQueries) -> Floats:
        """Return how much of the prior each query has in an average cell of each attribute, (attributes, queries).

        That is nothing where it weighs all cells of the attribute alike.
        """
        factors = weigh(queries.parts, self.prior)
        found = np.empty((len(factors), len(queries)))
        for axis, factor in enumerate(factors):
            products = np.zeros(queries.owner.size)
            products[factor.part.terms] = factor.spans / factor.part.size
            for other in factors:
                if other is not factor:
                    products[other.part.terms] *= np.abs(other.means)
            found[axis] = queries.sum_terms(products)
        return found

    def norms(self, queries: LinearQueries) -> Floats:
        """Return <q, q> of each query."""
        found = np.empty(len(queries))
        groups, rest = split_tables(queries, self.prior)
        for group in groups:
            found[group.positions] = group.norms()
        others = queries[rest] if groups else queries
        found[rest] = self._norms_of_products(others)
        return found

    def _norms_of_products(self, queries: LinearQueries) -> Floats:
        if queries.owner.size == len(queries):
            products = np.ones(queries.owner.size)
            for factor in weigh(queries.parts, self.prior):
                products[factor.part.terms] *= factor.squares
            return queries.sum_terms(products)
        found = np.empty(len(queries))
        for start in range(0, len(queries), _NORMS_AT_ONCE):
            piece = queries[start : start + _NORMS_AT_ONCE]
            between = self._products_between(piece, piece, np.empty((len(piece), len(piece))))
            found[start : start + len(piece)] = np.diagonal(between)
        return found

    def between(self, left: LinearQueries, right: LinearQueries) -> Floats:
        """Return <q, r> for every query of ``left`` (rows) and ``right`` (columns)."""
        found = np.empty((len(left), len(right)))
        our_groups, our_rest = split_tables(left, self.prior)
        their_groups, their_rest = split_tables(right, self.prior) if right is not left else (our_groups, our_rest)
        products, others = left[our_rest], right[their_rest]
        if not our_groups and not their_groups:
            return self._products_between(left, right, found)
        found[np.ix_(our_rest, their_rest)] = self._products_between(
            products, others, np.empty((len(products), len(others)))
        )
        our_terms, their_terms = term_groups(products, self.prior), term_groups(others, self.prior)
        for ours in our_groups:
            for theirs in their_groups:
                found[np.ix_(ours.positions, theirs.positions)] = products_of_groups(ours, theirs)
            found[np.ix_(ours.positions, their_rest)] = _tables_and_terms(ours, others, their_terms)
        for theirs in their_groups:
            found[np.ix_(our_rest, theirs.positions)] = _tables_and_terms(theirs, products, our_terms).T
        return found

    def _products_between(self, left: LinearQueries, right: LinearQueries, found: Floats) -> Floats:
        """Fill ``found`` with the inner products of queries by pairs of their terms, some rows at a time."""
        theirs = weigh(right.parts, self.prior)
        terms_a_query = max(1, left.owner.size // max(len(left), 1))
        at_once = max(1, _PAIRS_AT_ONCE // (max(right.owner.size, 1) * terms_a_query))
        for start in range(0, len(left), at_once):
            piece = left[start : start + at_once]
            products = self._terms_between(piece, theirs, right.owner.size)
            found[start : start + len(piece)] = right.sum_terms(piece.sum_terms(products).T).T
        return found

    def _terms_between(self, left: LinearQueries, right: Sequence[Weighed], terms: int) -> Floats:
        products = np.ones((left.owner.size, terms))
        for ours, theirs in zip(weigh(left.parts, self.prior), right, strict=True):
            mine, others = ours.part.terms, theirs.part.terms
            if not mine.size and not others.size:
                continue
            # What one attribute contributes to a row: the other side's means where only that side mentions it.
            line = np.ones(terms)
            line[others] = theirs.means
            rows_without = np.ones(left.owner.size, dtype=np.bool_)
            rows_without[mine] = False
            products[rows_without] *= line
            if mine.size:
                block = ours.products(theirs)
                if others.size < terms:
                    both, block = block, np.repeat(ours.means[:, np.newaxis], terms, axis=1)
                    block[:, others] = both
                products[mine] *= block
        return products


def _tables_and_terms(group: TableGroup, queries: LinearQueries, terms: Sequence[TermGroup]) -> Floats:
    """Return the inner products of tabulated queries (rows) with queries by their terms (columns)."""
    of_terms = np.empty((queries.owner.size, group.positions.size))
    for part in terms:
        of_terms[part.positions] = products_of_groups(group, part).T
    return queries.sum_terms(of_terms).T
