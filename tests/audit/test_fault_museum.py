"""Every fault of the museum is found, by every method that must find it, and every correct mechanism passes.

Statistics are wrong with probability 0.001 for a correct mechanism (``ERROR``); seeds are fixed, so that a test which
passes goes on passing.
"""

import random

import pytest

import veilcube as vc
from audit.faults import noise, selection, structure
from audit.faults.exhibit import Exhibit
from veilcube.auditing import AuditReport

MUSEUM = (*noise.EXHIBITS, *structure.EXHIBITS, *selection.EXHIBITS)
QUICK_TRIALS, QUICK_RECORDS = 2_000, 2


def audited(exhibit: Exhibit, records: int, trials: int) -> AuditReport:
    random.seed(exhibit.name)
    return vc.audit(
        exhibit.mechanism,
        exhibit.domain,
        neighbours=exhibit.neighbours,
        records=records,
        trials=trials,
        **exhibit.promise,
    )


def check(exhibit: Exhibit, report: AuditReport) -> set[str]:
    """Check the verdict, and return the methods that found something."""
    assert report.passed is exhibit.is_private, str(report)
    if not report.passed:
        assert report.witness is not None
        assert report.epsilon > 0
    return {finding.method for finding in report.findings if finding.passed is False}


@pytest.mark.parametrize("exhibit", [one for one in MUSEUM if one.is_quick], ids=lambda exhibit: exhibit.name)
def test_the_fault_is_found_and_a_correct_mechanism_passes(exhibit: Exhibit) -> None:
    records = exhibit.records if exhibit.records != 3 else QUICK_RECORDS
    check(exhibit, audited(exhibit, records, QUICK_TRIALS))


@pytest.mark.slow
@pytest.mark.parametrize("exhibit", MUSEUM, ids=lambda exhibit: exhibit.name)
def test_every_method_finds_the_faults_that_it_must_find(exhibit: Exhibit) -> None:
    failed = check(exhibit, audited(exhibit, exhibit.records, exhibit.trials))
    assert failed >= set(exhibit.found_by)


def test_every_fault_has_a_correct_counterpart_in_its_room() -> None:
    for room in (noise, structure, selection):
        assert any(exhibit.is_private for exhibit in room.EXHIBITS)
        assert any(not exhibit.is_private for exhibit in room.EXHIBITS)
    assert len({exhibit.name for exhibit in MUSEUM}) == len(MUSEUM)
