"""``veilcube export``: tables for colleagues, from the command line."""

import json
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

import veilcube as vc
from support.command_line import Call, caller, write_people, write_schema


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    schema = write_schema(folder / "people.toml")
    path = folder / "people.veil"
    table = write_people(folder / "people.csv")
    vc.release(table, schema=schema, epsilon=1, strategy="tree", person="patient", max_rows=3).save(path)
    return path


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)
    return caller(capfd)


def test_tables_are_written_in_every_format_and_say_what_is_promised(call: Call, release: Path, tmp_path: Path) -> None:
    done = call("export", str(release), "--csv", "t.csv", "--parquet", "t.parquet", "--xlsx", "t.xlsx", "--whole")
    assert (done.code, done.err) == (0, "")
    assert "Wrote t.csv" in done.out
    assert "at most 3 rows" in done.out
    text, typed = pd.read_csv(tmp_path / "t.csv"), pd.read_parquet(tmp_path / "t.parquet")
    assert list(text.columns) == list(typed.columns) == ["age", "sex", "value", "low", "high", "stddev", "whole"]
    assert text["whole"].tolist() == typed["whole"].tolist()
    assert text["value"].tolist() == pytest.approx(typed["value"].tolist(), abs=5e-4)
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").worksheets[1]
    assert sheet.max_row == len(text) + 1


@pytest.mark.parametrize("by", [["--by", "sex,age"], ["--by", "sex", "--by", "age"], ["--by", "Sex, AGE"]])
def test_attributes_are_chosen_with_commas_or_one_by_one(
    call: Call, release: Path, tmp_path: Path, by: list[str]
) -> None:
    facts = json.loads(call("export", str(release), "--csv", "t.csv", *by, "--json").out)
    assert facts["files"] == [{"file": "t.csv", "bytes": (tmp_path / "t.csv").stat().st_size}]
    assert list(pd.read_csv(tmp_path / "t.csv").columns)[:2] == ["sex", "age"]


def test_an_attribute_whose_name_has_a_comma_is_named_as_it_is(call: Call, tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal("a, b", 0, 3), vc.Ordinal("c", 0, 1)])
    vc.release(vc.Cube(schema, [[1, 2]] * 4), strategy="identity").save(tmp_path / "r.veil")
    assert call("export", "r.veil", "--csv", "t.csv", "--by", "a, b").code == 0
    assert pd.read_csv(tmp_path / "t.csv").columns[0] == "a, b"


def test_rounded_tables_say_that_this_is_no_privacy(call: Call, release: Path, tmp_path: Path) -> None:
    done = call("export", str(release), "--csv", "t.csv", "--by", "age", "--round", "5", "--suppress", "10")
    assert "privacy comes from the noise alone" in done.out
    assert (pd.read_csv(tmp_path / "t.csv")["value"].dropna() % 5 == 0).all()


def test_a_preset_says_how_counts_are_shown(call: Call, release: Path, tmp_path: Path) -> None:
    done = call("export", str(release), "--csv", "t.csv", "--by", "age", "--preset", "publication")
    assert "privacy comes from the noise alone" in done.out
    values = pd.read_csv(tmp_path / "t.csv")["value"]
    assert (values.dropna() % 5 == 0).all()
    assert values.isna().any()


def test_a_release_with_its_tables_inside_is_a_release(call: Call, release: Path, tmp_path: Path) -> None:
    assert call("export", str(release), "--veil", "shared.veil").code == 0
    assert vc.open(tmp_path / "shared.veil").count().value == vc.open(release).count().value


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 5, "there is no file to write"),
        (["--csv", "t.txt"], 5, "end its name in .csv"),
        (["--csv", "t.parquet"], 5, "'t.parquet' would mislead"),
        (["--xlsx", "t.csv"], 5, "would mislead"),
        (["--csv", "nowhere/t.csv"], 9, "create its folder first"),
        (["--csv", "t.csv", "--by", "height"], 5, "no attribute 'height'"),
        (["--csv", "t.csv", "--by", "age,age"], 5, "named twice"),
        (["--csv", "t.csv", "--by", ""], 5, "no attribute ''"),
        (["--csv", "t.csv", "--round", "0"], 5, "round"),
        (["--csv", "t.csv", "--suppress", "-1"], 5, "suppress"),
        (["--csv", "t.csv", "--estimator", "magic"], 5, "magic"),
        (["--csv", "there.csv"], 9, "--force"),
    ],
)
def test_what_cannot_be_exported_is_told_in_one_sentence(
    call: Call, release: Path, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    (tmp_path / "there.csv").touch()
    done = call("export", str(release), *words)
    assert done.code == code, done.err
    assert message in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["there.csv"]


def test_the_table_itself_is_no_release(call: Call, release: Path) -> None:
    done = call("export", str(release.with_name("people.csv")), "--csv", "t.csv")
    assert (done.code, "not a release file" in done.err) == (9, True)
