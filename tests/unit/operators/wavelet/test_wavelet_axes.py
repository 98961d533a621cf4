"""Haar and nominal transforms against dense linear algebra, the paper's examples and brute force over pairs.

What is proved in docs/proofs/wavelets.md is tested here.
"""

from itertools import combinations, product
from math import ceil, log2

import numpy as np
import pytest
from numpy.typing import NDArray

from support.dense_axes import DenseAxis, all_ranges, check_axis
from veilcube.errors import PlanError
from veilcube.operators import AxisOperator, FlatAxis, HaarAxis, NominalAxis, ProductOperator, read_axis
from veilcube.operators.base.exchange import ColumnPair, largest_exchange


def nominal(size: int, *levels: list[int]) -> NominalAxis:
    return NominalAxis(size, [np.array([0, size]), *(np.array([0, *level, size]) for level in levels)])


HIERARCHIES = (
    nominal(1),
    nominal(2),
    nominal(5),
    nominal(6, [3]),
    nominal(9, [1, 4], [1, 2, 4, 5]),  # leaves at three depths, fan-outs 2, 3 and 4
    nominal(7, [], [2], [2, 3]),  # a level that splits nothing, and a group with one child
    nominal(12, [4, 8], [2, 4, 6, 8, 10]),
)
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 33, 64)
SMALL = (*(HaarAxis(size) for size in (2, 3, 5, 8)), *HIERARCHIES[1:6], FlatAxis(3))


def dense_product(axes: tuple[AxisOperator, ...]) -> NDArray[np.float64]:
    matrix = np.ones((1, 1))
    for axis in axes:
        matrix = np.kron(matrix, DenseAxis.of(axis).matrix)
    return matrix


def farthest_columns(matrix: NDArray[np.float64]) -> float:
    return max(np.abs(left - right).sum() for left, right in combinations(matrix.T, 2))


@pytest.mark.parametrize("size", SIZES)
def test_haar_agrees_with_dense_linear_algebra(size: int) -> None:
    check_axis(HaarAxis(size), seed=size)


@pytest.mark.parametrize("axis", HIERARCHIES, ids=repr)
def test_nominal_agrees_with_dense_linear_algebra(axis: NominalAxis) -> None:
    check_axis(axis, seed=axis.size)


def test_haar_coefficients_of_the_papers_example() -> None:
    # ERRATA, golden values: integers 44 -4 4 0 6 4 4 -2, here each at the first cell of its right half.
    found = HaarAxis(8).apply(np.array([9, 3, 6, 2, 8, 4, 5, 7]))
    assert found[[0, 4, 2, 6, 1, 3, 5, 7]].tolist() == [44, -4, 4, 0, 6, 4, 4, -2]


def test_nominal_coefficients_of_the_papers_example() -> None:
    axis = nominal(6, [3])
    rows = axis.apply(np.array([9, 3, 6, 2, 8, 2])) / np.array([4, 4, 4, 3, 3, 3, 3, 3, 3])
    # Row / (multiplier x fan-out) is the coefficient S_v - S_p / f.
    np.testing.assert_allclose(rows, [30, 3, -3, 3, -3, 0, -2, 4, -2])


def test_variances_of_the_papers_examples() -> None:
    haar = HaarAxis(8).variance_of_ranges(np.array([0, 1, 0, 3]), np.array([7, 6, 0, 4]))
    np.testing.assert_allclose(haar, [1, 1.1875, 0.34375, 0.6875])
    low, high, _ = all_ranges(64)
    assert HaarAxis(64).variance_of_ranges(low, high).mean() == pytest.approx(1.0433368389, abs=1e-10)
    nodes = nominal(6, [3]).variance_of_ranges(np.array([0, 0, 0]), np.array([5, 2, 0])) * 4**2
    np.testing.assert_allclose(nodes, [1, 0.75, 1.2685185185], atol=1e-10)


@pytest.mark.parametrize("size", [3, 5, 101, 1001])
def test_a_size_that_is_no_power_of_two_costs_a_full_range_nothing(size: int) -> None:
    assert HaarAxis(size).variance_of_ranges(np.array([0]), np.array([size - 1])).tolist() == [1.0]
    assert HaarAxis(size).rows == size


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 100, 101, 128, 1001])
def test_haar_columns_have_one_row_a_level_and_the_total(size: int) -> None:
    assert HaarAxis(size).column_sums().max() == 1 + ceil(log2(size))


@pytest.mark.parametrize("axis", HIERARCHIES[1:], ids=repr)
def test_each_group_of_siblings_adds_the_same_to_a_column(axis: NominalAxis) -> None:
    heights = np.array([axis.tree.depth[row] for row in axis.tree.cell_row])
    np.testing.assert_array_equal(axis.column_sums(), (heights + 1) * axis.multipliers[1])


@pytest.mark.parametrize("levels", range(1, 8))
def test_exchanging_a_row_changes_haar_rows_by_twice_the_levels(levels: int) -> None:
    # ERRATA: 2 ceil(log2 m), not 2 (1 + log2 m), since the total stays.
    assert ProductOperator((HaarAxis(2**levels),), ("age",)).sensitivity("replace") == 2 * levels


@pytest.mark.parametrize("axes", [*combinations(SMALL, 1), *combinations(SMALL, 2)], ids=repr)
def test_exchange_sensitivity_is_the_largest_distance_of_two_columns(axes: tuple[AxisOperator, ...]) -> None:
    operator = ProductOperator(axes, tuple("ab"[: len(axes)]))
    matrix = dense_product(axes)
    assert operator.sensitivity("replace") == farthest_columns(matrix)
    assert operator.sensitivity("add-remove") == np.abs(matrix).sum(axis=0).max()


@pytest.mark.parametrize(
    "axes", list(product((HaarAxis(3), nominal(5)), (HaarAxis(2), FlatAxis(2)), (nominal(5, [2]),))), ids=repr
)
def test_products_of_three_agree_with_dense_linear_algebra(axes: tuple[AxisOperator, ...]) -> None:
    operator, matrix = ProductOperator(axes, ("a", "b", "c")), dense_product(axes)
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 50, size=operator.cell_shape)
    noisy = operator.apply(cells) + rng.normal(size=operator.measurement_shape)
    assert operator.apply(cells).ravel().tolist() == (matrix @ cells.ravel()).tolist()
    np.testing.assert_allclose(operator.solve(noisy).ravel(), np.linalg.pinv(matrix) @ noisy.ravel(), atol=1e-9)
    np.testing.assert_allclose(operator.adjoint(noisy).ravel(), matrix.T @ noisy.ravel(), atol=1e-9)
    assert operator.sensitivity("replace") == farthest_columns(matrix)


def test_the_input_is_never_overwritten() -> None:
    operator = ProductOperator((HaarAxis(5), HaarAxis(3)), ("a", "b"))
    cells = np.arange(15).reshape(5, 3)
    measured = operator.apply(cells).astype(np.float64)
    before = measured.copy()
    operator.solve(measured)
    operator.adjoint(measured)
    assert cells.tolist() == np.arange(15).reshape(5, 3).tolist()
    np.testing.assert_array_equal(measured, before)


def test_wide_and_narrow_tiles_give_the_same() -> None:
    rng = np.random.default_rng(2)
    cells = rng.integers(0, 9, size=(3, 70, 150))
    operator = ProductOperator((HaarAxis(3), nominal(70, [30]), HaarAxis(150)), ("a", "b", "c"))
    one_by_one = operator.axes[2].apply(cells)
    one_by_one = np.moveaxis(operator.axes[1].apply(np.moveaxis(one_by_one, 1, -1)), -1, 1)
    one_by_one = np.moveaxis(operator.axes[0].apply(np.moveaxis(one_by_one, 0, -1)), -1, 0)
    np.testing.assert_array_equal(operator.apply(cells), one_by_one)


def test_too_many_kinds_of_pairs_are_bounded_by_twice_the_column() -> None:
    pairs = tuple(ColumnPair(count, (), 1, 1) for count in range(1, 200))
    assert largest_exchange([pairs] * 4, 7) == 14


def test_huge_common_multiples_are_rounded_and_the_columns_stay_exact() -> None:
    sizes = [2, 3, 5, 7, 11, 13, 17, 19, 23]
    axis = nominal(sum(sizes), np.cumsum(sizes)[:-1].tolist())
    assert axis.multipliers[1] <= 10_080
    np.testing.assert_array_equal(axis.column_sums(), np.abs(DenseAxis.of(axis).matrix).sum(axis=0))
    check_axis(axis, seed=3)


@pytest.mark.parametrize("axis", [HaarAxis(13), *HIERARCHIES], ids=repr)
def test_axes_survive_their_plain_data(axis: AxisOperator) -> None:
    again = read_axis(axis.to_dict())
    assert again == axis
    assert again.rows == axis.rows


@pytest.mark.parametrize(
    "change",
    [
        {"size": 0},
        {"runs": []},
        {"runs": [[6], [2, 2]]},
        {"runs": [[3, 3]]},
        {"runs": [[6], [3, 3], [2, 4]]},
        {"multipliers": []},
        {"multipliers": [[1, 4], [2, 2]]},
        {"multipliers": [[1, 4], [2, 2], [3, 0]]},
        {"multipliers": [[1, 4], [1, 4], [2, 2], [3, 1]]},
        {"multipliers": [[1, 4], [2, 2], [3, 1], [4, 1]]},
        {"multipliers": [[1, 4], [2, 2], [3, 2**49]]},
        {"multipliers": 7},
    ],
)
def test_malformed_hierarchies_are_refused(change: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_axis(nominal(6, [3]).to_dict() | change)


def test_a_huge_axis_is_read_without_taking_memory() -> None:
    data = {"kind": "nominal", "size": 2**40, "runs": [[2**40]], "multipliers": [[1, 2], [2**40, 1]]}
    assert read_axis(data).rows == 2**40 + 1
    assert read_axis({"kind": "haar", "size": 2**40}).rows == 2**40


def test_a_long_axis_is_planned_without_a_tree() -> None:
    axis = HaarAxis(2**40)
    assert axis.largest_column == 41
    assert ProductOperator((axis,), ("age",)).sensitivity("replace") == 80
    assert axis.variance_of_ranges(np.array([0]), np.array([2**40 - 1])).tolist() == [1.0]


def test_wide_groups_are_answered_by_runs_of_children() -> None:
    wide = NominalAxis(50_000, [np.array([0, 50_000])])
    low = np.arange(10_000)
    found = wide.variance_of_ranges(low, low + 30_000)
    weights = wide.noise_weights((np.arange(50_000) >= 5) * (np.arange(50_000) <= 30_005) * 1.0)
    assert found[5] == pytest.approx((weights**2).sum())


def test_levels_that_do_not_refine_each_other_are_refused() -> None:
    with pytest.raises(PlanError, match="each refining the one before"):
        nominal(6, [3], [2])
