import numpy as np
import pytest

from veilcube.planner.matched.gram import DenseMoments
from veilcube.planner.matched.search import (
    LEAST_OWN,
    Design,
    descend_gradient,
    error_and_slopes,
    expected_error,
    hat_counts,
    hat_design,
    identity_design,
    refine,
    search,
    set_design,
    weigh_levels,
)
from veilcube.system.arrays import Floats


def prefix_moments(size: int) -> Floats:
    last = np.maximum.outer(np.arange(size), np.arange(size))
    return (size - last) / size


def random_moments(size: int, seed: int) -> Floats:
    queries = np.random.default_rng(seed).normal(size=(2 * size, size))
    return queries.T @ queries


def dense(design: Design) -> Floats:
    shared = np.zeros((design.shared, len(design.own)))
    shared[design.rows, design.cells] = design.entries
    return np.concatenate([np.diag(design.own), shared])


def brute_force_error(matrix: Floats, gram: Floats) -> float:
    return float(np.trace(np.linalg.inv(matrix.T @ matrix) @ gram))


DESIGNS = [
    identity_design(9),
    hat_design(30, (1,)),
    hat_design(30, (6, 2, 1)),
    hat_design(300, (20, 5)),
    set_design(np.random.default_rng(0).random((7, 12)) < 0.4),
]


@pytest.mark.parametrize("design", DESIGNS)
def test_columns_sum_to_one_and_no_cell_keeps_less_than_its_share(design: Design) -> None:
    np.testing.assert_allclose(dense(design).sum(axis=0), 1.0)
    assert (design.own >= LEAST_OWN).all()


@pytest.mark.parametrize("design", DESIGNS)
def test_expected_error_equals_the_dense_trace(design: Design) -> None:
    gram = random_moments(len(design.own), seed=1)
    assert expected_error(design, DenseMoments(gram)) == pytest.approx(brute_force_error(dense(design), gram), rel=1e-9)


@pytest.mark.parametrize("design", DESIGNS)
def test_slopes_equal_the_dense_formula_on_the_support(design: Design) -> None:
    gram = random_moments(len(design.own), seed=2)
    matrix, size = dense(design), len(design.own)
    inverse = np.linalg.inv(matrix.T @ matrix)
    slopes = -2 * matrix @ inverse @ gram @ inverse
    _, own, entries = error_and_slopes(design, DenseMoments(gram))
    np.testing.assert_allclose(own, np.diagonal(slopes), rtol=1e-7)
    expected = slopes[size + design.rows, design.cells]
    np.testing.assert_allclose(entries, expected, rtol=1e-7, atol=1e-9 * np.abs(slopes).max())


def test_slopes_predict_a_small_change_of_the_error() -> None:
    design, gram = hat_design(40, (7, 3)), prefix_moments(40)
    error, own, entries = error_and_slopes(design, DenseMoments(gram))
    rng, tiny = np.random.default_rng(3), 1e-6
    for name, slopes in (("own", own), ("entries", entries)):
        move = rng.normal(size=len(slopes)) * tiny
        moved = Design(**{**vars(design), name: getattr(design, name) + move})
        assert expected_error(moved, DenseMoments(gram)) - error == pytest.approx(float(slopes @ move), rel=1e-2)


def test_hats_of_one_level_share_out_each_cell() -> None:
    shared = dense(hat_design(51, (6,)))[51:]
    np.testing.assert_allclose(shared.sum(axis=0), shared.sum(axis=0)[0])
    assert ((shared > 0).sum(axis=0) <= 2).all()
    assert (np.argmax(shared, axis=1) == [0, 10, 20, 30, 40, 50]).all()


def test_each_stage_lowers_the_error() -> None:
    gram = DenseMoments(prefix_moments(200))
    start = hat_design(200, (14, 3))
    weighed = weigh_levels(start, gram)
    refined = refine(weighed, gram, 20)
    errors = [expected_error(design, gram) for design in (start, weighed, refined)]
    assert errors[0] > errors[1] > errors[2]


def test_ladders_never_hold_as_many_hats_as_cells() -> None:
    for size in (1, 2, 3, 10, 64, 1000, 4096):
        for with_total in (False, True):
            ladders = hat_counts(size, with_total=with_total)
            assert len(set(ladders)) == len(ladders)
            assert all(count < max(size, 2) for ladder in ladders for count in ladder)


def test_single_cells_are_best_measured_one_by_one() -> None:
    assert search(DenseMoments(np.eye(60)), None, 20).shared == 0


def test_the_total_alone_is_best_measured_by_one_row() -> None:
    moments = DenseMoments(np.ones((40, 40)))
    found = search(moments, None, 40)
    # All budget but each cell's least share is left for the total: (1 - LEAST_OWN)^-2, less what the cells add.
    assert expected_error(found, moments) < 1.05


def test_given_sets_serve_as_a_start_where_no_hats_fit() -> None:
    sets = np.arange(48)[:, None] % 4 == np.arange(4)
    gram = DenseMoments((sets.astype(np.float64) @ sets.T) / 4)
    scattered = search(gram, sets.T, 40)
    assert expected_error(scattered, gram) < 1.1
    assert expected_error(scattered, gram) < 0.5 * expected_error(search(gram, None, 40), gram)


def test_descent_finds_the_bottom_of_a_valley() -> None:
    def valley(point: Floats) -> tuple[float, Floats]:
        x, y = point
        value = (1 - x) ** 2 + 100 * (y - x * x) ** 2
        return value, np.array([-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)])

    np.testing.assert_allclose(descend_gradient(valley, np.array([-1.2, 1.0]), 200), [1.0, 1.0], atol=0.02)


def test_descent_stays_at_a_bottom() -> None:
    np.testing.assert_array_equal(descend_gradient(lambda x: (float(x @ x), 2 * x), np.zeros(3), 10), np.zeros(3))
