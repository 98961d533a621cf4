"""Questions by group and about several counts: against the truth where there is no noise, and their refusals."""

import numpy as np
import pytest

from support.releases import release_of
from veilcube.analyst import DateAnswer
from veilcube.analyst.questions.quantile import DateAnswers
from veilcube.errors import QueryError
from veilcube.planner import Adaptive, KdTree
from veilcube.query import Answers, LinearQueries
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema(
    [
        Ordinal("age", 20, 24, missing="cell"),
        Nominal(
            "job",
            hierarchy={"Care": ["Nurse", "Aide"], "Office": {"Law": ["Judge"], "IT": ["Dev", "Ops"]}},
            outside="other",
        ),
        Ordinal("pay", edges=[0, 10, 20, 50]),
        Ordinal("month", "2024-01", "2024-03", unit="month"),
    ],
    impossible=[{"job": "Judge", "age": (20, 21)}],
)
COUNTS = np.random.default_rng(5).integers(1, 30, SCHEMA.shape)
COUNTS[:2, 2] = 0
RELEASE = release_of(SCHEMA, COUNTS)
AGES = np.arange(20.0, 25.0)


def mean_age(counts: np.ndarray) -> float:
    by_age = counts[:5].sum(axis=tuple(range(1, counts.ndim)))
    return float((AGES * by_age).sum() / by_age.sum())


def test_levels_of_a_hierarchy_are_counted_as_their_values_together() -> None:
    tops = RELEASE.count("SELECT LEVEL(job, 1), COUNT(*) FROM t WHERE pay < 10 GROUP BY LEVEL(job, 1)")
    assert tops.axes == {"job:Level 1": ("Care", "Office", "(other)")}
    of_pay = COUNTS[:, :, 0].sum(axis=(0, 2))
    assert tops.value.tolist() == [of_pay[:2].sum(), of_pay[2:5].sum(), of_pay[5]]
    for label, found in zip(("Care", "Office"), tops, strict=False):
        alone = RELEASE.count(job=label, pay=(0, 10))
        assert (found.low, found.high) == (alone.low, alone.high)
    second = RELEASE.marginal("job:level 2", "pay")
    assert second.axes["job:Level 2"] == ("Nurse", "Aide", "Law", "IT", "(other)")
    assert second.value[3, 1] == COUNTS[:, 3:5, 1].sum()
    assert RELEASE.marginal("job:Level 3").value.tolist() == RELEASE.marginal("job").value.tolist()
    irregular = RELEASE.marginal("job:Level 1", where="age = 20 OR pay < 10")
    chosen = COUNTS.copy()
    chosen[1:, :, 1:] = 0
    assert irregular.value[1] == chosen[:, 2:5].sum()


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        (["job:Level 0"], "levels 1 to 3"),
        (["job:Level 4"], "levels 1 to 3"),
        (["age:Level 1"], "no hierarchy"),
        (["job", "job:Level 1"], "named twice"),
        (["jobs:Level 1"], "no attribute"),
        ([], "at least one attribute"),
        ({"job"}, "list"),
    ],
)
def test_levels_that_are_not_there_are_refused(by: object, problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        RELEASE.group(by)  # type: ignore[arg-type]


def test_statistics_by_group_are_those_of_each_group_asked_alone() -> None:
    means = RELEASE.group(["job:Level 1"], "mean", "age", where="pay < 20")
    assert means.value == pytest.approx(
        [mean_age(COUNTS[:, part, :2]) for part in (slice(2), slice(2, 5), slice(5, 6))]
    )
    alone = RELEASE.mean("age", where="pay < 20 AND job = 'Care'")
    assert (means[0].low, means[0].high) == (alone.low, alone.high)
    for statistic, ask in (("sum", RELEASE.sum), ("median", RELEASE.quantile), ("variance", RELEASE.variance)):
        found = RELEASE.group("pay", statistic, "age")
        assert found[0].value == ask("age", where="pay < 10").value
    assert (
        RELEASE.group("pay", "quantile", "age", rank=0.9)[1].value
        == RELEASE.quantile("age", 0.9, where={"pay": (10, 20)}).value
    )


def test_nobody_has_no_mean_and_a_sum_of_nothing() -> None:
    means = RELEASE.group(["job", "age"], "mean", "pay")
    assert np.isnan(means.value[2, :2]).all()
    assert np.isnan(means.low[2, :2]).all()
    assert np.isfinite(means.value[2, 2:]).all()
    assert RELEASE.group(["job", "age"], "sum", "pay")[2, 0].high == 0.0
    missing = RELEASE.group("age", "mean", "age")
    assert np.isnan(missing.value[5])


def test_medians_of_dates_are_dates() -> None:
    found = RELEASE.group(["job", "age"], "median", "month")
    assert isinstance(found, DateAnswers)
    assert isinstance(found[0, 0], DateAnswer)
    assert found[0, 0] == RELEASE.quantile("month", where={"job": "Nurse", "age": 20})
    assert found.to_dict()["answers"][0]["value"].startswith("2024-")  # type: ignore[index]
    with pytest.raises(QueryError, match="nobody"):
        found[2, 0]


@pytest.mark.parametrize(
    ("statistic", "settings", "problem"),
    [
        ("mode", {}, "one of count"),
        ("mean", {}, "needs column="),
        ("count", {"column": "age"}, "takes no column="),
        ("mean", {"column": "job"}, "no order"),
        ("mean", {"column": "age", "rank": 0.5}, "takes no rank="),
        ("mean", {"column": "age", "condition": "pay < 10"}, "takes no condition"),
        ("mean", {"column": "month"}, "dates have no"),
        ("variance", {"column": "month"}, "dates have no"),
        ("quantile", {"column": "age", "rank": 2}, "between 0 and 1"),
    ],
)
def test_statistics_that_make_no_sense_are_refused(statistic: str, settings: dict[str, object], problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        RELEASE.group("pay", statistic, **settings)  # type: ignore[arg-type]


def test_shares_differences_ratios_and_contrasts_are_those_of_the_counts() -> None:
    care, everybody = COUNTS[:, :2].sum(), COUNTS.sum()
    assert RELEASE.share(job="Care").value == pytest.approx(care / everybody)
    assert RELEASE.share("job = 'Care'", where="pay < 10").value == pytest.approx(
        COUNTS[:, :2, 0].sum() / COUNTS[:, :, 0].sum()
    )
    assert RELEASE.ratio("job = 'Nurse'", "job = 'Aide'").value == pytest.approx(
        COUNTS[:, 0].sum() / COUNTS[:, 1].sum()
    )
    assert RELEASE.difference("pay < 10", "age = 20").value == COUNTS[:, :, 0].sum() - COUNTS[0].sum()
    weighted = [(2, "pay < 10"), (-0.5, {"age": 20})]
    assert RELEASE.contrast(weighted).value == 2 * COUNTS[:, :, 0].sum() - 0.5 * COUNTS[0].sum()
    shares = RELEASE.group("pay", "share")
    assert shares.value.sum() == pytest.approx(1.0)
    inside = RELEASE.group("pay", "share", condition="job = 'Care'")
    assert inside[2].value == pytest.approx(COUNTS[:, :2, 2].sum() / COUNTS[:, :, 2].sum())


def test_a_difference_has_the_noise_of_what_the_two_counts_do_not_share() -> None:
    one, other = RELEASE.count("age <= 23"), RELEASE.count("age <= 22")
    found, between = RELEASE.difference("age <= 23", "age <= 22"), RELEASE.count(age=23)
    assert found.high - found.low == pytest.approx(between.high - between.low)
    assert found.high - found.low < (one.high - one.low + other.high - other.low) / 2
    assert RELEASE.difference("age = 20", "age = 20").high == 0.0
    assert RELEASE.share("TRUE").low == 1.0
    assert RELEASE.ratio("age = 20", "age = 20").high == pytest.approx(1.0)


def test_a_ratio_over_few_has_no_upper_end() -> None:
    counts = np.zeros(SCHEMA.shape, dtype=np.int64)
    counts[0, 0, 0, 0] = 2
    found = release_of(SCHEMA, counts, "1/20", 3).ratio("job = 'Nurse'", "job = 'Aide'")
    assert found.low == 0.0
    assert found.high == np.inf


def test_linear_queries_weigh_counts_and_agree_with_contrasts() -> None:
    queries = LinearQueries.moments(SCHEMA, [{"age": 1}, {"age": 2}], where="pay < 10 OR job = 'Care'")
    answers = RELEASE.answer(queries)
    assert isinstance(answers, Answers)
    assert answers.value == pytest.approx(queries.apply(COUNTS))
    chosen = COUNTS.copy()
    chosen[:, 2:, 1:] = 0
    assert answers.value[0] == pytest.approx((AGES * chosen[:5].sum(axis=(1, 2, 3))).sum())
    count = RELEASE.answer(LinearQueries.conditions(SCHEMA, ["pay < 10 OR job = 'Care'"]))[0]
    assert (count.value, count.low) == (RELEASE.contrast([(1, "pay < 10 OR job = 'Care'")]).value, count.low)
    assert RELEASE.answer(LinearQueries.everything(SCHEMA))[0].value == COUNTS.sum()
    with pytest.raises(QueryError, match="kept rows"):
        RELEASE.answer(queries, interval="guaranteed")
    with pytest.raises(QueryError, match="another schema"):
        RELEASE.answer(LinearQueries.everything(Schema([Ordinal("age", 1, 2)])))


def test_intervals_of_spread_reach_to_where_in_their_bins_values_may_lie() -> None:
    by_age = COUNTS[:5].sum(axis=(1, 2, 3))
    exact = float((np.square(AGES - mean_age(COUNTS)) * by_age).sum() / by_age.sum())
    found = RELEASE.variance("age")
    assert found.value == pytest.approx(exact)
    assert found.low < exact < found.high <= 4.0
    by_pay = COUNTS.sum(axis=(0, 1, 3))
    pay = RELEASE.variance("pay")
    # All in the corners of their bins, near to the middle or far from it.
    for places in ([10, 15, 20], [0, 10, 50], [10, 10, 20]):
        mean = (by_pay * places).sum() / by_pay.sum()
        assert pay.low <= (np.square(places - mean) * by_pay).sum() / by_pay.sum() <= pay.high
    correlation = RELEASE.correlation("age", "pay")
    assert (correlation.low, correlation.high) == (-1.0, 1.0)
    assert -1.0 <= RELEASE.correlation("age", "month").low <= RELEASE.correlation("age", "month").high <= 1.0


def test_nobody_has_no_share_and_no_correlation() -> None:
    for ask in (
        lambda: RELEASE.share("age = 20", where="age = 21 AND age = 22"),
        lambda: RELEASE.ratio("age = 20", "FALSE"),
        lambda: RELEASE.correlation("age", "pay", where="age IS NULL"),
        lambda: RELEASE.variance("age", where="age IS NULL"),
        RELEASE.share,
        lambda: RELEASE.share("age = 20", age=20),
        lambda: RELEASE.correlation("age", "job"),
        lambda: RELEASE.contrast([]),
        lambda: RELEASE.contrast([(float("nan"), "age = 20")]),
    ):
        with pytest.raises(QueryError):
            ask()


def test_a_statement_answers_each_of_its_statistics() -> None:
    found = RELEASE.ask(
        "SELECT LEVEL(job, 1), COUNT(*) AS people, AVG(age), MEDIAN(age), QUANTILE_CONT(age, 0.9), SHARE(pay < 10), "
        "SHARE(*), SUM(age), VAR_POP(age) FROM t WHERE age > 20 GROUP BY LEVEL(job, 1)"
    )
    settings = {"where": "age > 20"}
    assert list(found)[:2] == ["people", "AVG(age)"]
    for name, statistic, more in (
        ("people", "count", {}),
        ("AVG(age)", "mean", {"column": "age"}),
        ("MEDIAN(age)", "median", {"column": "age"}),
        ("QUANTILE_CONT(age, 0.9)", "quantile", {"column": "age", "rank": 0.9}),
        ("SHARE(pay < 10)", "share", {"condition": "pay < 10"}),
        ("SHARE(*)", "share", {}),
        ("SUM(age)", "sum", {"column": "age"}),
        ("VAR_POP(age)", "variance", {"column": "age"}),
    ):
        direct = RELEASE.group("job:Level 1", statistic, **settings, **more)  # type: ignore[arg-type]
        assert str(found[name]) == str(direct)
    alone = RELEASE.ask("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age), SHARE(age = 20), AVG(age) FROM t")
    assert [one.value for one in alone.values()] == [  # type: ignore[union-attr]
        RELEASE.quantile("age").value,
        RELEASE.share(age=20).value,
        RELEASE.mean("age").value,
    ]
    assert RELEASE.ask("age = 20")["COUNT(*)"] == RELEASE.count(age=20)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("SELECT AVG(job) FROM t", "no order"),
        ("SELECT AVG(DISTINCT age) FROM t", "DISTINCT"),
        ("SELECT AVG(age), AVG(age) FROM t", "twice"),
        ("SELECT AVG(age + 1) FROM t", "arithmetic"),
        ("SELECT AVG(*) FROM t", "not supported"),
        ("SELECT QUANTILE_CONT(age, [0.1, 0.2]) FROM t", "one rank"),
        ("SELECT QUANTILE_CONT(age) FROM t", "one rank"),
        ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age DESC) FROM t", "from its least"),
        ("SELECT SHARE(age = 20, pay < 10) FROM t", "one condition"),
        ("SELECT SHARE(*) FROM t", "GROUP BY"),
        ("SELECT AVG(age) FILTER (WHERE age > 20) FROM t", "FILTER"),
        ("SELECT STDDEV(age) FROM t", "VAR_POP"),
        ("SELECT job FROM t GROUP BY job", "selects COUNT"),
        ("SELECT COUNT(*) FROM t GROUP BY LEVEL(job)", "LEVEL takes"),
        ("SELECT LEVEL(job, 1), COUNT(*) FROM t GROUP BY job", "not grouped"),
    ],
)
def test_statements_that_cannot_be_read_whole_are_refused(statement: str, problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        RELEASE.ask(statement)


def test_other_answers_are_asked_by_levels_too() -> None:
    refined = RELEASE.count("SELECT COUNT(*) FROM t GROUP BY LEVEL(job, 2)")
    assert refined.value.sum() == COUNTS.sum()
    with pytest.raises(QueryError, match=r"release\.ask"):
        RELEASE.count("SELECT AVG(age) FROM t")


def test_parts_of_an_adaptive_release_are_labelled_and_hold_everybody() -> None:
    schema = Schema([Ordinal("age", 20, 59), Nominal("job", ["a", "b", "c", "d", "e"])])
    counts = np.zeros(schema.shape, dtype=np.int64)
    counts[10:20, 1:3], counts[30, 4] = 200, 500
    release = release_of(schema, counts, 1, 3, strategy=KdTree())
    found = release.parts()
    labels, labelled = found.axes["part"], release.record.measurements[-1].parts
    assert labelled is not None
    assert len(set(labels)) == labelled.regions == found.value.size
    exact = np.bincount(labelled.chosen.ravel(), weights=counts.ravel())
    assert "age 30 to 39, job b or c" in labels
    assert exact[labels.index("age 30 to 39, job b or c")] == counts[10:20, 1:3].sum()
    assert release.parts(estimator="least_squares").value.sum() == pytest.approx(
        release.count(estimator="least_squares").value
    )
    with pytest.raises(QueryError, match="no parts"):
        RELEASE.parts()
    with pytest.raises(QueryError, match="least_squares"):
        release.parts(estimator="nonnegative")


@pytest.mark.parametrize("strategy", [KdTree(), Adaptive()], ids=["kd tree", "grown"])
def test_intervals_of_parts_cover_as_often_as_they_say(strategy: object) -> None:
    schema = Schema([Ordinal("age", 20, 59), Nominal("job", ["a", "b", "c", "d", "e"])])
    counts = np.zeros(schema.shape, dtype=np.int64)
    counts[10:20, 1:3], counts[30, 4], counts[35:, 0] = 30, 300, 8
    held = []
    for seed in range(60):
        release = release_of(schema, counts, 1, seed, strategy=strategy)
        found, labelled = release.parts(), release.record.measurements[-1].parts
        assert labelled is not None
        exact = np.bincount(labelled.chosen.ravel(), weights=counts.ravel())
        held += ((found.low <= exact) & (exact <= found.high)).tolist()
    assert np.mean(held) >= 0.93
