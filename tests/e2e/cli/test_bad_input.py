"""Bad input on the command line: an exit code, one line, no traceback, nothing charged, no private value shown."""

import gzip
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from support.command_line import SCHEMA, Call, Finished, caller, run_veilcube, write_people, write_schema
from veilcube.cli.shared.files import reserve_room
from veilcube.curator.ledger import Ledger
from veilcube.errors import ReleaseFileError

CANARY = "8675309"


@dataclass(frozen=True)
class Case:
    words: tuple[str, ...]
    code: int
    said: str


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Run the command's own ``main`` in a folder with a table, its schema and a ledger with a budget of 1."""
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path / "people.csv", rows=60)
    write_schema(tmp_path / "people.toml")
    Ledger("budget.db").create("people", 1)
    return caller(capfd)


def _release(**changed: str) -> tuple[str, ...]:
    options = {
        "table": "people.csv",
        "--schema": "people.toml",
        "--epsilon": "1",
        "--out": "out.veil",
        "--ledger": "budget.db",
        "--dataset": "people",
    } | {(key if key == "table" else f"--{key.replace('_', '-')}"): value for key, value in changed.items()}
    table = options.pop("table")
    return ("release", table, *(word for pair in options.items() for word in pair))


RELEASES = {
    "missing table": Case(_release(table="nowhere.csv"), 4, "nowhere.csv"),
    "missing schema": Case(_release(schema="nowhere.toml"), 3, "nowhere.toml"),
    "no dataset of that name": Case(_release(dataset="animals"), 8, "animals"),
    "no ledger there": Case(_release(ledger="nowhere.db"), 8, "nowhere.db"),
    "epsilon zero": Case(_release(epsilon="0"), 6, "above 0"),
    "epsilon negative": Case(_release(epsilon="-1"), 6, "above 0"),
    "epsilon nan": Case(_release(epsilon="nan"), 6, "finite number"),
    "epsilon infinite": Case(_release(epsilon="inf"), 6, "finite number"),
    "epsilon no number": Case(_release(epsilon="abc"), 6, "finite number"),
    "budget exceeded": Case(_release(epsilon="1.5"), 7, "nothing charged"),
    "unknown strategy": Case(_release(strategy="magic"), 10, "magic"),
    "unknown neighbours": Case(_release(neighbours="twins"), 2, "twins"),
    "person without max_rows": Case(_release(person="patient"), 6, "--person and --max-rows go together"),
    "max_rows without person": Case(_release(max_rows="3"), 6, "--person and --max-rows go together"),
    "max_rows of zero": Case(
        _release(person="patient", max_rows="0"), 6, "--max-rows must be a whole number of at least 1"
    ),
    "missing person column": Case(_release(person="nobody", max_rows="2"), 4, "nobody"),
    "out is a folder": Case(_release(out="."), 9, "folder"),
    "out in no folder": Case(_release(out="nowhere/out.veil"), 9, "No such file"),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_that_cannot_be_made_costs_nothing_and_leaves_nothing(name: str, call: Call, tmp_path: Path) -> None:
    case, before = RELEASES[name], sorted(tmp_path.iterdir())
    done = call(*case.words)
    _is_one_clear_line(done, case.code, case.said)
    assert Ledger("budget.db").budget("people").spent == 0
    assert sorted(tmp_path.iterdir()) == before


TABLES = {
    "empty file": ("", 4, "empty"),
    "missing column": ("age,colour\n30,red\n", 4, "sex"),
    "wrong type": (f"age,sex\nabc{CANARY},Female\n", 4, "age"),
    "number outside the schema": (f"age,sex\n{CANARY},Female\n", 4, "age"),
    "value outside the schema": (f"age,sex\n30,Q{CANARY}\n", 4, "sex"),
    "missing value": (f"age,sex\n,Female\n{CANARY},Male\n", 4, "age"),
    "no header": (f"{CANARY},Female\n31,Male\n", 4, "column"),
    "torn row": (f'age,sex\n30,"Fem{CANARY}\n', 4, ""),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_does_not_fit_is_refused_without_a_word_of_what_it_holds(
    name: str, call: Call, tmp_path: Path
) -> None:
    text, code, said = TABLES[name]
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    done = call(*_release(table="bad.csv"))
    _is_one_clear_line(done, code, said)
    as_json = call(*_release(table="bad.csv"), "--json")
    assert json.loads(as_json.out)["error"]["exit_code"] == code
    assert CANARY not in done.out + done.err + as_json.out + as_json.err
    assert Ledger("budget.db").budget("people").spent == 0
    assert not (tmp_path / "out.veil").exists()


SCHEMAS = {
    "not TOML": ("[[attribute", "not valid TOML"),
    "no attribute": ("", "attribute"),
    "inverted bounds": ('[[attribute]]\nname = "age"\nkind = "ordinal"\nlow = 60\nhigh = 20\n', "swap"),
    "unknown kind": ('[[attribute]]\nname = "age"\nkind = "cardinal"\n', "kind"),
    "the same name twice": (SCHEMA + SCHEMA, "twice"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_that_is_not_well_formed_is_refused(name: str, call: Call, tmp_path: Path) -> None:
    text, said = SCHEMAS[name]
    write_schema(tmp_path / "bad.toml", text)
    _is_one_clear_line(call("schema", "check", "bad.toml"), 3, said)


def test_a_cube_too_large_for_memory_is_refused_before_anything_is_read(call: Call, tmp_path: Path) -> None:
    axes = "".join(f'[[attribute]]\nname = "a{k}"\nkind = "ordinal"\nlow = 1\nhigh = 5000\n' for k in range(3))
    write_schema(tmp_path / "huge.toml", axes)
    _is_one_clear_line(call(*_release(schema="huge.toml", table="nowhere.csv", strategy="tree")), 11, "GiB")


QUERIES = {
    "unknown attribute": Case(("height > 3",), 5, "height"),
    "unknown value": Case(("sex = 'Robot'",), 5, "Robot"),
    "inverted range": Case(("age BETWEEN 39 AND 30",), 5, "39"),
    "unsupported SQL": Case(("SELECT STDDEV(age) FROM people",), 5, "not supported"),
    "unreadable SQL": Case(("age >",), 5, ""),
    "no query": Case((), 5, "nothing to answer"),
    "a condition without its question": Case(("age > 30", "--where", "age < 40"), 5, "give the condition alone"),
    "a condition alone as an option": Case(("--where", "age < 40"), 5, "--where needs --mean, --sum or --quantile"),
    "confidence of one": Case(("age > 30", "--confidence", "1"), 5, "between 0 and 1"),
    "confidence no number": Case(("age > 30", "--confidence", "high"), 2, "confidence"),
    "unknown estimator": Case(("age > 30", "--estimator", "magic"), 5, "magic"),
    "mean without an order": Case(("--mean", "sex"), 5, "no order"),
    "rank beyond one": Case(("--quantile", "age", "1.5"), 5, "between 0 and 1"),
    "unknown option": Case(("age > 30", "--loudly"), 2, "--loudly"),
}


def test_queries_that_cannot_be_answered_say_why(call: Call) -> None:
    assert call(*_release()).code == 0
    for case in QUERIES.values():
        _is_one_clear_line(call("query", "out.veil", *case.words), case.code, case.said)


def test_files_that_are_no_releases_are_refused(call: Call, tmp_path: Path) -> None:
    assert call(*_release()).code == 0
    whole = (tmp_path / "out.veil").read_bytes()
    (tmp_path / "truncated.veil").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "flipped.veil").write_bytes(bytes([*whole[:300], whole[300] ^ 255, *whole[301:]]))
    (tmp_path / "text.veil").write_text("not a release", encoding="utf-8")
    (tmp_path / "empty.veil").touch()
    for name in ("truncated", "flipped", "text", "empty", "missing"):
        for command in (("query", f"{name}.veil", "age > 30"), ("info", f"{name}.veil")):
            _is_one_clear_line(call(*command), 9, f"{name}.veil")


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet", "people.txt"])
def test_a_table_in_place_of_a_release_is_told_apart_from_a_damaged_release(
    name: str, call: Call, tmp_path: Path
) -> None:
    table = pyarrow.csv.read_csv(tmp_path / "people.csv")
    with gzip.open(tmp_path / "people.csv.gz", "wb") as file:
        file.write((tmp_path / "people.csv").read_bytes())
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "people.txt").touch()
    for command in (("query", name, "age > 30"), ("info", name)):
        _is_one_clear_line(call(*command), 9, f"{name} is not a release file; make one with 'veilcube release'")


def test_a_release_under_the_name_of_a_table_is_still_read(call: Call) -> None:
    assert call(*_release(out="strange.csv")).code == 0
    assert call("query", "strange.csv", "age > 30").code == 0


def test_a_plan_for_half_a_unit_is_refused_in_the_words_of_the_command_line(call: Call) -> None:
    words = ("plan", "people.toml", "--epsilon", "1", "--person", "patient")
    _is_one_clear_line(call(*words), 6, "--person and --max-rows go together")


def test_a_release_is_never_written_over_its_own_table(call: Call, tmp_path: Path) -> None:
    before = (tmp_path / "people.csv").read_bytes()
    (tmp_path / "same.veil").symlink_to(tmp_path / "people.csv")
    for out in ("people.csv", "same.veil"):
        _is_one_clear_line(call(*_release(out=out), "--force"), 9, "is the private table itself")
    assert (tmp_path / "people.csv").read_bytes() == before
    assert Ledger("budget.db").budget("people").spent == 0


def test_a_release_is_not_written_over_unless_asked_to(call: Call, tmp_path: Path) -> None:
    assert call(*_release(epsilon="0.25")).code == 0
    first = (tmp_path / "out.veil").read_bytes()
    _is_one_clear_line(call(*_release(epsilon="0.25")), 9, "--force")
    assert (tmp_path / "out.veil").read_bytes() == first
    assert call(*_release(epsilon="0.25"), "--force").code == 0
    assert (tmp_path / "out.veil").read_bytes() != first
    assert float(Ledger("budget.db").budget("people").spent) == 0.5


def test_ledgers_that_cannot_be_used_are_refused(call: Call, tmp_path: Path) -> None:
    with sqlite3.connect("budget.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    (tmp_path / "text.db").write_text("not a ledger, whatever it is called", encoding="utf-8")
    for words, said in (
        (_release(), "upgrade veilcube"),
        (("ledger", "show", "budget.db"), "upgrade veilcube"),
        (("ledger", "create", "budget.db", "more", "--epsilon", "1"), "upgrade veilcube"),
        (("ledger", "history", "text.db"), "text.db"),
        (("ledger", "history", "nowhere.db"), "nowhere.db"),
        (("ledger", "show", "mysql://host/name"), "sqlite:///"),
    ):
        _is_one_clear_line(call(*words), 8, said)


def test_a_budget_is_fixed_once(call: Call) -> None:
    _is_one_clear_line(call("ledger", "create", "budget.db", "people", "--epsilon", "5"), 8, "exists already")
    _is_one_clear_line(call("ledger", "create", "budget.db", "others", "--epsilon", "nan"), 6, "finite number")


def test_no_room_on_the_disk_is_told_before_anything_is_charged(tmp_path: Path) -> None:
    with pytest.raises(ReleaseFileError, match="nothing was charged"):
        reserve_room(tmp_path / "out.veil", 2**62, overwrite=False)
    assert not list(tmp_path.iterdir())


def test_room_is_held_without_a_file_that_anyone_sees(tmp_path: Path) -> None:
    with reserve_room(tmp_path / "out.veil", 2**20, overwrite=False) as room:
        assert room.seek(0, 2) == 2**20
        assert not list(tmp_path.iterdir())


def test_the_real_command_prints_one_line_and_no_traceback(tmp_path: Path) -> None:
    write_people(tmp_path / "people.csv", extra=(CANARY, "Male"))
    write_schema(tmp_path / "people.toml")
    options = ("--schema", "people.toml", "--epsilon", "1", "--out", "out.veil")
    done = run_veilcube("release", "people.csv", *options, cwd=tmp_path)
    _is_one_clear_line(done, 4, "age")
    assert CANARY not in done.err


def _is_one_clear_line(done: Finished, code: int, said: str) -> None:
    assert done.code == code, done
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert "Traceback" not in done.err
