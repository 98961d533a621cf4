"""Facts against the noise: how many standard errors each is off, and all of them together."""

import warnings

import numpy as np
import pytest

import veilcube as vc
from support.dense_refinement import dense_queries, dense_refinement
from support.releases import release_of
from veilcube.analyst.refine.facts import Fact
from veilcube.analyst.refine.facts.fact_test import chance_of, judge_facts

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 11), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.random.default_rng(0).poisson(60, SCHEMA.shape)
STRATEGIES = {
    "identity": vc.Identity(),
    "tree": vc.Tree(branching=2, refine=False),
    "wavelet": vc.Wavelet(),
    "marginals": vc.Marginals(k=2),
    "blocks": vc.Adaptive(partition="blocks", side=3),
}


def test_answers_that_fit_are_taken_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refined = vc.refine({"A": 31.5, "B": 52.25}, "A + B = 80", covariance=[2.0, 2.0])
    assert refined.fact_test is not None
    assert refined.fact_test.fits
    assert refined.fact_test.deviations[0].standard_errors == pytest.approx(3.75 / 2)
    assert (refined.fact_test.chi_square, refined.fact_test.degrees) == (pytest.approx(1.875**2), 1)


def test_a_warning_names_the_worst_facts_in_the_users_words() -> None:
    with pytest.warns(UserWarning, match=r"'A \+ B = 92' is off by 4\.3 standard errors\. Check them"):
        refined = vc.refine({"A": 31.5, "B": 52.25, "C": 1.0}, ["A + B = 92", "C <= 2"], covariance=1.8)
    assert [str(one.fact.sentence) for one in refined.fact_test.off] == ["A + B = 92"]


def test_four_standard_errors_are_the_limit() -> None:
    with pytest.warns(UserWarning, match="off by 4"):
        vc.refine({"A": 0.0}, "A = 4", covariance=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vc.refine({"A": 0.0}, "A = 3.99", covariance=1.0)


def test_inequalities_count_by_what_they_are_broken() -> None:
    with pytest.warns(UserWarning, match="'A >= 20' is off by 10"):
        broken = vc.refine({"A": 0.0, "B": 0.0}, ["A >= 20", "B <= 100"], covariance=4.0)
    test = broken.fact_test
    assert [one.standard_errors for one in test.deviations] == [10.0, 0.0]
    assert (test.chi_square, test.degrees) == (pytest.approx(100.0), 1)


def test_many_small_deviations_are_noticed_together() -> None:
    values = {f"a{row}": 0.0 for row in range(40)}
    with pytest.warns(UserWarning, match="all together are"):
        refined = vc.refine(values, [f"{name} = 3" for name in values], covariance=1.0)
    assert refined.fact_test.off == ()
    assert not refined.fact_test.fits


def test_answers_without_known_noise_are_not_tested() -> None:
    assert vc.refine({"A": 1.0, "B": 900.0}, "A + B = 2").fact_test is None


def test_exact_answers_do_not_count() -> None:
    refined = vc.refine({"A": 1 / 3, "B": 2.0}, [f"3*A = {3 * (1 / 3)!r}", "B = 2.5"], covariance=[0.0, 1.0])
    assert refined.fact_test.fits


@pytest.mark.parametrize("name", STRATEGIES)
def test_releases_are_tested_with_the_exact_covariance_of_their_facts(name: str) -> None:
    release = release_of(SCHEMA, COUNTS, seed=3, strategy=STRATEGIES[name])
    workload = vc.Workload(SCHEMA, [{}, {"sex": "F"}, {"age": (2, 5)}, {"age": [1, 4, 9], "sex": "M"}])
    rows = np.concatenate([dense_queries(workload)[:3], np.zeros((1, SCHEMA.cells))])
    rows[3].reshape(SCHEMA.shape)[[1, 4, 9], 1] = 1
    constants = rows @ COUNTS.ravel() + np.array([3, -5, 8, 2])
    names = ["total", "count(sex = 'F')", "count(age BETWEEN 2 AND 5)", "count(age IN (1, 4, 9) AND sex = 'M')"]
    refined = vc.refine(release, [f"{name} = {value:.0f}" for name, value in zip(names, constants, strict=True)])
    before = dense_refinement(release, rows[:0], constants[:0])
    residuals, covariance = constants - rows @ before.cells, rows @ before.covariance @ rows.T
    test = refined.fact_test
    expected = np.abs(residuals) / np.sqrt(np.diag(covariance))
    assert sorted(one.standard_errors for one in test.deviations) == pytest.approx(sorted(expected), rel=1e-6)
    assert test.chi_square == pytest.approx(residuals @ np.linalg.solve(covariance, residuals), rel=1e-6)
    assert test.degrees == 4


@pytest.mark.parametrize("name", [*STRATEGIES, "staged"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_facts_far_off_give_a_warning_and_finite_answers(name: str, sign: int) -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 31)]) if name == "staged" else SCHEMA
    counts = np.full(schema.shape, 50_000)
    release = release_of(schema, counts, seed=5, strategy=STRATEGIES.get(name, vc.Tree()))
    off = 400 * release.count().stddev
    facts = [f"total = {counts.sum() + sign * off:.0f}", f"count(age >= 3) >= {counts[3:].sum() + off:.0f}"]
    with pytest.warns(UserWarning, match=r"is off by [\d,]+\.\d standard errors"):
        refined = vc.refine(release, facts)
    answers = refined.marginal("age")
    assert np.isfinite([answers.value, answers.low, answers.high]).all()
    assert refined.count().value == pytest.approx(counts.sum() + sign * off, abs=1)
    worst = refined.fact_test.deviations[0].standard_errors
    assert worst > (200 if name != "staged" else 4)


def test_a_fact_that_no_finite_noise_explains_is_told_without_a_number() -> None:
    with pytest.warns(UserWarning, match="more than a million standard errors"):
        refined = vc.refine(release_of(SCHEMA, COUNTS, epsilon=10**6), "total = 1")
    assert refined.count().value == pytest.approx(1)
    assert np.isfinite(refined.fact_test.deviations[0].standard_errors)


def test_the_test_is_plain_data() -> None:
    with pytest.warns(UserWarning, match="do not fit"):
        found = vc.refine({"A": 0.0, "B": 0.0}, ["A = 40", "B = 0"], covariance=1.0).fact_test.to_dict()
    assert found["fits"] is False
    assert found["facts"] == [
        {"sentence": "A = 40", "standard_errors": 40.0, "is_off": True},
        {"sentence": "B = 0", "standard_errors": 0.0, "is_off": False},
    ]


def test_more_is_asked_of_each_among_thousands_of_facts() -> None:
    few = judge_facts([Fact("a = 0")], np.array([4.5]), np.ones(1), np.zeros(1))
    facts = [Fact(f"a{row} = 0") for row in range(10_000)]
    many = judge_facts(facts, np.full(10_000, 4.5), np.ones(10_000), np.zeros(10_000))
    assert (len(few.off), len(many.off)) == (1, 0)


def test_heavier_tails_make_a_large_chi_square_less_telling() -> None:
    assert chance_of(16.0, 1, 0.0) == pytest.approx(6.334e-5, rel=1e-3)
    # A single Laplace noise is beyond 4 standard deviations with probability exp(-4 sqrt(2)) = 0.0035.
    assert 0.0025 < chance_of(16.0, 1, 3.0) < 0.0045
    assert chance_of(0.0, 0, 3.0) == 1.0


def test_cells_that_nothing_measured_hide_no_wrong_fact() -> None:
    # Rows matched to three questions leave most cells with enormous noise, which cancels in what was asked.
    names = {"ward": "NESW", "code": "abcdefgh", "cost": "012345"}
    schema = vc.Schema([vc.Ordinal("age", 0, 99), *(vc.Nominal(name, list(values)) for name, values in names.items())])
    asked = vc.Workload(schema, [{"age": (65, 99)}, {"code": list("abc")}, {"age": (30, 39), "ward": "N"}])
    release = vc.release(vc.Cube(schema, np.full(schema.shape, 4)), epsilon=0.05, workload=asked, strategy="matched")
    before = release.count(age=(65, 99))
    assert np.abs(release.marginal(*schema.names).value).sum() * 1e-9 > 10 * before.stddev
    with pytest.warns(UserWarning, match=r"is off by 8\.0 standard errors"):
        refined = vc.refine(release, f"count(age >= 65) = {before.value + 8 * before.stddev}")
    assert not refined.fact_test.fits
    least = before.value + 2 * before.stddev
    assert vc.refine(release, f"count(age >= 65) >= {least}").count(age=(65, 99)).value == pytest.approx(least, abs=0.1)
