"""What grouped tables cost and how large they may become, known before any data; and the error that is planned."""

import time
import warnings
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

import veilcube as vc
from veilcube.errors import CapacityError, PlanError
from veilcube.operators import GroupedTablesOperator
from veilcube.planner import GroupedTables, Plan
from veilcube.planner.grouped.choosing import UNITS, FirstLook, choose_tables
from veilcube.planner.grouped.design import (
    GroupedDesign,
    PlannedTables,
    first_share,
    first_tables,
    largest_tables,
)
from veilcube.privacy import (
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    SequentialEvent,
    epsilon_of,
    noise_events,
    rho_of,
)
from veilcube.query import read_query
from veilcube.system import memory

FAMILIES = ("laplace", "gaussian")
RELATIONS = [("add-remove", {}), ("replace", {}), ("add-remove", {"person": "id", "max_rows": 3})]
RELATIONS += [("replace", {"person": "id", "max_rows": 3})]
each_relation = pytest.mark.parametrize(("neighbours", "unit"), RELATIONS, ids=["added", "exchanged", "person", "both"])


def ordinals(*sizes: int) -> vc.Schema:
    return vc.Schema([vc.Ordinal(f"a{axis}", 1, size) for axis, size in enumerate(sizes)])


SCHEMAS = {
    "one": ordinals(9),
    "two": ordinals(300, 4),
    "three": ordinals(5, 4, 3),
    "long": ordinals(5000, 129, 3),
    "wide": ordinals(*[10] * 20),
    "single values": ordinals(1, 1, 1),
    "one to tell apart": ordinals(1, 400_000, 1),
    "very wide": ordinals(*[1000] * 64),
}
each_schema = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))


# What it costs


def steps_of_tables(event: SequentialEvent) -> SequentialEvent:
    """Return the two steps of tables, which may be one of the ways after all rows were counted."""
    *_, last = event.events
    return last.events[1] if isinstance(last, ParallelEvent) else event


@each_relation
@pytest.mark.parametrize("promise", [{"epsilon": "1/10"}, {"epsilon": "7/2"}, {"rho": "1/8"}], ids=str)
@pytest.mark.parametrize("name", ["two", "three", "long"])
def test_either_way_after_counting_all_rows_costs_the_same(
    name: str, promise: dict[str, object], neighbours: str, unit: dict[str, object]
) -> None:
    plan = vc.plan(SCHEMAS[name], strategy=GroupedTables(full_cells=True), neighbours=neighbours, **promise, **unit)
    rows, either = plan.event.events
    cells, tables = either.events
    cost_of = epsilon_of if plan.family == "laplace" else rho_of
    nearly = Fraction(1, 2**38)
    assert rows.noise.sensitivity == cells.noise.sensitivity
    for way in (cells, tables):
        left = cost_of(plan.event) - cost_of(rows)
        assert left * (1 - nearly) <= cost_of(way) <= left
        assert left * Fraction(1, 100) * (1 - nearly) <= cost_of(rows) * Fraction(99, 100) <= left * Fraction(1, 100)


def test_cells_are_never_counted_alone_where_there_are_too_many_or_some_are_impossible() -> None:
    assert GroupedDesign(ordinals(2, 2, 2)).rows_share == 0
    names = vc.Nominal("a", ["x", "y"]), vc.Nominal("b", ["x", "y"]), vc.Nominal("c", ["x", "y"])
    assert GroupedDesign(vc.Schema(names), True).rows_share > 0
    assert GroupedDesign(vc.Schema(names, impossible=[{"a": "x", "b": "y"}]), True).rows_share == 0
    assert GroupedDesign(ordinals(2**11, 2**11), True).rows_share > 0
    assert GroupedDesign(ordinals(2**11, 2**11, 2), True).rows_share == 0
    assert GroupedDesign(ordinals(1, 9, 1), True).rows_share == 0


@pytest.mark.parametrize(
    ("sizes", "promise", "family"),
    [
        ((8, 6, 5, 4, 3, 2), {"epsilon": 1, "delta": "1e-9"}, "laplace"),
        ((8, 6, 5, 4, 3, 2), {"rho": "1/100"}, "gaussian"),
        ((30, 20, 20, 10, 5), {"epsilon": 1, "delta": "1e-9"}, "laplace"),
        ((30, 10, 12, 2, 4, 6, 5), {"epsilon": 1, "delta": "1e-9"}, "gaussian"),
    ],
    ids=str,
)
def test_single_counts_decide_the_noise_of_small_cubes_but_never_of_a_promise_in_rho(
    sizes: tuple[int, ...], promise: dict[str, object], family: str
) -> None:
    plan = vc.plan(ordinals(*sizes), **promise)
    assert plan.strategy.name == "grouped tables"
    assert plan.family == family
    assert plan.reason.startswith(f"{family.capitalize()} noise was taken")


@each_schema
@each_relation
@pytest.mark.parametrize("epsilon", ["1", "1/10", "7/2"])
def test_both_steps_cost_exactly_epsilon(
    schema: vc.Schema, neighbours: str, unit: dict[str, object], epsilon: str
) -> None:
    strategy = GroupedTables(full_cells=epsilon != "1")
    plan = vc.plan(schema, epsilon, strategy, neighbours=neighbours, **unit)
    first, second = steps_of_tables(plan.event).events
    left = Fraction(epsilon) * (1 - plan.design.rows_share)
    assert epsilon_of(plan.event) == Fraction(epsilon)
    assert epsilon_of(first) == first_share(len(schema)) * left
    assert first.sensitivity == plan.step_sensitivity * sum(first_tables(schema).multipliers)
    assert second.sensitivity == plan.step_sensitivity * UNITS


def gaussian_plan(schema: vc.Schema, neighbours: str = "add-remove", **given: object) -> Plan:
    plan = vc.plan(schema, strategy=GroupedTables(), neighbours=neighbours, **given)
    assert plan.family == "gaussian", "Gaussian noise is less for so many tables"
    return plan


@each_relation
@pytest.mark.parametrize(
    "promise", [{"rho": "1/8"}, {"rho": "3"}, {"rho": "1/7919"}, {"epsilon": 1, "delta": "1e-6"}], ids=str
)
@pytest.mark.parametrize("name", ["wide", "very wide"])
def test_both_steps_cost_at_most_rho_and_nearly_all_of_it(
    name: str, promise: dict[str, object], neighbours: str, unit: dict[str, object]
) -> None:
    plan = gaussian_plan(SCHEMAS[name], neighbours, **promise, **unit)
    assert isinstance(plan.event, SequentialEvent)
    assert all(isinstance(event, GaussianEvent) for event in plan.event.events)
    of_unit = plan.step_spending.sensitivity_squared
    squared = sum(times**2 for times in first_tables(plan.schema).multipliers)
    assert [event.noise.sensitivity for event in plan.event.events] == [of_unit * squared, of_unit * UNITS**2]
    assert plan.rho * (1 - Fraction(1, 2**38)) <= rho_of(plan.event) <= plan.rho


def test_laplace_noise_is_chosen_where_it_is_less() -> None:
    plan = vc.plan(SCHEMAS["one"], epsilon=10, delta="1e-9", strategy=GroupedTables())
    assert plan.family == "laplace"
    assert all(isinstance(event, LaplaceEvent) for event in plan.event.events)


@each_schema
def test_the_laws_of_both_steps_are_those_of_the_event(schema: vc.Schema) -> None:
    promises = ({"epsilon": "2/3"}, {"rho": "1/8"})
    for given, full_cells in product(promises, (False, True)):
        plan = vc.plan(schema, strategy=GroupedTables(full_cells=full_cells), **given)
        laws = [*(plan.design.laws_of_cells(plan) if plan.design.rows_share else ()), *plan.design.laws(plan)]
        assert [law.parameter for law in laws] == [event.noise.parameter for event in noise_events(plan.event)]
        assert [law for _, law in plan.parts] == laws


def test_many_attributes_give_the_first_step_a_larger_share() -> None:
    shares = [first_share(attributes) for attributes in (1, 5, 10, 14, 20, 64)]
    assert shares == sorted(shares)
    assert Fraction(1, 20) < shares[0] < shares[3] < shares[-1] < Fraction(1, 2)


# What is measured at most


def random_look(schema: vc.Schema, rng: np.random.Generator) -> FirstLook:
    """Return a first look that may say anything: from nobody to more rows than any table has."""
    rows = float(10 ** rng.uniform(0, 13)) * rng.choice([1, 1, 1, -1])
    shares = [rng.dirichlet(np.full(size, 0.3)) if size < 5000 else np.full(size, 1 / size) for size in schema.shape]
    return FirstLook(tuple(rows * share + rng.normal(0, 5, share.size) for share in shares), rows)


def label_cells(operator: GroupedTablesOperator) -> int:
    return sum(prod(shape) for shape in operator.array_shapes.values())


@each_schema
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_that_is_chosen_is_larger_than_what_is_planned_for(schema: vc.Schema, family: str) -> None:
    rng, largest = np.random.default_rng(5), largest_tables(schema)
    for _ in range(2 if len(schema) > 30 else 25):
        look, stddev = random_look(schema, rng), float(10 ** rng.uniform(-3, 9))
        chosen = choose_tables(schema, look, stddev, family)
        assert chosen.measurement_shape[0] <= largest.measurement_shape[0]
        assert len(chosen.tables) <= len(largest.tables)
        assert label_cells(chosen) <= label_cells(largest)
        assert set(chosen.groupings) <= set(largest.groupings)
        for neighbours in ("add-remove", "replace"):
            assert chosen.sensitivity(neighbours) <= largest.sensitivity(neighbours)
            assert chosen.sensitivity_l2_squared(neighbours) <= largest.sensitivity_l2_squared(neighbours)


def test_the_largest_tables_are_reached_where_rows_abound() -> None:
    for sizes in ((1000, 1000, 1000), (300, 300, 300, 300)):
        schema = ordinals(*sizes)
        look = FirstLook(tuple(np.full(size, 1e10 / size) for size in sizes), 1e10)
        chosen = choose_tables(schema, look, 1.0 * UNITS, "laplace")
        assert chosen.measurement_shape == largest_tables(schema).measurement_shape


def test_the_first_step_counts_all_rows_and_every_value_and_long_attributes_in_runs_as_well() -> None:
    operator = first_tables(ordinals(32, 128, 129, 5000))
    all_rows, *others = (operator.sizes(table) for table in operator.tables)
    assert all_rows == (1,)
    assert others == [(32,), (128,), (16,), (129,), (9,), (5000,), (313,), (20,)]
    assert operator.multipliers[0] > 1
    assert set(operator.multipliers[1:]) == {1}
    runs = operator.group_of_values(operator.tables[-1][0])
    assert (np.diff(runs) >= 0).all()
    assert np.bincount(runs).tolist() == [256] * 19 + [136]


def test_an_attribute_too_long_to_be_counted_is_refused_before_memory_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_machine_memory", lambda: 2 * 2**30)
    began = time.process_time()
    for sizes in ((2**33,), (2**33, 2, 2), (2**29, 2**29, 2**29, 5)):
        with pytest.raises((CapacityError, PlanError), match=r"memory|coarser bins"):
            vc.plan(ordinals(*sizes), 1, "grouped tables")
    assert time.process_time() - began < 5


# The error that is planned

PLANNED = {
    "one": ordinals(40),
    "two": ordinals(40, 9),
    "two large": ordinals(4000, 900),
    "three": ordinals(40, 9, 2),
    "many": ordinals(*[12] * 25),
    "a single value": ordinals(40, 1, 9),
}
each_planned = pytest.mark.parametrize("schema", PLANNED.values(), ids=list(PLANNED))


def narrowed_ranges(schema: vc.Schema, attributes: int, seed: int) -> vc.Workload:
    """Return random ranges of so many attributes, and all of the others."""
    rng, ranges = np.random.default_rng(seed), vc.Workload.random_ranges(schema, 60, seed=seed)
    low, high = np.zeros_like(ranges.low), np.tile(np.array(schema.shape) - 1, (60, 1))
    for row in range(60):
        axes = rng.choice(len(schema), attributes, replace=False)
        low[row, axes], high[row, axes] = ranges.low[row, axes], ranges.high[row, axes]
    return vc.Workload.ranges(schema, low, high)


@each_planned
@pytest.mark.parametrize("family", FAMILIES)
def test_every_range_has_a_finite_planned_error_above_zero(schema: vc.Schema, family: str) -> None:
    operator = PlannedTables.of(schema, family)
    for attributes in range(1, len(schema) + 1):
        asked = narrowed_ranges(schema, attributes, seed=attributes)
        moments = operator.moments_of_rectangles(asked.low, asked.high)
        for power in (moments.second, moments.fourth, moments.sixth):
            assert np.isfinite(power).all()
            assert (power > 0).all()
        np.testing.assert_array_equal(operator.variance_of_rectangles(asked.low, asked.high), moments.second)


@each_planned
@pytest.mark.parametrize("text", ["a0 = 3", "a0 < 5 OR a0 > 20", "a0 <> 7", "TRUE"])
def test_every_region_has_a_finite_planned_error_above_zero(schema: vc.Schema, text: str) -> None:
    operator, region = PlannedTables.of(schema, "laplace"), read_query(schema, text)
    moments = operator.moments_of_region(region)
    for power in (moments.second, moments.fourth, moments.sixth):
        assert 0 < float(power) < np.inf
    assert operator.variance_of_region(region) == float(moments.second)


def test_a_region_of_two_boxes_has_the_noise_of_both() -> None:
    schema = PLANNED["three"]
    operator = PlannedTables.of(schema, "laplace")
    both, *each = (
        operator.variance_of_region(read_query(schema, text)) for text in ("a0 < 5 OR a0 > 20", "a0 < 5", "a0 > 20")
    )
    assert both == pytest.approx(sum(each))


def test_nobody_is_told_without_error() -> None:
    schema = PLANNED["three"]
    operator = PlannedTables.of(schema, "laplace")
    assert operator.variance_of_region(read_query(schema, "a0 = 1 AND a0 = 2")) == 0
    low, high = np.array([[3, 0, 0]]), np.array([[2, 8, 1]])
    assert operator.variance_of_rectangles(low, high).tolist() == [0.0]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_planned_multipliers_divide_the_whole_budget(family: str) -> None:
    for schema in PLANNED.values():
        operator = PlannedTables.of(schema, family)
        if family == "laplace":
            spent, whole = operator.sensitivity("add-remove"), UNITS
        else:
            spent, whole = operator.sensitivity_l2_squared("add-remove"), UNITS**2
        # Each multiplier of many tables is rounded.
        assert spent == pytest.approx(whole, rel=0.1)
        assert operator.sensitivity("replace") == 2 * operator.sensitivity("add-remove")
        assert operator.sensitivity_l2_squared("replace") == 2 * operator.sensitivity_l2_squared("add-remove")


def test_sixty_four_attributes_of_a_million_values_are_planned_without_a_warning() -> None:
    schema = ordinals(*[10**6] * 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operator = PlannedTables.of(schema, "laplace")
        low, high = np.zeros((1, 64), dtype=np.int64), np.full((1, 64), 999_999)
        high[0, :2] = 17
        assert 0 < operator.variance_of_rectangles(low, high)[0] < np.inf
        low[0], high[0] = 3, 4
        assert 0 < operator.variance_of_rectangles(low, high)[0] < np.inf


def test_nothing_is_measured_by_what_is_only_planned() -> None:
    operator = PlannedTables.of(PLANNED["two"], "laplace")
    measured = np.zeros(operator.measurement_shape)
    for use in (operator.apply, operator.adjoint, operator.solve, operator.noise_weights):
        with pytest.raises(PlanError, match="chosen when it is carried out"):
            use(measured)


# The strategy


def test_auto_takes_it_from_three_attributes_on_where_no_questions_are_named() -> None:
    assert vc.plan(ordinals(8, 8, 8), 1).strategy.name == "grouped tables"
    assert vc.plan(ordinals(8, 8), 1).strategy.name != "grouped tables"
    schema = ordinals(8, 8, 8)
    named = vc.plan(schema, 1, workload=vc.Workload.marginals(schema, 1))
    assert named.strategy.name != "grouped tables"


def test_beyond_any_cube_it_is_taken_for_named_questions_too() -> None:
    schema = ordinals(*[100] * 10)
    plan = vc.plan(schema, 1, workload=vc.Workload(schema, [{"a0": 3, "a1": 4, "a2": 5, "a3": 6, "a4": 7}]))
    assert plan.strategy.name == "grouped tables"


def test_it_is_made_for_the_noise_that_is_drawn() -> None:
    plan = vc.plan(SCHEMAS["wide"], strategy="grouped tables", rho="1/8")
    assert {(one.strategy.family, one.family) for one in plan.candidates} == {(name, name) for name in FAMILIES}
    assert plan.strategy.design(plan.schema) == GroupedDesign(plan.schema)
    assert plan.to_dict()["strategy"] == {"name": "grouped tables"}
