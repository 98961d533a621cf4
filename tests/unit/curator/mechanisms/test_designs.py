"""A mechanism carries out its own kind of design, and refuses a plan of another kind before anything is drawn."""

import numpy as np
import pytest

import veilcube as vc
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import AdaptiveMechanism, GroupedTablesMechanism, Mechanism, StagedTreeMechanism
from veilcube.errors import LedgerError, PlanError, PrivacyError

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 63)])
CUBE = vc.Cube(SCHEMA, np.ones(64, dtype=np.int64))


def never_drawn(*_: object) -> np.ndarray:
    pytest.fail("noise was drawn")


@pytest.mark.parametrize(
    ("mechanism", "strategy"),
    [
        (AdaptiveMechanism(), r"Adaptive\(\)"),
        (GroupedTablesMechanism(), r"GroupedTables\(\)"),
        (StagedTreeMechanism(), r"Tree\(refine=True\)"),
    ],
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


def test_grouped_tables_ask_for_the_memory_of_the_largest_that_may_be_chosen_and_of_their_labels() -> None:
    schema = vc.Schema([vc.Ordinal(name, 1, 1000) for name in "abc"])
    plan = vc.plan(schema, 1, vc.GroupedTables())
    first, largest = (part for part, _ in plan.parts)
    measured = first.measurement_shape[0] + largest.measurement_shape[0]
    labels = first.array_shapes["labels"][0] + largest.array_shapes["labels"][0]
    assert GroupedTablesMechanism().words_to_measure(plan) >= 2 * measured + labels


def test_grouped_tables_measure_nothing_before_their_receipt_is_redeemed() -> None:
    schema = vc.Schema([vc.Ordinal(name, 1, 3) for name in "abc"])
    plan, dearer = (vc.plan(schema, epsilon, vc.GroupedTables()) for epsilon in (1, 2))
    mechanism = GroupedTablesMechanism()
    cube = vc.Cube(schema, np.ones(schema.shape, dtype=np.int64))
    with pytest.raises(PrivacyError):
        mechanism.measure(cube, dearer, Receipt.uncharged(mechanism.claim(plan)), never_drawn)
    receipt = Receipt.uncharged(mechanism.claim(plan))
    mechanism.measure(cube, plan, receipt)
    with pytest.raises(LedgerError, match="used up"):
        mechanism.measure(cube, plan, receipt, never_drawn)
