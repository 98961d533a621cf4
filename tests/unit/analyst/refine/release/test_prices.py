"""Prices of bounds against non-negative least squares, and thousands of inequalities on a release."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import nnls

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.refine.release.imposing import prices_of_bounds
from veilcube.errors import QueryError


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), bounds=st.integers(1, 40), noises=st.integers(1, 30), near=st.booleans())
def test_the_nearest_sums_are_those_of_least_distance(seed: int, bounds: int, noises: int, near: bool) -> None:
    generator = np.random.default_rng(seed)
    slopes = generator.integers(-1, 2, (bounds, noises)).astype(float)
    slopes[np.abs(slopes).sum(axis=1) == 0, 0] = 1
    slopes *= generator.uniform(0.1, 10, (bounds, 1))
    # Some noise obeys all bounds, with or without room to spare.
    inside = generator.normal(0, 3, noises)
    excess = slopes @ inside - (0.0 if near else generator.exponential(0.5, bounds))
    found = prices_of_bounds(slopes @ slopes.T, excess)
    assert found.unreachable == ()
    size = max(np.abs(excess).max(), 1e-6)
    left = excess - slopes @ slopes.T @ found.values
    assert (found.values >= 0).all()
    assert left.max() <= 1e-6 * size
    # Lawson and Hanson's least distance: the shortest move z with slopes z >= excess.
    target = np.zeros(noises + 1)
    target[-1] = 1.0
    prices, _ = nnls(np.vstack([slopes.T, excess / size]), target, maxiter=10_000)
    residual = np.append(slopes.T @ prices, excess @ prices / size - 1)
    assert np.allclose(slopes.T @ found.values, -residual[:-1] / residual[-1] * size, atol=1e-5 * size)


def test_bounds_that_contradict_each_other_are_named() -> None:
    slopes = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    found = prices_of_bounds(slopes @ slopes.T, np.array([3.0, 1.0, -2.0]))
    assert found.unreachable == (0, 2)


def test_bounds_that_touch_are_met() -> None:
    slopes = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0]])
    found = prices_of_bounds(slopes @ slopes.T, np.array([3.0, -3.0, 4.0]))
    assert found.unreachable == ()
    assert slopes @ slopes.T @ found.values == pytest.approx([3.0, -3.0, 4.0], abs=1e-8)


def ranges_known(schema: vc.Schema, counts: np.ndarray, many: int) -> list[str]:
    """Return true inequalities about random ranges, at most and at least by turns."""
    generator, facts = np.random.default_rng(1), []
    for row in range(many):
        low, high = np.sort(generator.integers(0, schema.shape, (2, 2)), axis=0).tolist()
        count = int(counts[low[0] : high[0] + 1, low[1] : high[1] + 1].sum())
        condition = f"a BETWEEN {low[0]} AND {high[0]} AND b BETWEEN {low[1]} AND {high[1]}"
        facts.append(f"count({condition}) {'<=' if row % 2 else '>='} {count}")
    return facts


@pytest.mark.parametrize("strategy", ["identity", "tree"])
def test_many_inequalities_on_a_release_are_obeyed(strategy: str) -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 31), vc.Ordinal("b", 0, 31)])
    counts = np.random.default_rng(0).poisson(3, (32, 32))
    facts = ranges_known(schema, counts, 700)
    refined = vc.refine(release_of(schema, counts, 0.5, 1, strategy), facts)
    for fact in facts[:100]:
        condition, bound = fact.removeprefix("count(").split(") ")
        value, limit = refined.count(condition).value, float(bound[2:])
        assert value <= limit + 1e-5 if bound.startswith("<=") else value >= limit - 1e-5


def test_contradicting_inequalities_on_a_release_are_refused() -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 31)])
    release = release_of(schema, np.full(32, 10), 0.5, 1)
    facts = ["count(a <= 3) <= 10", "count(a BETWEEN 4 AND 7) <= 10", "count(a <= 7) >= 30"]
    with pytest.raises(QueryError, match="no table obeys"):
        vc.refine(release, facts, counts=False)
