"""Refinement by equalities: golden values, dense formulas, simulation, and the theorem that it never loses."""

import numpy as np
import pytest

from veilcube.analyst.refine import Fact, Refined, best_refinement, refine
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers

# Ying, Wu and Wang 2013, equation 11: the grades of a class, and ERRATA's golden refinement of them.
GRADES = {"A": 31.5, "B": 52.25, "C": 40.75, "D": 9.5, "F": 12.0, "p": 130.0, "t": 149.5}
FACTS = ["A + B + C + D = p", "F + p = t", "A + B = 80"]
MATRIX = np.array([[1, 1, 1, 1, 0, -1, 0], [0, 0, 0, 0, 1, 1, -1], [1, 1, 0, 0, 0, 0, 0]], dtype=float).T
GOLDEN = [29.625, 50.375, 41.59375, 10.34375, 14.78125, 131.9375, 146.71875]


def random_problem(seed, *, rank=None):
    """Return true answers, a covariance of the given rank, and B with c that hold."""
    rng = np.random.default_rng(seed)
    answers = int(rng.integers(2, 9))
    facts = int(rng.integers(1, answers))
    root = rng.normal(size=(answers, rank or answers))
    matrix = rng.integers(-3, 4, size=(answers, facts)).astype(float)
    truth = rng.normal(scale=50, size=answers)
    return truth, root @ root.T, matrix, matrix.T @ truth, rng


def test_grades_in_matrix_form_match_the_golden_values():
    refined = refine(list(GRADES.values()), B=MATRIX, c=(0, 0, 80))
    np.testing.assert_allclose(refined.value, GOLDEN, atol=1e-10)


def test_grades_in_sentences_match_the_golden_values():
    refined = refine(GRADES, FACTS)
    np.testing.assert_allclose(refined.value, GOLDEN, atol=1e-10)
    assert refined.names == tuple(GRADES)
    assert [fact.sentence for fact in refined.facts] == FACTS
    assert refined["t"].value == pytest.approx(146.71875)


def test_grades_with_sentences_and_matrix_together():
    refined = refine(GRADES, FACTS[:2], B=MATRIX[:, 2], c=80)
    np.testing.assert_allclose(refined.value, GOLDEN, atol=1e-10)
    assert refined.facts[-1].sentence == "A + B = 80"


@pytest.mark.parametrize("seed", range(40))
def test_value_and_covariance_equal_the_dense_formula(seed):
    truth, noise, matrix, constants, rng = random_problem(seed)
    given = truth + rng.normal(size=len(truth))
    refined = refine(given, B=matrix, c=constants, covariance=noise)
    gain = noise @ matrix @ np.linalg.pinv(matrix.T @ noise @ matrix, rcond=1e-10)
    np.testing.assert_allclose(refined.value, given + gain @ (constants - matrix.T @ given), atol=1e-6)
    np.testing.assert_allclose(refined.covariance, noise - gain @ matrix.T @ noise, atol=1e-7 * noise.max())
    np.testing.assert_allclose(matrix.T @ refined.value, constants, atol=1e-8)
    np.testing.assert_allclose(refined.stddev**2, np.diag(refined.covariance), atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_noise_of_low_rank_moves_only_where_there_is_noise(seed):
    truth, noise, matrix, constants, _ = random_problem(seed, rank=1)
    direction = np.linalg.eigh(noise)[1][:, -1]
    given = truth + 3.0 * direction
    refined = refine(given, B=matrix, c=constants, covariance=noise)
    if np.abs(matrix.T @ direction).max() > 1e-6:
        np.testing.assert_allclose(refined.value, truth, atol=1e-6)
        np.testing.assert_allclose(refined.stddev, 0, atol=1e-6)
    else:
        np.testing.assert_allclose(refined.value, given, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_no_variance_grows_and_no_linear_unbiased_rival_is_better(seed):
    truth, noise, matrix, constants, rng = random_problem(seed)
    refined = refine(truth, B=matrix, c=constants, covariance=noise)
    assert (refined.stddev**2 <= np.diag(noise) * (1 + 1e-12)).all()
    assert (refined.variance_ratio <= 1 + 1e-12).all()
    best = best_refinement(matrix, noise)
    rival = np.asarray(best.A) + 0.1 * rng.normal(size=(len(truth), matrix.shape[1])) @ matrix.T
    assert (np.diag(rival @ noise @ rival.T) >= refined.stddev**2 - 1e-9).all()


@pytest.mark.parametrize("seed", range(20))
def test_error_in_the_metric_of_the_noise_never_grows_for_true_facts(seed):
    truth, noise, matrix, constants, rng = random_problem(seed)
    given = truth + rng.multivariate_normal(np.zeros(len(truth)), noise)
    refined = refine(given, B=matrix, c=constants, covariance=noise)
    precision = np.linalg.inv(noise)
    before, after = given - truth, refined.value - truth
    assert after @ precision @ after <= before @ precision @ before * (1 + 1e-6)


def test_unknown_noise_gives_values_and_ratios_but_no_intervals():
    refined = refine([31.5, 52.25], B=[1, 1], c=80)
    np.testing.assert_allclose(refined.value, [29.625, 50.375])
    np.testing.assert_allclose(refined.variance_ratio, 0.5)
    for unknown in (refined.low, refined.high, refined.stddev, refined.covariance):
        assert np.isnan(unknown).all()


@pytest.mark.filterwarnings("ignore:several answers make the same privacy promise")
def test_answers_bring_their_own_noise_and_privacy_statement():
    value, stddev = np.array([10.0, 20, 33]), np.array([1.0, 2, 2])
    answers = Answers(value, value - 2, value + 2, stddev, 0.95, "epsilon 1", {"size": ("small", "large", "all")})
    refined = refine(answers, "small + large = all")
    np.testing.assert_allclose(refined.value, [10 + 1 / 3, 20 + 4 / 3, 33 - 4 / 3])
    assert refined.privacy == "epsilon 1"
    by_name = {name: answers[index] for index, name in enumerate(("small", "large", "all"))}
    np.testing.assert_allclose(refine(by_name, "small + large = all").covariance, refined.covariance)
    np.testing.assert_allclose(refine(list(answers), "q1 + q2 = q3").value, refined.value)


def test_refining_twice_equals_refining_with_all_facts_at_once():
    once = refine(GRADES, FACTS, covariance=np.arange(1.0, 8))
    first = refine(GRADES, FACTS[:1], covariance=np.arange(1.0, 8))
    twice = refine(first, FACTS[1:])
    assert isinstance(twice, Refined)
    np.testing.assert_allclose(twice.value, once.value, atol=1e-9)
    np.testing.assert_allclose(twice.covariance, once.covariance, atol=1e-9)


def test_a_redundant_fact_changes_nothing_and_is_reported():
    repeated = [*FACTS, "A + B + C + D + F = t", "2*A + 2*B = 160"]
    refined = refine(GRADES, repeated)
    np.testing.assert_allclose(refined.value, GOLDEN, atol=1e-10)
    assert [fact.sentence for fact in refined.redundant] == repeated[3:]


@pytest.mark.parametrize("seed", range(30))
def test_sums_of_facts_are_redundant_whatever_the_size_of_their_numbers(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 10 ** rng.integers(1, 9, size=8)).astype(float)
    matrix = rng.integers(-3, 4, size=(8, 4)) * 10.0 ** rng.integers(-4, 5, size=4)
    mixed = np.hstack([matrix, matrix @ rng.normal(size=(4, 3))])
    refined = refine(truth + 1, B=mixed, c=mixed.T @ truth)
    np.testing.assert_allclose(refined.value, refine(truth + 1, B=matrix, c=matrix.T @ truth).value, rtol=1e-9)
    assert len(refined.redundant) == 3
    wrong = mixed.T @ truth
    wrong[6] += 1e-6 * np.abs(mixed[:, 6]) @ truth
    with pytest.raises(QueryError, match="contradict each other"):
        refine(truth + 1, B=mixed, c=wrong)


def test_an_exact_answer_stays_and_the_others_make_up_for_it():
    refined = refine({"A": 10.0, "B": 20.0, "all": 33.0}, "A + B = all", covariance=[1, 1, 0])
    np.testing.assert_allclose(refined.value, [11.5, 21.5, 33])
    assert refined.stddev[2] == 0
    assert (refined.low[2], refined.high[2]) == (33, 33)


def test_a_fact_that_exact_answers_obey_already_is_harmless():
    refined = refine({"A": 13.0, "B": 20.0, "all": 33.0}, ["A + B = all", "A = 13"], covariance=0.0)
    np.testing.assert_array_equal(refined.value, [13, 20, 33])


def test_an_answer_that_a_fact_fixes_has_no_deviation_left():
    refined = refine({"A": 10.0, "B": 20.0}, "A = 12", covariance=[1.0, 4.0])
    assert refined["A"] == Answer(12.0, 12.0, 12.0, 0.95, 0.0)
    assert refined["B"].stddev == 2


def test_without_facts_the_answers_stay_as_they_are():
    refined = refine(GRADES, [], covariance=4.0)
    np.testing.assert_array_equal(refined.value, list(GRADES.values()))
    np.testing.assert_allclose(refined.stddev, 2)


def test_a_fact_read_off_the_table_is_named_in_the_privacy_statement():
    refined = refine(GRADES, [*FACTS[:2], Fact("A + B = 80", source="exact private statistic")])
    assert refined.privacy == "not covered by any epsilon: 'A + B = 80', read off the private table without noise"


def test_the_result_prints_as_a_table_with_names():
    lines = str(refine(GRADES, FACTS, covariance=1.0)).splitlines()
    assert lines[0].split() == ["answer", "value", "low", "high", "stddev"]
    assert lines[1].split()[:2] == ["A", "29.625"]


def test_confidence_widens_the_interval():
    narrow, wide = (refine([1.0, 2.0], B=[1, 1], c=3, covariance=1.0, confidence=level) for level in (0.5, 0.99))
    np.testing.assert_allclose(narrow.high - narrow.value, 0.6744897502 * narrow.stddev)
    # Two equal Laplace noises: excess kurtosis 3/2, so Cornish and Fisher's z + 3/2 (z^3 - 3z) / 24.
    normal = 2.5758293035
    np.testing.assert_allclose(wide.high - wide.value, (normal + (normal**3 - 3 * normal) / 16) * wide.stddev)


def test_hundreds_of_answers_with_chained_facts_stay_accurate():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 1000, size=300).astype(float)
    matrix = np.zeros((300, 150))
    for fact in range(150):
        matrix[fact : fact + 150, fact] = 1
    refined = refine(truth + rng.laplace(size=300), B=matrix, c=matrix.T @ truth, covariance=2.0)
    np.testing.assert_allclose(matrix.T @ refined.value, matrix.T @ truth, atol=1e-6)
    assert refined.variance_ratio.mean() == pytest.approx(0.5)
