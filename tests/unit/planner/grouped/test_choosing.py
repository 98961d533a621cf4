"""Which tables the second step measures, from noisy counts alone: any counts, however wrong, give tables that fit."""

import time
from itertools import combinations, pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from veilcube.operators import GroupedTablesOperator
from veilcube.planner.design import Family
from veilcube.planner.grouped.choosing import (
    LADDER,
    LEAST_ROWS,
    UNITS,
    FirstLook,
    choose_tables,
    group_values,
    whole_multipliers_of,
)
from veilcube.planner.grouped.design import first_tables
from veilcube.schema import Nominal, Ordinal, Schema

FAMILIES = ("laplace", "gaussian")
# The noise of a table with all of the budget, in rows.
STDDEV = 1.5
each_family = pytest.mark.parametrize("family", FAMILIES)


def ordinals(*sizes: int) -> Schema:
    return Schema([Ordinal(f"a{axis}", 1, size) for axis, size in enumerate(sizes)])


def even_look(schema: Schema, rows: float) -> FirstLook:
    return FirstLook(tuple(np.full(size, rows / size) for size in schema.shape), rows)


def chosen_for(
    schema: Schema, rows: float, family: Family = "laplace", stddev: float = STDDEV
) -> GroupedTablesOperator:
    return choose_tables(schema, even_look(schema, rows), stddev * UNITS, family)


def check_multipliers(multipliers: tuple[int, ...], family: Family) -> None:
    assert all(type(times) is int and times >= 1 for times in multipliers)
    if family == "laplace":
        assert sum(multipliers) == UNITS
    else:
        squares = sum(times**2 for times in multipliers)
        # Rounding down to whole numbers leaves a little of the budget.
        assert UNITS**2 * (1 - 2 * np.sqrt(len(multipliers)) / UNITS) <= squares <= UNITS**2


def check_tables(schema: Schema, operator: GroupedTablesOperator, family: Family) -> None:
    check_multipliers(operator.multipliers, family)
    assert operator.cell_shape == schema.shape
    for number, grouping in enumerate(operator.groupings):
        labels = operator.group_of_values(number)
        assert np.unique(labels).tolist() == list(range(grouping.groups)), "a group without a value"


def orders_of(operator: GroupedTablesOperator) -> list[int]:
    return [len(table) for table in operator.tables]


def share_of(operator: GroupedTablesOperator, number: int, family: Family) -> float:
    power = 1 if family == "laplace" else 2
    return (operator.multipliers[number] / UNITS) ** power


# Groups of values

NOISY = st.one_of(
    st.floats(-1e4, 1e4),
    st.sampled_from([0.0, -1.0, 1.0, 1e-300, -1e12, 1e12, float(2**36)]),
    st.integers(-3, 3).map(float),
)


@given(counts=st.lists(NOISY, min_size=1, max_size=60), many=st.integers(1, 70), is_ordinal=st.booleans())
def test_any_counts_give_as_many_groups_as_asked_none_of_them_empty(
    counts: list[float], many: int, is_ordinal: bool
) -> None:
    size = len(counts)
    attribute = Ordinal("a", 1, size) if is_ordinal else Nominal("a", [f"v{number}" for number in range(size)])
    labels = group_values(Schema([attribute]), 0, np.array(counts), many)
    assert labels.shape == (size,)
    assert np.unique(labels).tolist() == list(range(min(many, size)))
    if many >= size:
        assert labels.tolist() == list(range(size))
    elif is_ordinal:
        assert (np.diff(labels) >= 0).all(), "groups of ordered values are runs"
    else:
        by_label = [np.array(counts)[labels == label] for label in range(many)]
        for fuller, rarer in pairwise(by_label):
            assert fuller.min() >= rarer.max(), "a group lies between the values of another by count"


@pytest.mark.parametrize("many", [2, 3, 7])
def test_groups_hold_about_equally_many_rows(many: int) -> None:
    counts = np.random.default_rng(1).gamma(1.0, 100.0, 200)
    held = np.bincount(group_values(ordinals(200), 0, counts, many), weights=counts)
    assert np.abs(held - counts.sum() / many).max() <= counts.max()


def test_a_value_with_nearly_all_rows_is_alone_and_the_rest_is_still_told_apart() -> None:
    counts = np.array([5.0, 4.0, 1e6, 3.0, 2.0, 1.0])
    labels = group_values(ordinals(6), 0, counts, 4)
    assert (labels == labels[2]).sum() == 1
    assert np.unique(labels).size == 4


def test_rare_values_of_a_nominal_attribute_are_together_wherever_they_are() -> None:
    schema = Schema([Nominal("job", list("abcdef"))])
    labels = group_values(schema, 0, np.array([1.0, 500.0, 2.0, 400.0, -3.0, 0.5]), 3)
    assert labels.tolist() == [2, 0, 2, 1, 2, 2]


def test_values_that_nobody_has_are_divided_evenly() -> None:
    for counts in (np.zeros(12), np.full(12, -7.0)):
        assert group_values(ordinals(12), 0, counts, 3).tolist() == [0] * 4 + [1] * 4 + [2] * 4


# Multipliers


@each_family
@given(weights=st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=3000))
def test_any_weights_give_whole_multipliers_of_the_whole_budget(family: Family, weights: list[float]) -> None:
    check_multipliers(whole_multipliers_of(np.array(weights), family), family)


@each_family
@pytest.mark.parametrize("others", [1, 3, 2016, 3017])
def test_tables_worth_nearly_nothing_do_not_exceed_the_budget(family: Family, others: int) -> None:
    multipliers = whole_multipliers_of(np.array([1.0, *[1e-12] * others]), family)
    check_multipliers(multipliers, family)
    assert multipliers[1:] == (1,) * others


@each_family
def test_multipliers_are_in_proportion_to_the_weights(family: Family) -> None:
    weights = np.array([5.0, 3.0, 2.0, 2.0])
    multipliers = np.array(whole_multipliers_of(weights, family))
    np.testing.assert_allclose(multipliers / multipliers[0], weights / weights[0], rtol=1e-3)


# Which tables


@each_family
def test_full_cells_have_most_of_the_budget_and_every_pair_a_part(family: Family) -> None:
    schema = ordinals(5, 4, 3)
    operator = chosen_for(schema, 60_000.0, family)
    check_tables(schema, operator, family)
    assert orders_of(operator) == [3, 2, 2, 2]
    assert operator.sizes(operator.tables[0]) == schema.shape
    assert share_of(operator, 0, family) > 0.9


@each_family
def test_the_fuller_cells_are_the_more_they_have(family: Family) -> None:
    schema = ordinals(10, 10, 10)
    shares = [share_of(chosen_for(schema, rows, family), 0, family) for rows in (10.0, 1e3, 1e4, 1e5, 1e7)]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(0.1, rel=1e-2)
    assert shares[-1] > 0.99


@each_family
def test_empty_cells_leave_most_to_tables_of_two_and_three(family: Family) -> None:
    schema = ordinals(30, 30, 30)
    operator = chosen_for(schema, 5_000.0, family)
    check_tables(schema, operator, family)
    assert orders_of(operator) == [3, 3, 2, 2, 2]
    whole, grouped = operator.tables[:2]
    assert operator.sizes(whole) == schema.shape
    assert prod(operator.sizes(grouped)) < schema.cells
    assert share_of(operator, 0, family) < 0.2


@each_family
def test_a_wide_table_is_measured_in_pairs_alone(family: Family) -> None:
    schema = ordinals(*[10] * 14)
    operator = chosen_for(schema, 1_000.0, family, stddev=14.0)
    check_tables(schema, operator, family)
    assert [operator.axes(table) for table in operator.tables] == list(combinations(range(14), 2))
    assert len(set(operator.multipliers)) <= 2


@each_family
def test_a_wide_table_of_many_rows_has_triples_too(family: Family) -> None:
    schema = ordinals(*[10] * 14)
    operator = chosen_for(schema, 1e8, family)
    assert sorted(set(orders_of(operator))) == [2, 3]
    assert orders_of(operator).count(3) == 364


def test_beyond_a_thousand_triples_there_are_none() -> None:
    assert set(orders_of(chosen_for(ordinals(*[10] * 20), 1e9))) == {2}
    assert 3 in orders_of(chosen_for(ordinals(*[10] * 19), 1e9))


@each_family
@pytest.mark.parametrize("rows", [50.0, 3e3, 2e5, 1e8])
def test_an_average_cell_of_a_table_is_well_above_its_noise(family: Family, rows: float) -> None:
    schema = ordinals(1000, 200, 50, 7)
    operator = chosen_for(schema, rows, family)
    for number, table in enumerate(operator.tables):
        noise = STDDEV * UNITS / operator.multipliers[number]
        sizes = operator.sizes(table)
        is_least = all(size <= LADDER[0] for size in sizes)
        assert is_least or rows / prod(sizes) >= 0.99 * LEAST_ROWS * noise


@each_family
def test_no_table_of_long_attributes_is_measured_whole(family: Family) -> None:
    """A cube of three or two long attributes was once measured cell by cell, as its only triple or pair."""
    for sizes in ((1000, 1000, 1000), (2000, 2000), (2000, 1, 2000)):
        operator = chosen_for(ordinals(*sizes), 1e9, family)
        check_tables(ordinals(*sizes), operator, family)
        assert operator.measurement_shape[0] < 300_000


def test_more_rows_than_any_table_has_do_not_make_tables_larger() -> None:
    schema = ordinals(*[300] * 19)
    operator = chosen_for(schema, float(2**36), stddev=1e-6)
    for table in operator.tables:
        assert prod(operator.sizes(table)) <= 256**2


# Odd schemas and odd counts


@each_family
@pytest.mark.parametrize("sizes", [(5, 1, 4, 3), (1, 9, 1), (1, 6, 7), (4000, 1, 1)])
def test_an_attribute_with_one_value_is_in_no_table(family: Family, sizes: tuple[int, ...]) -> None:
    schema = ordinals(*sizes)
    operator = chosen_for(schema, 1e4, family)
    check_tables(schema, operator, family)
    assert {axis for table in operator.tables for axis in operator.axes(table)} == {
        axis for axis, size in enumerate(sizes) if size > 1
    }


@each_family
def test_attributes_of_one_value_each_are_a_table_of_one_cell(family: Family) -> None:
    schema = ordinals(1, 1, 1)
    operator = chosen_for(schema, 10.0, family)
    assert (operator.measurement_shape, operator.multipliers) == ((1,), (UNITS,))


@each_family
@pytest.mark.parametrize("size", [1, 2, 70, 100_000])
def test_one_attribute_is_counted_value_by_value(family: Family, size: int) -> None:
    operator = chosen_for(ordinals(size), 1e4, family)
    assert (operator.measurement_shape, operator.multipliers) == ((size,), (UNITS,))


@each_family
def test_two_attributes_are_counted_by_cells_and_by_groups(family: Family) -> None:
    schema = ordinals(40, 30)
    operator = chosen_for(schema, 300.0, family)
    check_tables(schema, operator, family)
    whole, grouped = operator.tables
    assert operator.sizes(whole) == (40, 30)
    assert prod(operator.sizes(grouped)) < 300


@each_family
@pytest.mark.parametrize("rows", [-1e6, 0.0, -1e300, 1e300])
@pytest.mark.parametrize("stddev", [0.0, 1e-300, 1.0, 1e30])
@pytest.mark.parametrize("sizes", [(6, 5, 4), (40, 30), (9,), (300, 200, 100), (7,) * 10])
def test_counts_and_noise_far_from_any_table_are_borne(
    family: Family, rows: float, stddev: float, sizes: tuple[int, ...]
) -> None:
    schema = ordinals(*sizes)
    look = FirstLook(tuple(np.full(size, rows / size) for size in sizes), rows)
    check_tables(schema, choose_tables(schema, look, stddev, family), family)


@pytest.mark.parametrize("seed", range(10))
def test_negative_counts_of_values_are_borne(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schema = Schema([Ordinal("a", 1, 40), Nominal("b", [f"v{number}" for number in range(30)]), Ordinal("c", 1, 50)])
    look = FirstLook(tuple(rng.normal(-5.0, 100.0, size) for size in schema.shape), float(rng.normal(0, 2000)))
    for family in FAMILIES:
        check_tables(schema, choose_tables(schema, look, 10.0 * UNITS, family), family)


@each_family
def test_sixty_four_attributes_of_a_thousand_values_are_chosen_at_once(family: Family) -> None:
    schema = ordinals(*[1000] * 64)
    rng = np.random.default_rng(0)
    look = FirstLook(tuple(rng.gamma(0.3, 100.0, 1000) for _ in range(64)), 30_000.0)
    began = time.process_time()
    operator = choose_tables(schema, look, STDDEV * UNITS, family)
    assert time.process_time() - began < 5
    check_tables(schema, operator, family)
    assert orders_of(operator) == [2] * 2016
    assert operator.measurement_shape[0] < 10**6


# The first look


def test_the_first_look_reads_every_value_and_weighs_the_sums_of_all_tables() -> None:
    labelled = [(0, np.arange(3)), (1, np.arange(300)), (1, np.arange(300) // 16)]
    operator = GroupedTablesOperator.of((3, 300), labelled, [(0,), (1,), (2,)], [2, 1, 1])
    values = np.concatenate([np.full(3, 80), np.full(300, 1), np.full(19, 10)])
    look = FirstLook.of(operator, values)
    assert [own.tolist() for own in look.counts] == [[40.0] * 3, [1.0] * 300]
    sums, variances = np.array([120.0, 300.0, 190.0]), np.array([3.0 / 4, 300.0, 19.0])
    assert look.rows == pytest.approx((sums / variances).sum() / (1 / variances).sum())


def test_the_first_look_of_exact_counts_is_exact() -> None:
    schema = ordinals(4, 200, 2)
    counts = np.random.default_rng(3).integers(0, 9, schema.shape)
    operator = first_tables(schema)
    look = FirstLook.of(operator, operator.apply(counts))
    assert look.rows == pytest.approx(counts.sum())
    for axis, own in enumerate(look.counts):
        assert own.tolist() == margin(counts, axis).tolist()


def margin(counts: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
    return counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
