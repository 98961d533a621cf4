"""Whole releases refined with facts, beside the same by dense matrices."""

import numpy as np
import pytest

import veilcube as vc
from support.dense_refinement import dense_queries, dense_refinement
from support.releases import release_of
from veilcube.analyst.refine import Fact, RefinedRelease

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 12), vc.Nominal("sex", ["F", "M"]), vc.Ordinal("hours", 0, 4)])
COUNTS = np.random.default_rng(0).integers(0, 50, SCHEMA.shape)
STRATEGIES = {
    "identity": vc.Identity(),
    "tree": vc.Tree(branching=2, refine=False),
    "wavelet": vc.Wavelet(flat=["sex"]),
    "marginals": vc.Marginals(k=2),
    "blocks": vc.Adaptive(partition="blocks", side=3),
}
FACTS = {
    "total": np.ones(SCHEMA.shape),
    "count(sex = 'F')": np.ones(SCHEMA.shape) * np.array([1, 0])[:, None],
    "count(age IN (1, 4, 9) AND sex = 'M')": None,
    "count(age < 3 OR age > 10) - 2*count(hours = 3)": None,
}


def _weights() -> np.ndarray:
    with_gaps, combined = np.zeros(SCHEMA.shape), np.zeros(SCHEMA.shape)
    with_gaps[[1, 4, 9], 1] = 1
    combined[:3] += 1
    combined[11:] += 1
    combined[..., 3] -= 2
    return np.array([FACTS["total"].ravel(), FACTS["count(sex = 'F')"].ravel(), with_gaps.ravel(), combined.ravel()])


WEIGHTS = _weights()
SENTENCES = [f"{name} = {constant:.0f}" for name, constant in zip(FACTS, WEIGHTS @ COUNTS.ravel(), strict=True)]


def _questions(name: str) -> vc.Workload:
    return vc.Workload.marginals(SCHEMA, 2) if name == "marginals" else vc.Workload.random_ranges(SCHEMA, 60, seed=1)


@pytest.mark.parametrize("name", STRATEGIES)
def test_answers_and_their_deviations_are_those_of_dense_matrices(name: str) -> None:
    release = release_of(SCHEMA, COUNTS, seed=3, strategy=STRATEGIES[name])
    refined = vc.refine(release, SENTENCES, B="age", c=COUNTS.sum(axis=(1, 2)))
    ages = dense_queries(vc.Workload.ranges(SCHEMA, *_single_ages()))
    facts = np.concatenate([WEIGHTS, ages])
    dense = dense_refinement(release, facts, facts @ COUNTS.ravel())
    questions = _questions(name)
    found, rows = refined.answer(questions), dense_queries(questions)
    np.testing.assert_allclose(found.value, rows @ dense.cells, atol=1e-8)
    np.testing.assert_allclose(found.stddev, dense.stddev(rows), atol=1e-5)


def _single_ages() -> tuple[np.ndarray, np.ndarray]:
    ages = np.arange(13)
    return np.stack([ages, 0 * ages, 0 * ages], 1), np.stack([ages, 0 * ages + 1, 0 * ages + 4], 1)


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_the_facts_determine_is_exact(name: str) -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=4, strategy=STRATEGIES[name]), SENTENCES)
    answer = refined.count("sex = 'M'")
    assert answer.value == pytest.approx(COUNTS[:, 1].sum(), abs=1e-8)
    assert (answer.stddev, answer.high - answer.low) == (0, 0)


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_answer_gets_noisier_by_a_fact(name: str) -> None:
    release = release_of(SCHEMA, COUNTS, seed=5, strategy=STRATEGIES[name])
    questions = _questions(name)
    before = release.answer(questions, estimator="least_squares").stddev
    assert (vc.refine(release, SENTENCES).answer(questions).stddev <= before * (1 + 1e-9)).all()


def test_marginals_sums_means_and_quantiles_follow_from_the_refined_cells() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=6), B=("age", "sex"), c=COUNTS.sum(axis=2))
    np.testing.assert_allclose(refined.marginal("sex", "age").value, COUNTS.sum(axis=2).T, atol=1e-8)
    ages = np.arange(13)
    assert refined.sum("age").value == pytest.approx((ages * COUNTS.sum(axis=(1, 2))).sum())
    assert refined.mean("age").value == pytest.approx((ages * COUNTS.sum(axis=(1, 2))).sum() / COUNTS.sum())
    assert refined.mean("age").stddev == pytest.approx(0, abs=1e-6)
    assert refined.cdf("age").value[-1] == pytest.approx(1)
    assert refined.quantile("age", 0.5).low == refined.quantile("age", 0.5).high


def test_an_unrelated_question_keeps_its_interval() -> None:
    release = release_of(SCHEMA, COUNTS, seed=7)
    refined = vc.refine(release, "count(age = 0) = 300", counts=False)
    before, after = release.count(age=5, estimator="least_squares"), refined.count(age=5)
    assert (after.value, after.stddev) == (before.value, pytest.approx(before.stddev))
    # Exact sums of lattice noise end on whole numbers; the moments' intervals lie between them.
    assert after.high - after.low == pytest.approx(before.high - before.low, abs=1.5)


def test_few_and_many_questions_get_the_same_deviations() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=8, strategy=STRATEGIES["wavelet"]), SENTENCES)
    many = vc.Workload.random_ranges(SCHEMA, 600, seed=1)
    first = vc.Workload.ranges(SCHEMA, many.low[:20], many.high[:20])
    exact, bounded = refined.answer(first), refined.answer(many)
    np.testing.assert_allclose(bounded.stddev[:20], exact.stddev, rtol=1e-12)
    widths = bounded.high[:20] - bounded.low[:20], exact.high - exact.low
    assert (widths[0] >= widths[1] * 0.999).all()
    assert (widths[0] <= widths[1] * 1.15 + 1e-9).all()


@pytest.mark.parametrize("name", [*STRATEGIES, "staged tree"])
def test_inequalities_hold_and_leave_the_equalities_alone(name: str) -> None:
    strategy = vc.Tree() if name == "staged tree" else STRATEGIES[name]
    release = release_of(SCHEMA, COUNTS, epsilon=0.05, seed=9, strategy=strategy)
    limits = ["count(age <= 3) <= 300", "400 <= count(hours = 2)", "count(age = 4) <= count(age = 5)"]
    refined = vc.refine(release, ["total = 3000", *limits])
    count = {text: refined.count(text).value for text in ("age <= 3", "hours = 2", "age = 4", "age = 5")}
    assert refined.count().value == pytest.approx(3000)
    assert count["age <= 3"] <= 300 + 1e-6
    assert count["hours = 2"] >= 400 - 1e-6
    assert count["age = 4"] <= count["age = 5"] + 1e-6


def test_inequalities_alone_move_the_cells_to_the_nearest_that_obey() -> None:
    release = release_of(SCHEMA, COUNTS, seed=20)
    refined = vc.refine(release, ["count(age = 3) <= 100", "count(age = 3 AND sex = 'F') >= 60"])
    before, after = release.to_xarray(estimator="least_squares").values, refined.to_xarray().values
    # On the identity both bounds bind and share their rows evenly: all other ages stay.
    np.testing.assert_allclose(np.delete(after, 3, axis=0), np.delete(before, 3, axis=0))
    np.testing.assert_allclose(after[3].sum(axis=1), [60, 40], atol=1e-8)
    assert np.ptp((after - before)[3, 0]) < 1e-9


def test_inequalities_that_hold_already_change_nothing() -> None:
    release = release_of(SCHEMA, COUNTS, seed=10)
    refined, plain = (vc.refine(release, facts) for facts in (["total = 3000", "total <= 5000"], "total = 3000"))
    np.testing.assert_allclose(refined.to_xarray().values, plain.to_xarray().values)


def test_a_staged_tree_obeys_facts_and_keeps_the_intervals_of_its_posterior() -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 255)])
    counts = np.round(200 * np.exp(-(((np.arange(256) - 90) / 30) ** 2))).astype(np.int64)
    release = release_of(schema, counts, epsilon=0.2, seed=11, strategy=vc.Tree())
    refined = vc.refine(release, [f"total = {counts.sum()}", f"count(age < 90) = {counts[:90].sum()}"])
    upper = refined.count("age >= 90")
    assert upper.value == pytest.approx(counts[90:].sum())
    assert upper.low == upper.high == upper.value
    before, after = release.count("age < 50"), refined.count("age < 50")
    assert after.stddev == before.stddev
    assert after.low <= before.low <= before.high <= after.high
    assert refined.answer(vc.Workload.prefixes(schema)).stddev[-1] == 0


def test_conditions_may_be_given_as_a_mapping_or_a_workload() -> None:
    release = release_of(SCHEMA, COUNTS, seed=12)
    workload = vc.Workload(SCHEMA, [{}, {"sex": "F"}, "age IN (1, 4, 9)"])
    known = [3000, 1500, 600]
    by_mapping = vc.refine(release, {"total": 3000, "sex = 'F'": 1500, "age IN (1, 4, 9)": 600})
    by_workload = vc.refine(release, B=workload, c=known)
    np.testing.assert_allclose(by_mapping.to_xarray().values, by_workload.to_xarray().values, atol=1e-9)
    assert by_workload.answer(workload).value == pytest.approx(known)


def test_refining_again_keeps_the_earlier_facts() -> None:
    release = release_of(SCHEMA, COUNTS, seed=13)
    twice = vc.refine(vc.refine(release, "total = 3000"), "count(sex = 'F') = 1400")
    once = vc.refine(release, ["total = 3000", "count(sex = 'F') = 1400"])
    np.testing.assert_allclose(twice.to_xarray().values, once.to_xarray().values)
    assert twice.unrefined is release


def test_facts_that_follow_from_others_are_told_apart() -> None:
    release = release_of(SCHEMA, COUNTS, seed=14)
    refined = vc.refine(release, ["total = 30", "count(sex = 'F') = 10", "count(sex = 'M') = 20"], counts=False)
    assert isinstance(refined, RefinedRelease)
    assert {fact.sentence for fact in refined.facts + refined.redundant} == {
        "total = 30",
        "count(sex = 'F') = 10",
        "count(sex = 'M') = 20",
    }
    assert len(refined.redundant) == 1
    assert "2 known facts" in repr(refined)


def test_a_fact_that_says_nothing_is_redundant() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=15), ["total = 3000", "total - count(age >= 0) = 0"])
    assert [fact.sentence for fact in refined.redundant] == ["total - count(age >= 0) = 0"]


def test_other_estimators_and_guaranteed_intervals_are_left_to_the_release_itself() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=17), "total = 3000")
    with pytest.raises(vc.VeilcubeError, match="one estimator"):
        refined.count(estimator="nonnegative")
    with pytest.raises(vc.VeilcubeError, match="no guaranteed intervals"):
        refined.count(interval="guaranteed")
    assert refined.count(estimator="refined") == refined.count()


def test_a_fact_read_off_the_table_is_told_in_words_and_data() -> None:
    release = release_of(SCHEMA, COUNTS, seed=18)
    refined = vc.refine(release, "total = 3000", source="exact private statistic")
    assert "'total = 3000', read off the private table" in refined.privacy.words
    assert "the loss is infinite" in refined.privacy.words
    assert refined.privacy.to_dict()["refinement"] == {"exact_facts": ["total = 3000"], "loss": None, "rho": None}
    assert refined.count().privacy == refined.privacy.words
    assert refined.to_xarray().attrs["privacy"] == refined.privacy.words
    assert "read off" not in release.privacy.words


def test_public_facts_leave_the_promise_as_it_is() -> None:
    release = release_of(SCHEMA, COUNTS, seed=19)
    refined = vc.refine(release, Fact("total = 3000", source="public"))
    assert refined.privacy.words == release.privacy.words
    assert refined.privacy.to_dict()["refinement"] == {"exact_facts": [], "loss": 1.0, "rho": 1.0}
