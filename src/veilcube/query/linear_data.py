"""Linear queries as compact plain data for JSON: what is 1 everywhere is left out, a run of cells is two numbers."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from veilcube.errors import QueryError
from veilcube.query.linear_factors import Factor, Floats, Integers, Term
from veilcube.schema import Schema

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
