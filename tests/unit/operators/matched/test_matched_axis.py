import json
from itertools import permutations

import numpy as np
import pytest

from support.dense_axes import DenseAxis, check_axis
from veilcube.errors import PlanError
from veilcube.operators import FlatAxis, ProductOperator, read_operator
from veilcube.operators.matched.axis import (
    LARGEST_COLUMN_SUM,
    LARGEST_MATCHED,
    MOST_SHARED_ROWS,
    MatchedAxis,
    read_matched_axis,
)


def random_axis(size: int, rows: int, seed: int) -> MatchedAxis:
    rng = np.random.default_rng(seed)
    shared = rng.integers(0, 9, size=(rows, size)) * (rng.random((rows, size)) < 0.6)
    return MatchedAxis(int(shared.sum(axis=0).max()) + 3, shared)


@pytest.mark.parametrize(("size", "rows"), [(1, 0), (1, 2), (2, 1), (7, 0), (9, 3), (16, 5), (40, 60)])
def test_every_method_agrees_with_dense_linear_algebra(size: int, rows: int) -> None:
    check_axis(random_axis(size, rows, seed=size), seed=rows)


def axis_of_own(size: int, rows: int, seed: int) -> MatchedAxis:
    rng = np.random.default_rng(seed)
    return MatchedAxis.of_own(rng.integers(1, 9, size), rng.integers(0, 9, size=(rows, size)))


@pytest.mark.parametrize(("size", "rows"), [(1, 1), (2, 1), (9, 3), (16, 5)])
def test_columns_of_different_sums_agree_with_dense_linear_algebra(size: int, rows: int) -> None:
    axis = axis_of_own(size, rows, seed=size)
    check_axis(axis, seed=rows)
    back = read_matched_axis(json.loads(json.dumps(axis.to_dict())))
    assert back == axis
    assert back.own.tolist() == axis.own.tolist()


def test_multipliers_that_leave_equal_sums_are_the_axis_of_that_sum() -> None:
    shared = np.array([[1, 1, 0, 0], [0, 0, 1, 2]])
    axis = MatchedAxis.of_own(np.array([2, 2, 2, 1]), shared)
    assert axis == MatchedAxis(3, shared)
    assert axis.to_dict() == MatchedAxis(3, shared).to_dict()
    assert MatchedAxis.of_own(np.array([1, 2, 2, 1]), shared) != axis


def test_solve_equals_numpy_least_squares_on_large_counts() -> None:
    axis = random_axis(30, 6, seed=1)
    measured = np.random.default_rng(2).integers(-(10**12), 10**12, size=axis.rows)
    expected, *_ = np.linalg.lstsq(DenseAxis.of(axis).matrix, measured.astype(np.float64), rcond=None)
    np.testing.assert_allclose(axis.solve(measured), expected, rtol=1e-9)


def test_solve_recovers_the_counts_when_there_is_no_noise() -> None:
    axis = random_axis(50, 8, seed=3)
    cells = np.random.default_rng(4).integers(0, 10**9, size=(2, 5, 50))
    np.testing.assert_allclose(axis.solve(axis.apply(cells)), cells, rtol=1e-10, atol=1e-5)


def test_least_squares_stays_exact_where_a_cell_keeps_almost_nothing_for_itself() -> None:
    shared = np.zeros((2, 20), dtype=np.int64)
    shared[0, :12], shared[1, 8:] = 1000, 999
    check_axis(MatchedAxis(2000, shared), seed=5)


@pytest.mark.parametrize("shape", [(6,), (4, 3)])
def test_sensitivity_of_a_product_bounds_every_exchange_and_is_attained_on_one_axis(shape: tuple[int, ...]) -> None:
    # Few rows and full support, so that every pair of cells has something in common.
    rng = np.random.default_rng(6)
    axes = tuple(MatchedAxis(12, rng.integers(1, 5, size=(2, size))) for size in shape)
    operator = ProductOperator(axes, tuple("ab"[: len(shape)]))
    cells = np.eye(int(np.prod(shape)), dtype=np.int64).reshape(-1, *shape)
    columns = [operator.apply(cell).ravel() for cell in cells]
    assert operator.sensitivity("add-remove") == max(np.abs(column).sum() for column in columns)
    worst = max(np.abs(a - b).sum() for a, b in permutations(columns, 2))
    assert worst <= operator.sensitivity("replace") < 2 * operator.sensitivity("add-remove")
    if len(shape) == 1:
        assert worst == operator.sensitivity("replace")


def test_plain_data_survives_json_and_rebuilds_an_equal_axis() -> None:
    for axis in (random_axis(12, 4, seed=7), random_axis(5, 0, seed=8)):
        rebuilt = read_matched_axis(json.loads(json.dumps(axis.to_dict())))
        assert rebuilt == axis
        assert hash(rebuilt) == hash(axis)
    assert random_axis(12, 4, seed=7) != random_axis(12, 4, seed=9)


def test_a_product_with_a_matched_axis_is_rebuilt_from_its_file_form() -> None:
    operator = ProductOperator((random_axis(6, 2, seed=10), FlatAxis(3)), ("x", "y"))
    assert read_operator(json.loads(json.dumps(operator.to_dict()))) == operator


@pytest.mark.parametrize(
    "change",
    [
        {"size": LARGEST_MATCHED + 1},
        {"size": True},
        {"column_sum": 0},
        {"column_sum": 5.0},
        {"column_sum": LARGEST_COLUMN_SUM + 1},
        {"shared": {}},
        {"shared": [[]]},
        {"shared": [[-1, 1]]},
        {"shared": [[3, 1, 1]]},
        {"shared": [[0, -1]]},
        {"shared": [[0, 2**70]]},
        {"shared": [[0, 1.5]]},
        {"shared": [[0, 3], [0, 2]]},
        {"shared": [[0]] * (MOST_SHARED_ROWS + 1)},
        {"own": [1, 1, 1]},
        {"own": [1, 1, 1, 0]},
        {"own": [1, 1, 1, 1.5]},
        {"own": [1, 1, 1, 2**70]},
        {"own": 1},
    ],
)
def test_plain_data_that_is_not_well_formed_is_refused(change: dict[str, object]) -> None:
    data = {"kind": "matched", "size": 4, "column_sum": 5, "shared": [[0, 3, 1], [2, 1]]}
    assert read_matched_axis(data).rows == 6
    with pytest.raises((TypeError, ValueError)):
        read_matched_axis({**data, **change})


def test_an_axis_that_is_too_large_or_leaves_a_cell_nothing_is_refused() -> None:
    with pytest.raises(PlanError, match="1 to 4096 cells"):
        MatchedAxis(2, np.ones((1, LARGEST_MATCHED + 1), dtype=np.int64))
    with pytest.raises(PlanError, match="at least 1 of the column sum"):
        MatchedAxis(3, np.array([[3, 1]]))
    with pytest.raises(PlanError, match="at least 0"):
        MatchedAxis(3, np.array([[-1, 1]]))
    with pytest.raises(PlanError, match="a multiplier of at least 1 for each cell"):
        MatchedAxis.of_own(np.array([1, 0]), np.array([[1, 1]]))
    with pytest.raises(PlanError, match="a multiplier of at least 1 for each cell"):
        MatchedAxis.of_own(np.array([1]), np.array([[1, 1]]))


def test_an_array_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="must have 4 entries"):
        MatchedAxis(3, np.array([[1, 1, 0, 0]])).apply(np.arange(5))
