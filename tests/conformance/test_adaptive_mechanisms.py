"""Every mechanism that publishes step by step, on small tables, and broken copies that must fail.

What is proved in docs/proofs/adaptive.md, docs/proofs/staged-tree.md, docs/proofs/grouped-tables.md,
docs/proofs/joint-noise.md and docs/proofs/sharpened-noise.md is tested here.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from conformance.adaptive import (
    RecordedNoise,
    check_event,
    check_every_path_spends_all,
    check_losses,
    check_steps_depend_on_outputs_only,
    check_steps_of_pair,
    every_course,
    losses_of_changes,
    nodes_of,
)
from conformance.checks import measure, plan_of
from conformance.members import ADAPTIVE, MechanismMember
from conformance.small_tables import SCHEMAS
from support.staged_trees import EveryLevel
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import (
    AdaptiveMechanism,
    GroupedTablesMechanism,
    NoiseSampler,
    StagedTreeMechanism,
    grouped as grouped_tables,
    partition as adaptive,
    staged as staged_tree,
)
from veilcube.errors import ReleaseFileError
from veilcube.laws import DiscreteLaplace, Noise
from veilcube.operators import GroupedTablesOperator
from veilcube.planner import Adaptive, FirstLook, GroupedDesign, GroupedTables, Plan, Spending, choose_tables
from veilcube.planner.grouped import choosing
from veilcube.planner.partition.design import AdaptiveDesign
from veilcube.planner.staged.design import StagedDesign
from veilcube.privacy import Event, PrivacyUnit
from veilcube.record import NoisyMeasurement
from veilcube.schema import Nominal, Ordinal, Schema

ROW = PrivacyUnit.row()
PERSON = PrivacyUnit.person("patient_id", 2)
RELATIONS = [("add-remove", ROW), ("replace", ROW), ("add-remove", PERSON), ("replace", PERSON)]

each_mechanism = pytest.mark.parametrize("member", ADAPTIVE, ids=lambda member: member.name)
each_relation = pytest.mark.parametrize(
    ("neighbours", "unit"), RELATIONS, ids=lambda value: getattr(value, "kind", value)
)
REFINED, TABLES = ADAPTIVE[0], ADAPTIVE[4]
THREE = Schema([Ordinal("age", 1, 12), Nominal("job", [f"job {number}" for number in range(9)]), Ordinal("hour", 1, 7)])


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


# Grouped tables


def three_attributes(rows: int, seed: int) -> Cube:
    rng = np.random.default_rng(seed)
    return Cube(THREE, rng.multinomial(rows, rng.dirichlet(np.full(THREE.cells, 0.1))).reshape(THREE.shape))


def neighbour_of(cube: Cube, neighbours: str, seed: int) -> Cube:
    """Return the cube with one row more, or with one of its rows in another place."""
    rng, counts = np.random.default_rng(seed), cube.exact_counts.copy()
    if neighbours == "replace":
        counts.flat[rng.choice(np.flatnonzero(counts))] -= 1
    counts.flat[rng.integers(counts.size)] += 1
    return Cube(cube.schema, counts)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", ["1/2", "20"])
def test_tables_of_three_attributes_are_chosen_by_outputs_only(epsilon: str, neighbours: str) -> None:
    chosen = plan_of(TABLES, THREE, epsilon, neighbours, ROW)
    for seed in range(12):
        cube = three_attributes(10 ** (1 + seed % 4), seed)
        check_steps_of_pair(TABLES, chosen, cube, neighbour_of(cube, neighbours, seed), seed)


@pytest.mark.parametrize("epsilon", ["1/2", "20"])
def test_every_row_of_three_attributes_costs_exactly_epsilon(epsilon: str) -> None:
    """By hand for every cell: none can be in fewer or more tables than another."""
    added, exchanged = (plan_of(TABLES, THREE, epsilon, neighbours, ROW) for neighbours in ("add-remove", "replace"))
    rows = np.eye(THREE.cells, dtype=np.int64)
    for seed in range(2):
        cube = three_attributes(100 ** (1 + seed), seed)
        published = measure(TABLES, cube, added, RecordedNoise(seed))
        np.testing.assert_allclose(losses_of_changes(published, rows, {}), float(added.epsilon), rtol=1e-9)
        published = measure(TABLES, cube, exchanged, RecordedNoise(seed))
        moves = rows - rows[np.random.default_rng(seed).permutation(THREE.cells)]
        assert losses_of_changes(published, moves, {}).max() <= float(exchanged.epsilon) * (1 + 1e-9)
        assert losses_of_changes(published, rows[-1:] - rows[:1], {})[0] <= float(exchanged.epsilon) * (1 + 1e-9)


def test_different_tables_are_chosen_for_different_outputs() -> None:
    chosen = plan_of(TABLES, THREE, "1", "add-remove", ROW)
    courses = {
        nodes_of(measure(TABLES, three_attributes(10 ** (1 + seed % 4), seed), chosen, RecordedNoise(seed))[1])
        for seed in range(12)
    }
    assert len(courses) > 6


class PeekingTables(GroupedTablesMechanism):
    """Chooses the tables by the exact counts of the attributes, and otherwise does what it should."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        first = plan.design.first
        exact = FirstLook.of(first, first.apply(cube.exact_counts))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grouped_tables, "choose_tables", lambda schema, _, *rest: choose_tables(schema, exact, *rest))
            return super().measure(cube, plan, receipt, draw_noise)


class PeekingMultipliers(GroupedTablesMechanism):
    """Divides the budget by whether there is an even number of rows."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        def divided(*given: object) -> GroupedTablesOperator:
            found = choose_tables(*given)
            shift = int(cube.exact_rows) % 2 if len(found.tables) > 1 else 0
            first, second, *others = (*found.multipliers, 0)
            return replace(found, multipliers=(first - shift, second + shift, *others)[: len(found.tables)])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grouped_tables, "choose_tables", divided)
            return super().measure(cube, plan, receipt, draw_noise)


class PeekingRows(GroupedTablesMechanism):
    """Counts cells alone where there is an even number of rows, and not where there is a noisy number of enough."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grouped_tables, "are_cells_full", lambda *_: int(cube.exact_rows) % 2 == 0)
            return super().measure(cube, plan, receipt, draw_noise)


@pytest.mark.parametrize("peeking", [PeekingTables, PeekingMultipliers, PeekingRows])
def test_tables_that_are_chosen_by_exact_counts_fail(peeking: type[GroupedTablesMechanism]) -> None:
    member = MechanismMember("peeking", GroupedTables(full_cells=peeking is PeekingRows), peeking())
    with pytest.raises(AssertionError):
        check_steps_depend_on_outputs_only(member, "1", "add-remove", seed=7)


def test_multipliers_beyond_the_budget_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = choosing.whole_multipliers_of
    monkeypatch.setattr(
        choosing,
        "whole_multipliers_of",
        lambda *given: tuple(times * 105 // 100 for times in sound(*given)),
    )
    with pytest.raises(AssertionError, match="exceeds epsilon"):
        check_losses(TABLES, "1", "add-remove", ROW)
    with pytest.raises(AssertionError):
        check_event(TABLES, "add-remove", ROW)


def test_multipliers_below_the_budget_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = choosing.whole_multipliers_of
    monkeypatch.setattr(choosing, "whole_multipliers_of", lambda *given: tuple(times - 1 for times in sound(*given)))
    with pytest.raises(AssertionError):
        check_every_path_spends_all(TABLES, "1")


class TooLittleNoiseOnTables(GroupedTablesMechanism):
    """Draws noise of 95% of the scale that it declares."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        return super().measure(cube, plan, receipt, lambda scale, shape: draw_noise(scale * Fraction(95, 100), shape))


def test_tables_with_noise_five_percent_too_small_fail() -> None:
    little = MechanismMember("too little noise", GroupedTables(), TooLittleNoiseOnTables())
    with pytest.raises(AssertionError, match="not declared as it was drawn"):
        check_steps_depend_on_outputs_only(little, "1", "add-remove", seed=7)


@pytest.mark.parametrize("step", [0, 1])
def test_tables_whose_noise_is_declared_five_percent_too_small_fail(step: int) -> None:
    class Greedy(GroupedDesign):
        def laws(self, plan: Plan) -> tuple[Noise, Noise]:
            laws = list(super().laws(plan))
            laws[step] = DiscreteLaplace(laws[step].scale * Fraction(95, 100))
            return laws[0], laws[1]

    class GreedyTables(GroupedTables):
        def design(self, schema: Schema) -> GroupedDesign:
            return Greedy(schema)

        def candidates(self, *_: object) -> "tuple[GroupedTables, ...]":
            return (self,)

    greedy = MechanismMember("greedy", GreedyTables(), GroupedTablesMechanism())
    with pytest.raises(AssertionError, match="exceeds epsilon"):
        check_losses(greedy, "1", "add-remove", ROW)
    with pytest.raises(AssertionError):
        check_event(greedy, "add-remove", ROW)


def test_a_first_step_that_forgets_some_of_its_tables_fails() -> None:
    """With two attributes a row is counted twice: noise for one table is too little."""

    class Forgetful(GroupedDesign):
        def _spendings(self, plan: Plan) -> tuple[Spending, Spending]:
            _, second = super()._spendings(plan)
            return plan.step_spending, second

    class ForgetfulTables(GroupedTables):
        def design(self, schema: Schema) -> GroupedDesign:
            return Forgetful(schema)

        def candidates(self, *_: object) -> "tuple[GroupedTables, ...]":
            return (self,)

    forgetful = MechanismMember("forgetful", ForgetfulTables(), GroupedTablesMechanism())
    with pytest.raises(AssertionError, match="exceeds epsilon"):
        check_losses(forgetful, "1", "add-remove", ROW)
