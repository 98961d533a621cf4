"""Answers of a maximum entropy model to linear queries, with standard deviations, one set of attributes at a time.

Attributes that no measured table holds together may depend on each other in ways that nothing measured: that is
foretold as a part of what the model's dependence adds to independent attributes, as for wide tables.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.coarse_entropy import UNMEASURED_PART
from veilcube.analyst.history.kernel import ProductKernel
from veilcube.analyst.history.max_entropy_error import ErrorModel, TableShape, spread_given_total
from veilcube.analyst.history.max_entropy_tables import (
    MOST_TABLE_CELLS,
    TableGroup,
    make_group,
    query_supports,
    table_cells,
)
from veilcube.analyst.history.max_entropy_total import Total
from veilcube.analyst.history.max_entropy_universe import Universe
from veilcube.query import LinearQueries

Floats = NDArray[np.float64]

_ENTRIES_AT_ONCE = 1 << 22
_QUERIES_OF_ROWS = 64
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class QueryMoments:
    """Mean, variance and range of each query under the model (for one row), and the error variance of its count.

    ``noise`` is that of its own noise where it counts one cell of a table that was measured whole, else infinite.
    """

    mean: Floats
    variance: Floats
    reach: Floats
    error: Floats
    noise: Floats


def answer_queries(
    queries: LinearQueries, universe: Universe, errors: ErrorModel, total: Total
) -> tuple[Floats, Floats]:
    """Return the expected count of each query and its standard deviation: belief, total and chains together."""
    value, variance = np.empty(len(queries)), np.empty(len(queries))
    supports, which = query_supports(queries)
    for number, axes in enumerate(supports):
        members = np.flatnonzero(which == number)
        if table_cells(queries.schema.shape, axes) <= MOST_TABLE_CELLS:
            found = _by_table(make_group(queries, axes, members), universe, errors, total.value)
        else:
            found = _by_rows(queries[members], universe, errors, total.value)
        value[members] = total.value * found.mean
        common = errors.common_error(found.variance, found.reach, total.value, len(axes))
        variance[members] = errors.doubt * (found.error + np.minimum(common, found.noise))
        variance[members] += _chance(found, universe, total.value) + total.variance * np.square(found.mean)
        if not any(set(axes) <= set(table.axes) for table in errors.tables):
            alone = _independent_means(queries[members], axes, universe)
            variance[members] += np.square(UNMEASURED_PART * total.value * (found.mean - alone))
    return value, np.sqrt(variance)


def _chance(found: QueryMoments, universe: Universe, total: float) -> Floats:
    """Return the variance that chains bring; what no chain met may still be as frequent as one in all chains."""
    if universe.chains is None:
        return np.zeros(found.mean.size)
    unmet = np.where(found.variance == 0, np.square(found.reach) / universe.chains, 0.0)
    return total**2 / universe.chains * np.maximum(found.variance, unmet)


def _independent_means(queries: LinearQueries, axes: tuple[int, ...], universe: Universe) -> Floats:
    """Return the mean of each query if its attributes were independent; laws of others do not matter."""
    shape = queries.schema.shape
    laws = (universe.marginal((axis,)) if axis in axes else np.full(size, 1 / size) for axis, size in enumerate(shape))
    return ProductKernel(tuple(laws)).means(queries)


def _by_table(group: TableGroup, universe: Universe, errors: ErrorModel, total: float) -> QueryMoments:
    chances = universe.marginal(group.axes)
    parts = []
    at_once = max(1, _ENTRIES_AT_ONCE // group.size)
    for start in range(0, group.members.size, at_once):
        weights = _weights_of(group, start, min(start + at_once, group.members.size))
        mean = weights @ chances.ravel()
        variance = np.maximum(np.square(weights) @ chances.ravel() - np.square(mean), 0.0)
        alone = spread_given_total(weights, errors.prior_spread(total * chances.ravel()))
        error = _least_error(group, weights, chances, errors, alone, mean, variance)
        parts.append((mean, variance, np.ptp(weights, axis=1), error, _own_noise(group, weights, errors)))
    return QueryMoments(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _weights_of(group: TableGroup, start: int, stop: int) -> Floats:
    """The weight of every cell of the group's table in some of its queries."""
    if not group.axes:
        return np.bincount(group.owner, minlength=group.members.size)[start:stop, np.newaxis].astype(np.float64)
    chosen = (group.owner >= start) & (group.owner < stop)
    products = np.ones((int(chosen.sum()), 1))
    for factor in group.factors:
        products = (products[:, :, np.newaxis] * factor[chosen][:, np.newaxis, :]).reshape(len(products), -1)
    owner = group.owner[chosen] - start
    if owner.size == stop - start and (owner == np.arange(owner.size)).all():
        return products
    weights = np.zeros((stop - start, group.size))
    np.add.at(weights, owner, products)
    return weights


def _own_noise(group: TableGroup, weights: Floats, errors: ErrorModel) -> Floats:
    """Return the variance of the noise of each query that counts one cell of a table measured whole, else infinity."""
    least, is_cell = np.full(len(weights), np.inf), np.count_nonzero(weights, axis=1) == 1
    for table, belief in zip(errors.tables, errors.beliefs, strict=True):
        if table.axes == group.axes and is_cell.any():
            least[is_cell] = np.minimum(least[is_cell], belief.noise_of(weights[is_cell]))
    return least


def _least_error(
    group: TableGroup,
    weights: Floats,
    chances: Floats,
    errors: ErrorModel,
    alone: Floats,
    mean: Floats,
    variance: Floats,
) -> Floats:
    """The error with the help of the one measured table that explains each query best."""
    least = np.full(alone.size, np.inf)
    shared = [tuple(axis for axis in table.axes if axis in group.axes) for table in errors.tables]
    widest = max((len(axes) for axes in shared), default=0)
    for table, common, belief in zip(errors.tables, shared, errors.beliefs, strict=True):
        if not common or len(common) < widest:
            continue
        explained = _given(group, weights, chances, common)
        known = np.square(explained) @ _sum_to(group, chances, common).ravel() - np.square(mean)
        rest = np.clip(1 - known / np.where(variance > 0, variance, 1.0), 0.0, 1.0)
        rest = np.where(rest < 1e-9, 0.0, rest)
        least = np.minimum(least, belief.variance(_spread_over(explained, table, common)) + rest * alone)
    return np.where(np.isfinite(least), least, alone)


def _sum_to(group: TableGroup, table: Floats, common: tuple[int, ...]) -> Floats:
    return np.asarray(table.sum(axis=tuple(i for i, axis in enumerate(group.axes) if axis not in common)))


def _given(group: TableGroup, weights: Floats, chances: Floats, common: tuple[int, ...]) -> Floats:
    """The mean of each query given the attributes in ``common``, over their cells."""
    if common == group.axes:
        return weights
    lost = tuple(1 + i for i, axis in enumerate(group.axes) if axis not in common)
    joint = (weights.reshape(-1, *group.shape) * chances).sum(axis=lost).reshape(len(weights), -1)
    mass = _sum_to(group, chances, common).ravel()
    return np.asarray(np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0))


def _spread_over(weights: Floats, table: TableShape, common: tuple[int, ...]) -> Floats:
    """Weights over the cells of ``common`` as weights over the cells of a table that holds more attributes."""
    if table.axes == common:
        return weights
    kept = [size if axis in common else 1 for axis, size in zip(table.axes, table.sizes, strict=True)]
    full = np.broadcast_to(weights.reshape(-1, *kept), (len(weights), *table.sizes))
    return full.reshape(len(weights), -1)


def _by_rows(queries: LinearQueries, universe: Universe, errors: ErrorModel, total: float) -> QueryMoments:
    rows = universe.pool
    mean, square = np.zeros(len(queries)), np.zeros(len(queries))
    least, largest = np.full(len(queries), np.inf), np.full(len(queries), -np.inf)
    for first in range(0, len(queries), _QUERIES_OF_ROWS):
        chosen = slice(first, first + _QUERIES_OF_ROWS)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            weights = queries[chosen].evaluate(rows[start : start + _ROWS_AT_ONCE])
            mean[chosen] += weights.sum(axis=0) / len(rows)
            square[chosen] += np.square(weights).sum(axis=0) / len(rows)
            least[chosen] = np.minimum(least[chosen], weights.min(axis=0))
            largest[chosen] = np.maximum(largest[chosen], weights.max(axis=0))
    spans, unbounded = largest - least, np.full(len(queries), np.inf)
    reach = np.where(spans > 0, spans, 1.0)  # no row of the pool met it; its largest weight is 1 if it counts
    return QueryMoments(mean, square - np.square(mean), reach, errors.prior_spread(total * square), unbounded)
