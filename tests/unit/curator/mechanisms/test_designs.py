"""A mechanism carries out its own kind of design, and refuses a plan of another kind before anything is drawn."""

import numpy as np
import pytest

import veilcube as vc
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import AdaptiveMechanism, Mechanism, StagedTreeMechanism
from veilcube.errors import PlanError

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 63)])
CUBE = vc.Cube(SCHEMA, np.ones(64, dtype=np.int64))


def never_drawn(*_: object) -> np.ndarray:
    pytest.fail("noise was drawn")


@pytest.mark.parametrize(
    ("mechanism", "strategy"), [(AdaptiveMechanism(), r"Adaptive\(\)"), (StagedTreeMechanism(), r"Tree\(refine=True\)")]
)
def test_a_plan_of_another_design_is_refused_with_what_to_do(mechanism: Mechanism, strategy: str) -> None:
    plan = vc.plan(SCHEMA, 1, vc.Identity())
    receipt = Receipt.uncharged(mechanism.claim(plan))
    with pytest.raises(PlanError, match=strategy):
        mechanism.measure(CUBE, plan, receipt, never_drawn)


def test_an_adaptive_release_knows_the_memory_of_its_own_design_only() -> None:
    sizes = [
        AdaptiveMechanism().words_to_measure(vc.plan(SCHEMA, 1, vc.Adaptive(partition=p))) for p in ("blocks", "kd")
    ]
    assert sizes[0] < sizes[1]
    with pytest.raises(PlanError):
        AdaptiveMechanism().words_to_measure(vc.plan(SCHEMA, 1, vc.Identity()))
