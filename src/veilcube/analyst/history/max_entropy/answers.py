"""Answers of a maximum entropy model to linear queries, with standard deviations, one set of attributes at a time.

Attributes that no measured table holds together may depend on each other in ways that nothing measured: the interval
then reaches to the Fréchet bounds, what a query can count at most and at least given each measured table.
"""

from dataclasses import dataclass

import numpy as np

from veilcube.analyst.estimate import DEVIATIONS_OF_95_PERCENT
from veilcube.analyst.history.max_entropy.error import ErrorModel, TableShape, spread_given_total
from veilcube.analyst.history.max_entropy.tables import (
    MOST_TABLE_CELLS,
    TableGroup,
    make_group,
    query_supports,
    table_cells,
)
from veilcube.analyst.history.max_entropy.universe import Total, Universe
from veilcube.query import LinearQueries
from veilcube.system import Floats

_ENTRIES_AT_ONCE = 1 << 22
_QUERIES_OF_ROWS = 64
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class QueryMoments:
    """Mean, variance and range of each query under the model (for one row), and the error variance of its count.

    ``noise`` is that of its own noise where it counts one cell of a table that was measured whole, else infinite;
    ``unmeasured`` is how far its mean may be off for dependence that no table shows.
    """

    mean: Floats
    variance: Floats
    reach: Floats
    error: Floats
    noise: Floats
    unmeasured: Floats


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
        variance[members] += np.square(total.value * found.unmeasured / DEVIATIONS_OF_95_PERCENT)
    return value, np.sqrt(variance)


def _chance(found: QueryMoments, universe: Universe, total: float) -> Floats:
    """Return the variance that chains bring; what no chain met may still be as frequent as one in all chains."""
    if universe.chains is None:
        return np.zeros(found.mean.size)
    unmet = np.where(found.variance == 0, np.square(found.reach) / universe.chains, 0.0)
    return total**2 / universe.chains * np.maximum(found.variance, unmet)


def _by_table(group: TableGroup, universe: Universe, errors: ErrorModel, total: float) -> QueryMoments:
    chances = universe.marginal(group.axes)
    parts = []
    at_once = max(1, _ENTRIES_AT_ONCE // group.size)
    for start in range(0, group.members.size, at_once):
        weights = _weights_of(group, start, min(start + at_once, group.members.size))
        mean = weights @ chances.ravel()
        variance = np.maximum(np.square(weights) @ chances.ravel() - np.square(mean), 0.0)
        alone = spread_given_total(weights, errors.prior_spread(total * chances.ravel(), group.axes))
        error = _least_error(group, weights, chances, errors, alone, mean, variance)
        own, unmeasured = _own_noise(group, weights, errors), _unmeasured(group, weights, chances, errors, mean)
        parts.append((mean, variance, np.ptp(weights, axis=1), error, own, unmeasured))
    return QueryMoments(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _weights_of(group: TableGroup, start: int, stop: int) -> Floats:
    """The weight of every cell of the group's table in some of its queries."""
    if not group.axes:
        return np.bincount(group.owner, minlength=group.members.size)[start:stop, np.newaxis].astype(np.float64)
    chosen = (group.owner >= start) & (group.owner < stop)
    products = np.ones((int(chosen.sum()), 1))
    for factor in group.factors_of(np.flatnonzero(chosen)):
        products = (products[:, :, np.newaxis] * factor[:, np.newaxis, :]).reshape(len(products), -1)
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


def _unmeasured(group: TableGroup, weights: Floats, chances: Floats, errors: ErrorModel, mean: Floats) -> Floats:
    """Return how far from its mean each query can be with every measured table as it is: nothing if one holds it.

    Given a table, a query counts most if all rows of each of its cells have the largest weight there (Fréchet).
    """
    most, least = weights.max(axis=1), weights.min(axis=1)
    cube = weights.reshape(-1, *group.shape) if group.axes else weights
    for table in errors.tables:
        common = tuple(axis for axis in table.axes if axis in group.axes)
        if common == group.axes:
            return np.zeros(len(weights))
        lost = tuple(1 + place for place, axis in enumerate(group.axes) if axis not in common)
        mass = _sum_to(group, chances, common).ravel()
        most = np.minimum(most, cube.max(axis=lost).reshape(len(weights), -1) @ mass)
        least = np.maximum(least, cube.min(axis=lost).reshape(len(weights), -1) @ mass)
    reach: Floats = np.maximum(np.maximum(most - mean, mean - least), 0.0)
    return reach


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
    # Too many cells to bound it by each table: it may be anything from nothing to what it counts on average, or twice.
    unmeasured = np.abs(mean)
    error = errors.prior_spread(total * square)
    return QueryMoments(mean, square - np.square(mean), reach, error, unbounded, unmeasured)
