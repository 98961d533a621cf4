"""The search's exact variances, their gradient, and the division of a budget among levels."""

from fractions import Fraction

import numpy as np
import pytest

from support.dense_axes import all_ranges
from support.tree_levels import TREES, levels
from veilcube.planner.design.weights import balance_weights, multipliers_of, whole_multipliers
from veilcube.planner.tree.classes import TreeClasses
from veilcube.planner.tree.loops import range_variances


def dense_variances(tree: tuple[np.ndarray, ...], theta: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Write every distinct node out as a row; one that stands on several levels has the sum of their weights."""
    weights: dict[tuple[int, int], float] = {}
    for boundaries, weight in zip(tree, theta, strict=True):
        for run in zip(boundaries.tolist(), boundaries[1:].tolist(), strict=False):
            weights[run] = weights.get(run, 0.0) + weight
    cells = np.arange(int(tree[-1][-1]))
    rows = np.array([((cells >= low) & (cells < end)) * weight for (low, end), weight in weights.items()])
    return np.einsum("qi,ij,qj->q", queries, np.linalg.inv(rows.T @ rows), queries)


@pytest.mark.parametrize("measures_total", [True, False])
@pytest.mark.parametrize("name", TREES)
def test_variances_and_gradient_are_those_of_dense_least_squares(name: str, measures_total: bool) -> None:
    tree = TREES[name]
    low, high, queries = all_ranges(int(tree[-1][-1]))
    used = tree if measures_total else tree[1:]
    generator = np.random.default_rng(3)
    theta, cost = generator.uniform(0.2, 2, len(used)), generator.uniform(0, 1, len(low))
    classes = TreeClasses(tree[:-1], measures_total)
    ranges = classes.ranges(low, high)
    np.testing.assert_allclose(classes.variances(ranges, theta), dense_variances(used, theta, queries), rtol=1e-10)
    value, gradient = range_variances(classes._packed[0], ranges, theta, cost, np.zeros(len(low)))
    assert value == pytest.approx(cost @ dense_variances(used, theta, queries))
    for level in range(len(used)):
        step = np.where(np.arange(len(used)) == level, 1e-5, 0)
        ends = [cost @ dense_variances(used, theta + sign * step, queries) for sign in (1, -1)]
        assert gradient[level] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_a_tree_over_many_cells_has_few_classes() -> None:
    assert TreeClasses(levels(4096, 8, 8, 8)[:-1], True)._packed[0].first.size == 5


def test_optimised_weights_are_no_worse_than_any_on_a_grid() -> None:
    low, high, queries = all_ranges(16)
    tree, cost = levels(16, 4), np.full(len(low), 1 / len(low))
    classes = TreeClasses(tree[:-1], True)
    theta, error = classes.optimise(classes.ranges(low, high), cost)
    steps = np.linspace(0.01, 0.98, 40)
    grid = [(a, b, 1 - a - b) for a in steps for b in steps if a + b < 0.99]
    least = min(float(dense_variances(tree, np.array(point), queries).mean()) for point in grid)
    assert theta.sum() == pytest.approx(1)
    assert least * 0.95 < error <= least * 1.0005


def test_balancing_independent_groups_takes_one_step() -> None:
    costs = np.array([1.0, 8.0, 27.0])
    theta, value = balance_weights(lambda w: (float((costs / w**2).sum()), -2 * costs / w**3), np.ones(3), rounds=1)
    np.testing.assert_allclose(theta, np.array([1, 2, 3]) / 6)
    assert value == pytest.approx(6**3)


def test_rounding_prefers_small_numbers_that_lose_next_to_nothing() -> None:
    def error(theta: np.ndarray) -> float:
        return float((1 / theta**2).sum())

    assert whole_multipliers(np.array([0.334, 0.333, 0.333]), error) == (1, 1, 1)
    assert whole_multipliers(np.array([0.2, 0.8]), lambda theta: abs(theta[0] - 0.2) + 1) == (1, 4)


def test_given_weights_become_whole_multipliers() -> None:
    assert multipliers_of([Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]) == (2, 1, 1)
    thirds = [Fraction(1, 3), Fraction("0.333333333"), Fraction("0.333333334")]
    assert multipliers_of(thirds) == (1, 1, 1)
    assert multipliers_of([Fraction("0.33333"), Fraction("0.66667")]) == (3333, 6667)
