"""All problems of a table are told at once, as counting would find them, in words without a row in them."""

import io
import json
import random
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import veilcube as vc
from support.command_line import caller
from veilcube.cli import main
from veilcube.errors import PrivacyError, TableError

CANARY = "Zaphod"
COLUMNS = {
    "age": vc.Ordinal("age", 17, 90),
    "pay": vc.Ordinal("pay", edges=[0, 100, 1000], outside="clip"),
    "day": vc.Ordinal("day", "2024-01-01", "2024-12-31", unit="day"),
    "sex": vc.Nominal("sex", ["F", "M"]),
    "code": vc.Nominal("code", ["a", "b"], outside="other", missing="cell"),
}
SCHEMA = vc.Schema(list(COLUMNS.values()))
GOOD = {"age": "30", "pay": "50", "day": "2024-05-06", "sex": "F", "code": "a"}


def csv_of(folder: Path, *rows: dict[str, str], columns: list[str] | None = None) -> str:
    names = columns or list(GOOD)
    lines = [",".join(names), *(",".join((GOOD | row).get(name, "") for name in names) for row in rows)]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return str(folder / "t.csv")


def test_a_table_that_fits_has_no_problem(tmp_path: Path) -> None:
    assert vc.check_table(csv_of(tmp_path, {}, {"pay": "1e9"}, {"code": ""}, {"code": "z"}), SCHEMA) == []


def test_all_problems_of_all_columns_are_told_with_how_many_rows(tmp_path: Path) -> None:
    table = csv_of(
        tmp_path, {"age": "17.5", "sex": CANARY}, {"age": "", "day": "2024-02-30"}, {"age": CANARY, "pay": CANARY}, {}
    )
    problems = vc.check_table(table, SCHEMA)
    found = [(problem.attribute, problem.exact_rows) for problem in problems]
    assert found == [("age", 2), ("age", 1), ("pay", None), ("day", 1), ("sex", 1)]
    said = repr(problems) + str([problem.words for problem in problems])
    assert CANARY not in said
    assert "exact_rows" not in said


def test_columns_that_lack_or_have_another_name_are_told_beside_the_others(tmp_path: Path) -> None:
    table = csv_of(tmp_path, {"sex": "X"}, columns=["age", "sex", "codes"])
    found = {problem.attribute: problem.words for problem in vc.check_table(table, SCHEMA)}
    assert list(found) == ["pay", "day", "sex", "code"]
    assert "no column 'pay'; it has age, sex, codes" in found["pay"]
    assert "did you mean 'codes'?" in found["code"]
    assert "outside the domain" in found["sex"]


def test_columns_of_the_wrong_type_are_told_beside_the_others() -> None:
    frame = pa.table({"age": [[1]], "pay": [5.0], "day": [7], "sex": ["X"], "code": ["a"]})
    found = {problem.attribute: problem.words for problem in vc.check_table(frame, SCHEMA)}
    assert list(found) == ["age", "day", "sex"]
    assert "has the type LIST" in found["age"]


def test_what_fails_while_rows_are_read_is_told_of_its_column_alone() -> None:
    codes = vc.Nominal("code", [str(2**60), "7"])
    frame = pa.table({"age": [30, 200], "code": [float(2**60), 7.0]})
    found = {problem.attribute: problem.words for problem in vc.check_table(frame, vc.Schema([COLUMNS["age"], codes]))}
    assert list(found) == ["age", "code"]
    assert "lost digits" in found["code"]


@pytest.mark.parametrize("seed", range(25))
def test_a_column_has_a_problem_exactly_if_counting_refuses_it(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    values = ["", "30", "-1", "500", "17.5", "2024-05-06", "2024-13-01", "F", "a", "nan", "true", "1e3"]
    rows = [{name: chance.choice(values) for name in GOOD if chance.random() < 0.12} for _ in range(3)]
    table = csv_of(tmp_path, *rows)
    told = {problem.attribute for problem in vc.check_table(table, SCHEMA)}
    refused = set()
    for name, attribute in COLUMNS.items():
        try:
            vc.count(table, vc.Schema([attribute]))
        except TableError:
            refused.add(name)
    assert told == refused


@pytest.mark.parametrize("source", ["none.csv", "t.doc"])
def test_a_table_that_cannot_be_read_is_refused_once(tmp_path: Path, source: str) -> None:
    (tmp_path / "t.doc").write_text("x")
    with pytest.raises(TableError, match=r"there is no file|neither CSV nor Parquet"):
        vc.check_table(str(tmp_path / source), SCHEMA)


# On the command line


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    SCHEMA.to_toml(tmp_path / "s.toml")
    return csv_of(tmp_path, {"age": ""}, {"age": "", "sex": CANARY})


def test_the_command_lists_all_problems_and_fails(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    done = caller(capfd)("schema", "check", "s.toml", "--against", table)
    assert done.code == TableError.exit_code
    assert [line[:6] for line in done.out.splitlines()] == ["- age:", "- sex:"]
    assert "2 problems, listed above" in done.err
    assert CANARY not in done.out + done.err
    as_json = caller(capfd)("schema", "check", "s.toml", "--against", table, "--json")
    facts = json.loads(as_json.out)
    assert (as_json.code, facts["fits"]) == (TableError.exit_code, False)
    assert [problem["attribute"] for problem in facts["problems"]] == ["age", "sex"]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_counts_are_refused_where_no_terminal_shows_them(
    table: str, more: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    done = caller(capfd)("schema", "check", "s.toml", "--against", table, "--counts", *more)
    assert done.code == PrivacyError.exit_code
    assert "writes to a terminal only" in done.err + done.out


def test_counts_are_shown_on_a_terminal(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "500")
    assert main(["schema", "check", "s.toml", "--against", table, "--counts"]) == TableError.exit_code
    assert "(rows: 2)" in screen.getvalue()
    assert "(rows: 1)" in screen.getvalue()


@pytest.mark.parametrize("word", [["--counts"], ["--table", "t"]])
def test_what_is_about_a_table_needs_one(table: str, word: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert "name it with --against TABLE" in caller(capfd)("schema", "check", "s.toml", *word).err
