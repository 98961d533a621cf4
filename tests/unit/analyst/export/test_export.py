"""Labelled tables as files: what is in them, what adds up, and what is refused before any work."""

import time
from datetime import date
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.export.files import _sheet_names
from veilcube.errors import QueryError, ReleaseFileError, VeilcubeError

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 20, 24, missing="cell"),
        vc.Nominal("job", ["=cmd|' /C calc'!A0", "+49", "-x", "@home", "Judge", "-5"]),
        vc.Ordinal("whole", 1, 3),
    ]
)
COUNTS = np.random.default_rng(5).poisson(4, SCHEMA.shape)
RELEASE = release_of(SCHEMA, COUNTS, seed=3)
TABLES = release_of(SCHEMA, COUNTS, seed=3, strategy=vc.Marginals(2))


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, keep_default_na=False)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "T.CSV", "t.pq"])
def test_a_table_has_the_answers_of_the_marginal(tmp_path: Path, name: str) -> None:
    path = RELEASE.export(tmp_path / name, by=["whole", "job"])
    assert path == tmp_path / name
    frame = pd.read_parquet(path) if name.endswith(("parquet", "pq")) else pd.read_csv(path)
    answers = RELEASE.marginal("whole", "job")
    assert list(frame.columns) == ["whole", "job", "value", "low", "high", "stddev"]
    assert frame["whole"].tolist() == np.repeat([1, 2, 3], 6).tolist()
    for column in ("value", "low", "high", "stddev"):
        np.testing.assert_allclose(frame[column], getattr(answers, column).ravel(), atol=5e-4)


def test_without_attributes_every_measured_table_is_written_into_one(tmp_path: Path) -> None:
    frame = read(TABLES.export(tmp_path / "all.csv"))
    assert frame["table"].unique().tolist() == ["age x job", "age x whole", "job x whole"]
    part = frame[frame["table"] == "job x whole"]
    assert len(part) == 18
    assert (part["age"] == "").all()
    np.testing.assert_allclose(part["value"], TABLES.marginal("job", "whole").value.ravel(), atol=5e-4)
    assert len(read(RELEASE.export(tmp_path / "cells.csv"))) == SCHEMA.cells


def test_measured_tables_of_grouped_releases_have_all_values(tmp_path: Path) -> None:
    rows = pa.table({"a": [0, 1, 2, 3] * 50, "b": [0, 1] * 100, "c": [1, 1, 0, 0] * 50})
    schema = vc.Schema([vc.Ordinal("a", 0, 3), vc.Ordinal("b", 0, 1), vc.Ordinal("c", 0, 1)])
    release = vc.release(rows, schema=schema, epsilon=5, strategy="grouped tables")
    frame = pd.read_parquet(release.export(tmp_path / "g.parquet", whole=True))
    sizes = frame.groupby("table", observed=True).size().to_dict()
    assert {name: sizes[name] for name in ("a", "b", "c", "a x b")} == {"a": 4, "b": 2, "c": 2, "a x b": 8}
    assert frame.groupby("table", observed=True)["whole"].sum().nunique() == 1


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_whole_numbers_add_up_within_a_table_and_between_tables(tmp_path: Path, name: str) -> None:
    every = read(TABLES.export(tmp_path / name, whole=True))
    column = "whole_"  # an attribute is called whole already
    assert every[column].min() >= 0
    jobs = {
        table: every[every["table"] == table].groupby("job", observed=True)[column].sum().to_dict()
        for table in ("age x job", "job x whole")
    }
    assert jobs["age x job"] == jobs["job x whole"]
    alone = read(TABLES.export(tmp_path / f"alone-{name}", by=["job"], whole=True))
    assert dict(zip(alone["job"], alone[column], strict=True)) == jobs["age x job"]
    assert sum(jobs["age x job"].values()) == round(float(TABLES.count().value))


def test_whole_numbers_keep_to_what_is_possible(tmp_path: Path) -> None:
    attributes = [vc.Nominal("sex", ["F", "M"]), vc.Nominal("pregnant", ["no", "yes"]), vc.Ordinal("age", 0, 9)]
    schema = vc.Schema(attributes, impossible=[{"sex": "M", "pregnant": "yes"}])
    counts = np.random.default_rng(0).poisson(1, schema.shape)
    counts[1, 1] = 0
    release = release_of(schema, counts, epsilon=0.5, seed=4)
    assert release.marginal("sex", "pregnant").value[1, 1] != 0
    for by in (["sex", "pregnant"], ["age", "pregnant", "sex"]):
        frame = read(release.export(tmp_path / "t.csv", by=by, whole=True))
        assert frame[(frame["sex"] == "M") & (frame["pregnant"] == "yes")]["whole"].sum() == 0


def test_text_that_a_spreadsheet_would_run_is_text(tmp_path: Path) -> None:
    path = RELEASE.export(tmp_path / "t.csv", by=["job"])
    jobs = read(path)["job"].tolist()
    assert jobs == ["'=cmd|' /C calc'!A0", "+49", "'-x", "'@home", "Judge", "-5"]  # numbers are no formulas
    book = openpyxl.load_workbook(RELEASE.export(tmp_path / "t.xlsx", by=["job"]))
    cells = [row[0] for row in book["job"].iter_rows(min_row=2)]
    assert [cell.value for cell in cells] == list(SCHEMA["job"].labels())
    assert {cell.data_type for cell in cells} == {"s"}


def test_an_attribute_whose_name_is_a_formula_is_text_too(tmp_path: Path) -> None:
    release = release_of(vc.Schema([vc.Ordinal("=1+1", 0, 2)]), [1, 2, 3])
    assert release.export(tmp_path / "t.csv").read_text().startswith('"\'=1+1",')
    sheet = openpyxl.load_workbook(release.export(tmp_path / "t.xlsx")).worksheets[1]
    assert (sheet["A1"].value, sheet["A1"].data_type) == ("=1+1", "s")


def test_a_workbook_has_a_sheet_for_each_table_and_says_what_it_holds(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(TABLES.export(tmp_path / "t.xlsx", whole=True))
    assert book.sheetnames == ["About", "age x job", "age x whole", "job x whole"]
    about = {row[0].value: row[1].value for row in book["About"].iter_rows() if row[0].value}
    assert about["privacy"] == str(TABLES.privacy)
    assert "lower end" in about["low"]
    sheet = book["job x whole"]
    assert [cell.value for cell in sheet[1]][2:] == ["value", "low", "high", "stddev", "whole_"]
    assert sheet.max_row == 19
    assert sheet["C2"].value == pytest.approx(float(TABLES.marginal("job", "whole").value[0, 0]), abs=5e-4)


def test_sheets_of_odd_names_are_told_apart() -> None:
    names = _sheet_names(["About", "a/b?", "a:b*", "x" * 40, "x" * 41, "History", "'quoted'"])
    assert len({name.lower() for name in names}) == 7
    assert all(len(name) <= 31 and not set(name) & set("[]:*?/\\'") for name in names)
    assert "History" not in names


def test_parquet_says_what_its_columns_mean_and_what_is_promised(tmp_path: Path) -> None:
    found = pq.read_schema(TABLES.export(tmp_path / "t.parquet", by=["job"], whole=True, confidence=0.9))
    assert found.metadata[b"veilcube.privacy"].decode() == str(TABLES.privacy)
    assert found.metadata[b"veilcube.confidence"] == b"0.9"
    assert b"interval" in found.field("high").metadata[b"description"]


def test_rounding_and_suppressing_widen_and_empty(tmp_path: Path) -> None:
    plain = read(TABLES.export(tmp_path / "a.parquet", by=["age", "job"], whole=True))
    shown = read(TABLES.export(tmp_path / "b.parquet", by=["age", "job"], whole=True, round=5, suppress=10))
    is_shown = (plain["value"] >= 10) & (plain["whole_"] >= 10)
    assert 0 < is_shown.sum() < len(plain)
    assert shown[~is_shown][["value", "low", "high", "stddev", "whole_"]].isna().all(axis=None)
    kept, before = shown[is_shown], plain[is_shown]
    assert (kept[["value", "low", "high", "whole_"]] % 5 == 0).all(axis=None)
    assert (kept["low"] <= before["low"]).all()
    assert (kept["high"] >= before["high"]).all()
    notes = pq.read_schema(tmp_path / "b.parquet").metadata[b"veilcube.notes"].decode()
    assert "privacy comes from the noise alone" in notes


@pytest.mark.parametrize(
    ("preset", "numbers"),
    [
        ("tens", {"round": 10}),
        ("hundreds", {"round": 100}),
        ("no-small", {"suppress": 11}),
        ("publication", {"round": 5, "suppress": 11}),
    ],
)
def test_a_preset_is_a_name_for_numbers(tmp_path: Path, preset: str, numbers: dict[str, int]) -> None:
    named = TABLES.export(tmp_path / "a.csv", by=["age", "job"], preset=preset).read_text()
    assert named == TABLES.export(tmp_path / "b.csv", by=["age", "job"], **numbers).read_text()
    assert named != TABLES.export(tmp_path / "c.csv", by=["age", "job"]).read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"preset": "pretty"}, "must be one of tens, hundreds, no-small, publication"),
        ({"preset": 3}, "must be one of"),
        ({"preset": "tens", "round": 5}, "leave out round and suppress"),
        ({"preset": "tens", "suppress": 5}, "leave out round and suppress"),
    ],
)
def test_a_preset_that_is_none_or_is_contradicted_is_refused(
    tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        TABLES.export(tmp_path / "a.csv", by=["age"], **arguments)
    assert not list(tmp_path.iterdir())


LEVELS = vc.Schema(
    [
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}, missing="cell"),
        vc.Nominal("sex", ["F", "M"]),
    ],
    impossible=[{"job": "Care", "sex": "M"}],
)


@pytest.mark.parametrize("ends", [".csv", ".parquet"])
def test_a_level_of_a_hierarchy_makes_a_table_of_its_groups(tmp_path: Path, ends: str) -> None:
    release = release_of(LEVELS, np.array([[50, 0], [40, 0], [3, 9], [2, 2]]), seed=3)
    frame = read(release.export(tmp_path / f"t{ends}", by=["SEX", "job:level 1"], whole=True))
    assert list(frame.columns)[:2] == ["sex", "job:Level 1"]
    assert frame["job:Level 1"].tolist() == ["Care", "Law", "(missing)"] * 2
    answers = release.marginal("sex", "job:Level 1")
    for column in ("value", "low", "high", "stddev"):
        np.testing.assert_allclose(frame[column], getattr(answers, column).ravel(), atol=5e-4)
    assert frame["whole"].sum() == round(release.count().value)
    assert frame["whole"].min() >= 0
    assert frame["whole"].tolist()[3] == 0  # no man is in Care


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["job", "job:Level 1"], "named twice"),
        (["jbo:Level 1"], "did you mean 'job'"),
        (["job:Level 9"], "has levels 1 to 2"),
        (["sex:Level 1"], "has no hierarchy"),
    ],
)
def test_a_level_that_there_is_not_is_refused(tmp_path: Path, by: list[str], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        release_of(LEVELS, np.zeros((4, 2), dtype=int), seed=3).export(tmp_path / "t.csv", by=by)
    assert not list(tmp_path.iterdir())


def wide(attributes: int, values: int) -> vc.Schema:
    return vc.Schema([vc.Ordinal(f"a{number}", 0, values - 1) for number in range(attributes)])


def test_ten_billion_cells_are_refused_with_their_size_before_any_work(tmp_path: Path) -> None:
    schema = wide(10, 10)
    rows = pa.table({name: [1, 2, 3] for name in schema.names})
    release = vc.release(rows, schema=schema, strategy="grouped tables")
    release.marginal = release.count = lambda *_, **__: pytest.fail("work was done")  # type: ignore[method-assign]
    began = time.process_time()
    for export in (
        lambda: release.export(tmp_path / "t.csv", by=list(schema.names)),
        lambda: release.to_parquet(tmp_path / "t.parquet"),
        release.to_pandas,
    ):
        with pytest.raises(VeilcubeError, match=r"10,000,000,000 rows, about 600 GB.*export fewer attributes"):
            export()
    assert time.process_time() - began < 2
    assert not list(tmp_path.iterdir())


def test_a_workbook_of_more_rows_than_a_sheet_has_is_refused(tmp_path: Path) -> None:
    release = release_of(wide(2, 1100), np.ones((1100, 1100), dtype=int))
    with pytest.raises(QueryError, match=r"1,210,000 rows are more than the 1,048,575"):
        release.export(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    ("path", "arguments", "words"),
    [
        ("t.txt", {}, "end its name in .csv"),
        (".csv", {}, "end its name in .csv"),
        ("t.csv", {"by": []}, "names no attribute"),
        ("t.csv", {"by": "age"}, "list of attributes"),
        ("t.csv", {"by": ["height"]}, "no attribute 'height'"),
        ("t.csv", {"by": ["age", "AGE"]}, "named twice"),
        ("t.csv", {"by": [5]}, "no attribute '5'"),
        ("t.csv", {"whole": "yes"}, "True or False"),
        ("t.csv", {"round": 0}, "round"),
        ("t.csv", {"suppress": 2.5}, "suppress"),
        ("t.csv", {"estimator": "magic"}, "magic"),
        ("t.csv", {"confidence": 1}, "confidence"),
    ],
)
def test_what_makes_no_table_is_refused_and_nothing_is_left_behind(
    tmp_path: Path, path: str, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(VeilcubeError, match=words):
        RELEASE.export(tmp_path / path, **arguments)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReleaseFileError, match="create its folder first"):
        RELEASE.export(tmp_path / "nowhere" / "t.csv")


def test_dates_and_groups_have_their_labels(tmp_path: Path) -> None:
    day = vc.Ordinal("day", date(2024, 1, 1), date(2024, 1, 3))
    schema = vc.Schema([day, vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]})])
    frame = read(release_of(schema, np.arange(9).reshape(3, 3)).export(tmp_path / "t.csv"))
    assert frame["day"].unique().tolist() == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert frame["value"].tolist() == list(range(9))
