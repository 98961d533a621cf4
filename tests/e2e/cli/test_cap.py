"""``veilcube cap``, and what ``release``, ``query`` and ``info`` say of rows beyond a cap."""

import json
from pathlib import Path

import pytest
from pyarrow import csv

from support.command_line import Call, caller
from support.visits import SCHEMA, heavy_users

VISITS = heavy_users(3, patients=800)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)
    csv.write_csv(VISITS.table, tmp_path / "visits.csv")
    SCHEMA.to_toml(tmp_path / "visits.toml")
    return caller(capfd)


CAP = ("cap", "visits.csv", "--schema", "visits.toml", "--person", "patient")
RELEASE = ("release", "visits.csv", "--schema", "visits.toml", "--person", "patient", "--max-rows", "4")
MEASURED = (*RELEASE, "--epsilon", "1", "--strategy", "identity", "--measure-cap", "0.1", "--most-rows", "60")


def test_a_cap_is_recommended_and_charged(call: Call) -> None:
    assert call("ledger", "create", "b.db", "visits", "--epsilon", "1").code == 0
    done = call(*CAP, "--epsilon", "1/2", "--ledger", "b.db", "--dataset", "visits")
    assert (done.code, done.err) == (0, "")
    assert "Recommended: max_rows=" in done.out
    assert "rows kept" in done.out
    assert "all rows of each" in done.out
    assert "Charged to the budget of 'visits'" in done.out
    again = call(*CAP, "--epsilon", "3/4", "--ledger", "b.db", "--dataset", "visits")
    assert again.code != 0
    assert again.err.startswith("error: ")
    facts = json.loads(call(*CAP, "--epsilon", "1/2", "--largest", "60", "--confidence", "0.9", "--json").out)
    assert facts["confidence"] == 0.9
    assert facts["recommended"] in [choice["max_rows"] for choice in facts["choices"]]
    assert facts["charged_to"] is None


def test_a_release_with_a_measured_cap_tells_and_answers_for_all_rows(call: Call) -> None:
    done = call(*MEASURED, "--out", "v.veil")
    assert (done.code, done.err) == (0, "")
    assert "of rows are beyond the cap of 4 per person" in done.out
    assert "epsilon = 1.1" in done.out
    asked = call("query", "v.veil", "diagnosis = 'D0'", "--all-rows")
    assert "Counts are of all rows; their intervals cover those beyond the cap." in asked.out
    kept, every, narrow = (
        json.loads(call("query", "v.veil", "diagnosis = 'D0'", *words, "--json").out)
        for words in ([], ["--all-rows"], ["--all-rows", "--spread", "3"])
    )
    assert (kept["rows"], every["rows"]) == ("kept", "all")
    assert every["beyond_cap"]["most_rows"] == 60
    assert every["results"][0]["high"] > kept["results"][0]["high"]
    assert narrow["results"][0]["high"] <= every["results"][0]["high"]
    info = json.loads(call("info", "v.veil", "--json").out)
    assert info["beyond_cap"]["rows"]["value"] == every["beyond_cap"]["rows"]["value"]
    assert "beyond the cap of 4" in call("info", "v.veil").out
    facts = json.loads(call(*MEASURED, "--out", "w.veil", "--json").out)
    assert facts["cap"]["max_rows"] == 4
    assert len(facts["cap"]["values"]) == len(facts["cap"]["noise"]) == len(facts["cap"]["ends"]) + 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*CAP, "--epsilon", "0"), "above 0"),
        ((*CAP, "--epsilon", "1", "--largest", "1"), "whole number from 2"),
        ((*CAP, "--epsilon", "1", "--ledger", "b.db"), "go together"),
        ((*RELEASE, "--epsilon", "1", "--out", "x.veil", "--most-rows", "9"), "goes with measure_cap"),
        ((*MEASURED[:-1], "4", "--out", "x.veil"), "above the cap of 4"),
        (("release", *MEASURED[1:4], "--epsilon", "1", "--measure-cap", "1", "--out", "x.veil"), "person and max_rows"),
        (("query", "p.veil", "age = 3", "--all-rows"), "did not measure how many rows lie beyond its cap"),
        (("query", "p.veil", "age = 3", "--spread", "2"), "add rows='all'"),
        (("query", "p.veil", "--mean", "age", "--all-rows"), "--all-rows is for counts"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(call: Call, words: tuple[str, ...], said: str) -> None:
    if words[0] == "query":
        assert call(*RELEASE, "--epsilon", "1", "--strategy", "identity", "--out", "p.veil").code == 0
    done = call(*words)
    assert done.code != 0
    assert done.err.startswith("error: ")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not Path("x.veil").exists()


def test_groups_are_capped_and_said(call: Call) -> None:
    released = (*RELEASE, "--epsilon", "1", "--strategy", "identity", "--out", "g.veil", "--force")
    done = call(*released, "--max-groups", "diagnosis=2")
    assert (done.code, done.err) == (0, "")
    assert "of at most 2 values of 'diagnosis'" in done.out
    assert json.loads(call("info", "g.veil", "--json").out)["privacy"]["unit"]["max_groups"] == {"diagnosis": 2}
    for wrong in ("diagnosis", "=2", "diagnosis=x", "diagnosis=-1", "diagnosis=²", "diagnosis=0", "age=3", "nobody=3"):
        done = call(*released, "--max-groups", wrong)
        assert done.code != 0
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1
    twice = call(*released, "--max-groups", "diagnosis=2", "--max-groups", "diagnosis=3")
    assert "twice" in twice.err
