"""The whole way on the command line, each step a process of its own."""

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

from support.command_line import run_veilcube, write_people, write_schema


def _json(*words: str, cwd: Path) -> dict:
    done = run_veilcube(*words, "--json", cwd=cwd)
    assert (done.code, done.err) == (0, ""), done
    return json.loads(done.out)


def test_a_curator_drafts_fills_checks_releases_and_an_analyst_asks(tmp_path: Path) -> None:
    write_people(tmp_path / "people.csv")

    drafted = run_veilcube("schema", "draft", "people.csv", "--out", "people.toml", cwd=tmp_path)
    assert drafted.code == 0
    assert "remove the attribute, if it only names a person" in drafted.out
    draft = (tmp_path / "people.toml").read_text(encoding="utf-8")
    unfilled = run_veilcube("schema", "check", "people.toml", cwd=tmp_path)
    assert unfilled.code == 3
    assert "attribute 'age' needs kind" in unfilled.err

    age, sex = draft.split('[[attribute]]\nname = "patient"')[0].split('name = "sex"')
    age = age.replace("# kind = ...", 'kind = "ordinal"').replace("# low = ...", "low = 20")
    age = age.replace("# high = ...", "high = 60")
    sex = sex.replace("# kind = ...", 'kind = "nominal"').replace(
        '# values = ["...", "..."]', 'values = ["Female", "Male"]'
    )
    filled = f'{age}name = "sex"{sex}'
    (tmp_path / "people.toml").write_text(filled, encoding="utf-8")
    assert _json("schema", "check", "people.toml", cwd=tmp_path)["cells"] == 82

    created = _json("ledger", "create", "sqlite:///budget.db", "people", "--epsilon", "3", cwd=tmp_path)
    assert (created["epsilon"], created["left"]) == ("3", "3")
    released = run_veilcube(
        *("release", "people.csv", "--schema", "people.toml", "--epsilon", "2", "--out", "people.veil"),
        *("--ledger", "sqlite:///budget.db", "--dataset", "people", "--analyst", "Ada"),
        cwd=tmp_path,
    )
    assert (released.code, released.err) == (0, "")
    assert "epsilon = 2" in released.out
    assert "charge 1" in released.out
    assert "Note: Protects rows." in released.out

    asked = run_veilcube("query", "people.veil", "age BETWEEN 30 AND 39 AND sex = 'Female'", cwd=tmp_path)
    assert asked.code == 0
    assert asked.out.splitlines()[0].split() == ["query", "estimate", "95%", "interval"]
    assert "Differentially private with epsilon = 2" in asked.out

    history = _json("ledger", "history", "sqlite:///budget.db", cwd=tmp_path)
    assert [(charge["epsilon"], charge["analyst"]) for charge in history["charges"]] == [("2", "Ada")]


def test_a_parquet_table_of_patients_is_released_for_persons(tmp_path: Path) -> None:
    table = pyarrow.csv.read_csv(write_people(tmp_path / "people.csv", rows=3000))
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet")
    write_schema(tmp_path / "people.toml")

    made = _json(
        *("release", "people.parquet", "--schema", "people.toml", "--epsilon", "20", "--out", "people.veil"),
        *("--person", "patient", "--max-rows", "2"),
        cwd=tmp_path,
    )
    assert made["privacy"]["unit"] == {"kind": "person", "column": "patient", "max_rows": 2}
    assert made["privacy"]["event"]["sensitivity"] == 2

    assert made["note"] is None
    assert "An epsilon of 20 protects hardly anybody" in made["warning"]

    asked = _json("query", "people.veil", "SELECT COUNT(*)", cwd=tmp_path)
    assert "at most 2 rows per person" in asked["counted"]
    assert _json("info", "people.veil", cwd=tmp_path)["counted"] == asked["counted"]
    for words in (("query", "people.veil", "SELECT COUNT(*)"), ("info", "people.veil")):
        assert asked["counted"] in run_veilcube(*words, cwd=tmp_path).out.splitlines()
    (total,) = asked["results"]
    # 1000 patients with three rows each, of which two are kept; noise of scale 1/10 on 82 cells is almost nothing.
    assert abs(total["value"] - 2000) < 20
    assert total["low"] <= total["value"] <= total["high"]
