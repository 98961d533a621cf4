"""Plans of many quantiles against simulated noise: expected misses, budgets of levels, and intervals."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from veilcube.planner import Plan
from veilcube.planner.quantiles import (
    plan_quantiles,
    quantile_widths,
)

NINE = [i / 10 for i in range(1, 10)]


def simulated_misses(
    quantiles: list[float], epsilon: float, rounds: int, budgets: Sequence[Fraction] | None = None
) -> np.ndarray:
    """Draw the errors of a split whose nodes have Laplace noise, each passed on to the quantiles drawn between."""
    plan = plan_quantiles(2**20, quantiles, epsilon, method="split")
    spent = plan.budgets if budgets is None else budgets
    generator = np.random.default_rng(1)
    errors = np.zeros((len(quantiles) + 1, rounds))
    ends = len(quantiles)
    for node in plan.split.nodes:
        scale = 2 * float(node.sensitivity / spent[node.level])
        below, above = (ends if place is None else place for place in (node.after, node.before))
        share = float(node.share)
        errors[node.index] = (1 - share) * errors[below] + share * errors[above] + generator.laplace(0, scale, rounds)
    return errors[:ends]


def noises_of(tree: Plan, rounds: int) -> np.ndarray:
    """Draw the errors of a tree's numbers of rows up to each place, less the place's share of the total."""
    generator = np.random.default_rng(2)
    found = []
    for _ in range(rounds):
        noise = np.rint(generator.laplace(0, float(tree.noise.scale), tree.operator.measurement_shape) * 1000)
        found.append(np.cumsum(tree.operator.solve(noise.astype(np.int64)).ravel()) / 1000)
    return np.array(found)


@pytest.mark.parametrize("quantiles", [[0.5], [0.1, 0.9], NINE])
def test_a_split_is_expected_to_miss_by_what_its_noises_do(quantiles: list[float]) -> None:
    expected = plan_quantiles(2**20, quantiles, 0.5, method="split").expected_miss
    assert expected == pytest.approx(np.abs(simulated_misses(quantiles, 0.5, 20_000)).mean(), rel=0.02)


@pytest.mark.parametrize("level", range(4))
def test_budget_moved_to_any_one_level_makes_the_mean_square_larger(level: int) -> None:
    planned = plan_quantiles(2**20, NINE, 1, method="split").budgets
    moved = [budget * Fraction(2, 3) for budget in planned]
    moved[level] += Fraction(1, 3)
    best, other = (np.square(simulated_misses(NINE, 1.0, 20_000, budgets)).mean() for budgets in (planned, moved))
    assert sum(moved) == sum(planned)
    assert best < 0.95 * other


def test_reach_holds_far_more_often_than_it_says() -> None:
    plan = plan_quantiles(2**20, NINE, 0.5, method="split")
    misses = np.abs(simulated_misses(NINE, 0.5, 20_000))
    assert (misses <= plan.reach(2**20, 0.95)[:, np.newaxis]).mean() > 0.999


def test_a_tree_is_expected_to_miss_by_what_its_noise_does() -> None:
    plan = plan_quantiles(200, NINE, 0.5, method="tree")
    assert plan.tree is not None
    noises = noises_of(plan.tree, 400)
    around = [noises[:, int(q * 200) + away] - q * noises[:, -1] for q in NINE for away in range(-10, 10)]
    assert plan.expected_miss == pytest.approx(np.abs(around).mean(), rel=0.05)


def test_intervals_of_a_tree_hold_at_every_place() -> None:
    plan = plan_quantiles(64, [0.3], 0.5, method="tree")
    assert plan.tree is not None
    (widths,) = quantile_widths(plan.tree, [Fraction(3, 10)], 0.9)
    noises = noises_of(plan.tree, 2000)
    held = np.abs(noises - 0.3 * noises[:, -1:]) <= widths
    assert (held.mean(axis=0) > 0.88).all()
    assert held.mean() < 0.94
