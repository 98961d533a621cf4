"""Gibbs chains against sums over all cells, and the tables that their weights come from."""

import numpy as np
import pytest
from numpy.typing import NDArray

import veilcube as vc
from veilcube.analyst.history.max_entropy.gibbs import Chains, TableLayout
from veilcube.analyst.history.max_entropy.tables import group_queries
from veilcube.query import LinearQueries

SHAPE = (4, 3, 5)
TABLES = ((0, 1), (1, 2), (0, 1, 2), ())
SCHEMA = vc.Schema([vc.Ordinal("a", 0, 3), vc.Nominal("b", list("xyz")), vc.Ordinal("c", 0, 4)])


def tables_of_noise(size: float, seed: int = 3) -> list[NDArray[np.float64]]:
    random = np.random.default_rng(seed)
    return [random.normal(0, size, tuple(SHAPE[axis] for axis in axes)) for axes in TABLES]


def all_chances(prior: list[NDArray[np.float64]], tables: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    exponent = np.log(np.multiply.outer(np.multiply.outer(prior[0], prior[1]), prior[2]))
    for axes, table in zip(TABLES, tables, strict=True):
        exponent = exponent + table.reshape([SHAPE[axis] if axis in axes else 1 for axis in range(3)])
    chances = np.exp(exponent - exponent.max())
    return chances / chances.sum()


def far_from_exact(size: float, change: float = 0.0) -> float:
    """The largest distance of the chains' marginals from exact ones, whose tables may be a little off."""
    prior = [np.arange(1.0, size + 1) / sum(range(1, size + 1)) for size in SHAPE]
    tables = tables_of_noise(size)
    exact = all_chances(prior, [table * (1 + change) for table in tables])
    chains = Chains.drawn(TableLayout(SHAPE, TABLES), prior, 40_000, seed=1)
    packed = chains.layout.pack(tables)
    chains.sweep(packed, 30)
    found = chains.collect(packed, 10)
    gaps = [
        np.abs(table - exact.sum(axis=tuple(axis for axis in range(3) if axis not in axes))).sum()
        for axes, table in zip(TABLES, found, strict=True)
    ]
    drawn = np.zeros(SHAPE)
    np.add.at(drawn, tuple(chains.rows.T), 1 / len(chains.rows))
    assert np.abs(drawn - exact).sum() < 0.08
    return float(max(gaps))


def test_chains_settle_at_the_exact_distribution_and_not_at_one_of_weights_three_percent_larger() -> None:
    assert far_from_exact(0.5) < 0.006
    assert far_from_exact(0.5, change=0.03) > 0.009


def test_weights_beyond_single_precision_are_followed_in_double_precision() -> None:
    layout = TableLayout(SHAPE, TABLES)
    assert layout.pack(tables_of_noise(1.0)).dtype == np.float32
    assert layout.pack(tables_of_noise(30.0)).dtype == np.float64
    hopeless = layout.pack([1e4 * table for table in tables_of_noise(1.0)])
    assert hopeless.min() > 0


def test_the_same_seed_gives_the_same_rows() -> None:
    def rows(seed: int) -> NDArray[np.int32]:
        chains = Chains.drawn(TableLayout(SHAPE, TABLES), [np.ones(size) / size for size in SHAPE], 500, seed)
        chains.sweep(chains.layout.pack(tables_of_noise(0.5)), 3)
        return chains.rows

    np.testing.assert_array_equal(rows(4), rows(4))
    assert (rows(4) != rows(5)).any()


@pytest.mark.parametrize(
    "queries",
    [
        LinearQueries.of(vc.Workload.marginals(SCHEMA, 2)),
        LinearQueries.of(vc.Workload.random_ranges(SCHEMA, 20, seed=1)),
        LinearQueries.moments(SCHEMA, [{"a": 1, "c": 2}, {"a": 1}, {}]),
        LinearQueries.conditions(SCHEMA, ["a = 1 OR b = 'x'", "c IN (0, 3) AND b = 'y'"]),
    ],
    ids=["cells", "ranges", "moments", "conditions"],
)
def test_groups_read_expectations_and_write_log_weights_as_the_queries_themselves_do(queries: LinearQueries) -> None:
    random = np.random.default_rng(2)
    chances = random.dirichlet(np.ones(60)).reshape(SHAPE)
    weights = random.normal(size=len(queries))
    every = queries.evaluate(np.indices(SHAPE).reshape(3, -1).T)
    expected, exponent = np.empty(len(queries)), np.zeros(SHAPE)
    for group in group_queries(queries):
        others = tuple(axis for axis in range(3) if axis not in group.axes)
        expected[group.members] = group.expectations(np.asarray(chances.sum(axis=others)))
        shape = [SHAPE[axis] if axis in group.axes else 1 for axis in range(3)]
        exponent += group.log_weights(weights[group.members]).reshape(shape)
        if group.dense is not None:
            table = group.log_weights(weights[group.members]).ravel()
            np.testing.assert_allclose(weights[group.members] @ group.dense, table, atol=1e-12)
    np.testing.assert_allclose(expected, chances.ravel() @ every, atol=1e-12)
    np.testing.assert_allclose(exponent.ravel(), every @ weights, atol=1e-12)


def test_marginal_cells_are_recognised_and_small_tables_join_larger_ones() -> None:
    groups = group_queries(LinearQueries.of(vc.Workload.marginals(SCHEMA, 2)))
    assert [group.axes for group in groups] == [(1, 2), (0, 2), (0, 1)]
    assert all(group.cells is not None for group in groups)
    joined = group_queries(
        LinearQueries.concatenate([LinearQueries.of(vc.Workload.marginals(SCHEMA, ways)) for ways in (1, 2)])
    )
    assert len(joined) == 3
    assert sum(group.members.size for group in joined) == 12 + 47
