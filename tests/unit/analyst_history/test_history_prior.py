"""Priors of the history estimators: every way to give one, and what is refused or smoothed."""

import warnings

import numpy as np
import pytest

from support.releases import release_of
from veilcube.analyst.history.prior import read_prior
from veilcube.errors import QueryError
from veilcube.planner import Marginals, Tree
from veilcube.query import Answers, Workload
from veilcube.release import History
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema([Ordinal("age", 0, 3), Nominal("sex", ["Female", "Male"])])
COUNTS = np.array([[100, 50], [200, 100], [50, 25], [300, 175]])
AGES, SEXES = COUNTS.sum(axis=1) / 1000, COUNTS.sum(axis=0) / 1000


def marginal_of(name: str, values: list[float], stddev: float) -> Answers:
    value = np.array(values)
    spread = np.full(value.shape, stddev)
    return Answers(value, value - spread, value + spread, spread, 0.95, axes={name: tuple(map(str, values))})


def test_no_prior_is_uniform_and_attributes_left_out_are_too():
    assert [part.tolist() for part in read_prior(SCHEMA, None)] == [[0.25] * 4, [0.5] * 2]
    ages, sexes = read_prior(SCHEMA, {"AGE": [2, 2, 4, 8]})
    assert (ages.tolist(), sexes.tolist()) == ([0.125, 0.125, 0.25, 0.5], [0.5, 0.5])


@pytest.mark.parametrize("strategy", [Marginals(k=1)])
def test_a_release_of_one_attribute_marginals_without_noise_gives_the_true_shares(strategy):
    ages, sexes = read_prior(SCHEMA, release_of(SCHEMA, COUNTS, epsilon=10**6, strategy=strategy))
    assert np.allclose(ages, AGES)
    assert np.allclose(sexes, SEXES)


def test_a_tree_over_one_attribute_is_solved_by_least_squares():
    line = Schema([Ordinal("age", 0, 7)])
    counts = np.array([10, 20, 30, 40, 50, 60, 70, 80])
    (ages,) = read_prior(line, release_of(line, counts, epsilon=10**6, strategy=Tree(branching=2, refine=False)))
    assert np.allclose(ages, counts / counts.sum())


def test_a_history_of_cells_is_held_to_be_at_least_the_noise():
    workload = Workload(SCHEMA, [{"age": age} for age in range(4)])
    ages, sexes = read_prior(SCHEMA, History(SCHEMA, workload, [100.0, -30.0, 50.0, 2.0], 64.0))
    assert np.allclose(ages, np.array([100.0, 8.0, 50.0, 8.0]) / 166)
    assert sexes.tolist() == [0.5, 0.5]


def test_the_answers_of_a_marginal_serve_alone_or_by_attribute():
    answers = marginal_of("age", [100.0, -30.0, 50.0, 2.0], 8.0)
    expected = np.array([100.0, 8.0, 50.0, 8.0]) / 166
    assert np.allclose(read_prior(SCHEMA, answers)[0], expected)
    assert np.allclose(read_prior(SCHEMA, {"age": answers})[0], expected)


def test_zeros_are_smoothed_with_a_warning():
    with pytest.warns(UserWarning, match="'age' has zeros"):
        ages, _ = read_prior(SCHEMA, {"age": [0.0, 1.0, 0.0, 1.0]})
    assert ages.min() > 0
    assert ages.sum() == pytest.approx(1.0)


def test_a_prior_without_zeros_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_prior(SCHEMA, {"age": [1, 1, 1, 2]})


@pytest.mark.parametrize(
    "prior",
    [
        {"age": [1, 2]},
        {"age": [0, 0, 0, 0]},
        {"age": [1, -1, 1, 1]},
        {"age": [1, np.nan, 1, 1]},
        {"age": "young"},
        {"income": [1, 2]},
        marginal_of("income", [1.0, 2.0], 1.0),
        [marginal_of("age", [1.0, 2.0, 3.0, 4.0], 1.0)],
        History(SCHEMA, Workload(SCHEMA, [{"age": 1, "sex": "Male"}]), [5], [1]),
        History(Schema([Ordinal("age", 0, 3)]), Workload(Schema([Ordinal("age", 0, 3)]), [{"age": 1}]), [5], [1]),
        3,
    ],
)
def test_bad_priors_are_refused_in_one_sentence(prior):
    with pytest.raises(QueryError) as refusal:
        read_prior(SCHEMA, prior)
    assert "\n" not in str(refusal.value)
