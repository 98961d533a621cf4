"""Nobody is left out: a strategy, a mechanism or an estimator of the product that does not register here is found."""

import re
from pathlib import Path

import pytest

from conformance.members import ADAPTIVE, ESTIMATORS, MECHANISMS
from veilcube.analyst.estimate.registry import ESTIMATORS as OFFERED
from veilcube.curator.mechanisms import registry
from veilcube.errors import PlanError
from veilcube.planner import Identity, named_strategy, naming, plan
from veilcube.schema import Ordinal, Schema

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_every_strategy_and_its_mechanism_is_checked() -> None:
    checked = {(member.strategy.name, type(member.mechanism)) for member in (*MECHANISMS, *ADAPTIVE)}
    missing = {(name, type(mechanism)) for name, mechanism in registry._MECHANISMS.items()} - checked
    assert not missing, f"add a MechanismMember to tests/conformance/members.py for {missing}"


def test_every_strategy_that_has_a_name_has_a_mechanism_and_is_on_the_pages() -> None:
    python, command_line = ((REFERENCE / page).read_text(encoding="utf-8") for page in ("python.md", "command-line.md"))
    offered = re.findall(r"What to measure: (.*?)\.", command_line)[0].split(", ")
    for word in naming._NAMED:
        carried_out = named_strategy(word).name
        assert carried_out in registry._MECHANISMS, f"name '{carried_out}' in curator/mechanisms/registry.py"
        assert f'`"{word}"`' in python, f"docs/reference/python.md says nothing about the strategy '{word}'"
        assert word in offered, f"name '{word}' in cli/shared/options.py and run make reference"


def test_every_estimator_is_checked() -> None:
    missing = {estimator.name for estimator in OFFERED} - {member.estimator.name for member in ESTIMATORS}
    assert not missing, f"add an EstimatorMember to tests/conformance/members.py for {missing}"


class Unregistered(Identity):
    """A strategy of somebody's own."""

    name = "somebody's own"


def test_a_strategy_without_a_mechanism_is_refused_with_what_to_do() -> None:
    chosen = plan(Schema([Ordinal("age", 1, 6)]), 1, Unregistered())
    with pytest.raises(PlanError, match=r"somebody's own.*registry"):
        registry.mechanism_for(chosen)
