"""Refinement by orders and ranges: the nearest point, coverage, and errors that do not grow."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from veilcube.analyst.refine import refine
from veilcube.analyst.refine.answers.projection import least_distance_inside


def test_a_bound_on_one_answer_clips_it():
    refined = refine({"A": -2.0, "B": 5.0}, ["0 <= A", "B <= 10"], covariance=1.0)
    np.testing.assert_allclose(refined.value, [0, 5])
    assert refined["A"].low == 0
    laplace = np.log(20) / np.sqrt(2)
    assert refined["A"].high == pytest.approx(laplace)
    assert refined["B"].low == pytest.approx(5 - laplace)


def test_an_order_pools_the_answers_that_break_it():
    refined = refine({"a": 3.0, "b": 1.0, "c": 7.0}, ["a <= b <= c"], covariance=[1.0, 3.0, 1.0])
    np.testing.assert_allclose(refined.value, [2.5, 2.5, 7])


def test_facts_that_hold_already_change_no_value():
    refined = refine({"A": 2.0, "B": 5.0}, ["0 <= A <= B"], covariance=1.0)
    np.testing.assert_array_equal(refined.value, [2, 5])


def test_ranges_that_follow_through_equalities_cut_the_intervals():
    refined = refine({"A": 1.0, "B": 9.0}, ["A + B = 10", "B <= 9", "A >= 0"], covariance=25.0)
    assert (refined["A"].low, refined["B"].high) == pytest.approx((1, 9))
    assert (refined["A"].high, refined["B"].low) == pytest.approx((1 + 7.293951, 9 - 7.293951))


@pytest.mark.parametrize("seed", range(25))
def test_the_nearest_point_equals_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    answers = int(rng.integers(3, 7))
    names = [f"q{index + 1}" for index in range(answers)]
    truth = rng.integers(0, 20, size=answers).astype(float)
    root = rng.normal(size=(answers, answers))
    noise = root @ root.T + 0.5 * np.eye(answers)
    given = truth + 5 * rng.normal(size=answers)
    order = np.argsort(truth)
    facts = [f"{names[i]} <= {names[j]}" for i, j in itertools.pairwise(order)]
    facts += [f"{name} >= 0" for name in names] + [f"q1 + q2 = {truth[0] + truth[1]}"]
    refined = refine(given, facts, covariance=noise)
    precision = np.linalg.inv(noise)
    solution = minimize(
        lambda x: (x - given) @ precision @ (x - given),
        truth,
        jac=lambda x: 2 * precision @ (x - given),
        bounds=[(0, None)] * answers,
        constraints=[
            {"type": "ineq", "fun": lambda x: np.diff(x[order])},
            {"type": "eq", "fun": lambda x: x[0] + x[1] - truth[0] - truth[1]},
        ],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    distance = (refined.value - given) @ precision @ (refined.value - given)
    assert distance <= solution.fun * (1 + 1e-6) + 1e-9
    assert refined.value.min() >= -1e-7
    assert np.diff(refined.value[order]).min() >= -1e-7
    assert refined.value[0] + refined.value[1] == pytest.approx(truth[0] + truth[1])
    error, old = refined.value - truth, given - truth
    assert error @ precision @ error <= old @ precision @ old + 1e-9


def test_many_bounds_at_once():
    rng = np.random.default_rng(4)
    given = rng.normal(size=300)
    refined = refine(given, [f"q{index + 1} >= 0" for index in range(300)], covariance=1.0)
    np.testing.assert_allclose(refined.value, np.maximum(given, 0), atol=1e-12)


def test_an_interior_point_finds_what_active_sets_find():
    pytest.importorskip("clarabel", reason="an extra: pip install clarabel")
    rng = np.random.default_rng(5)
    values = np.sort(rng.integers(0, 300, 200)) + rng.laplace(0, 20, 200)
    slopes = np.eye(200)[1:] - np.eye(200)[:-1]
    needed = -(slopes @ values)
    found, prices = least_distance_inside(slopes, needed / needed.max())
    order = [f"q{at} <= q{at + 1}" for at in range(1, 200)]
    wanted = refine(values, order, covariance=1.0, counts=False).value
    np.testing.assert_allclose(values + found * needed.max(), wanted, atol=1e-5)
    assert (prices >= 0).all()
