"""Overlaps of ranges from endpoints and prefix sums of the prior: what rows over all cells would give, on any size."""

import numpy as np
import pytest

import veilcube as vc
from veilcube.analyst.history.base import ProductKernel, Shares
from veilcube.errors import CapacityError, QueryError
from veilcube.query import LinearQueries
from veilcube.schema import Ordinal, Schema

SCHEMA = Schema([Ordinal("x", 0, 299), Ordinal("y", 0, 6)])
RANDOM = np.random.default_rng(24)
WEIGHTS = RANDOM.uniform(1e-6, 1, 300) ** 4, RANDOM.uniform(0.5, 1, 7)
PRIOR = tuple(part / part.sum() for part in WEIGHTS)


def ranges_and_others() -> LinearQueries:
    """Ranges, sets with gaps, an empty query, moments and wavelets, one term and several."""
    ranges = LinearQueries.of(vc.Workload.random_ranges(SCHEMA, 20, 1))
    sets = LinearQueries.conditions(SCHEMA, ["x IN (3, 9, 200) AND y > 2", "x < 5 OR y = 1", "x = 2 AND x = 3", {}])
    moments = LinearQueries.moments(SCHEMA, [{"x": 1}, {"x": 2, "y": 1}], where="x BETWEEN 10 AND 40 OR y = 0")
    wavelets = LinearQueries.wavelet(SCHEMA, [{"x": (0, 150, 300), "y": (2, 3, 5)}])
    return LinearQueries.concatenate([moments, ranges, sets, wavelets])


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["even", "given"])
@pytest.mark.parametrize("most_cells", [20_000, 0], ids=["tables", "terms"])
def test_the_kernel_of_ranges_and_of_anything_else_is_the_sum_over_all_cells(prior, most_cells, monkeypatch):
    monkeypatch.setattr("veilcube.analyst.history.base.kernel.MOST_CELLS", most_cells)
    shares = tuple(Shares(size) for size in SCHEMA.shape) if prior is None else prior
    kernel, queries = ProductKernel(shares), ranges_and_others()
    cells = np.indices(SCHEMA.shape).reshape(2, -1).T
    chances = np.prod([Shares.of(part).values[cells[:, axis]] for axis, part in enumerate(shares)], axis=0)
    weights = queries.evaluate(cells).T
    size = np.abs(weights).max(axis=1)
    found = kernel.between(queries, queries) / np.outer(size.clip(1), size.clip(1))
    weights = weights / size.clip(1)[:, np.newaxis]
    np.testing.assert_allclose(found, (weights * chances) @ weights.T, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(kernel.means(queries) / size.clip(1), weights @ chances, rtol=1e-11, atol=1e-14)


def test_the_mass_of_a_rare_cell_is_not_lost_in_a_prefix_sum():
    shares = Shares(300, PRIOR[0])
    cells = np.arange(300)
    np.testing.assert_allclose(shares.mass(cells, cells + 1), PRIOR[0], rtol=1e-8)
    np.testing.assert_allclose(shares.mass(cells, cells), 0.0)
    edges = np.array([0, 10, 11, 300])
    parts = np.split(PRIOR[0], edges[1:-1])
    np.testing.assert_allclose(shares.concentration(edges), [np.sum(part**2) / part.sum() ** 2 for part in parts])


def test_cells_are_drawn_by_their_probability():
    shares, uniforms = Shares(300, PRIOR[0]), (np.arange(100_000) + 0.5) / 100_000
    drawn = shares.draw(np.full(100_000, 20), np.full(100_000, 60), uniforms)
    expected = PRIOR[0][20:60] / PRIOR[0][20:60].sum()
    np.testing.assert_allclose(np.bincount(drawn, minlength=300)[20:60] / 100_000, expected, atol=2e-5)
    assert Shares(10**12).draw(np.array([7]), np.array([8]), np.array([0.999])).tolist() == [7]


@pytest.mark.parametrize("alpha", ["likelihood", 50.0])
def test_ranges_on_a_trillion_cells_are_those_of_coarse_cells_if_they_end_where_these_do(alpha):
    """Under an even prior only the lengths of ranges count."""
    few, many = Schema([Ordinal("x", 0, 999)]), Schema([Ordinal("x", 0, 10**12 - 1)])
    coarse, asked = vc.Workload.random_ranges(few, 60, 3), vc.Workload.random_ranges(few, 30, 4)
    values = np.random.default_rng(5).normal(300, 40, 60)

    def answers(schema: Schema, cells: int) -> np.ndarray:
        past, new = (
            vc.Workload.ranges(schema, work.low * cells, (work.high + 1) * cells - 1) for work in (coarse, asked)
        )
        return vc.KernelPCA(alpha).fit(vc.History(schema, past, values, 100.0), total=700).answer(new).value

    np.testing.assert_allclose(answers(many, 10**9), answers(few, 1), rtol=1e-9, atol=1e-6)


def test_what_cannot_be_written_out_is_refused_in_one_sentence():
    schema = Schema([Ordinal("x", 0, 10**12 - 1)])
    ranges = LinearQueries.of(vc.Workload.ranges(schema, [[5]], [[10]]))
    with pytest.raises(CapacityError, match="linear queries over 2,000,000,000,000 cells needs") as refusal:
        _ = ranges.factors
    assert "\n" not in str(refusal.value)
    with pytest.raises(CapacityError):
        _ = Shares(10**12).values
    assert LinearQueries.from_dict(schema, ranges.to_dict()).parts[0].end.tolist() == [11]
    assert ranges.evaluate([[4], [5], [10], [11]]).ravel().tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("run", [slice(0, 8), slice(3, 1), slice(None, 2), slice(0, 4, 2), slice(-1, 2), slice(0.0, 2)])
def test_slices_of_cells_are_checked(run):
    with pytest.raises(QueryError, match="a slice of cells goes from a first one to an end"):
        LinearQueries.of_terms(SCHEMA, [[{1: run}]])
    assert LinearQueries.of_terms(SCHEMA, [[{1: slice(2, 4)}]]).factors[1].tolist() == [[0, 0, 1, 1, 0, 0, 0]]
