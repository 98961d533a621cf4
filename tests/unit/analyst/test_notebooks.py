"""What notebooks show: tables in which names and labels are text, and nothing private."""

import re
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of

SCRIPT = "<script>alert(1)</script>&\"'"
SCHEMA = vc.Schema([vc.Ordinal("age", 0, 99), vc.Nominal(f"job {SCRIPT}", [SCRIPT, "b"])])
RELEASE = release_of(SCHEMA, np.full((100, 2), 7), seed=1)


def shown(thing: object) -> str:
    """Return the HTML, checked to be well formed and to hold no markup of others."""
    html = str(thing._repr_html_())  # type: ignore[attr-defined]
    opened, closed = re.findall(r"<(\w+)", html), re.findall(r"</(\w+)", html)
    assert sorted(opened) == sorted(closed)
    assert set(opened) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    return html


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (SCHEMA, ["200 cells", "0 to 99", "&lt;script&gt;"]),
        (RELEASE, ["epsilon = 1", "Release: 200 cells", "&lt;script&gt;"]),
        (RELEASE.count(age=(3, 5)), ["95% interval", "epsilon = 1"]),
        (RELEASE.marginal(SCHEMA.names[1]), ["2 answers with 95% intervals", "&lt;script&gt;"]),
        (RELEASE.marginal("age"), ["... and 70 more."]),
        (vc.plan(SCHEMA, 1), ["identity", "expected error", "Plan("]),
        (vc.refine(RELEASE, "total = 1400"), ["RefinedRelease"]),
        (vc.refine({"a": 1.0, f"b{SCRIPT}": 2.0}, [], covariance=[1.0, 1.0]), ["2 answers"]),
    ],
    ids=["schema", "release", "answer", "answers", "many answers", "plan", "refined release", "refined answers"],
)
def test_each_is_a_table_of_what_it_says(thing: object, words: list[str]) -> None:
    html = shown(thing)
    for word in words:
        assert word in html


def test_a_ledger_shows_what_is_left_and_a_lost_one_still_shows(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "b.db")
    assert "b.db" in shown(ledger)
    ledger.create(f"a{SCRIPT}", epsilon=2)
    vc.release(vc.Cube(SCHEMA, np.ones((100, 2), dtype=int)), 0.5, "identity", ledger=ledger, dataset=f"a{SCRIPT}")
    html = shown(ledger)
    assert "a&lt;script&gt;" in html
    assert re.findall(r">([\d./]+)<", html) == ["2", "0.5", "1.5"]
    (tmp_path / "b.db").write_bytes(b"no ledger")
    assert "b.db" in shown(ledger)


def test_what_is_private_shows_nothing_in_a_notebook() -> None:
    assert not hasattr(vc.Cube(SCHEMA, np.ones((100, 2), dtype=int)), "_repr_html_")
