"""Inner products of linear queries under a product prior, without touching the universe (Theorems 1 and 2).

    <q, r> = Σ_t p(t) q(t) r(t) = Σ_terms Σ_terms Π_k Σ_θ p_k(θ) g_k(θ) h_k(θ)

Attributes that neither term mentions contribute 1, one that only one term mentions contributes that term's mean, and
one that both mention contributes a matrix product over the attribute's cells; so the work follows what is mentioned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.kernel_tables import (
    TableGroup,
    TermGroup,
    products_of_groups,
    split_tables,
    term_groups,
)
from veilcube.query import LinearQueries
from veilcube.query.linear_factors import Factor

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Pairs of terms that are worked on at a time, which bounds the memory of working copies; and queries, for norms.
_PAIRS_AT_ONCE = 1 << 21
_NORMS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class ProductKernel:
    """Inner products under the prior Π_k p_k, ``prior`` holding one probability vector for each attribute."""

    prior: tuple[Floats, ...]

    def means(self, queries: LinearQueries) -> Floats:
        """Return <q, 1>, the mean of each query under the prior: its inner product with the universal query."""
        products = np.ones(queries.owner.size)
        for part, shares in zip(queries.parts, self.prior, strict=True):
            products[part.terms] *= part.rows @ shares
        return queries.sum_terms(products)

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
            for part, shares in zip(queries.parts, self.prior, strict=True):
                products[part.terms] *= np.square(part.rows) @ shares
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
        pairs = zip(right.parts, self.prior, strict=True)
        weighted = [Factor(part.terms, part.rows * shares) for part, shares in pairs]
        means = [part.rows.sum(axis=1) for part in weighted]
        terms_a_query = max(1, left.owner.size // max(len(left), 1))
        at_once = max(1, _PAIRS_AT_ONCE // (max(right.owner.size, 1) * terms_a_query))
        for start in range(0, len(left), at_once):
            piece = left[start : start + at_once]
            products = self._terms_between(piece, weighted, means, right.owner.size)
            found[start : start + len(piece)] = right.sum_terms(piece.sum_terms(products).T).T
        return found

    def _terms_between(
        self, left: LinearQueries, right: Sequence[Factor], means: Sequence[Floats], terms: int
    ) -> Floats:
        products = np.ones((left.owner.size, terms))
        for ours, theirs, mean, shares in zip(left.parts, right, means, self.prior, strict=True):
            if not ours.terms.size and not theirs.terms.size:
                continue
            # What one attribute contributes to a row: the other side's means where only that side mentions it.
            line = np.ones(terms)
            line[theirs.terms] = mean
            rows_without = np.ones(left.owner.size, dtype=np.bool_)
            rows_without[ours.terms] = False
            products[rows_without] *= line
            if ours.terms.size:
                block = np.repeat((ours.rows @ shares)[:, np.newaxis], terms, axis=1)
                block[:, theirs.terms] = ours.rows @ theirs.rows.T
                products[ours.terms] *= block
        return products


def _tables_and_terms(group: TableGroup, queries: LinearQueries, terms: Sequence[TermGroup]) -> Floats:
    """Return the inner products of tabulated queries (rows) with queries by their terms (columns)."""
    of_terms = np.empty((queries.owner.size, group.positions.size))
    for part in terms:
        of_terms[part.positions] = products_of_groups(group, part).T
    return queries.sum_terms(of_terms).T
