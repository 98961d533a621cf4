"""The non-negative walk: projections, kept totals, and intervals that least squares vouches for."""

import numpy as np
import pytest

from support.releases import release_of
from support.tree_strategies import PlainTree, tree_release
from veilcube.analyst.estimate.base.simplex import project_onto_simplex
from veilcube.analyst.estimate.linear.nonnegative import walk_halves, walk_tree
from veilcube.operators import TreeAxis
from veilcube.operators.tree.axis import tree_axis
from veilcube.query import Workload
from veilcube.schema import Ordinal, Schema


def sorted_projection(values: np.ndarray, total: float) -> np.ndarray:
    """The textbook projection onto the simplex, by sorting."""
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, values.size + 1)
    threshold = excess[np.flatnonzero(descending > excess)[-1]]
    return np.maximum(values - threshold, 0)


def test_the_projection_is_the_nearest_point_of_the_simplex() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        values = rng.normal(0, 5, size=rng.integers(1, 20))
        total = float(rng.exponential(5))
        projected = np.concatenate([[7.0], values, [-7.0]])
        project_onto_simplex(projected, 1, values.size + 1, total)
        np.testing.assert_allclose(projected[1:-1], sorted_projection(values, total), atol=1e-10)
        assert (projected[0], projected[-1]) == (7.0, -7.0)


def test_a_total_of_zero_leaves_nothing() -> None:
    values = np.array([3.0, -1.0, 2.0])
    project_onto_simplex(values, 0, 3, 0.0)
    assert values.tolist() == [0, 0, 0]


def by_hand(axis: TreeAxis, cells: np.ndarray) -> np.ndarray:
    """The walk, written down as its definition: node by node, with the sorted projection."""
    shape, walked = axis.shape, np.zeros(axis.size)
    totals = {0: max(cells.sum(), 0.0)}
    for v in range(shape.inner):
        begin, count, first = shape.child_start[v], shape.child_count[v], shape.first[v]
        if count == 0:
            walked[first] = totals[v]
        elif begin >= shape.inner:
            below = cells[first : first + count]
            walked[first : first + count] = sorted_projection(below, totals[v]) if totals[v] > 0 else 0
        else:
            sums = np.array([cells[shape.first[c] : shape.end[c]].sum() for c in range(begin, begin + count)])
            shares = sorted_projection(sums, totals[v]) if totals[v] > 0 else np.zeros(count)
            totals |= dict(zip(range(begin, begin + count), shares, strict=True))
    return walked


@pytest.mark.parametrize(
    "axis",
    [tree_axis(50, 3), tree_axis(1, 2), tree_axis(7, 16), TreeAxis(5, (np.array([0, 1, 5]), np.arange(6)), (1, 1))],
)
def test_the_walk_along_a_tree_projects_every_group_of_siblings(axis: TreeAxis) -> None:
    rng = np.random.default_rng(axis.size)
    for mean in (-1.0, 0.5, 4.0):
        cells = rng.normal(mean, 4, size=axis.size)
        np.testing.assert_allclose(walk_tree(axis.shape, cells), by_hand(axis, cells), atol=1e-9)


def test_a_large_tree_is_walked_alike_by_one_core_and_by_two() -> None:
    cells = np.random.default_rng(5).normal(0.3, 4, size=300_000)
    axis = tree_axis(cells.size, 16)
    walked = walk_tree(axis.shape, cells)
    assert walked.min() >= 0
    assert walked.sum() == pytest.approx(cells.sum())
    np.testing.assert_allclose(walked, by_hand(axis, cells), atol=1e-8)


def test_halves_of_one_axis_are_the_binary_tree() -> None:
    cells = np.random.default_rng(6).normal(1, 4, size=64)
    np.testing.assert_allclose(walk_halves(cells), walk_tree(tree_axis(64, 2).shape, cells), atol=1e-9)


@pytest.mark.parametrize("shape", [(1,), (7,), (5, 3), (4, 9, 2), (300, 1000)])
def test_halves_of_any_cube_are_non_negative_and_keep_every_total(shape: tuple[int, ...]) -> None:
    cells = np.random.default_rng(7).normal(1, 4, size=shape)
    walked = walk_halves(cells)
    assert walked.min() >= 0
    assert walked.sum() == pytest.approx(max(cells.sum(), 0))
    positive = np.abs(cells)
    np.testing.assert_allclose(walk_halves(positive), positive, atol=1e-9)
    assert walk_halves(-positive).max() == 0


def test_the_widest_axis_is_halved_first() -> None:
    cells = np.array([[5.0, 5.0, 5.0, 5.0], [-9.0, 1.0, 1.0, 1.0]])
    left, right = walk_halves(cells)[:, :2].sum(), walk_halves(cells)[:, 2:].sum()
    # Halves of the wider axis hold 2 and 12: both are positive, so both totals stay.
    assert (left, right) == pytest.approx((2, 12))


SCHEMA = Schema([Ordinal("x", 1, 40), Ordinal("y", 1, 30)])
SPARSE = np.where(np.random.default_rng(9).random(SCHEMA.shape) < 0.02, 40, 0)


@pytest.mark.parametrize("strategy", [None, PlainTree(4)])
def test_answers_are_non_negative_add_up_and_lie_in_intervals_cut_from_those_of_least_squares(
    strategy: PlainTree | None,
) -> None:
    release = (
        release_of(SCHEMA, SPARSE, "1/5", seed=3)
        if strategy is None
        else tree_release(SCHEMA, SPARSE, strategy.branching, "1/5", seed=3)
    )
    workload = Workload.random_ranges(SCHEMA, 300, seed=1)
    walked, plain = (release.answer(workload, estimator=name) for name in ("nonnegative", "least_squares"))
    assert walked.value.min() >= 0
    assert walked.low.min() >= 0
    assert ((walked.low <= walked.value) & (walked.value <= walked.high)).all()
    assert (walked.low <= np.maximum(plain.low, 0)).all()
    assert (walked.high >= plain.high).all()
    np.testing.assert_array_equal(walked.stddev, plain.stddev)
    total = release.count({}, estimator="nonnegative").value
    assert total == pytest.approx(max(release.count({}, estimator="least_squares").value, 0))
    marginal = release.marginal("x", estimator="nonnegative")
    assert marginal.value.sum() == pytest.approx(total)
    assert marginal.value.min() >= 0
    irregular = release.count("x < 5 OR y IN (3, 9)", estimator="nonnegative")
    assert 0 <= irregular.low <= irregular.value <= irregular.high


def test_on_a_sparse_table_the_walk_is_nearer_to_the_truth_than_least_squares() -> None:
    schema = Schema([Ordinal("x", 1, 4096)])
    counts = np.where(np.random.default_rng(2).random(4096) < 0.01, 500, 0)
    release = tree_release(schema, counts, 8, "1/10", seed=8)
    workload = Workload.random_ranges(schema, 500, seed=3)
    exact = np.concatenate([[0], np.cumsum(counts)])
    truth = exact[workload.high[:, 0] + 1] - exact[workload.low[:, 0]]
    errors = {
        name: float(np.sqrt(np.mean((release.answer(workload, estimator=name).value - truth) ** 2)))
        for name in ("nonnegative", "least_squares")
    }
    assert errors["nonnegative"] < errors["least_squares"]
