"""Synthetic rows: types of the schema, streams to Parquet, and quality against noisy measurements."""

import datetime
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import veilcube as vc
from support.command_line import caller
from support.releases import release_of
from veilcube.analyst.history import read_history
from veilcube.analyst.history.max_entropy.quality import judge_rows
from veilcube.analyst.synthesis import rows_to_pandas, write_rows
from veilcube.errors import CapacityError, QueryError

MIXED = vc.Schema(
    [
        vc.Ordinal("age", 17, 90),
        vc.Ordinal("income", edges=[0, 10_000, 50_000]),
        vc.Ordinal("weight", edges=[0.5, 1.5, 9.0]),
        vc.Ordinal("born", "2000", "2003", unit="year"),
        vc.Nominal("sex", ["Female", "Male"], missing="cell", column="gender"),
    ]
)
PEOPLE = vc.Schema([vc.Ordinal("age", 20, 60), vc.Nominal("sex", ["Female", "Male"])])


def people_counts() -> NDArray[np.int64]:
    return np.random.default_rng(3).poisson(np.outer(np.linspace(120, 20, 41), [1.0, 0.4]))


def mixed_rows(count: int = 4000, seed: int = 1) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(0, MIXED.shape, size=(count, len(MIXED))).astype(np.int32)


def test_values_have_the_types_of_the_schema_and_count_back_into_their_own_cells() -> None:
    rows = mixed_rows()
    frame = rows_to_pandas(MIXED, [rows[:1000], rows[1000:]], len(rows))
    assert list(frame.columns) == ["age", "income", "weight", "born", "gender"]
    assert frame["age"].dtype == np.int64
    assert frame["income"].dtype == np.int64
    assert frame["weight"].dtype == np.float64
    assert frame["born"].dtype.kind == "M"
    assert list(frame["gender"].cat.categories) == ["Female", "Male"]
    assert frame["gender"].isna().sum() == (rows[:, 4] == 2).sum()
    expected = np.zeros(MIXED.shape, dtype=np.int64)
    np.add.at(expected, tuple(rows.T), 1)
    np.testing.assert_array_equal(vc.count(frame, MIXED).exact_counts, expected)


def test_values_beyond_the_domain_are_counted_as_such() -> None:
    stray = vc.Schema(
        [
            vc.Ordinal("a", 1, 3, outside="other"),
            vc.Ordinal("b", edges=[0, 5, 9], outside="other"),
            vc.Ordinal("c", edges=[0.0, 0.5], outside="other", missing="cell"),
            vc.Ordinal("d", "2020-01-01", "2020-01-03", outside="other"),
            vc.Nominal("e", ["x"], outside="other"),
        ]
    )
    rows = np.random.default_rng(5).integers(0, stray.shape, size=(500, 5)).astype(np.int32)
    expected = np.zeros(stray.shape, dtype=np.int64)
    np.add.at(expected, tuple(rows.T), 1)
    counted = vc.count(rows_to_pandas(stray, [rows], 500), stray)
    np.testing.assert_array_equal(counted.exact_counts, expected)


def test_rows_are_written_as_they_come_and_never_held(tmp_path: Path) -> None:
    alive = 0

    def parts() -> Iterator[NDArray[np.int32]]:
        nonlocal alive
        for seed in range(40):
            alive += 1
            yield mixed_rows(100_000, seed)

    before = pa.total_allocated_bytes()
    seen: list[float | None] = []
    most = 0

    def watch(share: float | None) -> None:
        nonlocal most
        seen.append(share)
        most = max(most, pa.total_allocated_bytes() - before)

    path = write_rows(MIXED, parts(), 4_000_000, tmp_path / "rows.parquet", "a promise", watch)
    file = pq.ParquetFile(path)
    assert file.metadata.num_rows == 4_000_000
    assert file.metadata.num_row_groups > 2
    assert file.schema_arrow.field("born").type == pa.date32()
    assert file.schema_arrow.metadata[b"veilcube.privacy"] == b"a promise"
    assert seen[-1] == 1.0
    assert most < 4_000_000 * 20  # bytes of all rows at once would be more than 30 each
    assert alive == 40


HARD_NAMES = vc.Schema(
    [
        vc.Nominal("said", ["a,b", 'a "b" c', "two\nlines", " spaces ", "NULL", "é", "1.0"], missing="cell"),
        vc.Ordinal("weight", edges=[0.1, 1 / 3, 1e9], missing="cell"),
        vc.Ordinal("born", "2000-02-27", "2000-03-02", missing="cell"),
    ]
)


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".csv.gz", ".parquet", ".pq"])
@pytest.mark.parametrize("schema", [MIXED, HARD_NAMES], ids=["mixed", "hard names"])
def test_the_name_of_a_file_says_how_rows_are_written_and_they_count_back(
    tmp_path: Path, schema: vc.Schema, suffix: str
) -> None:
    rows = np.random.default_rng(6).integers(0, schema.shape, size=(900, len(schema))).astype(np.int32)
    path = write_rows(schema, [rows[:400], rows[400:]], len(rows), tmp_path / f"rows{suffix}")
    begins = path.read_bytes()[:4]
    assert (begins == b"PAR1") == (suffix in (".parquet", ".pq"))
    assert (begins[:2] == b"\x1f\x8b") == (suffix == ".csv.gz")
    expected = np.zeros(schema.shape, dtype=np.int64)
    np.add.at(expected, tuple(rows.T), 1)
    np.testing.assert_array_equal(vc.count(path, schema).exact_counts, expected)


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.json", "rows.csv.zip", "rows.gz", "rows", ".csv", "rows.csv.txt"])
def test_a_name_that_promises_another_kind_of_file_is_refused_before_any_work(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    release = release_of(PEOPLE, people_counts(), seed=2)
    model = vc.MaxEntropy(alpha=0.01).fit(release)
    with pytest.raises(QueryError, match=r"\.csv, \.csv\.gz or \.parquet"):
        model.synthesize(10**15, tmp_path / name)
    release.save(tmp_path / "people.veil")
    words = ["synthesize", "--from", str(tmp_path / "people.veil"), "--out", str(tmp_path / name)]
    refused = caller(capfd)(*words)
    assert refused.code == 5
    assert ".csv" in refused.err
    assert not (tmp_path / name).exists()


def test_a_billion_rows_are_refused_in_memory_and_the_advice_is_to_stream() -> None:
    model = vc.MaxEntropy(alpha=0.01).fit(release_of(PEOPLE, people_counts(), seed=1))
    with pytest.raises(CapacityError, match="pass path="):
        model.synthesize(10**12)
    with pytest.raises(QueryError, match="1 or more"):
        model.synthesize(0)


@pytest.mark.parametrize("engine", ["exact", "gibbs"])
def test_synthetic_rows_follow_the_model(engine: str) -> None:
    release = release_of(PEOPLE, people_counts(), seed=1)
    model = vc.MaxEntropy(alpha=0.002, engine=engine).fit(release, total=float(people_counts().sum()))
    frame = model.synthesize(200_000)
    drawn = vc.count(frame, PEOPLE).exact_counts / 200_000
    assert np.abs(drawn - model.distribution(PEOPLE.names)).sum() < 0.03
    assert len(model.synthesize()) == people_counts().sum()


def test_quality_is_judged_by_noisy_marginals_and_sees_rows_that_are_wrong() -> None:
    history = read_history(release_of(PEOPLE, people_counts(), epsilon=1, seed=1))
    total = float(people_counts().sum())
    true_rows = np.repeat(np.indices(PEOPLE.shape).reshape(2, -1).T, people_counts().ravel(), axis=0)
    quality = judge_rows(history, [true_rows], total)
    assert [entry.names for entry in quality.marginals] == [("age",), ("sex",), ("age", "sex")]
    pair = quality.marginals[2]
    assert pair.error == pytest.approx(np.abs(people_counts().ravel() - history.values).sum() / total)
    assert pair.error == pytest.approx(pair.noise, rel=0.5)
    swapped = true_rows.copy()
    swapped[:, 1] = 1 - swapped[:, 1]
    assert judge_rows(history, [swapped], total).marginals[1].error > 20 * quality.marginals[1].noise


def test_dates_are_days_of_the_calendar() -> None:
    schema = vc.Schema([vc.Ordinal("day", "2024-02-28", "2024-03-01")])
    frame = rows_to_pandas(schema, [np.array([[1]], dtype=np.int32)], 1)
    assert frame["day"][0].date() == datetime.date(2024, 2, 29)


def test_days_of_months_and_years_are_spread_evenly_inside_them() -> None:
    for unit, low, high, most in (("month", "2024-01", "2024-02", 31), ("year", "2023", "2024", 366)):
        schema = vc.Schema([vc.Ordinal("day", low, high, unit=unit, outside="other", missing="cell")])
        cells = np.repeat(np.arange(4, dtype=np.int32), 40_000).reshape(-1, 1)
        frame = rows_to_pandas(schema, [cells], len(cells))
        counted = vc.count(frame, schema).exact_counts
        assert counted.tolist() == [40_000] * 4
        days = frame["day"].dropna()
        inside = days[(days >= low) & (days <= f"{schema['day'].division.last_day(1)}")]
        share = inside.groupby(inside).size().to_numpy()
        expected = np.concatenate(
            [np.full((last - first).days + 1, 40_000 / ((last - first).days + 1)) for first, last in _spans(schema)]
        )
        assert len(share) == len(expected) <= 2 * most
        assert ((share - expected) ** 2 / expected).sum() < len(expected) + 6 * np.sqrt(2 * len(expected))


def _spans(schema: vc.Schema) -> list[tuple[datetime.date, datetime.date]]:
    calendar = schema["day"].division
    return [(calendar.first_day(cell), calendar.last_day(cell)) for cell in range(calendar.size)]


def test_whole_numbers_stay_whole_beside_missing_ones() -> None:
    schema = vc.Schema(
        [vc.Ordinal("age", 1, 3, missing="cell"), vc.Ordinal("pay", edges=[0, 10, 20]), vc.Ordinal("n", 1, 2)]
    )
    cells = np.array([[0, 0, 0], [3, 1, 1], [2, 0, 1]], dtype=np.int32)
    frame = rows_to_pandas(schema, [cells], 3)
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "int64", "int64"]
    assert frame["age"].tolist()[::2] == [1, 3]
    assert frame["age"].isna().tolist() == [False, True, False]
    assert vc.count(frame, schema).exact_counts.sum() == 3
