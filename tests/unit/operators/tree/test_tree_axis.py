"""Trees over one axis: their nodes, exact measurements and least squares, against dense matrices."""

from itertools import pairwise

import numpy as np
import pytest

from support.dense_axes import DenseAxis, check_axis
from veilcube.errors import PlanError
from veilcube.operators import FlatAxis, TreeAxis, hierarchy_levels, read_axis, tree_fanouts, tree_levels
from veilcube.operators.base.axis import AxisMoments
from veilcube.operators.tree import loops
from veilcube.operators.tree.axis import TreeGains, tree_axis
from veilcube.schema.hierarchy import Hierarchy
from veilcube.system.loops import Loop

JOBS = Hierarchy.read({"Care": {"Ward": ["Nurse", "Aide"], "Office": ["Clerk"]}, "Judges": [{"Judge": ["Judge one"]}]})


def matrix(axis: TreeAxis) -> list[list[int]]:
    return axis.apply(np.eye(axis.size, dtype=np.int64)).T.tolist()


def test_a_tree_measures_its_nodes_from_the_root_down_times_their_multipliers() -> None:
    axis = TreeAxis(4, tree_levels(4, 2), (3, 2, 1))
    assert matrix(axis) == [
        [3, 3, 3, 3],
        [2, 2, 0, 0],
        [0, 0, 2, 2],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]


def test_a_node_that_a_level_does_not_split_is_measured_once_with_the_budget_of_both_levels() -> None:
    axis = TreeAxis(3, tree_levels(3, 2), (5, 2, 1))
    assert matrix(axis) == [[5, 5, 5], [3, 0, 0], [0, 2, 2], [0, 1, 0], [0, 0, 1]]
    assert axis.column_sums().tolist() == [8, 8, 8]


def test_a_level_that_splits_nothing_adds_its_budget_to_the_level_before() -> None:
    whole, cells = np.array([0, 3]), np.arange(4)
    twice = TreeAxis(3, (whole, whole, cells), (2, 3, 1))
    assert matrix(twice) == matrix(TreeAxis(3, (whole, cells), (5, 1)))


def test_a_forest_without_a_root_measures_no_total() -> None:
    axis = TreeAxis(4, (np.array([0, 2, 4]), np.arange(5)), (1, 1))
    assert axis.rows == 6
    assert axis.least_shared() == 0
    check_axis(axis, seed=1)


def test_an_axis_of_one_cell_has_one_measurement_with_all_the_budget() -> None:
    axis = TreeAxis(1, (np.array([0, 1]), np.array([0, 1])), (2, 3))
    assert matrix(axis) == [[5]]
    assert axis.least_shared() == 5
    check_axis(axis, seed=2)
    check_axis(tree_axis(1, 2), seed=3)


@pytest.mark.parametrize("size", [2, 3, 7, 16, 31])
@pytest.mark.parametrize("branching", [2, 3, 5, 40])
def test_every_answer_of_a_balanced_tree_agrees_with_dense_matrices(size: int, branching: int) -> None:
    levels = tree_levels(size, branching)
    axis = TreeAxis(size, levels, tuple(range(len(levels), 0, -1)))
    check_axis(axis, seed=size)
    assert axis.rows == axis.shape.rows
    assert axis == TreeAxis.balanced(size, tree_fanouts(size, branching), axis.multipliers)


def test_every_answer_of_a_hierarchy_agrees_with_dense_matrices() -> None:
    levels = hierarchy_levels(JOBS)
    check_axis(TreeAxis(len(JOBS.leaves), levels, (1, 3, 2, 1)[: len(levels)]), seed=4)


def test_the_flat_axis_agrees_with_dense_matrices_also_by_dense_steps() -> None:
    check_axis(FlatAxis(6), seed=5)
    cuts, values = np.array([[0, 2], [1, 6]]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    ours, dense = FlatAxis(6).moments_of_steps(cuts, values), AxisMoments.moments_of_steps(FlatAxis(6), cuts, values)
    for name in ("second", "fourth", "sixth"):
        np.testing.assert_allclose(getattr(ours, name), getattr(dense, name))


@pytest.mark.parametrize("size", [2, 5, 10, 100, 1001, 4096])
@pytest.mark.parametrize("branching", [2, 3, 8, 16])
def test_no_node_of_a_balanced_tree_has_more_children_than_asked_and_siblings_are_alike(
    size: int, branching: int
) -> None:
    levels = tree_levels(size, branching)
    assert levels[0].tolist() == [0, size]
    assert levels[-1].tolist() == list(range(size + 1))
    for before, now in pairwise(levels):
        assert set(before) <= set(now)
        children = np.diff(np.searchsorted(now, before))
        assert children.max() <= branching
        assert np.ptp(np.diff(now)) <= 1


def test_values_higher_in_a_hierarchy_keep_their_run_and_single_children_make_no_level() -> None:
    assert [level.tolist() for level in hierarchy_levels(JOBS)] == [[0, 4], [0, 3, 4], [0, 2, 3, 4], [0, 1, 2, 3, 4]]
    alone = Hierarchy.read({"All": {"Group": ["one", "two"]}})
    assert [level.tolist() for level in hierarchy_levels(alone)] == [[0, 2], [0, 1, 2]]


def test_cells_behind_the_leaves_of_a_hierarchy_hang_below_its_root() -> None:
    assert [level.tolist() for level in hierarchy_levels(JOBS, 5)][1] == [0, 3, 4, 5]
    assert [level.tolist() for level in hierarchy_levels(Hierarchy.flat(["only"]), 1)] == [[0, 1]]
    assert [level.tolist() for level in hierarchy_levels(Hierarchy.flat(["only"]), 2)] == [[0, 2], [0, 1, 2]]


def test_gains_of_real_weights_agree_with_those_of_multipliers() -> None:
    axis = tree_axis(9, 3, (3, 2, 1))
    halves = TreeGains.of(axis.shape, (1.5, 1.0, 0.5))
    low, high = np.array([[2, 7]]), np.array([[0.0, 1.0, 0.0]])
    np.testing.assert_allclose(
        halves.moments_of_steps(axis.shape, low, high).second, 4 * axis.moments_of_steps(low, high).second
    )


def test_a_large_tree_is_exact_in_the_same_time_on_two_cores() -> None:
    axis = tree_axis(300_007, 16, (1, 2, 1, 3, 1, 1)[: len(tree_fanouts(300_007, 16)) + 1])
    rng = np.random.default_rng(6)
    cells = rng.integers(0, 1000, size=axis.size)
    measured = axis.apply(cells)
    np.testing.assert_allclose(axis.solve(measured), cells, atol=1e-7)
    query = np.zeros(axis.size)
    query[17:211_111] = 1.0
    found = axis.moments_of_steps(np.array([[17, 211_111]]), np.array([[0.0, 1.0, 0.0]]))
    weights = axis.noise_weights(query)
    np.testing.assert_allclose(found.second, (weights**2).sum(), rtol=1e-9)
    np.testing.assert_allclose(found.sixth, (weights**6).sum(), rtol=1e-9)
    answer = float(weights @ measured)
    assert answer == pytest.approx(cells[17:211_111].sum(), rel=1e-9)


def test_variances_of_a_domain_of_2_to_the_24_cells_need_no_dense_matrix() -> None:
    axis = tree_axis(2**24, 16)
    assert axis.rows == (16**7 - 1) // 15
    single = axis.variance_of_ranges(np.array([5, 0]), np.array([5, 2**24 - 1]))
    # Within its parent a cell is known to 1/(1 + 15/16 of what 16 measured siblings leave open), and so on upwards.
    variance = np.array([1.0])
    for _ in range(6):
        variance = 16 * variance / (1 + 16 * variance)
    assert single[1] == pytest.approx(float(variance[0]))
    assert 0.9 < single[0] < 1.0


@pytest.mark.parametrize(
    ("levels", "multipliers"),
    [
        ((np.array([0, 3]),), (1,)),
        ((np.array([0, 2, 3]), np.array([0, 1, 3]), np.arange(4)), (1, 1, 1)),
        ((np.array([0, 3, 2]), np.arange(4)), (1, 1)),
        ((np.arange(4),), (0,)),
        ((np.arange(4),), (1.5,)),
        ((np.arange(4),), (1, 1)),
        ((), ()),
    ],
)
def test_levels_that_are_no_tree_and_multipliers_that_do_not_fit_are_refused(
    levels: tuple[np.ndarray, ...], multipliers: tuple[float, ...]
) -> None:
    with pytest.raises(PlanError):
        TreeAxis(3, levels, multipliers)


@pytest.mark.parametrize(
    "axis",
    [
        FlatAxis(4),
        tree_axis(30, 4, (4, 2, 1, 1)),
        TreeAxis(4, hierarchy_levels(JOBS), (1, 2, 3, 4)),
        TreeAxis(5, (np.array([0, 1, 5]), np.arange(6)), (2, 1)),
    ],
)
def test_an_axis_comes_back_from_its_plain_data(axis: TreeAxis) -> None:
    assert read_axis(axis.to_dict()) == axis
    assert DenseAxis.of(read_axis(axis.to_dict())).matrix.tolist() == DenseAxis.of(axis).matrix.tolist()


def test_trees_are_the_same_to_the_last_bit_whether_their_loops_are_compiled_or_plain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import veilcube.system.compiler  # noqa: F401 - short loops are compiled where the compiler is loaded

    monkeypatch.setattr("veilcube.operators.tree.axis._LONG", 0)

    def passes() -> list[np.ndarray]:
        chance, found = np.random.default_rng(8), []
        for size, fanouts in ((74, (1, 4, 3)), (99, (9, 3)), (1, ()), (50, (1, 2, 2, 2, 2))):
            axis = TreeAxis.balanced(size, fanouts, chance.integers(1, 50, len(fanouts) + 1).tolist())
            gains = axis.gains
            found += [*gains.gains, *gains.sums, axis.apply(chance.integers(0, 99, (2, size)))]
            found += [axis.adjoint(chance.normal(size=axis.rows)), axis.noise_weights(chance.normal(size=(1, size)))]
            found += [axis.solve(chance.integers(-99, 99, axis.rows)), axis.solve(chance.normal(size=(3, axis.rows)))]
            read = axis.range_reader(chance.integers(-99, 99, axis.rows))
            found += [] if read is None else [read(np.array([0, size // 3]), np.array([size - 1, size // 2]))]
        return found

    measured = passes()
    plain = [name for name, loop in vars(loops).items() if isinstance(loop, Loop)]
    for name in plain:
        monkeypatch.setattr(f"veilcube.operators.tree.axis.{name}", getattr(loops, name).py_func)
    assert len(plain) == 8
    for one, other in zip(measured, passes(), strict=True):
        np.testing.assert_array_equal(one, other)
