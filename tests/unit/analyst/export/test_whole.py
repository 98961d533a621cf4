"""Controlled rounding: whole numbers of at least 0 with given sums, near to what was estimated."""

from itertools import product

import numpy as np
import pytest

from veilcube.analyst.export import whole
from veilcube.analyst.export.whole import whole_parts, whole_table
from veilcube.errors import QueryError
from veilcube.system import Floats, Integers


def others(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(one for one in range(len(shape)) if one != axis)


def margins_of(values: Floats, total: int) -> list[Integers]:
    return [whole_parts(values.sum(axis=others(values.shape, axis)), total) for axis in range(values.ndim)]


@pytest.mark.parametrize("seed", range(40))
def test_a_table_of_any_shape_has_the_sums_that_were_given(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 7, rng.integers(1, 5)))
    values = rng.normal(rng.uniform(0, 5), rng.uniform(0.1, 20), shape)
    margins = margins_of(values, max(0, round(float(values.sum()) + rng.normal(0, 5))))
    found = whole_table(values, margins)
    assert found.dtype == np.int64
    assert found.min() >= 0
    for axis in range(found.ndim):
        np.testing.assert_array_equal(found.sum(axis=others(shape, axis)), margins[axis])


@pytest.mark.parametrize("seed", range(20))
def test_each_cell_of_a_matrix_is_one_of_the_whole_numbers_around_the_nearest_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.poisson(2.0, (6, 9)) + rng.laplace(0, 2, (6, 9))
    rows, columns = margins_of(values, max(0, round(float(values.sum()))))
    near = whole._nearest(values, rows.astype(float), columns.astype(float))
    np.testing.assert_allclose(near.sum(axis=0), columns, atol=0.01)
    assert np.abs(whole_table(values, [rows, columns]) - near).max() < 1.0


def test_the_nearest_matrix_is_that_of_brute_force() -> None:
    values, rows, columns = np.array([[2.3, -1.2], [0.4, 3.1]]), np.array([2.0, 3.0]), np.array([2.0, 3.0])
    # A 2 x 2 matrix with these sums has one free number.
    tried = [np.array([[a, 2 - a], [2 - a, 1 + a]]) for a in np.linspace(0, 2, 2001)]
    best = min(tried, key=lambda one: float(np.square(one - values).sum()))
    np.testing.assert_allclose(whole._nearest(values, rows, columns), best, atol=2e-3)


def test_whole_values_stay_as_they_are() -> None:
    values = np.random.default_rng(0).poisson(3.0, (7, 5, 3)).astype(float)
    assert (whole_table(values, margins_of(values, int(values.sum()))) == values).all()


def test_parts_are_the_nearest_whole_numbers_with_their_sum() -> None:
    values = np.array([1.6, -2.0, 0.7, 3.2])
    found = whole_parts(values, 4)
    assert (found.sum(), found.min()) == (4, 0)
    tried = (np.array(one) for one in product(range(5), repeat=4) if sum(one) == 4)
    best = min(float(np.square(one - values).sum()) for one in tried)
    assert np.square(found - values).sum() == pytest.approx(best)


def test_a_total_of_nobody_is_zero_everywhere() -> None:
    values = np.random.default_rng(0).normal(0, 1, (4, 3))
    assert not whole_table(values, margins_of(values, 0)).any()


@pytest.mark.parametrize("seed", range(30))
def test_cells_that_cannot_be_stay_empty(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 7, 2))
    possible = rng.random(shape) > 0.25
    counts = np.where(possible, rng.poisson(3, shape), 0)
    noisy = np.where(possible, counts + rng.normal(0, 1, shape), 0.0)
    found = whole_table(noisy, [counts.sum(axis=1), counts.sum(axis=0)], possible)
    assert not found[~possible].any()
    np.testing.assert_array_equal(found.sum(axis=0), counts.sum(axis=0))


def test_sums_that_leave_rows_only_where_none_can_be_are_refused() -> None:
    only = np.array([[True, False], [True, False]])
    with pytest.raises(QueryError, match="leave out whole"):
        whole_table(np.ones((2, 2)), [np.array([1, 1]), np.array([1, 1])], only)
