"""Exact laws: what is listed is the law, and what is said of a pair is certain whatever the tail holds."""

from math import exp, log

import numpy as np
import pytest

from veilcube.auditing.callables.enumerating import TooManyCoursesError, law_of, loss_of
from veilcube.auditing.statistics import Claim
from veilcube.laws import DiscreteGaussian, DiscreteLaplace


def test_a_law_of_two_draws_is_the_convolution() -> None:
    law, courses = law_of(lambda records, noise: noise.laplace(1) + noise.add(3, scale=2), [], 1e-6, 10**6)
    reach = np.arange(-60, 61)
    one, two = (DiscreteLaplace(scale).pmf(reach) for scale in (1, 2))
    exact = np.convolve(one, two)
    assert courses > 1000
    for value, chance in law.items():
        assert chance == pytest.approx(exact[value - 3 + 120], abs=3e-6)


def test_branches_coins_and_choices_multiply() -> None:
    def mechanism(records: list[object], noise: object) -> object:
        if noise.coin(0.25):
            return "heads"
        return noise.choose([0, 2], epsilon=1)

    law, _ = law_of(mechanism, [], 1e-9, 100)
    weight = exp(1)
    assert law[("str", "heads"), ()] == pytest.approx(0.25)
    assert law[0] == pytest.approx(0.75 / (1 + weight))
    assert law[1] == pytest.approx(0.75 * weight / (1 + weight))


def test_gaussian_noise_is_listed_too() -> None:
    law, _ = law_of(lambda records, noise: noise.gaussian(4), [], 1e-9, 1000)
    assert law[2] == pytest.approx(float(DiscreteGaussian(4).pmf(np.array([2]))[0]))


def test_too_many_courses_are_refused_before_they_are_run() -> None:
    runs = []

    def wide(records: list[object], noise: object) -> object:
        runs.append(1)
        return noise.laplace(1, 6)

    with pytest.raises(TooManyCoursesError):
        law_of(wide, [], 1e-9, 1000)
    assert len(runs) == 1


def test_the_loss_counts_what_the_tail_may_hold() -> None:
    ours, theirs = {"a": 0.6, "b": 0.4}, {"a": 0.3, "b": 0.6}
    loss, excess, keys = loss_of(ours, theirs, Claim(1.0))
    assert loss == pytest.approx(log(0.6 / 0.4))
    assert excess < 0
    assert keys == ["a"]
    loss, excess, _ = loss_of({"a": 1.0}, {"b": 1.0}, Claim(1.0, 0.1))
    assert loss == np.inf
    assert excess == pytest.approx(0.9)
