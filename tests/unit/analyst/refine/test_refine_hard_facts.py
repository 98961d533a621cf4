"""Facts that are hard to refine with: they vanish, hide in large units, follow from others, or are lost in rounding."""

import warnings
from math import exp, inf, log, sqrt

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.refine import Fact
from veilcube.analyst.refine.facts.release_facts import read_release_facts
from veilcube.analyst.refine.privacy.release_privacy import check_facts
from veilcube.errors import QueryError
from veilcube.query import Answer

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 9), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.random.default_rng(0).integers(0, 50, SCHEMA.shape)
RELEASE = release_of(SCHEMA, COUNTS, seed=3)
EXACT = "exact private statistic"


def _answer(value: float, promise: str, confidence: float = 0.95) -> Answer:
    return Answer(value, value - 9, value + 11, confidence, 2.0, promise)


def test_a_sum_of_counts_beside_a_fact_without_names_is_imposed_as_one_fact() -> None:
    refined = vc.refine(RELEASE, ["count(age <= 3) + count(age >= 7) = 100", "0 = 0"])
    assert refined.count("age <= 3").value + refined.count("age >= 7").value == pytest.approx(100)
    assert [fact.sentence for fact in refined.redundant] == ["0 = 0"]


def test_a_fact_that_changes_is_seen_beside_an_answer_in_a_large_unit() -> None:
    check = vc.refinement_privacy("n = 5", names=["n", "income"], pairs=[([5, 1e9], [4, 0])], scale=[1, 1e9])
    assert check.loss == inf
    assert not check.is_post_processing
    assert check.loss_of_each.tolist() == [inf, 1]


def test_a_small_change_of_a_difference_of_large_answers_is_seen() -> None:
    pairs = [([1e12 + 1, 1e12], [0, 0])]
    check = vc.refinement_privacy("a - b = 1", names=["a", "b"], pairs=pairs, scale=1.0)
    assert check.loss == inf
    assert check.dangerous == ("a - b = 1",)


def test_a_fact_that_stays_is_safe_whatever_the_units() -> None:
    pairs = [([5, 1e9], [5, 0])]
    check = vc.refinement_privacy("n = 5", names=["n", "income"], pairs=pairs, scale=[1, 1e9])
    assert check.is_post_processing
    assert check.loss == pytest.approx(1)


def test_a_redundant_fact_read_off_the_table_stays_in_the_statement() -> None:
    refined = vc.refine({"A": 1.0, "B": 2.0}, ["A + B = 3", Fact("A + B = 3", EXACT)], covariance=1.0)
    assert "'A + B = 3', read off the private table" in refined.privacy


def test_equal_promises_of_several_answers_are_counted() -> None:
    answers = {"A": _answer(1, "epsilon = 1"), "B": _answer(2, "epsilon = 1"), "C": _answer(2, "epsilon = 2")}
    refined = vc.refine(answers, "A = B", covariance=1.0)
    assert refined.privacy == "2 releases or answers, each with: epsilon = 1; epsilon = 2"


def test_an_inequality_that_an_equality_implies_is_redundant_and_not_refused() -> None:
    refined = vc.refine({"A": 40.8, "B": -51.1}, ["A = 0", "A >= 0"], covariance=[80.3, 58.6])
    assert refined["A"].value == pytest.approx(0, abs=1e-9)
    assert [fact.sentence for fact in refined.redundant] == ["A >= 0"]


@pytest.mark.parametrize("seed", range(5))
def test_a_release_takes_inequalities_that_its_equalities_imply(seed: int) -> None:
    release = release_of(SCHEMA, COUNTS, seed=seed)
    refined = vc.refine(release, ["count(age < 3) = 0", "0 <= count(age < 3) <= 0", "count(age >= 3) <= total"])
    assert refined.count("age < 3").value == pytest.approx(0, abs=1e-9)


def test_a_release_refuses_an_inequality_that_its_equality_breaks() -> None:
    with pytest.raises(QueryError, match=r"count\(age < 3\) <= 4"):
        vc.refine(RELEASE, ["count(age < 3) = 5", "count(age < 3) <= 4"], counts=False)


def test_a_contradiction_by_one_is_noticed_among_millions() -> None:
    with pytest.raises(QueryError, match="no counts obey"):
        vc.refine({"A": 10.0, "B": 3.0}, ["A = 3000001", "A + B = 3000000"], covariance=1.0)
    with pytest.raises(QueryError, match="no counts obey"):
        vc.refine(RELEASE, ["total = 3000000", "count(sex = 'F') = 3000001"])
    vc.refine({"A": 10.0, "B": 3.0}, ["A = 3000000", "A + B = 3000000"], covariance=1.0)


@pytest.mark.parametrize("fact", ["0 = 0", "0 <= 1", "count(age < 0) = 0", "count(age < 0) <= 3"])
def test_a_fact_about_no_cell_changes_nothing(fact: str) -> None:
    assert vc.refine(RELEASE, fact).count("age < 3").value == pytest.approx(RELEASE.count("age < 3").value)
    assert vc.refinement_privacy(fact, release=RELEASE).is_post_processing


def test_known_counts_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(QueryError, match="must be one number"):
        vc.refine(RELEASE, {"total": [1, 2]})
    with pytest.raises(QueryError, match="B is a workload or the names"):
        vc.refine(RELEASE, B=3, c=[1])


@pytest.mark.parametrize("size", ["1e200", "1e-200"])
def test_extreme_weights_mean_what_they_say(size: str) -> None:
    told = vc.refine({"A": 1.0, "B": 3.0}, f"{size}*A + {size}*B = 3*{size}", covariance=1.0)
    given = vc.refine([1.0, 3.0], B=[float(size)] * 2, c=3 * float(size), covariance=1.0)
    np.testing.assert_allclose(told.value, [0.5, 2.5])
    np.testing.assert_allclose(given.value, [0.5, 2.5])


def test_answers_of_one_promise_are_not_taken_as_independent_in_silence() -> None:
    answers = {"A": RELEASE.count("age < 3"), "B": RELEASE.count("age < 5")}
    with pytest.warns(UserWarning, match=r"vc.refine\(release"):
        vc.refine(answers, "A <= B")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vc.refine(answers, "A <= B", covariance=1.0)
        vc.refine({"A": _answer(1, "one"), "B": _answer(2, "two")}, "A <= B")


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.999])
def test_intervals_cover_laplace_noise(confidence: float) -> None:
    refined = vc.refine([30.0, 50.0, 80.0], "q1 + q2 = 80", covariance=200.0, confidence=confidence)
    reach = (refined.high - refined.value) / refined.stddev
    # Two equal Laplace noises of variance 1 together stay within x with the probability 1 - (1 + x) exp(-2x).
    assert 1 - (1 + reach[0]) * exp(-2 * reach[0]) >= confidence - 0.001
    assert reach[2] >= -log(1 - confidence) / sqrt(2) - 1e-9


def test_an_untouched_answer_keeps_at_least_its_own_interval() -> None:
    refined = vc.refine({"A": _answer(1, ""), "B": _answer(2, ""), "C": _answer(2, "")}, "B + C = 9")
    assert (refined["A"].low, refined["A"].high) == (-8, 12)
    assert refined["B"].high - refined["B"].low < 20


def test_refining_again_is_refining_with_all_facts_at_once() -> None:
    values, first, second = {"A": 5.0, "B": 1.0, "C": 4.0}, ["A <= B", "B + C = 6"], "A + B = 9"
    again = vc.refine(vc.refine(values, first, covariance=[1.0, 2.0, 3.0]), second)
    once = vc.refine(values, [*first, second], covariance=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(again.value, once.value)
    np.testing.assert_allclose(again.covariance, once.covariance, atol=1e-12)
    assert again.facts == once.facts


def test_refining_again_says_a_fact_read_off_the_table_once() -> None:
    first = vc.refine({"A": 1.0, "B": 2.0}, Fact("A = 1", EXACT), covariance=1.0)
    assert vc.refine(first, "B <= 3").privacy == first.privacy


def test_facts_of_one_box_several_or_none_are_told_apart() -> None:
    facts = ["count(age < 3) - count(age < 3) = 0", "count(age < 3 OR sex = 'F') = 5", "2*total = 10", "0 = 0"]
    rows = read_release_facts(SCHEMA, facts, None, None, "unstated")
    assert check_facts(RELEASE.record, rows).dangerous == (facts[1], facts[2])


def test_many_linked_answers_keep_the_bounds_stated_of_each() -> None:
    values = np.sort(np.random.default_rng(1).normal(50, 20, 70))
    facts = [f"q{index} <= q{index + 1}" for index in range(1, 70)]
    refined = vc.refine(values, [*facts, "q70 <= 60"], covariance=100.0, counts=False)
    assert refined.high[-1] <= 60
    assert (np.diff(refined.value) >= -1e-9).all()


def test_a_marginal_of_a_staged_tree_is_certain_where_the_facts_are() -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 63)])
    release = release_of(schema, np.arange(64), epsilon=0.5, seed=5, strategy=vc.Tree())
    refined = vc.refine(release, ["count(age = 40) = 40", "count(age = 41) = 41"])
    marginal = refined.marginal("age")
    assert np.flatnonzero(marginal.stddev == 0).tolist() == [40, 41]
    assert marginal.low[40] == marginal.high[40] == pytest.approx(40)
