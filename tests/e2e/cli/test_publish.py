"""``veilcube publish``: a site from the command line."""

import json
from pathlib import Path

import pytest

import veilcube as vc
from support.command_line import Call, caller


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)
    schema = vc.Schema([vc.Ordinal("age", 20, 40), vc.Nominal("sex", ["Female", "Male"])])
    vc.release(vc.Cube(schema, [[9, 8]] * 21), strategy="identity").save(tmp_path / "people.veil")
    return caller(capfd)


def test_a_site_is_a_folder_called_after_the_release(call: Call, tmp_path: Path) -> None:
    done = call("publish", "people.veil", "--no-report")
    assert (done.code, done.err) == (0, "")
    assert "Open people-site/index.html in a browser" in done.out
    assert "<title>people</title>" in (tmp_path / "people-site" / "index.html").read_text(encoding="utf-8")
    again = call("publish", "people.veil", "--no-report")
    assert (again.code, "--force" in again.err) == (9, True)
    facts = json.loads(call("publish", "people.veil", "--no-report", "--force", "--title", "People", "--json").out)
    assert facts["files"][0]["file"] == "people-site/index.html"
    assert facts["privacy"]["epsilon"] == "1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "."], "a folder of its own"),
        (["--estimator", "nobody"], "there is no estimator"),
        (["--confidence", "95"], "between 0 and 1"),
        (["--out", "people.veil/x"], "choose another"),
    ],
)
def test_what_cannot_be_published_is_refused_in_one_sentence(call: Call, words: list[str], message: str) -> None:
    refused = call("publish", "people.veil", "--no-report", *words)
    assert refused.code != 0
    assert message in refused.err
    assert refused.err.count("\n") == 1
