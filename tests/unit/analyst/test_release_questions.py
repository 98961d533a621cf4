"""What a release answers, compared with the truth where there is no noise, and its errors."""

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from support.releases import gaussian_release_of, release_of
from veilcube.analyst import DateAnswer
from veilcube.errors import QueryError, ReleaseFileError
from veilcube.query import Answer, Answers, Workload
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema(
    [
        Ordinal("age", 20, 24, missing="cell"),
        Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": ["Judge", "Clerk"]}, outside="other"),
        Ordinal("pay", edges=[0, 10, 20, 50]),
    ]
)
COUNTS = np.random.default_rng(5).integers(0, 30, SCHEMA.shape)
RELEASE = release_of(SCHEMA, COUNTS)


@pytest.mark.parametrize(
    ("conditions", "exact"),
    [
        ({}, COUNTS.sum()),
        ({"age": (21, 23)}, COUNTS[1:4].sum()),
        ({"age": 22, "job": "Care"}, COUNTS[2, :2].sum()),
        ({"job": ["Nurse", "Office"]}, COUNTS[:, [0, 2, 3]].sum()),
        ({"age": [20, 24], "pay": (10, 50)}, COUNTS[[0, 4]][:, :, 1:].sum()),
        ({"age": None}, COUNTS[5].sum()),
        ({"age": (None, 21)}, COUNTS[:2].sum()),
        ({"pay": (0, 9)}, COUNTS[:, :, 0].sum()),
    ],
)
def test_count_by_keywords_counts_the_selected_cells(conditions: dict[str, object], exact: int) -> None:
    answer = RELEASE.count(**conditions)
    assert isinstance(answer, Answer)
    assert answer.value == exact
    assert answer.low <= exact <= answer.high
    assert RELEASE.count(conditions).value == exact


def test_sql_and_keywords_agree() -> None:
    by_words = RELEASE.count(age=(21, 23), job="Care")
    assert RELEASE.count("age BETWEEN 21 AND 23 AND job = 'Care'") == by_words
    assert (
        RELEASE.count("SELECT COUNT(*) FROM t WHERE age >= 21 AND age <= 23 AND job IN ('Nurse', 'Aide')") == by_words
    )


def test_group_by_gives_one_answer_per_group_that_the_condition_reaches() -> None:
    answers = RELEASE.count("SELECT job, COUNT(*) FROM t WHERE age < 22 AND job <> 'Care' GROUP BY job")
    assert isinstance(answers, Answers)
    assert answers.axes == {"job": ("Judge", "Clerk", "(other)")}
    np.testing.assert_array_equal(answers.value, COUNTS[:2, 2:].sum(axis=(0, 2)))


def test_marginal_keeps_the_named_order_of_attributes() -> None:
    answers = RELEASE.marginal("pay", "age")
    np.testing.assert_array_equal(answers.value, COUNTS.sum(axis=1).T)
    assert list(answers.axes) == ["pay", "age"]
    assert answers.to_pandas().shape == (18, 6)
    filtered = RELEASE.marginal("job", where="age = 20 OR pay < 10")
    chosen = COUNTS.copy()
    chosen[1:, :, 1:] = 0
    np.testing.assert_array_equal(filtered.value, chosen.sum(axis=(0, 2)))


def test_answer_mixes_blocks_and_irregular_queries() -> None:
    workload = Workload(SCHEMA, [{"age": (20, 21)}, {"job": ["Nurse", "Clerk"]}, "age = 20 OR pay >= 20", "FALSE"])
    answers = RELEASE.answer(workload)
    either = COUNTS.copy()
    either[1:, :, :2] = 0
    # The cell of missing ages is reached through pay alone, as in SQL.
    assert answers.value.tolist() == [COUNTS[:2].sum(), COUNTS[:, [0, 3]].sum(), either.sum(), 0]
    assert answers[3].low == answers[3].high == 0
    assert [single.value for single in answers] == answers.value.tolist()


def test_sum_and_mean_take_regular_cells_only() -> None:
    ages = np.arange(20, 25)
    by_age = COUNTS[:5].sum(axis=(1, 2))
    assert RELEASE.sum("age").value == pytest.approx((ages * by_age).sum())
    mean = RELEASE.mean("age")
    assert mean.value == pytest.approx((ages * by_age).sum() / by_age.sum())
    assert mean.low <= mean.value <= mean.high
    middles = np.array([5.0, 15.0, 35.0])
    nurses = COUNTS[:, 0].sum(axis=0)
    assert RELEASE.mean("pay", where={"job": "Nurse"}).value == pytest.approx((middles * nurses).sum() / nurses.sum())


@pytest.mark.parametrize("rank", [0.0, 0.01, 0.25, 0.5, 0.9, 1.0])
def test_quantile_is_the_least_value_that_reaches_the_rank(rank: float) -> None:
    by_age = COUNTS[:5].sum(axis=(1, 2))
    exact = 20 + int(np.argmax(np.cumsum(by_age) >= rank * by_age.sum()))
    answer = RELEASE.quantile("age", rank)
    assert answer.value == exact
    assert answer.low <= exact <= answer.high


def test_quantile_of_bins_reaches_to_their_edges_and_of_dates_to_their_days() -> None:
    pay = RELEASE.quantile("pay", 0.5)
    assert pay.value in (5.0, 15.0, 35.0)
    assert {pay.low, pay.high} <= {0.0, 10.0, 20.0, 50.0}
    schema = Schema([Ordinal("admitted", "2024-01", "2024-12", unit="month")])
    answer = release_of(schema, [1000, *[0] * 11], epsilon=10).quantile("admitted", 0.5)
    assert answer == DateAnswer(date(2024, 1, 1), date(2024, 1, 1), date(2024, 1, 31), 0.95, answer.privacy)


def test_cdf_rises_to_one() -> None:
    answers = RELEASE.cdf("age")
    by_age = COUNTS[:5].sum(axis=(1, 2))
    np.testing.assert_allclose(answers.value, np.cumsum(by_age) / by_age.sum())
    assert (np.diff(answers.value) >= 0).all()
    assert answers.value[-1] == 1
    assert ((answers.low <= answers.value) & (answers.value <= answers.high)).all()


def test_labelled_arrays_say_what_is_promised() -> None:
    assert RELEASE.to_xarray().attrs.keys() == {"privacy", "epsilon"}
    release = gaussian_release_of(SCHEMA, COUNTS, rho="1/8")
    promised = release.to_xarray().attrs
    assert (promised["rho"], promised["delta"]) == (0.125, 1e-9)
    assert promised["epsilon"] == float(release.privacy.epsilon)
    assert "rho = 0.125" in promised["privacy"]


def test_exports_hold_every_cell(tmp_path: Path) -> None:
    array = RELEASE.to_xarray()
    assert array.dims == SCHEMA.names
    assert float(array.sel(age="22", job="Aide").sum()) == COUNTS[2, 1].sum()
    assert "epsilon = 1" in array.attrs["privacy"]
    frame = RELEASE.to_pandas()
    assert len(frame) == SCHEMA.cells
    assert frame["value"].tolist() == COUNTS.ravel().tolist()
    RELEASE.to_parquet(tmp_path / "cells.parquet")
    read = pq.read_table(tmp_path / "cells.parquet").to_pandas()
    pd.testing.assert_frame_equal(read, frame)
    with pytest.raises(ReleaseFileError):
        RELEASE.to_parquet(tmp_path / "nowhere" / "cells.parquet")


def test_whole_number_axes_are_numbers_in_exports() -> None:
    release = release_of(Schema([Ordinal("age", 20, 22)]), [4, 5, 6])
    assert float(release.to_xarray().sel(age=21)) == 5
    assert release.to_pandas()["age"].tolist() == [20, 21, 22]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: RELEASE.count(height=3), "no attribute 'height'"),
        (lambda: RELEASE.count(job="Pilot"), "no value or group 'Pilot'"),
        (lambda: RELEASE.count(age=(23, 21)), "inverted"),
        (lambda: RELEASE.count(age=(20, 21, 22)), "pair"),
        (lambda: RELEASE.count(age=[]), "empty"),
        (lambda: RELEASE.count(pay=None), "missing"),
        (lambda: RELEASE.count({"age": 20}, job="Care"), "not both"),
        (lambda: RELEASE.count(pay=(5, 10)), "cuts through"),
        (lambda: RELEASE.count(42), "mapping"),
        (lambda: RELEASE.count(age=20, estimator="magic"), "best, least_squares"),
        (lambda: RELEASE.sum("job"), "no order"),
        (lambda: RELEASE.quantile("age", 1.5), "between 0 and 1"),
        (lambda: RELEASE.mean("age", where={"age": None}), "no cell"),
        (RELEASE.marginal, "at least one"),
        (lambda: RELEASE.marginal(["age"]), "no attribute"),
        (lambda: RELEASE.quantile("age", "x"), "between 0 and 1"),
        (lambda: Workload(SCHEMA, None), "list"),
        (lambda: Workload.random_ranges(SCHEMA, 2.5, 0), "between 1 and"),
        (lambda: RELEASE.marginal("age", "age"), "twice"),
        (lambda: RELEASE.answer([{"age": 20}]), "Workload"),
        (lambda: RELEASE.answer(Workload.prefixes(Schema([Ordinal("age", 1, 3)]))), "another schema"),
    ],
)
def test_a_question_that_makes_no_sense_gets_one_clear_sentence(ask: object, words: str) -> None:
    with pytest.raises(QueryError, match=words) as refusal:
        ask()
    assert "\n" not in str(refusal.value)


def test_intervals_of_sums_and_means_of_bins_reach_to_the_edges() -> None:
    release = release_of(Schema([Ordinal("pay", edges=[0, 10, 20])]), [1_000_000, 3_000_000], epsilon=100)
    mean, total = release.mean("pay"), release.sum("pay")
    assert mean.value == pytest.approx(12.5)
    assert mean.low == pytest.approx(7.5, abs=1e-3)
    assert mean.high == pytest.approx(17.5, abs=1e-3)
    assert total.low == pytest.approx(30e6, rel=1e-4)
    assert total.high == pytest.approx(70e6, rel=1e-4)


def test_many_answers_print_as_a_table_with_their_labels() -> None:
    lines = str(RELEASE.marginal("job")).splitlines()
    assert lines[0].split() == ["job", "value", "low", "high", "stddev"]
    assert lines[1].split()[0] == "Nurse"
    assert len({len(line) for line in lines}) == 1
    assert str(RELEASE.answer(Workload.prefixes(SCHEMA))).endswith(f"... and {SCHEMA.cells - 30} more")


def test_only_a_release_of_persons_says_what_it_counted() -> None:
    assert RELEASE.counted is None


def test_numpy_scalars_are_as_good_as_numbers() -> None:
    assert RELEASE.count(age=np.array(22)).value == RELEASE.count(age=np.int64(22)).value == RELEASE.count(age=22).value
    assert RELEASE.count(age=22, confidence=np.float32(0.5)).confidence == 0.5
