"""Every mechanism under a promise of rho, or of epsilon and delta, and broken copies that must fail.

What is proved in docs/proofs/identity.md, docs/proofs/linear.md, docs/proofs/adaptive.md,
docs/proofs/gaussian-trees.md, docs/proofs/grouped-tables.md and docs/proofs/zcdp.md is tested here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from conformance.adaptive import check_steps_of_plan
from conformance.concentrated import (
    ORDERS,
    check_drawn_noise,
    check_event,
    check_every_path_spends_all,
    check_hockey_stick,
    check_renyi,
    plan_with,
)
from conformance.divergences import Renyi, laplace_renyi
from conformance.members import ADAPTIVE, BLOCKS, MECHANISMS, MechanismMember
from conformance.small_tables import SCHEMAS
from support.staged_trees import EveryLevel
from support.tree_strategies import PlainTree
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import (
    AdaptiveMechanism,
    GroupedTablesMechanism,
    IdentityMechanism,
    LinearMechanism,
    NoiseSampler,
    StagedTreeMechanism,
    staged as staged_tree,
)
from veilcube.laws import DiscreteLaplace, Noise
from veilcube.operators import NeighbourName, ProductOperator
from veilcube.planner import Adaptive, Family, GroupedDesign, GroupedTables, Identity, Plan, Spending, planned
from veilcube.planner.grouped import choosing
from veilcube.planner.partition.design import AdaptiveDesign
from veilcube.planner.staged.design import StagedDesign
from veilcube.privacy import Event, Neighbours, PrivacyUnit, Promise
from veilcube.query import Workload
from veilcube.record import NoisyMeasurement, measurement
from veilcube.schema import Schema

ROW, PERSON = PrivacyUnit.row(), PrivacyUnit.person("patient_id", 2)
RELATIONS = [("add-remove", ROW), ("replace", ROW), ("add-remove", PERSON), ("replace", PERSON)]
IN_RHO, LARGE_RHO = Promise.read(rho="1/8"), Promise.read(rho="3")
PAIR, LARGE_PAIR = Promise.read(epsilon=1, delta="1e-6"), Promise.read(epsilon=6, delta="1e-3")

every_mechanism = pytest.mark.parametrize("member", [*MECHANISMS, *ADAPTIVE], ids=lambda member: member.name)
each_adaptive = pytest.mark.parametrize("member", ADAPTIVE, ids=lambda member: member.name)
each_relation = pytest.mark.parametrize(
    ("neighbours", "unit"), RELATIONS, ids=lambda value: getattr(value, "kind", value)
)
words = pytest.mark.filterwarnings("ignore:every cell became a region")


def words_of(promise: Promise) -> str:
    return promise.words


@every_mechanism
@each_relation
@pytest.mark.parametrize("promise", [IN_RHO, pytest.param(LARGE_RHO, marks=pytest.mark.slow)], ids=words_of)
def test_renyi_divergences_of_neighbours_stay_within_rho_and_use_it_up(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit, promise: Promise
) -> None:
    check_renyi(member, promise, neighbours, unit)


@every_mechanism
@each_relation
@pytest.mark.parametrize("promise", [PAIR, pytest.param(LARGE_PAIR, marks=pytest.mark.slow)], ids=words_of)
def test_the_hockey_stick_divergence_at_epsilon_stays_within_delta(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit, promise: Promise
) -> None:
    check_hockey_stick(member, promise, neighbours, unit)


@every_mechanism
@each_relation
def test_the_event_states_what_is_drawn_costs_rho_and_names_its_theorem(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit
) -> None:
    for promise in (Promise.read(rho="2/3"), PAIR):
        check_event(member, promise, neighbours, unit)


@pytest.mark.parametrize("member", [*MECHANISMS, *ADAPTIVE[2:]], ids=lambda member: member.name)
@each_relation
def test_laplace_noise_within_a_rho_stays_within_it_at_every_order(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit
) -> None:
    check_renyi(member, IN_RHO, neighbours, unit, family="laplace")


@each_adaptive
def test_every_path_spends_exactly_rho_whatever_is_decided(member: MechanismMember) -> None:
    for promise in (IN_RHO, PAIR):
        check_every_path_spends_all(member, promise)


@words
@each_adaptive
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_steps_depend_on_earlier_outputs_only(member: MechanismMember, neighbours: str) -> None:
    for schema in SCHEMAS:
        check_steps_of_plan(member, plan_with(member, schema, LARGE_RHO, neighbours, ROW), seed=7, pairs=12)


@words
@pytest.mark.slow
@every_mechanism
def test_noise_follows_the_declared_law_and_three_percent_less_would_be_noticed(member: MechanismMember) -> None:
    check_drawn_noise(member, seed=11)
    with pytest.raises(AssertionError, match="not the noise declared"):
        check_drawn_noise(member, seed=11, fault=Fraction(97, 100))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(70, 3), Fraction(499)])
def test_the_formula_for_large_laplace_noise_is_the_sum_of_its_terms(order: float, scale: Fraction) -> None:
    for shift in (0, 1, 2, 7, 300):
        listed = Renyi(order).of_shifts(DiscreteLaplace(scale), np.array([shift]))[0]
        assert laplace_renyi(order, float(scale), shift) == pytest.approx(listed, rel=1e-9, abs=1e-12)


def fails(
    check: Callable[..., None], member: MechanismMember, neighbours: str, unit: PrivacyUnit, why: str | None = None
) -> None:
    with pytest.raises(AssertionError, match=why):
        check(member, PAIR if check is check_hockey_stick else IN_RHO, neighbours, unit)


class TooLittleNoise(IdentityMechanism):
    """Draws noise of 95% of the sigma² that it claims."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        return super().measure(cube, plan, receipt, lambda sigma, shape: draw_noise(sigma * Fraction(95, 100), shape))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_variance_five_percent_too_small_fails(neighbours: str) -> None:
    little = MechanismMember("too little noise", Identity(), TooLittleNoise())
    fails(check_renyi, little, neighbours, ROW, "exceeds")
    fails(check_event, little, neighbours, ROW)


class HalfTheNoise(IdentityMechanism):
    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        return super().measure(cube, plan, receipt, lambda sigma, shape: draw_noise(sigma / 2, shape))


def test_half_the_variance_fails_by_its_delta() -> None:
    fails(check_hockey_stick, MechanismMember("half", Identity(), HalfTheNoise()), "add-remove", ROW, "is promised")


class WithL1(ProductOperator):
    """Takes its L1 sensitivity for the squared L2 one."""

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return self.sensitivity(neighbours)


class WithSquaredL1(ProductOperator):
    """Takes the square of its L1 sensitivity, which is too large: safe, and budget that is not used."""

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return self.sensitivity(neighbours) ** 2


@dataclass(frozen=True)
class BrokenTree(PlainTree):
    kind: type[ProductOperator] = WithL1

    def operator(self, schema: Schema) -> ProductOperator:
        sound = super().operator(schema)
        return self.kind(sound.axes, sound.dimensions)


@pytest.mark.parametrize(("kind", "why"), [(WithL1, "exceeds"), (WithSquaredL1, "unspent")])
@each_relation
def test_l1_used_for_l2_fails(kind: type[ProductOperator], why: str, neighbours: str, unit: PrivacyUnit) -> None:
    member = MechanismMember("L1 for L2", BrokenTree(2, kind), LinearMechanism())
    fails(check_renyi, member, neighbours, unit, why)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("member", [*MECHANISMS, *ADAPTIVE], ids=lambda member: member.name)
def test_the_rows_of_a_person_taken_without_their_square_fail(
    member: MechanismMember, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_square(per_row: int, per_row_replaced: int, unit: PrivacyUnit, neighbours: Neighbours) -> int:
        return unit.max_rows * (per_row if neighbours is Neighbours.ADD_REMOVE else max(per_row, per_row_replaced))

    for module in (planned, measurement):
        monkeypatch.setattr(module, "unit_sensitivity_l2_squared", without_square)
    fails(check_renyi, member, neighbours, PERSON, "exceeds")


def five_percent_less(law: Noise) -> Noise:
    return type(law)(law.parameter * Fraction(95, 100))


class GreedyRefunds(StagedDesign):
    """Refunds 5% more than is left, and claims that it does not."""

    def event(self, plan: Plan) -> Event:
        return StagedDesign(**vars(self)).event(plan)

    def refund_laws(self, spending: Spending) -> tuple[Noise, ...]:
        return tuple(five_percent_less(law) for law in super().refund_laws(spending))


class GreedyTree(EveryLevel):
    def design(self, schema: Schema) -> StagedDesign:
        return GreedyRefunds(**vars(super().design(schema)))


class GreedyRegions(AdaptiveDesign):
    """Draws 5% too little noise for the regions, and claims that it does not."""

    def event(self, plan: Plan) -> Event:
        return AdaptiveDesign(**vars(self)).event(plan)

    def laws(self, plan: Plan) -> tuple[Noise, Noise]:
        cells, regions = super().laws(plan)
        return cells, five_percent_less(regions)


class UnchargedRegions(AdaptiveDesign):
    """Spends all of rho on the cells and something on the regions, which it does not charge."""

    def event(self, plan: Plan) -> Event:
        return plan.step_spending.event()

    def laws(self, plan: Plan) -> tuple[Noise, Noise]:
        return plan.step_spending.law(), plan.step_spending.law(Fraction(1, 10))


@dataclass(frozen=True)
class BrokenBlocks(Adaptive):
    kind: type[AdaptiveDesign] = GreedyRegions

    def design(self, schema: Schema) -> AdaptiveDesign:
        return self.kind(**vars(super().design(schema)))


def broken_blocks(kind: type[AdaptiveDesign]) -> MechanismMember:
    given = {name: getattr(BLOCKS, name) for name in ("partition", "split", "side")}
    return MechanismMember(kind.__name__, BrokenBlocks(**given, kind=kind), AdaptiveMechanism())


class GreedySecondStep(GroupedDesign):
    """Draws 5% too little noise for the tables that it chose, and claims that it does not."""

    def laws(self, plan: Plan) -> tuple[Noise, Noise]:
        attributes, tables = super().laws(plan)
        return attributes, five_percent_less(tables)


class UnchargedFirstStep(GroupedDesign):
    """Draws noise for one table of the attributes, and does not charge for the others."""

    def laws(self, plan: Plan) -> tuple[Noise, Noise]:
        return plan.step_spending.law(self.share), super().laws(plan)[1]


@dataclass(frozen=True)
class BrokenTables(GroupedTables):
    kind: type[GroupedDesign] = GreedySecondStep

    def design(self, schema: Schema) -> GroupedDesign:
        return self.kind(schema)

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> tuple[GroupedTables, ...]:
        return (BrokenTables(family, kind=self.kind),)


def broken_tables(kind: type[GroupedDesign]) -> MechanismMember:
    return MechanismMember(kind.__name__, BrokenTables(kind=kind), GroupedTablesMechanism())


@pytest.mark.parametrize(
    "member",
    [
        MechanismMember("greedy refunds", GreedyTree(), StagedTreeMechanism()),
        broken_blocks(GreedyRegions),
        broken_blocks(UnchargedRegions),
    ],
    ids=lambda member: member.name,
)
@each_relation
def test_a_later_step_that_costs_more_than_is_left_fails(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit
) -> None:
    fails(check_renyi, member, neighbours, unit, "exceeds")
    fails(check_event, member, neighbours, unit)


@pytest.mark.parametrize("kind", [GreedySecondStep, UnchargedFirstStep])
@pytest.mark.parametrize("unit", [ROW, PERSON], ids=lambda unit: unit.kind)
def test_a_step_of_tables_with_too_little_noise_fails(kind: type[GroupedDesign], unit: PrivacyUnit) -> None:
    fails(check_renyi, broken_tables(kind), "add-remove", unit, "exceeds")
    fails(check_event, broken_tables(kind), "add-remove", unit)


def test_a_step_that_is_charged_twice_fails_by_what_is_left_unspent() -> None:
    class TwiceCharged(AdaptiveDesign):
        def laws(self, plan: Plan) -> tuple[Noise, Noise]:
            cells, regions = (plan.step_spending.law(share / 2) for share in self.shares(plan))
            return cells, regions

    fails(check_renyi, broken_blocks(TwiceCharged), "add-remove", ROW, "unspent")


@pytest.mark.parametrize(("percent", "why"), [(105, "more than rho"), (95, "less than rho")])
def test_multipliers_of_tables_off_by_five_percent_fail(
    percent: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = choosing.whole_multipliers_of
    monkeypatch.setattr(
        choosing, "whole_multipliers_of", lambda *given: tuple(times * percent // 100 for times in sound(*given))
    )
    with pytest.raises(AssertionError, match=why):
        check_every_path_spends_all(ADAPTIVE[4], IN_RHO)
    if percent > 100:
        fails(check_renyi, ADAPTIVE[4], "add-remove", ROW, "exceeds")
        fails(check_event, ADAPTIVE[4], "add-remove", ROW)


def test_multipliers_whose_sum_is_taken_for_their_length_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a pair have their squares in the budget: what sums up to it spends less."""
    sound = choosing.whole_multipliers_of
    monkeypatch.setattr(choosing, "whole_multipliers_of", lambda weights, _: sound(weights, "laplace"))
    with pytest.raises(AssertionError, match="less than rho"):
        check_every_path_spends_all(ADAPTIVE[4], IN_RHO)


def test_going_on_below_nodes_that_stopped_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_tree, "_children", lambda tree, *_: np.arange(tree.nodes(_[-1])))
    fails(check_renyi, ADAPTIVE[0], "add-remove", ROW, "exceeds")


def test_refunding_no_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_tree, "_highest", lambda *_: [])
    with pytest.raises(AssertionError):
        check_every_path_spends_all(ADAPTIVE[0], IN_RHO)


def test_refunding_an_ancestor_whose_other_cells_go_on_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_tree, "_highest", lambda tree, *_: [(tree.depth, np.zeros(1, dtype=np.int64))])
    fails(check_renyi, ADAPTIVE[0], "add-remove", ROW, "exceeds")


def test_deltas_are_found_too_large_where_too_much_is_spent_on_later_steps() -> None:
    class Lavish(UnchargedRegions):
        def laws(self, plan: Plan) -> tuple[Noise, Noise]:
            return plan.step_spending.law(), plan.step_spending.law()

    fails(check_hockey_stick, broken_blocks(Lavish), "add-remove", ROW, "is promised")
