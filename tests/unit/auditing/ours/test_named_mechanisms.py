"""``vc.audit`` of our own mechanisms: each passes, and broken copies of each kind are found, by the way that must."""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import veilcube as vc
from veilcube.auditing import AuditReport
from veilcube.auditing.ours import ASKED, MEASURED, strategies
from veilcube.curator.mechanisms import IdentityMechanism, Protection, partition
from veilcube.errors import AuditError
from veilcube.operators import IdentityOperator, NeighbourName
from veilcube.planner import Identity
from veilcube.schema import Schema

FEW = {"trials": 200, "records": 2}
RELATIONS = [("add-remove", 1), ("replace", 1), ("add-remove", 2), ("replace", 2)]


def failed_methods(report: AuditReport) -> set[str]:
    return {finding.method for finding in report.findings if finding.passed is False}


@pytest.mark.parametrize("name", MEASURED)
def test_mechanisms_of_releases_pass_every_check(name: str) -> None:
    report = vc.audit(name, epsilon=1, records=1, trials=200)
    assert report.passed, str(report)
    assert [finding.method for finding in report.findings] == ["claims", "exact", "replay", "statistics"]
    assert report.findings[1].epsilon == pytest.approx(1)  # spent whole: less would be a fault of the plan


@pytest.mark.parametrize("name", ASKED)
def test_mechanisms_of_protected_tables_and_caps_pass(name: str) -> None:
    report = vc.audit(name, epsilon=1, **FEW)
    assert report.passed, str(report)


@pytest.mark.parametrize(("neighbours", "max_rows"), RELATIONS)
def test_relations_and_units_pass(neighbours: str, max_rows: int) -> None:
    for name in ("identity", "blocks", "marginal of a protected table", "maximum"):
        report = vc.audit(name, epsilon="1/2", neighbours=neighbours, max_rows=max_rows, **FEW)
        assert report.passed, str(report)


@pytest.mark.parametrize("name", ["persons by rows", "rows beyond a cap"])
def test_what_is_told_about_a_cap_is_audited_for_persons_with_more_rows(name: str) -> None:
    report = vc.audit(name, epsilon=1, max_rows=3, trials=200, records=1)
    assert report.passed, str(report)
    assert report.epsilon == pytest.approx(1)


def test_gaussian_noise_is_audited_in_rho() -> None:
    report = vc.audit("identity", rho="1/200", max_rows=3, records=1, trials=200)
    assert report.passed, str(report)
    exact = next(finding for finding in report.findings if finding.method == "exact")
    assert exact.details["rho"] == pytest.approx(1 / 200, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("neighbours", "max_rows"), RELATIONS)
@pytest.mark.parametrize("name", [*MEASURED, *ASKED])
def test_every_mechanism_passes_on_all_tables_of_four_records(name: str, neighbours: str, max_rows: int) -> None:
    report = vc.audit(name, epsilon=1, neighbours=neighbours, max_rows=max_rows, records=4, trials=2_000)
    assert report.passed, str(report)


# Broken copies


class HalvedSensitivity(IdentityOperator):
    def sensitivity(self, neighbours: NeighbourName) -> int:
        return max(super().sensitivity(neighbours) // 2, 1)


class HalvedStrategy(Identity):
    def operator(self, schema: Schema) -> IdentityOperator:
        return HalvedSensitivity(schema.shape, schema.names)


@dataclass(frozen=True)
class TooLittleNoise(IdentityMechanism):
    def measure(self, cube: Any, plan: Any, receipt: Any, draw_noise: Any = None) -> Any:
        def less(scale: Fraction, shape: tuple[int, ...]) -> Any:
            return draw_noise(scale * Fraction(95, 100), shape)

        return super().measure(cube, plan, receipt, less if draw_noise else None)


def test_a_sensitivity_that_is_too_small_is_found_by_claims_and_by_the_exact_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strategies, "MEASURED", {"identity": HalvedStrategy})
    assert failed_methods(vc.audit("identity", neighbours="replace", **FEW)) >= {"claims", "exact"}


def test_noise_that_is_not_what_is_declared_is_found_by_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "mechanism_for", lambda plan: TooLittleNoise())
    assert "replay" in failed_methods(vc.audit("identity", **FEW))


def test_a_step_that_depends_on_more_than_outputs_is_found_by_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = itertools.count()

    def restless(design: Any, noisy: Any, *_: Any) -> Any:
        return np.arange(noisy.size).reshape(noisy.shape) // (1 + next(turns) % 2)

    monkeypatch.setattr(partition, "_chosen_regions", restless)
    report = vc.audit("blocks", **FEW)
    assert "replay" in failed_methods(report)
    assert report.epsilon == float("inf")


def test_a_question_that_forgets_rows_of_a_person_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Protection, "changed_rows", 1)
    report = vc.audit("maximum", max_rows=2, **FEW)
    assert failed_methods(report) >= {"exact", "replay"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mechanism": "staged tre"}, "did you mean 'staged tree'"),
        ({"mechanism": "identity", "domain": [1]}, "leave domain out"),
        ({"mechanism": "identity", "max_rows": 0}, "max_rows"),
        ({"mechanism": "identity", "max_rows": 99}, "max_rows"),
        ({"mechanism": len, "domain": [1], "max_rows": 2}, "max_rows is for mechanisms of veilcube"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_a_sentence(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(AuditError, match=words):
        vc.audit(**arguments)
