"""``veilcube report``: the page, the picture and the card of a release, from the command line."""

import json
import sys
from pathlib import Path

import pytest
import yaml

import veilcube as vc
from support.command_line import Call, caller


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)
    schema = vc.Schema([vc.Ordinal("age", 20, 40), vc.Nominal("sex", ["Female", "Male"])])
    vc.release(vc.Cube(schema, [[9, 8]] * 21), strategy="identity").save(tmp_path / "people.veil")
    return caller(capfd)


def test_a_report_is_a_folder_called_after_the_release(call: Call, tmp_path: Path) -> None:
    done = call("report", "people.veil", "age >= 30", "--title", "People")
    assert (done.code, done.err) == (0, "")
    assert {path.name for path in (tmp_path / "people-report").iterdir()} == {
        "report.html",
        "report.png",
        "card.md",
        "registry.yaml",
    }
    page = (tmp_path / "people-report" / "report.html").read_text(encoding="utf-8")
    assert "<h1>People</h1>" in page
    assert "age &gt;= 30" in page
    assert "FILL IN" in done.out
    again = call("report", "people.veil")
    assert (again.code, "--force" in again.err) == (9, True)
    assert call("report", "people.veil", "--force", "--pair", "age,sex", "--by", "sex").code == 0


def test_the_card_alone_needs_no_charts(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    refused = call("report", "people.veil", "--out", "r")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert "pip install 'veilcube[report]'" in refused.err
    facts = json.loads(call("report", "people.veil", "--out", "r", "--card", "--json").out)
    assert facts["files"] == ["r/card.md", "r/registry.yaml"]
    assert yaml.safe_load((tmp_path / "r" / "registry.yaml").read_text())["deployment"]["basic"]["name"] == "people"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pair", "age"], "--pair takes two attributes"),
        (["--by", "height"], "no attribute 'height'"),
        (["SELECT sex, COUNT(*) FROM t GROUP BY sex"], "leave out GROUP BY"),
        (["--card", "--by", "age"], "a card has no charts"),
        (["--out", "people.veil/x"], "choose another"),
        (["--out", "my-report.html"], "--out names a folder"),
        (["--title", ""], "the title"),
    ],
)
def test_what_cannot_be_reported_is_told_in_one_sentence(
    call: Call, tmp_path: Path, words: list[str], message: str
) -> None:
    done = call("report", "people.veil", *words)
    assert done.code != 0
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not list(tmp_path.glob("*report*/*"))
