"""Adaptive releases before any data: the division of the budget, the blocks, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

import veilcube as vc
from veilcube.errors import PlanError
from veilcube.planner.partition.design import SPLITS, planned_operator

PLANE = vc.Schema([vc.Ordinal("age", 0, 63), vc.Ordinal("hours", 0, 95)])


def test_cells_lose_at_most_five_percent_against_the_identity() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, PLANE.shape, (100, 2))
    cells = vc.Workload.ranges(PLANE, first, first)
    adaptive, identity = (vc.plan(PLANE, 0.2, strategy).stddev(cells) for strategy in (vc.Adaptive(), "identity"))
    assert (adaptive <= 1.05 * identity).all()


def test_ranges_gain_by_the_blocks() -> None:
    adaptive, identity = (vc.plan(PLANE, 0.2, strategy).expected_error for strategy in (vc.Adaptive(), "identity"))
    assert adaptive < 0.9 * identity


def test_no_other_blocks_or_split_have_less_error() -> None:
    plan = vc.plan(PLANE, 0.2, vc.Adaptive(), workload=vc.Workload.random_ranges(PLANE, 300, seed=1))
    low, high = plan.workload.low, plan.workload.high
    best = plan.expected_error
    for split in SPLITS["laplace"]:
        for parts in [(1, 1), (2, 2), (4, 1), (8, 8), (64, 96)]:
            operator = planned_operator(PLANE, split, parts)
            scale = operator.sensitivity("add-remove") / 0.2
            assert best <= 1.001 * np.sqrt(operator.variance_of_rectangles(low, high).mean() * 2) * scale


def test_the_planned_map_agrees_with_dense_linear_algebra() -> None:
    small = vc.Schema([vc.Ordinal("a", 0, 4), vc.Ordinal("b", 0, 3)])
    operator = planned_operator(small, Fraction(2, 3), (2, 2))
    matrix = np.array([operator.apply(unit.reshape(5, 4)) for unit in np.eye(20, dtype=np.int64)]).T
    rng = np.random.default_rng(2)
    noisy, query = rng.normal(size=len(matrix)), rng.normal(size=(5, 4))
    solution = np.linalg.pinv(matrix)
    np.testing.assert_allclose(operator.solve(noisy).ravel(), solution @ noisy, atol=1e-9)
    np.testing.assert_allclose(operator.adjoint(noisy).ravel(), matrix.T @ noisy, atol=1e-9)
    np.testing.assert_allclose(operator.noise_weights(query), query.ravel() @ solution, atol=1e-9)
    assert operator.sensitivity("add-remove") == np.abs(matrix).sum(axis=0).max()


def test_an_event_of_two_steps_costs_epsilon() -> None:
    plan = vc.plan(PLANE, "1/3", vc.Adaptive(split=0.25))
    assert plan.event.to_dict()["kind"] == "sequential"
    assert plan.design.split == Fraction(1, 4)


def test_the_kd_tree_is_an_adaptive_release() -> None:
    assert vc.KdTree(split=0.4) == vc.Adaptive(partition="kd", split=0.4)
    assert vc.plan(PLANE, 1, "kd tree").strategy.kind == "kd"


@pytest.mark.parametrize("split", [0, 1, 0.0, 1.0, -0.5, 2, float("nan"), "half", None, True, [0.5]])
def test_a_split_that_leaves_a_step_nothing_is_refused(split: object) -> None:
    with pytest.raises(PlanError, match="split must be 'auto' or the cells' share of the budget"):
        vc.Adaptive(split=split)


@pytest.mark.parametrize(
    ("split", "exact"),
    [(np.float64(0.5), "1/2"), (np.float32(0.25), "1/4"), (1e-6, "1/1000000"), (0.99999, "99999/100000")],
)
def test_a_split_is_any_number_and_not_rounded_to_nothing(split: float, exact: str) -> None:
    assert vc.Adaptive(split=split).split == Fraction(exact)


@pytest.mark.parametrize("parts", [(0, 0), (-1, 3), "ab", (2.5, 2), (True, 2), ((1,), 2)])
def test_parts_that_are_no_numbers_of_blocks_are_refused(parts: object) -> None:
    with pytest.raises(PlanError, match="parts must name a whole number of blocks"):
        vc.Adaptive(parts=parts)


def test_parts_are_kept_as_whole_numbers_and_fit_the_schema() -> None:
    assert vc.Adaptive(parts=[np.int64(2), 3]) == vc.Adaptive(parts=(2, 3))
    with pytest.raises(PlanError, match="more blocks than it has cells"):
        vc.plan(PLANE, 1, vc.Adaptive(parts=(1000, 1000)))


@pytest.mark.parametrize("epsilon", [0.1, 2, 7])
def test_the_planned_error_is_that_of_the_release_at_every_scale(epsilon: float) -> None:
    plan = vc.plan(PLANE, epsilon, vc.Adaptive())
    queries = vc.Workload(PLANE, [{"age": 3, "hours": 4}, {"age": (2, 40), "hours": (1, 80)}, {}, {"age": [1, 5, 7]}])
    release = vc.release(vc.Cube(PLANE, np.ones(PLANE.shape, dtype=np.int64)), plan=plan)
    answers = release.answer(queries, estimator="least_squares")
    np.testing.assert_allclose(plan.stddev(queries), answers.stddev)
    np.testing.assert_allclose(plan.half_widths(queries), (answers.high - answers.low) / 2)
    assert plan.expected_error == pytest.approx(np.sqrt(np.mean(plan.stddev(plan.workload) ** 2)))


def test_large_tables_are_refused_by_what_is_measured_and_not_by_what_is_planned() -> None:
    counts = np.full(PLANE.shape, 2**36 // PLANE.cells)
    release = vc.release(vc.Cube(PLANE, counts), 1, vc.Adaptive(split=0.9999))
    assert release.count().value == pytest.approx(counts.sum(), rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"partition": "squares"}, "partition must be one of auto, blocks, grow, kd"),
        ({"smooth": -1}, "smooth must be a whole number"),
        ({"smooth": 2.5}, "smooth must be a whole number"),
        ({"threshold": 0}, "threshold must be a number above 0"),
        ({"threshold": "2"}, "threshold must be a number above 0"),
        ({"side": 0}, "side must be 'auto' or the whole number"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        vc.Adaptive(**settings)


def test_blocks_of_another_schema_are_refused() -> None:
    with pytest.raises(PlanError, match="for another schema"):
        vc.plan(PLANE, 1, vc.Adaptive(split=0.5, parts=(2,)))


@pytest.mark.parametrize("partition", ["blocks", "grow", "kd"])
def test_one_cell_is_planned_and_released(partition: str) -> None:
    single = vc.Schema([vc.Ordinal("age", 5, 5)])
    release = vc.release(vc.Cube(single, [1000]), 100, vc.Adaptive(partition=partition, split=0.5))
    assert release.count().value == pytest.approx(1000, abs=5)
