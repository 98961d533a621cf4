"""``make audit``: every mechanism is in its report, which is written as text, data and a page."""

import json
from pathlib import Path

import pytest
from tools.audit import main


def test_the_report_of_some_mechanisms_names_every_relation_unit_and_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(tmp_path / "report"), "--trials", "100", "--records", "1", "--only", "identity", "exponential maximum"]
    assert main(words) == 0
    told = json.loads((tmp_path / "report" / "audit.json").read_text())
    assert len(told["audits"]) == 8 + 4
    assert {(one["neighbours"], one["max_rows"]) for one in told["audits"]} == {
        (relation, rows) for relation in ("add-remove", "replace") for rows in (1, 2)
    }
    assert "12 audits of 2 mechanisms: 0 broken" in capsys.readouterr().out
    assert "12 audits" in (tmp_path / "report" / "audit.txt").read_text()
    assert (tmp_path / "report" / "audit.html").read_text().count("<pre>") == 12
