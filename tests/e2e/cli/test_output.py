"""How the command line speaks: JSON that parses, tables that align, and quiet ends."""

import json
import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from support.command_line import Call, caller, write_people, write_schema
from veilcube.cli.commands.curator import save_what_was_paid_for
from veilcube.cli.failures import describe
from veilcube.cli.shared.output import show_interval, show_number
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Ledger
from veilcube.errors import ReleaseFileError
from veilcube.schema import Nominal, Ordinal, Schema
from veilcube.schema.divisions import CalendarUnit
from veilcube.session import release


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Run the command's own ``main`` in a folder with a table, its schema, a release of it and a ledger."""
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path / "people.csv")
    schema = Schema.from_toml(write_schema(tmp_path / "people.toml"))
    Ledger("budget.db").create("people", "7/3")
    release("people.csv", epsilon="1/3", schema=schema, ledger="budget.db", dataset="people").save("people.veil")
    return caller(capfd)


JSON_COMMANDS = {
    "schema check": (("schema", "check", "people.toml"), {"file", "attributes", "shape", "cells", "fingerprint"}),
    "schema draft": (("schema", "draft", "people.csv"), {"table", "out", "toml"}),
    "plan": (("plan", "people.toml", "--epsilon", "1", "--query", "age < 30"), {"strategy", "candidates", "queries"}),
    "release": (
        ("release", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--out", "more.veil"),
        {"out", "bytes", "cells", "epsilon", "charged_to", "note", "warning", "privacy", "plan"},
    ),
    "query": (
        ("query", "people.veil", "age < 30", "--mean", "age"),
        {"file", "confidence", "results", "privacy", "counted"},
    ),
    "info": (("info", "people.veil"), {"file", "created", "made_with", "schema", "privacy", "counted", "plan"}),
    "ledger create": (("ledger", "create", "more.db", "people", "--epsilon", "1"), {"ledger", "dataset", "left"}),
    "ledger show": (("ledger", "show", "budget.db", "people"), {"ledger", "datasets"}),
    "ledger history": (("ledger", "history", "budget.db"), {"ledger", "charges"}),
    "an error": (("query", "people.veil", "height > 3"), {"error"}),
    "a wrong call": (("query", "--loudly"), {"error"}),
}


@pytest.mark.parametrize("name", JSON_COMMANDS)
def test_json_is_one_object_on_standard_output_and_nothing_else(name: str, call: Call) -> None:
    words, keys = JSON_COMMANDS[name]
    done = call(*words, "--json")
    facts = json.loads(done.out)
    assert keys <= facts.keys()
    assert done.err == ""
    assert done.code == facts.get("error", {}).get("exit_code", 0)


def test_an_error_in_json_has_its_kind_message_and_exit_code(call: Call) -> None:
    done = call("query", "people.veil", "height > 3", "--json")
    error = json.loads(done.out)["error"]
    assert error.keys() == {"kind", "message", "exit_code"}
    assert (error["kind"], error["exit_code"], done.code) == ("QueryError", 5, 5)
    assert "height" in error["message"]


def test_a_quantile_without_a_standard_deviation_is_still_json(call: Call) -> None:
    (found,) = json.loads(call("query", "people.veil", "--quantile", "age", "0.5", "--json").out)["results"]
    assert found["low"] <= found["value"] <= found["high"]
    assert found["stddev"] is None


def test_groups_are_one_row_each(call: Call) -> None:
    text = "SELECT sex, COUNT(*) FROM people WHERE age < 40 GROUP BY sex"
    lines = call("query", "people.veil", text).out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["sex", "------", "Female", "Male"]
    (found,) = json.loads(call("query", "people.veil", text, "--json").out)["results"]
    assert [group["sex"] for group in found["groups"]] == ["Female", "Male"]


def test_many_queries_are_answered_in_one_call(call: Call) -> None:
    done = call("query", "people.veil", "age < 30", "sex = 'Male'", "--sum", "age", "--where", "age < 30")
    assert [line.split("  ")[0] for line in done.out.splitlines()[2:5]] == [
        "age < 30",
        "sex = 'Male'",
        "sum of age where age < 30",
    ]


def test_a_statistic_beside_a_condition_says_that_it_is_about_all_rows(call: Call) -> None:
    words = ("query", "people.veil", "age < 30", "--sum", "age", "--mean", "age", "--quantile", "age", "0.9")
    about = ["sum of age (all rows)", "mean of age (all rows)", "quantile 0.9 of age (all rows)"]
    assert [line.split("  ")[0] for line in call(*words).out.splitlines()[3:6]] == about
    assert [found["query"] for found in json.loads(call(*words, "--json").out)["results"][1:]] == about
    below = call(*words, "--where", "sex = 'Male'").out
    assert "quantile 0.9 of age where sex = 'Male'" in below
    assert "all rows" not in below


def test_statistics_are_answered_by_group_and_options_may_be_repeated(call: Call) -> None:
    words = ("--quantile", "age", "0.5", "--quantile", "age", "0.9", "--share", "age < 30", "--group-by", "sex")
    results = json.loads(call("query", "people.veil", *words, "--where", "age < 40", "--json").out)["results"]
    asked = ["quantile 0.5 of age", "quantile 0.9 of age", "share of age < 30"]
    assert [found["statistic"] for found in results] == asked
    assert [[group["sex"] for group in found["groups"]] for found in results] == [["Female", "Male"]] * 3
    assert all(0 <= group["value"] <= 1 for group in results[2]["groups"])
    statement = "SELECT COUNT(*) AS people, AVG(age), SHARE(*) FROM t GROUP BY sex"
    found = json.loads(call("query", "people.veil", statement, "--json").out)["results"]
    assert [row["statistic"] for row in found] == ["people", "AVG(age)", "SHARE(*)"]
    shown = call("query", "people.veil", statement).out
    assert f"AVG(age): {statement}" in shown
    counts = json.loads(call("query", "people.veil", "--group-by", "sex", "--json").out)["results"]
    assert [group["value"] for group in counts[0]["groups"]] == [group["value"] for group in found[0]["groups"]]


def test_groups_that_nothing_asks_about_are_refused(call: Call) -> None:
    assert "write GROUP BY into the query" in call("query", "people.veil", "age < 30", "--group-by", "sex").err
    assert "no hierarchy" in call("query", "people.veil", "--group-by", "sex:Level 1").err
    assert "is not a number" in call("query", "people.veil", "--quantile", "age", "half").err


@pytest.mark.parametrize(("unit", "shown"), [("day", "2024-02-01"), ("month", "2024-02"), ("year", "2024")])
def test_a_quantile_of_dates_is_shown_in_the_units_of_its_attribute(unit: CalendarUnit, shown: str, call: Call) -> None:
    visit = Ordinal("visit", "2022-01-01", "2025-12-31", unit=unit)
    counts = [10_000 if label == shown else 0 for label in visit.labels()]
    release(Cube(Schema([visit]), counts), epsilon=1000).save("visits.veil")
    words = ("query", "visits.veil", "--quantile", "visit", "0.5")
    assert call(*words).out.splitlines()[2].split()[-4:] == [shown, shown, "to", shown]
    (found,) = json.loads(call(*words, "--json").out)["results"]
    assert all(date.fromisoformat(found[end]) for end in ("value", "low", "high"))


def test_the_edges_of_bins_are_shown_the_first_and_the_last_of_many(call: Call, tmp_path: Path) -> None:
    few, many = Ordinal("few", edges=[0, 10, 20.5]), Ordinal("many", edges=range(0, 110, 10))
    Schema([few, many]).to_toml(tmp_path / "bins.toml")
    release(Cube(Schema([few, many]), [[1] * 10] * 2)).save("bins.veil")
    for words in (("schema", "check", "bins.toml"), ("info", "bins.veil")):
        assert "  edges 0, 10, 20.5  " in call(*words).out
        assert "  edges 0, 10, 20, 30, ..., 100  " in call(*words).out


def test_a_tiny_expected_error_is_not_told_in_digits_that_mean_nothing(call: Call) -> None:
    release(Cube(Schema([Ordinal("age", 1, 2)]), [3, 4]), epsilon=200).save("open.veil")
    assert "expected error of a random range count: below 0.001." in call("info", "open.veil").out
    assert "below" not in call("info", "people.veil").out


@pytest.mark.parametrize(("epsilon", "is_told"), [("10", False), ("10.5", True)])
def test_an_epsilon_that_protects_hardly_anybody_is_told(epsilon: str, is_told: bool, call: Call) -> None:
    words = ("release", "people.csv", "--schema", "people.toml", "--epsilon", epsilon, "--out", "more.veil", "--force")
    assert ("Warning: An epsilon of 10.5 protects hardly anybody" in call(*words).out) == is_told
    facts = json.loads(call(*words, "--json").out)
    assert (facts["warning"] is not None) == is_told
    assert facts["note"].startswith("Protects rows.")


def test_a_release_for_persons_needs_no_note_about_rows_and_one_of_rows_counts_all(call: Call) -> None:
    words = ("release", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--out", "more.veil")
    assert "Protects rows" not in call(*words, "--person", "patient", "--max-rows", "2").out
    assert "at most 2 rows per person" in call("query", "more.veil", "age < 30").out
    assert "per person" not in call("query", "people.veil", "age < 30").out
    assert json.loads(call("info", "people.veil", "--json").out)["counted"] is None


def test_a_higher_confidence_widens_the_interval(call: Call) -> None:
    def width(level: str) -> float:
        done = call("query", "people.veil", "age < 30", "--confidence", level, "--json")
        (found,) = json.loads(done.out)["results"]
        return float(found["high"] - found["low"])

    assert width("0.5") < width("0.95") < width("0.999")


def test_columns_of_a_table_stand_under_one_another(call: Call) -> None:
    lines = call("info", "people.veil").out.splitlines()
    head, rule, *rows = lines[:4]
    starts = [position for position, char in enumerate(rule) if char == "-" and (" " + rule)[position] == " "]
    assert [head[start:].split()[0] for start in starts][:3] == ["attribute", "kind", "column"]
    assert all(row[start - 1] == " " and row[start] != " " for row in rows for start in starts[1:4])


def test_the_budget_is_shown_exactly(call: Call) -> None:
    (account,) = json.loads(call("ledger", "show", "budget.db", "--json").out)["datasets"]
    assert (account["epsilon"], account["spent"], account["left"]) == ("7/3", "1/3", "2")
    assert call("ledger", "history", "budget.db", "people").out.splitlines()[2].split()[0] == "1"


def test_labels_from_a_strange_file_cannot_steer_the_terminal(call: Call) -> None:
    schema = Schema([Nominal("sign", ["\x1b[2Jred", "line\nbreak", "\x9bm"])])
    release(Cube(schema, [1, 2, 3])).save("strange.veil")
    for words in (("query", "strange.veil", "SELECT COUNT(*) GROUP BY sign"), ("info", "strange.veil")):
        text = call(*words).out
        assert "\\x1b[2Jred" in text
        assert all(char.isprintable() for char in text.replace("\n", ""))
        assert "\x9b" not in call(*words, "--json").out


def test_an_unexpected_problem_is_named_by_its_type_and_not_by_its_text() -> None:
    told = describe(ValueError("row 17: income 8675309"))
    assert told.exit_code == 1
    assert "ValueError" in told.message
    assert "8675309" not in told.message


def test_what_is_paid_for_is_kept_when_its_place_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    made = release(Cube(Schema([Ordinal("age", 1, 2)]), [3, 4]))
    with pytest.raises(ReleaseFileError, match="is kept as"):
        save_what_was_paid_for(made, tmp_path / "gone" / "out.veil")
    assert len(list(tmp_path.rglob("saved.veil"))) == 1


def test_help_without_a_word_and_the_version(call: Call) -> None:
    assert call().out == call("--help").out
    for command in ("demo", "schema", "plan", "release", "query", "info", "ledger"):
        assert command in call("--help").out
    assert call("--version").out.startswith("veilcube ")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234.5, "1,234"), (-3.0, "-3"), (0.12345, "0.1235"), (float("nan"), "-"), ("2024-03", "2024-03")],
)
def test_numbers_are_shown_for_people(value: object, shown: str) -> None:
    assert show_number(value) == shown
    assert show_interval(value, value) == f"{shown} to {shown}"


def test_a_reader_who_stops_reading_is_no_error(tmp_path: Path) -> None:
    schema = Schema([Ordinal("cell", 1, 20_000)])
    release(Cube(schema, [1] * 20_000)).save(tmp_path / "long.veil")
    words = [sys.executable, "-m", "veilcube.cli", "query", "long.veil", "SELECT COUNT(*) GROUP BY cell"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read()
        assert process.wait(timeout=800) == 141
    assert complaints == b""


def test_interrupting_ends_quietly(tmp_path: Path) -> None:
    pipe = tmp_path / "never-written.toml"
    os.mkfifo(pipe)
    words = [sys.executable, "-m", "veilcube.cli", "schema", "check", str(pipe)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with pipe.open("w"):  # returns once the command has opened the other end, so it is at work by now
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=800)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_traceback_is_for_who_asks_for_it(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = call("schema", "check", "nowhere.toml")
    assert "Traceback" not in quiet.err
    monkeypatch.setenv("VEILCUBE_DEBUG", "1")
    loud = call("schema", "check", "nowhere.toml")
    assert "Traceback" in loud.err
    assert quiet.code == loud.code == 3
