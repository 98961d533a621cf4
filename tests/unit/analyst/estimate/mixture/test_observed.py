"""What a model reads of a release: places of long attributes, tables in rows, the cells, and what is impossible."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from support.releases import gaussian_release_of, release_of
from veilcube.analyst.estimate.mixture.observed import (
    LEAST_ROWS,
    MOST_PLACES,
    PLACES_OF_LONG,
    ModelAxis,
    Observations,
    ObservedTable,
    impossible_region,
    read_observations,
)
from veilcube.laws import DiscreteLaplace
from veilcube.operators import GroupedTablesOperator
from veilcube.record import NoisyMeasurement, ReleaseRecord
from veilcube.schema import Nominal, Ordinal, Schema

Labels = NDArray[np.int64]
LONG = Schema([Ordinal("income", 0, 1999), Nominal("sex", ["f", "m"])])


def long_counts() -> NDArray[np.int64]:
    return np.random.default_rng(1).poisson(np.outer(np.exp(-np.arange(2000) / 400), [3.0, 1.0]))


def record_of(groupings: list[Labels]) -> ReleaseRecord:
    """Return a release without noise whose second step measures incomes, grouped in these ways, by sex."""
    record = release_of(LONG, long_counts(), 1, None, "grouped tables").record
    labelled = [*((0, labels) for labels in groupings), (1, np.arange(2))]
    tables = [(number, len(groupings)) for number in range(len(groupings))]
    chosen = GroupedTablesOperator.of(LONG.shape, labelled, tables, [3] * len(tables))
    second = NoisyMeasurement(chosen, chosen.apply(long_counts()), record.measurements[1].noise)
    return replace(record, measurements=(record.measurements[0], second))


def same_group_in_a_place(axis: ModelAxis, labels: Labels) -> bool:
    return all(np.unique(labels[axis.places == place]).size == 1 for place in range(axis.size))


def test_every_value_of_a_short_attribute_has_a_place_of_its_own() -> None:
    schema = Schema([Ordinal("a", 1, MOST_PLACES), Ordinal("b", 1, MOST_PLACES + 1), Ordinal("c", 1, 2)])
    counts = np.zeros(schema.shape, dtype=np.int64)
    counts[:, :, 0] = np.random.default_rng(2).random(counts.shape[:2]) < 0.01
    axes = read_observations(release_of(schema, counts, 1, 1, "grouped tables").record).axes
    assert [axis.is_plain for axis in axes] == [True, False, True]
    assert [axis.places.size for axis in axes] == list(schema.shape)
    assert axes[1].size < MOST_PLACES


def test_places_of_a_long_attribute_hold_about_equally_many_rows_and_are_shared_by_their_own_counts() -> None:
    axis, sex = read_observations(record_of([np.arange(2000) // 500])).axes
    assert sex.is_plain
    assert PLACES_OF_LONG // 2 <= axis.size <= 2 * PLACES_OF_LONG
    own = np.maximum(long_counts().sum(axis=1), 1e-3)
    rows = np.bincount(axis.places, weights=own)
    np.testing.assert_allclose(axis.within, own / rows[axis.places])
    np.testing.assert_allclose(np.bincount(axis.places, weights=axis.within), 1.0)
    assert rows.max() < own.max() + 2 * own.sum() / PLACES_OF_LONG


NESTED = [np.arange(2000) // 250, np.arange(2000) // 500]
CROSSING = [np.arange(2000) // 250, np.minimum(np.arange(2000) // 300, 5), np.arange(2000) % 7 // 3]


@pytest.mark.parametrize("groupings", [NESTED, CROSSING], ids=["nested", "not nested"])
def test_no_place_joins_values_that_a_table_tells_apart(groupings: list[Labels]) -> None:
    observed = read_observations(record_of(groupings))
    axis, counts = observed.axes[0], long_counts()
    assert not axis.is_plain
    assert all(same_group_in_a_place(axis, labels) for labels in groupings)
    pairs = [table for table in observed.tables if len(table.axes) == 2]
    assert len(pairs) == len(groupings)
    for table, labels in zip(pairs, groupings, strict=True):
        assert np.array_equal(table.groups[0][axis.places], labels)
        expected = np.stack([np.bincount(labels, weights=counts[:, sex]) for sex in range(2)], axis=1)
        np.testing.assert_allclose(table.counts, expected)


def test_runs_finer_than_places_are_left_out_and_own_counts_are_added_up_to_places() -> None:
    """Of 40,000 values there are runs of 16, 256 and 4096: 2,500 runs are more than places, the others are kept."""
    schema = Schema([Ordinal("a", 0, 39_999), Ordinal("b", 0, 1), Ordinal("c", 0, 1)])
    counts = np.zeros(schema.shape, dtype=np.int64)
    np.add.at(counts, (np.random.default_rng(3).integers(0, 20_000, 3000), 0, 1), 1)
    record = release_of(schema, counts, 1, None, "grouped tables").record
    sizes = [record.measurements[0].grouped.sizes(table)[0] for table in record.measurements[0].grouped.tables]
    assert 2_500 in sizes
    observed = read_observations(record)
    axis = observed.axes[0]
    alone = [table for table in observed.tables if table.axes == (0,) and table.counts.size > 1]
    assert sorted(table.counts.size for table in alone) == [10, 157, axis.size]
    own = alone[0]
    assert own.counts.size == axis.size
    np.testing.assert_allclose(own.counts, np.bincount(axis.places, weights=counts.sum(axis=(1, 2))))
    first = record.measurements[0]
    times = first.grouped.multipliers[1]  # that of all rows comes first
    assert own.variance == pytest.approx(first.noise.variance / times**2 * 40_000 / axis.size)


@pytest.mark.parametrize("make", [release_of, gaussian_release_of], ids=["laplace", "gaussian"])
def test_tables_are_counts_of_rows_with_the_variance_of_their_noise(make: object) -> None:
    schema = Schema([Ordinal("a", 0, 4), Ordinal("b", 0, 3), Ordinal("c", 0, 5)])
    counts = np.random.default_rng(4).poisson(20, schema.shape)
    record = make(schema, counts, 1, None, "grouped tables").record  # type: ignore[operator]
    observed = read_observations(record)
    assert observed.family in ("laplace", "gaussian")
    assert observed.family == record.measurements[0].noise.family
    multipliers = {
        (operator.axes(table), operator.sizes(table)): (times, part.noise.variance)
        for part in record.measurements
        for operator in [part.grouped]
        for table, times in zip(operator.tables, operator.multipliers, strict=True)
    }
    told = (*observed.tables, observed.cells)
    assert {(table.axes, table.counts.shape) for table in told} == set(multipliers)
    for table in told:
        times, variance = multipliers[table.axes, table.counts.shape]
        assert table.variance == pytest.approx(variance / times**2)
        assert table.counts.sum() == pytest.approx(counts.sum())
    assert observed.rows == pytest.approx(counts.sum())


def test_the_table_of_every_cell_is_found_whichever_attributes_have_one_value() -> None:
    schema = Schema([Ordinal("a", 0, 4), Ordinal("one", 3, 3), Nominal("c", ["x", "y"])])
    counts = np.random.default_rng(4).poisson(20, schema.shape)
    observed = read_observations(release_of(schema, counts, 1, None, "grouped tables").record)
    assert observed.cells is not None
    np.testing.assert_allclose(observed.cells.counts, counts[:, 0])
    assert observed.cells not in observed.tables
    assert observed.of_values[-1] is observed.cells


def test_a_single_attribute_and_a_cube_too_large_have_no_table_of_every_cell() -> None:
    line = Schema([Ordinal("a", 0, 9)])
    assert read_observations(release_of(line, np.ones(10, dtype=np.int64), 1, 1, "grouped tables").record).cells is None
    large = Schema([Ordinal(name, 0, 79) for name in "abc"])
    counts = np.zeros(large.shape, dtype=np.int64)
    counts[:5] = 1
    observed = read_observations(release_of(large, counts, 1, 1, "grouped tables").record)
    assert observed.cells is None
    assert {table.axes for table in observed.of_values} == {(0,), (1,), (2,)}
    assert any(len(table.axes) == 2 for table in observed.tables)


def made(*tables: tuple[list[float], float], cells: tuple[list[float], float] | None = None) -> Observations:
    def table(counts: list[float], variance: float) -> ObservedTable:
        return ObservedTable((0,), (np.arange(len(counts)),), np.array(counts), variance)

    whole = None if cells is None else table(*cells)
    return Observations((ModelAxis.plain(2),), tuple(table(*one) for one in tables), whole, (2,), "laplace", None)


def test_the_number_of_rows_weighs_sums_by_their_precision() -> None:
    assert made(([40.0, 50.0], 1.0), ([110.0], 2.0)).rows == pytest.approx(100.0)  # both sums have variance 2
    # Variances 2, 2 and 1: the cells weigh as much as both others.
    assert made(([40.0, 50.0], 1.0), ([110.0], 2.0), cells=([200.0], 1.0)).rows == pytest.approx(150.0)
    assert made(([40.0, 50.0], 1.0), ([150.0], 8.0)).rows == pytest.approx((90 / 2 + 150 / 8) / (1 / 2 + 1 / 8))


def test_there_is_a_little_of_a_row_however_the_noise_falls() -> None:
    assert made(([-40.0, 5.0], 1.0)).rows == LEAST_ROWS > 0.0


def test_other_counts_take_the_place_of_the_measured_ones() -> None:
    observed = made(([1.0, 2.0], 1.0), ([3.0], 2.0), cells=([4.0], 3.0))
    again = observed.with_counts([np.array([7.0, 8.0]), np.array([9.0])], np.array([10.0]))
    assert [table.counts.tolist() for table in again.tables] == [[7.0, 8.0], [9.0]]
    assert [table.variance for table in again.tables] == [1.0, 2.0]
    assert again.cells is not None
    assert again.cells.counts.tolist() == [10.0]
    assert observed.tables[0].counts.tolist() == [1.0, 2.0]


def test_impossible_combinations_are_one_region_whose_boxes_share_no_cell() -> None:
    attributes = [Ordinal("a", 0, 5), Nominal("b", ["x", "y", "z"]), Ordinal("c", 0, 3)]
    assert impossible_region(Schema(attributes)) is None
    schema = Schema(
        attributes, impossible=[{"a": (0, 3), "b": "x"}, {"a": (2, 5), "c": (1, 2)}, {"b": ["x", "y"], "c": 2}]
    )
    region = impossible_region(schema)
    assert region is not None
    held = np.zeros(schema.shape, dtype=np.int64)
    for box in region.boxes:
        held[np.ix_(*(box.indices(axis) for axis in range(3)))] += 1
    a, b, c = np.indices(schema.shape)
    expected = ((a <= 3) & (b == 0)) | ((a >= 2) & (c >= 1) & (c <= 2)) | ((b <= 1) & (c == 2))
    assert np.array_equal(held, expected.astype(np.int64))


def test_a_measurement_that_lacks_an_attribute_leaves_its_values_alike() -> None:
    """A file may hold tables of some attributes only: the others are told by nothing."""
    schema = Schema([Ordinal("a", 0, 999), Ordinal("b", 0, 3)])
    record = release_of(schema, np.ones(schema.shape, dtype=np.int64), 1, None, "grouped tables").record
    only = GroupedTablesOperator.of(schema.shape, [(1, np.arange(4))], [(0,)], [1])
    part = NoisyMeasurement(only, np.array([1, 2, 3, 4]), record.measurements[0].noise)
    observed = read_observations(replace(record, measurements=(part,)))
    np.testing.assert_allclose(np.unique(np.bincount(observed.axes[0].places)), [3, 4])
    assert [table.axes for table in observed.tables] == [(1,)]
    assert isinstance(part.noise, DiscreteLaplace)
    assert part.noise.parameter > Fraction(0)
