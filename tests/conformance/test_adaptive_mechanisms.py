"""Every mechanism that publishes step by step, on small tables, and broken copies that must fail."""

from fractions import Fraction

import numpy as np
import pytest

from conformance.adaptive import (
    check_event,
    check_every_path_spends_all,
    check_losses,
    check_steps_depend_on_outputs_only,
    every_course,
)
from conformance.checks import plan_of
from conformance.members import ADAPTIVE, MechanismMember
from conformance.small_tables import SCHEMAS
from support.staged_trees import EveryLevel
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import (
    AdaptiveMechanism,
    NoiseSampler,
    StagedTreeMechanism,
    partition as adaptive,
    staged as staged_tree,
)
from veilcube.errors import ReleaseFileError
from veilcube.laws import DiscreteLaplace, Noise
from veilcube.planner import Adaptive, Plan, Spending
from veilcube.planner.partition.design import AdaptiveDesign
from veilcube.planner.staged.design import StagedDesign
from veilcube.privacy import Event, PrivacyUnit
from veilcube.record import NoisyMeasurement
from veilcube.schema import Schema

ROW = PrivacyUnit.row()
PERSON = PrivacyUnit.person("patient_id", 2)
RELATIONS = [("add-remove", ROW), ("replace", ROW), ("add-remove", PERSON), ("replace", PERSON)]

each_mechanism = pytest.mark.parametrize("member", ADAPTIVE, ids=lambda member: member.name)
each_relation = pytest.mark.parametrize(
    ("neighbours", "unit"), RELATIONS, ids=lambda value: getattr(value, "kind", value)
)
REFINED = ADAPTIVE[0]


@each_mechanism
@each_relation
def test_outputs_of_neighbours_stay_within_epsilon_whatever_stops(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit
) -> None:
    check_losses(member, "2/3", neighbours, unit)


@each_mechanism
@pytest.mark.parametrize("epsilon", ["1", "1/10", "7/2"])
def test_every_path_spends_exactly_epsilon_whatever_stops(member: MechanismMember, epsilon: str) -> None:
    check_every_path_spends_all(member, epsilon)


@each_mechanism
@each_relation
def test_event_states_what_is_drawn_and_costs_epsilon(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit
) -> None:
    check_event(member, neighbours, unit)


@each_mechanism
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", ["1/2", "4"])
def test_steps_depend_on_earlier_outputs_only(member: MechanismMember, epsilon: str, neighbours: str) -> None:
    check_steps_depend_on_outputs_only(member, epsilon, neighbours, seed=7)


def test_the_patterns_of_stops_reach_many_different_courses() -> None:
    for schema in SCHEMAS:
        chosen = plan_of(REFINED, schema, "1", "add-remove", ROW)
        assert len(list(every_course(REFINED, schema, chosen))) > 12


class GreedyRefunds(StagedDesign):
    """Refunds 5% more than is left, and claims that it does not."""

    def event(self, plan: Plan) -> Event:
        return StagedDesign(**vars(self)).event(plan)

    def refund_laws(self, spending: Spending) -> tuple[Noise, ...]:
        return tuple(DiscreteLaplace(law.scale * Fraction(95, 100)) for law in super().refund_laws(spending))


class GreedyTree(EveryLevel):
    def design(self, schema: Schema) -> StagedDesign:
        design = super().design(schema)
        return GreedyRefunds(design.levels, design.weights, design.thresholds)


class TooLittleNoise(StagedTreeMechanism):
    """Draws noise of 95% of the scale that it declares."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        return super().measure(cube, plan, receipt, lambda scale, shape: draw_noise(scale * Fraction(95, 100), shape))


LITTLE = MechanismMember("too little noise", EveryLevel(), TooLittleNoise())
GREEDY = MechanismMember("greedy", GreedyTree(), StagedTreeMechanism())


def test_noise_five_percent_too_small_fails() -> None:
    with pytest.raises(AssertionError, match="not declared as it was drawn"):
        check_steps_depend_on_outputs_only(LITTLE, "1", "add-remove", seed=7)


def test_refunds_five_percent_too_large_fail() -> None:
    with pytest.raises(AssertionError, match="exceeds epsilon"):
        check_losses(GREEDY, "1", "add-remove", ROW)
    with pytest.raises(AssertionError):
        check_event(GREEDY, "add-remove", ROW)


def test_going_on_below_nodes_that_stopped_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_tree, "_children", lambda tree, *_: np.arange(tree.nodes(_[-1])))
    # Either the cost shows, or a node is sharpened twice from one value, which no release may hold.
    with pytest.raises((AssertionError, ReleaseFileError), match=r"exceeds epsilon|do not fit"):
        check_losses(REFINED, "1", "add-remove", ROW)


def test_refunding_no_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_tree, "_highest", lambda *_: [])
    with pytest.raises(AssertionError):
        check_every_path_spends_all(REFINED, "1")


def test_refunding_an_ancestor_whose_other_cells_go_on_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_tree, "_highest", lambda tree, *_: [(tree.depth, np.zeros(1, dtype=np.int64))])
    with pytest.raises(AssertionError, match="exceeds epsilon"):
        check_losses(REFINED, "1", "add-remove", ROW)


def test_regions_that_look_at_exact_counts_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeking(self: object, cube: Cube, *rest: object) -> object:
        peeked = np.unique(cube.exact_counts.ravel(), return_inverse=True)[1].reshape(cube.exact_counts.shape)
        monkeypatch.setattr(adaptive, "_chosen_regions", lambda *_: peeked)
        return AdaptiveMechanism.measure(self, cube, *rest)

    cheating = type("Peeking", (AdaptiveMechanism,), {"measure": peeking})
    with pytest.raises(AssertionError):
        check_steps_depend_on_outputs_only(
            MechanismMember("peeking", ADAPTIVE[3].strategy, cheating()), "1", "add-remove", seed=7
        )


def test_a_second_step_with_five_percent_too_little_noise_fails() -> None:
    class Greedy(AdaptiveDesign):
        def laws(self, plan: Plan) -> tuple[Noise, Noise]:
            cells, regions = super().laws(plan)
            return cells, DiscreteLaplace(regions.scale * Fraction(95, 100))

        def event(self, plan: Plan) -> Event:
            return AdaptiveDesign(**vars(self)).event(plan)

    class GreedyBlocks(Adaptive):
        def design(self, schema: Schema) -> AdaptiveDesign:
            return Greedy(**vars(super().design(schema)))

    greedy = MechanismMember("greedy", GreedyBlocks(partition="blocks", split=0.5), AdaptiveMechanism())
    with pytest.raises(AssertionError, match="exceeds epsilon"):
        check_losses(greedy, "1", "add-remove", ROW)


def test_stops_that_look_at_exact_counts_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeking(self: object, level: int, active: np.ndarray, threshold: float) -> np.ndarray:
        in_order = self._exact.reshape(-1)[self.tree.order]
        return np.add.reduceat(in_order, self.tree.starts(level))[active] < 1

    monkeypatch.setattr(staged_tree._Course, "stops", peeking)
    with pytest.raises(AssertionError, match=r"depends|published about a neighbour"):
        check_steps_depend_on_outputs_only(REFINED, "1", "add-remove", seed=7)
