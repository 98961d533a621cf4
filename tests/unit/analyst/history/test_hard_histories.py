"""Histories that are hard to learn from: sharp answers beside noisy ones, contradictions, silence, extreme numbers."""

import warnings

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.history.base.conditioning import Combinations, Conditioning, Whitening
from veilcube.analyst.history.base.prior import read_prior
from veilcube.errors import QueryError
from veilcube.query import LinearQueries

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 29), vc.Nominal("sex", ["F", "M"]), vc.Ordinal("hours", 0, 19)])
NOISE = 300.0
LINE = vc.Schema([vc.Ordinal("age", 0, 9), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.random.default_rng(5).integers(10, 90, LINE.shape)


def skewed_rows(rows: int = 20_000) -> np.ndarray:
    random = np.random.default_rng(6)
    return np.column_stack(
        [random.binomial(29, 0.4, rows), random.integers(0, 2, rows), random.binomial(19, 0.7, rows)]
    )


@pytest.mark.parametrize("variance", [1e-2, 1e-4, 1e-9])
@pytest.mark.parametrize("alpha", ["loo", "likelihood"])
@pytest.mark.parametrize("sharp", [{}, {"age": (0, 9)}], ids=["total", "range"])
def test_one_sharp_answer_does_not_spoil_the_others(variance, alpha, sharp):
    ranges = LinearQueries.of(vc.Workload.random_ranges(SCHEMA, 150, seed=1))
    queries = LinearQueries.concatenate([LinearQueries.conditions(SCHEMA, [sharp]), ranges])
    exact = queries.count_rows(skewed_rows())
    values = exact + np.r_[0.0, np.random.default_rng(2).laplace(0, NOISE / np.sqrt(2), 150)]
    variances = np.r_[variance, np.full(150, NOISE**2)]
    found = vc.KernelPCA(alpha=alpha).fit(vc.History(SCHEMA, queries, values, variances)).answer(ranges)
    moderate = np.r_[1.0, variances[1:]]
    expected = vc.KernelPCA(alpha=alpha).fit(vc.History(SCHEMA, queries, values, moderate)).answer(ranges)
    error, reference = (np.sqrt(np.mean(np.square(part.value - exact[1:]))) for part in (found, expected))
    assert error < 1.1 * reference < NOISE
    assert np.mean((found.low <= exact[1:]) & (exact[1:] <= found.high)) > 0.9


def test_variances_are_raised_for_arithmetic_only_and_never_lowered():
    variances = np.r_[1e-9, np.full(20, 1e6), 1e40]
    queries = LinearQueries.of(vc.Workload.random_ranges(LINE, 22, seed=1))
    scales = Whitening.of(vc.History(LINE, queries, np.zeros(22), variances)).scales
    assert np.allclose(scales**2, np.r_[1e-4, np.full(20, 1e6), 1e40])


def test_a_search_that_ends_while_errors_fall_tries_the_whole_grid_and_then_does_not_warn():
    counts = COUNTS.copy()
    counts[3, 1] = 10**9
    ranges = vc.Workload.random_ranges(LINE, 40, seed=2)
    values = LinearQueries.of(ranges).apply(counts) + np.random.default_rng(1).laplace(0, 2, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = vc.KernelPCA().fit(vc.History(LINE, ranges, values, 8.0))
    assert np.abs(model.answer(ranges).value - values).max() < 50


@pytest.mark.parametrize("estimator", [vc.KernelPCA, vc.MaxEntropy])
def test_answers_count_every_promise_of_history_and_prior_once(estimator):
    first, second = (release_of(LINE, COUNTS, 1, seed, vc.Marginals(k=1)) for seed in (1, 2))
    promise, asked = first.privacy.words, vc.Workload(LINE, [{"age": 3}])

    def said(history, prior=None):
        return estimator(prior=prior).fit(history).answer(asked).privacy

    assert said(first) == promise
    assert said([first, second]) == f"2 sources, each: {promise}"
    assert said(first, prior=second) == f"2 sources, each: {promise}"
    assert said([first, second], prior=second) == f"2 sources, each: {promise}"
    assert said(first, prior={"age": second.marginal("age")}) == f"2 sources, each: {promise}"


@pytest.mark.parametrize("variance", [0.0, 4.0])
@pytest.mark.parametrize("kind", ["wavelet", "fourier"])
def test_a_total_that_the_history_does_not_tell_must_be_given(variance, kind):
    nodes = [{"age": (0, 2, 4)}, {"age": (4, 6, 8)}]
    queries = (
        LinearQueries.wavelet(LINE, nodes) if kind == "wavelet" else LinearQueries.fourier(LINE, [["age"], ["sex"]])
    )
    history = vc.History(LINE, queries, [30.0, -4.0], variance)
    with pytest.raises(QueryError, match="says nothing of the number of rows"):
        vc.KernelPCA().fit(history)
    assert vc.KernelPCA().fit(history, total=500).total.value == pytest.approx(500)


def test_exact_answers_in_a_prior_do_not_hide_the_noisy_ones():
    asked = vc.Workload(LINE, [{"age": (0, 4)}, *({"age": age} for age in range(10))])
    values = [1000.0, *([200.0] * 5), *([100.0] * 5)]
    ages, _ = read_prior(LINE, vc.History(LINE, asked, values, [0.0, *([4.0] * 10)]))
    assert np.allclose(ages.values, np.repeat([2, 1], 5) / 15, rtol=1e-3)


def test_what_learns_from_a_refined_release_keeps_its_facts_and_a_prior_cannot():
    refined = vc.refine(release_of(LINE, COUNTS, 1, 1, vc.Marginals(k=1)), f"total = {COUNTS.sum() + 1}")
    assert vc.KernelPCA().fit(refined).count().value == pytest.approx(COUNTS.sum() + 1)
    with pytest.raises(QueryError, match="facts besides measurements"):
        vc.MaxEntropy(prior=[refined]).fit(refined.unrefined)


@pytest.mark.parametrize("alpha", [1e20, 1e160, float("inf")])
def test_enormous_alphas_are_the_limit_of_least_squares(alpha):
    ranges = vc.Workload.random_ranges(LINE, 12, seed=1)
    values = LinearQueries.of(ranges).apply(COUNTS)
    assert np.allclose(
        vc.KernelPCA(alpha=alpha).fit(vc.History(LINE, ranges, values, 4.0)).answer(ranges).value, values
    )


@pytest.mark.parametrize("variance", [1e58, 1e-58, 1e-200])
def test_extreme_variances_give_finite_answers(variance):
    ranges = vc.Workload.random_ranges(LINE, 12, seed=1)
    history = vc.History(LINE, ranges, LinearQueries.of(ranges).apply(COUNTS), variance)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning)
        answers = vc.KernelPCA().fit(history).answer(ranges)
    assert np.isfinite(answers.value).all()
    assert np.isfinite(answers.stddev).all()


@pytest.mark.parametrize("alpha", [float("nan"), -1.0, "loo", None])
def test_values_for_refuses_what_is_no_alpha(alpha):
    ranges = vc.Workload.random_ranges(LINE, 12, seed=1)
    model = vc.KernelPCA(alpha=1.0).fit(vc.History(LINE, ranges, np.zeros(12), 4.0))
    with pytest.raises(QueryError, match="from 0 to infinity"):
        model.values_for(ranges, [alpha])


@pytest.mark.parametrize("estimator", [vc.KernelPCA(), vc.MaxEntropy(alpha=1.0)])
def test_a_contradiction_is_found_beside_large_numbers(estimator):
    asked = vc.Workload(LINE, [{"sex": "F"}, {"sex": "M"}, {"age": 3}])
    history = vc.History(LINE, asked, [4e7, 6e7, 1e7], [0.0, 0.0, 4.0])
    assert estimator.fit(history, total=1e8).total.value == pytest.approx(1e8)
    with pytest.raises(QueryError, match="contradicts itself"):
        estimator.fit(history, total=1e8 + 50)


def test_a_small_contradiction_is_found_among_many_exact_answers_and_none_where_there_is_none():
    counts = COUNTS.copy()
    counts[3, 1] = 10**9
    ranges = LinearQueries.of(vc.Workload.random_ranges(LINE, 200, seed=3))
    values, vectors = ranges.apply(counts), ranges.evaluate(np.indices(LINE.shape).reshape(2, -1).T).T
    kernel, means, every = vectors @ vectors.T / 20, vectors.mean(axis=1), Combinations(np.arange(200))
    Conditioning.of(every, kernel, means, values, float(counts.sum()))
    values[np.argmin(values)] += 5
    with pytest.raises(QueryError, match="contradicts itself"):
        Conditioning.of(every, kernel, means, values, None)


def test_maximum_entropy_is_not_certain_of_nothing_where_noise_pushed_an_answer_to_0():
    asked = vc.Workload(LINE, [{"age": (0, 4)}, {"age": (5, 9)}, {"age": (3, 6), "sex": "F"}, {"age": 2, "sex": "M"}])
    history = vc.History(LINE, asked, [500.0, 500.0, 200.0, -36.0], 800.0)
    found = vc.MaxEntropy().fit(history, total=1000).answer(asked)
    assert found.high[3] > np.sqrt(800.0)
