"""``veilcube audit``: a function from a file, its verdict as text, JSON, page and exit code."""

import json
from pathlib import Path

import pytest

from support.command_line import Call, caller, run_veilcube

FILE = """
DOMAIN = ["a", "b"]

def count(records, noise):
    return noise.add(len(records), scale=1)

def little(records, noise):
    return noise.add(len(records), scale=0.5)
"""


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    return caller(capfd)


def test_a_promise_that_is_kept_ends_with_0_and_a_page(call: Call) -> None:
    done = call("audit", "mine.py:count", "--epsilon", "1", "--trials", "500", "--html", "a.html")
    assert done.code == 0, done.err
    assert "PASSED" in done.out
    assert "Wrote a.html" in done.out
    assert Path("a.html").read_text().startswith("<!doctype html>")
    again = call("audit", "mine.py:count", "--epsilon", "1", "--html", "a.html")
    assert again.code == 9
    assert "--force" in again.err


def test_a_broken_promise_ends_with_12_and_its_witness(call: Call) -> None:
    done = call("audit", "mine.py:little", "--epsilon", "1", "--trials", "500", "--json")
    assert done.code == 12
    told = json.loads(done.out)
    assert told["passed"] is False
    assert told["epsilon"] == pytest.approx(2)
    assert told["witness"]["table"] == []


def test_the_domain_may_be_given(call: Call) -> None:
    done = call("audit", "mine.py:count", "--domain", '["x"]', "--records", "1", "--trials", "500", "--json")
    assert json.loads(done.out)["tables"].startswith("2 pairs")


def test_a_mechanism_of_ours_is_audited_by_its_name(call: Call) -> None:
    done = call(
        "audit", "identity", "--neighbours", "replace", "--max-rows", "2", "--records", "1", "--trials", "200", "--json"
    )
    assert done.code == 0, done.err
    assert {one["method"] for one in json.loads(done.out)["findings"]} == {"claims", "exact", "replay", "statistics"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["identit"], "did you mean 'identity'"),
        (["mine.py:none"], "no function 'none'"),
        (["nowhere.py:count"], "no file nowhere.py"),
        (["mine.py:count", "--domain", "x"], "--domain must be a list"),
        (["mine.py:count", "--trials", "1"], "trials"),
        (["bad.py:count"], "cannot be loaded (ZeroDivisionError)"),
        (["mine"], "FILE.py:FUNCTION"),
    ],
)
def test_what_cannot_be_audited_is_told_in_one_line(call: Call, words: list[str], told: str) -> None:
    Path("bad.py").write_text("1 / 0")
    done = call("audit", *words)
    assert done.code == 12
    assert told in done.err
    assert done.err.count("\n") == 1


def test_the_command_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    done = run_veilcube("audit", "mine.py:count", "--trials", "200", "--records", "1", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "PASSED" in done.out
