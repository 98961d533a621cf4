"""``vc.audit``: what it accepts, what it refuses, and what it reports."""

import json
from typing import Any

import pytest

import veilcube as vc
from veilcube.errors import AuditError, PrivacyError


def noisy(records: list[Any], noise: Any) -> object:
    return noise.add(len(records), scale=1, sensitivity=1)


def leaky(records: list[Any], noise: Any) -> object:
    return f"<script>{len(records)}</script>"


def test_a_report_says_everything_in_text_data_and_on_a_page(tmp_path: Any) -> None:
    report = vc.audit(leaky, ["<b>", "&"], epsilon=1, trials=500, records=2)
    assert not report.passed
    assert report.epsilon > 3
    data = json.loads(json.dumps(report.to_dict()))
    assert data["passed"] is False
    assert {one["method"] for one in data["findings"]} == {"exact", "replay", "statistics"}
    assert data["witness"]["table"] != data["witness"]["neighbour"]
    assert "FAILED" in str(report)
    page = report.save(tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def test_a_mechanism_that_keeps_its_promise_passes_with_what_it_spends() -> None:
    report = vc.audit(noisy, ["a", "b"], epsilon=1, trials=2_000, records=2)
    assert report.passed
    assert report.epsilon == pytest.approx(1)
    assert vc.audit(noisy, ["a", "b"], epsilon="1/2", trials=2_000, records=2).passed is False


def test_a_function_without_noise_is_audited_by_statistics_alone() -> None:
    report = vc.audit(len, ["a"], epsilon=1, trials=500)
    assert report.method == "statistics"
    assert not report.passed
    assert [one.passed for one in report.findings] == [None, False]


def test_a_constant_passes() -> None:
    report = vc.audit(lambda records: "constant", ["a", "b"], epsilon=1, trials=500)
    assert report.passed
    assert report.epsilon == 0


def test_progress_is_told_to_its_end() -> None:
    shares: list[float | None] = []
    vc.audit(noisy, ["a"], epsilon=1, trials=500, records=1, progress=shares.append)
    assert shares == sorted(shares, key=lambda share: share or 0)
    assert len(shares) > 2


def broken(records: list[Any], noise: Any) -> object:
    raise KeyError(records)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mechanism": "no such"}, "no mechanism"),
        ({"mechanism": 5}, "function"),
        ({"mechanism": broken}, "KeyError on every table"),
        ({"domain": None}, "domain"),
        ({"domain": "abc"}, "domain"),
        ({"domain": []}, "domain"),
        ({"records": 0}, "records"),
        ({"trials": 3}, "trials"),
        ({"progress": 5}, "progress"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_a_sentence(arguments: dict[str, Any], words: str) -> None:
    given = {"mechanism": noisy, "domain": ["a"], "epsilon": 1} | arguments
    with pytest.raises(AuditError, match=words):
        vc.audit(**given)


def test_a_promise_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(PrivacyError):
        vc.audit(noisy, ["a"], epsilon=-1)
    with pytest.raises(PrivacyError, match="rho"):
        vc.audit(noisy, ["a"], epsilon=1, rho=1)
