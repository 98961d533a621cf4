"""What is refused when a release is refined, in the user's own words."""

from fractions import Fraction

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.refine import Fact
from veilcube.analyst.refine.facts import release_facts

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 9), vc.Nominal("sex", ["F", "M"])])
RELEASE = release_of(SCHEMA, np.full((10, 2), 20), seed=1)
MARGINALS = release_of(SCHEMA, np.full((10, 2), 20), seed=1, strategy=vc.Marginals(k=1))
TOTAL = "total = 400"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ("passed = 3", r"'passed = 3' names 'passed', which is no count of the release; write total, or count"),
        ("count(height = 3) = 3", r"in the constraint 'count\(height = 3\) = 3', there is no attribute 'height'"),
        ("count(sex = 'F' = 3", "parenthesis after 'count' is not closed"),
        ("count(sex = 'F') = 3 = 4", "can never hold|contradict"),
        (
            [TOTAL, "count(sex = 'F') = 100", "count(sex = 'M') = 299"],
            r"'total = 400' and .*'F'.* and .*'M'.*contradict",
        ),
        ([TOTAL, "total = 401"], "'total = 400' and 'total = 401' contradict each other"),
        ([TOTAL, "total + 0.00001*count(sex = 'F') = 400"], "same up to rounding"),
        ("total - count(age >= 0) = 5", "'total - count.age >= 0. = 5' can never hold"),
        ("count(sex = 'F') = -1", "no counts obey 'count.sex = 'F'. = -1', because counts are never negative"),
        ([TOTAL, "count(age <= 4) = 500"], "no counts obey 'total = 400' and 'count.age <= 4. = 500'"),
        ([TOTAL, "count(age <= 4) >= 500"], "no counts obey 'total = 400' and 'count.age <= 4. >= 500'"),
        (["count(age <= 4) >= 50", "count(age <= 4) <= 40"], "count.age <= 4. >= 50"),
        ([], "there is no fact to refine with"),
        (7, "facts about a release are sentences"),
        ({3: 4}, "from conditions in SQL"),
        ({"sex = 'F'": float("nan")}, "a known count must hold finite numbers"),
    ],
)
def test_wrong_facts_are_named(facts: object, message: str) -> None:
    with pytest.raises(vc.VeilcubeError, match=message):
        vc.refine(RELEASE, facts)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("known", "values", "message"),
    [
        ("age", np.ones(9), r"of the shape \(10,\), not \(9,\)"),
        (("age", "sex"), np.ones((2, 10)), "the marginal over age, sex"),
        (("age", "age"), np.ones((10, 10)), "named twice"),
        ("height", np.ones(3), "height"),
        ("age", None, "B was given without c"),
        (None, [1.0], "c was given without B"),
        ("age", [np.nan] * 10, "c must hold finite numbers"),
        (np.eye(20), np.ones(20), "a workload or the names"),
        (vc.Workload.marginals(SCHEMA, 1), [1, 2], r"one known count per query of B \(12\)"),
        (vc.Workload.prefixes(vc.Schema([vc.Ordinal("x", 0, 3)])), [1, 2, 3, 4], "another schema"),
    ],
)
def test_known_counts_that_do_not_fit_are_refused(known: object, values: object, message: str) -> None:
    with pytest.raises(vc.VeilcubeError, match=message):
        vc.refine(RELEASE, B=known, c=values)  # type: ignore[call-overload]


def test_contradictions_of_large_counts_are_found_to_the_last_unit() -> None:
    facts = [f"count(age = {age}) = 33000001" for age in range(10)]
    vc.refine(RELEASE, [*facts, "total = 330000010"])
    with pytest.raises(vc.VeilcubeError, match="contradict each other"):
        vc.refine(RELEASE, [*facts, "total = 330000011"])


def test_contradictions_name_no_fact_that_is_not_part_of_them() -> None:
    facts = [
        "count(age = 7) = 40",
        "count(sex = 'F') = 200",
        "count(sex = 'M') = 200",
        "count(age < 3) = 9",
        "total = 1",
    ]
    with pytest.raises(vc.VeilcubeError) as caught:
        vc.refine(RELEASE, facts, counts=False)
    assert "age" not in str(caught.value)


def test_too_many_facts_are_refused_before_memory_is_taken() -> None:
    schema = vc.Schema([vc.Ordinal("x", 0, release_facts.MOST_FACTS)])
    release = release_of(schema, np.zeros(schema.shape, dtype=np.int64))
    with pytest.raises(vc.VeilcubeError, match="at most 12,000 facts"):
        vc.refine(release, B="x", c=np.zeros(schema.shape))


def test_facts_about_what_was_not_measured_are_refused() -> None:
    with pytest.raises(vc.VeilcubeError, match="do not determine"):
        vc.refine(MARGINALS, "count(age = 3 AND sex = 'F') = 20")
    with pytest.raises(vc.VeilcubeError, match="do not determine"):
        vc.refine(MARGINALS, "count((age = 3 AND sex = 'F') OR (age = 5 AND sex = 'M')) = 20")


@pytest.mark.parametrize("extra", [{"covariance": 1.0}, {"names": ["a"]}, {"integers": True}])
def test_what_only_answers_can_have_is_refused_for_a_release(extra: dict[str, object]) -> None:
    with pytest.raises(vc.VeilcubeError, match="a release brings its own"):
        vc.refine(RELEASE, TOTAL, **extra)  # type: ignore[call-overload]


def test_a_source_that_does_not_exist_is_refused() -> None:
    with pytest.raises(vc.VeilcubeError, match="must be one of unstated, public"):
        vc.refine(RELEASE, TOTAL, source="hearsay")  # type: ignore[call-overload]


class TestPrivacy:
    def test_a_count_read_off_the_table_is_dangerous(self) -> None:
        check = vc.refinement_privacy(TOTAL, release=RELEASE)
        assert check.loss == np.inf
        assert check.dangerous == (TOTAL,)
        assert check.explanation[0] == f"the constraint '{TOTAL}' was published exactly: one record changes it"

    def test_public_facts_are_post_processing(self) -> None:
        check = vc.refinement_privacy(Fact(TOTAL, source="public"), release=RELEASE)
        assert (check.loss, check.is_post_processing, check.dangerous) == (1.0, True, ())
        assert vc.refinement_privacy(TOTAL, release=RELEASE, data_dependent=False).is_post_processing

    def test_exchanged_rows_leave_the_total_alone_and_nothing_else(self) -> None:
        cube = vc.Cube(SCHEMA, np.full((10, 2), 20))
        release = vc.release(cube, epsilon=1, strategy="identity", neighbours="replace")
        facts = [TOTAL, "count(sex = 'F') + count(sex = 'M') = 400", "count(sex = 'F') = 200"]
        check = vc.refinement_privacy(facts, release=release)
        assert check.dangerous == ("count(sex = 'F') = 200",)
        refined = vc.refine(release, facts[:2], source="exact private statistic")
        assert "so the promise stays" in refined.privacy.words

    def test_under_gaussian_noise_public_facts_keep_the_promise_and_others_have_no_finite_loss(self) -> None:
        release = vc.release(vc.Cube(SCHEMA, np.full((10, 2), 20)), rho=0.1, strategy="identity")
        assert release.privacy.rho == Fraction(1, 10)
        safe = vc.refinement_privacy(Fact(TOTAL, source="public"), release=release)
        assert (safe.loss, safe.is_post_processing) == (float(release.privacy.epsilon), True)
        assert f"keep epsilon = {safe.loss:.6g} with delta = 1e-09" in safe.explanation[0]
        assert safe.scale.tolist() == safe.scale_needed.tolist() == [pytest.approx(5**0.5)]
        assert vc.refinement_privacy(TOTAL, release=release).loss == np.inf
        refined = vc.refine(release, TOTAL, source="public")
        assert (refined.privacy.rho, refined.privacy.delta) == (release.privacy.rho, release.privacy.delta)
        assert refined.count().value == pytest.approx(400)
        # Of ten cells beside ten others, the known total leaves half of the variance.
        assert refined.count(sex="F").stddev == pytest.approx(5.0)

    def test_parts_that_add_up_by_themselves_are_safe(self) -> None:
        fact = "total - count(sex = 'F') - count(sex = 'M') = 0"
        assert vc.refinement_privacy(fact, release=RELEASE).is_post_processing

    def test_a_release_comes_with_its_own_noise(self) -> None:
        with pytest.raises(vc.VeilcubeError, match="its own noise"):
            vc.refinement_privacy(TOTAL, release=RELEASE, epsilon=1.0)


class TestIntegers:
    def test_whole_answers_obey_every_fact(self) -> None:
        answers = {"A": 31.5, "B": 52.25, "C": 40.75, "p": 130.0}
        refined = vc.refine(answers, ["A + B + C = p", "A + B = 80", "C <= 42"], covariance=4.0, integers=True)
        assert (refined.value == np.rint(refined.value)).all()
        assert refined["A"].value + refined["B"].value == 80
        assert refined["A"].value + refined["B"].value + refined["C"].value == refined["p"].value
        assert refined["C"].value <= 42
        assert ((refined.low <= refined.value) & (refined.value <= refined.high)).all()

    def test_the_nearest_whole_answers_are_found(self) -> None:
        refined = vc.refine([1.4, 2.4, 3.2], "q1 + q2 + q3 = 8", covariance=1.0, integers=True)
        unrounded = vc.refine([1.4, 2.4, 3.2], "q1 + q2 + q3 = 8", covariance=1.0).value
        grid = np.array(np.meshgrid(*[np.arange(-2, 9)] * 3)).reshape(3, -1).T
        grid = grid[grid.sum(axis=1) == 8]
        assert np.abs(refined.value - unrounded).sum() == pytest.approx(np.abs(grid - unrounded).sum(axis=1).min())

    def test_facts_without_whole_solutions_are_refused(self) -> None:
        with pytest.raises(vc.VeilcubeError, match="no whole numbers obey"):
            vc.refine([1.0, 2.0], "2*q1 + 2*q2 = 5", covariance=1.0, integers=True)
