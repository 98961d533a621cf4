"""Priors of the history estimators: every way to give one, and what is refused or smoothed."""

import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

from support.releases import release_of
from veilcube.analyst.history import KernelPCA, MaxEntropy
from veilcube.analyst.history.base.prior import read_prior as read_shares
from veilcube.errors import QueryError
from veilcube.planner import Marginals, Tree
from veilcube.query import Answers, Workload
from veilcube.record import History
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema([Ordinal("age", 0, 3), Nominal("sex", ["Female", "Male"])])
COUNTS = np.array([[100, 50], [200, 100], [50, 25], [300, 175]])
LINE = Schema([Ordinal("a", 0, 7)])
LINE_ASKED = Workload(LINE, [{"a": (0, 3)}, {"a": (0, 7)}, {"a": (6, 7)}])
LINE_HISTORY = History(LINE, LINE_ASKED, [40, 80, 30], [1, 1, 1])
AGES, SEXES = COUNTS.sum(axis=1) / 1000, COUNTS.sum(axis=0) / 1000


def marginal_of(name: str, values: list[float], stddev: float) -> Answers:
    value = np.array(values)
    spread = np.full(value.shape, stddev)
    return Answers(value, value - spread, value + spread, spread, 0.95, axes={name: tuple(map(str, values))})


def read_prior(schema, prior):
    return tuple(shares.values for shares in read_shares(schema, prior))


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


@given(st.lists(st.floats(1e-3, 1.0), min_size=4, max_size=4), st.sampled_from([1e-300, 1e-9, 1e150, 1e308, 1.7e308]))
def test_only_the_proportions_of_weights_matter_whatever_their_size(weights, unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ages, _ = read_prior(SCHEMA, {"age": np.array(weights) * unit})
    np.testing.assert_allclose(ages, np.array(weights) / sum(weights), rtol=1e-12)


@pytest.mark.parametrize("estimator", [KernelPCA, MaxEntropy])
@pytest.mark.parametrize("weight", [1e308, 5e-324])
def test_equal_weights_of_any_size_are_the_uniform_prior(estimator, weight):
    found, expected = (
        estimator(prior=prior).fit(LINE_HISTORY, total=80).answer(LINE_ASKED)
        for prior in ({"a": [weight] * 8}, {"a": [1] * 8})
    )
    np.testing.assert_allclose(found.value, expected.value)
    np.testing.assert_allclose(found.stddev, expected.stddev)


@pytest.mark.parametrize("estimator", [KernelPCA, MaxEntropy])
@pytest.mark.parametrize("weights", [[1e308, *[1.0] * 7], [1.0, *[1e-12] * 7], [*[1e-300] * 7, 1.0]])
def test_a_cell_that_a_prior_all_but_rules_out_can_still_be_learned_about(estimator, weights):
    with pytest.warns(UserWarning, match="'a' has zeros"):
        model = estimator(prior={"a": weights}).fit(LINE_HISTORY, total=80)
    np.testing.assert_allclose(model.answer(LINE_ASKED).value, [40, 80, 30], atol=0.1)


@pytest.mark.parametrize(
    "prior",
    [
        {"age": [1, 2, 3, 4], "AGE": [1, 1, 1, 1]},
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
