"""Bounds of grouped tables by brute force: what a question fills and cuts, without noise; and which table is asked."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from support.releases import gaussian_release_of, release_of
from veilcube.analyst.estimate.guaranteed.grouped_tables import GroupedBounds
from veilcube.analyst.estimate.mixture.estimator import LatentClasses
from veilcube.errors import QueryError
from veilcube.laws import DiscreteLaplace, half_widths
from veilcube.operators import GroupedTablesOperator
from veilcube.record import NoisyMeasurement, ReleaseRecord
from veilcube.schema import Box, Nominal, Ordinal, Region, Schema

Flags = NDArray[np.bool_]
SHAPE = (12, 8, 6, 5)
SCHEMA = Schema([Ordinal("a", 0, 11), Nominal("b", list("stuvwxyz")), Ordinal("c", 0, 5), Ordinal("d", 0, 4)])
HALVES = {axis: np.arange(size) // 3 for axis, size in enumerate(SHAPE)}
NOMINAL = np.array([2, 0, 1, 1, 0, 2, 0, 1])


def exact_counts() -> NDArray[np.int64]:
    return np.random.default_rng(1).poisson(2.0, SHAPE)


def measured(*steps: tuple[list[tuple[int, NDArray[np.int64]]], list[tuple[int, ...]], int]) -> ReleaseRecord:
    """Return a record of exact counts: for each step the groups, the tables of them, and their multiplier."""
    record = release_of(SCHEMA, exact_counts(), 1, None, "grouped tables").record
    parts = []
    for before, (labelled, tables, times) in zip(record.measurements, steps, strict=False):
        operator = GroupedTablesOperator.of(SHAPE, labelled, tables, [times] * len(tables))
        parts.append(NoisyMeasurement(operator, operator.apply(exact_counts()), before.noise))
    return replace(record, measurements=tuple(parts))


def pairs_and_triples() -> ReleaseRecord:
    """Return every attribute alone, all pairs of grouped values, and two tables over three attributes."""
    values = [(axis, np.arange(size)) for axis, size in enumerate(SHAPE)]
    groups = [(0, HALVES[0]), (1, NOMINAL), (2, HALVES[2]), (3, HALVES[3])]
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    return measured((values, [(0,), (1,), (2,), (3,)], 1), (groups, [*pairs, (0, 1, 2), (1, 2, 3)], 3))


def without_noise(record: ReleaseRecord) -> GroupedBounds:
    """Return bounds that know their counts to be exact: what is left between them is what the groups do not tell."""
    bounds, none = GroupedBounds.of(record), DiscreteLaplace(Fraction(1, 1000))
    assert half_widths(none, np.array([500]), 0.999)[0] == 0
    return replace(bounds, tables=tuple(replace(table, noise=none) for table in bounds.tables))


def random_region(axes: tuple[int, ...], random: np.random.Generator, boxes: int) -> Region:
    """Return a union of boxes that narrow these attributes, each to some of its values."""
    parts = []
    for _ in range(boxes):
        masks: list[Flags | None] = [None] * len(SHAPE)
        for axis in axes:
            masks[axis] = random.permutation(SHAPE[axis]) < random.integers(1, SHAPE[axis])
        parts.append(Region(SHAPE, (Box(SHAPE, tuple(masks)),)))
    return parts[0].union(*parts[1:])


SETS = [axes for axes in product([False, True], repeat=4) if any(axes)]


@pytest.mark.parametrize(
    "chosen", SETS, ids=lambda chosen: "".join(n for n, c in zip("abcd", chosen, strict=True) if c)
)
def test_exact_counts_are_bounded_for_random_regions(chosen: tuple[bool, ...]) -> None:
    axes = tuple(axis for axis, is_in in enumerate(chosen) if is_in)
    bounds, random, counts = without_noise(pairs_and_triples()), np.random.default_rng(2), exact_counts()
    told = {(0,), (1,), (2,), (3,), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (0, 1, 2), (1, 2, 3)}
    lows = []
    for number in range(60):
        region = random_region(axes, random, 1 + number % 3)
        found = bounds.region(region, 0.95)
        truth = counts[region.mask()].sum()
        assert found.low <= truth <= found.high, (axes, region.mask().sum())
        assert found.value == pytest.approx((found.low + found.high) / 2)
        if len(axes) == 1:  # the values themselves were counted
            assert found.low == found.high == truth
        lows.append(float(found.low))
    if axes not in told:
        assert set(lows) == {0.0}
    else:
        assert max(lows) > 0.0
    assert bounds.region(Region.nothing(SHAPE), 0.95).high == 0.0


def test_questions_made_of_whole_groups_are_answered_exactly() -> None:
    bounds, counts, random = without_noise(pairs_and_triples()), exact_counts(), np.random.default_rng(3)
    for _ in range(20):
        thirds, letters = random.permutation(4) < 2, random.permutation(3) < 2
        masks = (thirds[HALVES[0]], letters[NOMINAL], None, None)
        region = Region(SHAPE, (Box(SHAPE, masks),))
        found = bounds.region(region, 0.95)
        assert found.low == found.high == counts[region.mask()].sum()


def test_blocks_have_the_bounds_of_their_regions_and_empty_ones_none() -> None:
    bounds, random = GroupedBounds.of(pairs_and_triples()), np.random.default_rng(4)
    low, high = np.zeros((40, 4), dtype=np.int64), np.tile(np.array(SHAPE) - 1, (40, 1))
    for row in range(40):
        for axis in random.choice(4, 1 + row % 4, replace=False):
            low[row, axis], high[row, axis] = np.sort(random.integers(0, SHAPE[axis], 2))
    blocks = bounds.rectangles(low, high, 0.9)
    for row in range(40):
        masks = tuple(
            (np.arange(size) >= begin) & (np.arange(size) <= end)
            for size, begin, end in zip(SHAPE, low[row], high[row], strict=True)
        )
        single = bounds.region(Region(SHAPE, (Box(SHAPE, masks),)), 0.9)
        assert (single.low, single.high) == (blocks.low[row], blocks.high[row])
    empty = bounds.rectangles(np.array([[3, 0, 0, 0]]), np.array([[2, 7, 5, 4]]), 0.9)
    assert (empty.low[0], empty.high[0], empty.stddev[0]) == (0.0, 0.0, 0.0)
    none = bounds.rectangles(np.zeros((0, 4), dtype=np.int64), np.zeros((0, 4), dtype=np.int64), 0.9)
    assert none.low.shape == none.high.shape == (0,)


def test_ends_are_as_far_apart_as_the_noise_of_what_is_filled_and_touched_reaches() -> None:
    """Of ages 1 to 7 in groups of three, one group is filled and two are cut: it reaches over one and over three."""
    record = measured(([(0, HALVES[0]), (1, np.arange(8))], [(0, 1)], 2))
    noise, counts = record.measurements[0].noise, exact_counts().sum(axis=(2, 3))
    masks = (np.isin(np.arange(12), range(1, 8)), np.arange(8) == 0, None, None)
    region = Region(SHAPE, (Box(SHAPE, masks),))
    times = record.measurements[0].grouped.multipliers[0]
    for confidence in (0.5, 0.95):
        found = GroupedBounds.of(record).region(region, confidence)
        reach = half_widths(noise, np.array([1, 3]), confidence) / times
        assert found.low == pytest.approx(counts[3:6, 0].sum() - reach[0])
        assert found.high == pytest.approx(counts[:9, 0].sum() + reach[1])


def test_the_table_is_chosen_by_the_question_whatever_its_counts_are() -> None:
    record = pairs_and_triples()
    first, second = record.measurements
    random, region = np.random.default_rng(5), random_region((0, 2), np.random.default_rng(6), 2)
    widths = set()
    for _ in range(5):
        shaken = replace(second, values=second.values + random.integers(-500, 500, second.values.shape))
        bounds = GroupedBounds.of(replace(record, measurements=(first, shaken)))
        table = max(bounds.tables, key=lambda one: len({0, 2} & set(one.axes)) - 0.1 * len(one.axes))
        found = bounds.region(region, 0.95)
        filled = np.zeros(table.values.shape, dtype=np.bool_)
        for box in region.boxes:
            whole = [
                np.array([box.mask(axis)[labels == group].all() for group in range(labels.max() + 1)])
                for axis, labels in zip(table.axes, table.groups, strict=True)
            ]
            filled |= np.logical_and.outer(*whole)
        if filled.any():
            reach = half_widths(table.noise, np.array([filled.sum()]), 0.95)[0]
            expected = (table.values[filled].sum() - reach) / table.multiplier
            assert found.low == pytest.approx(expected)
        widths.add(table.axes)
    assert widths == {(0, 2)}


@pytest.mark.parametrize("make", [release_of, gaussian_release_of], ids=["laplace", "gaussian"])
def test_all_rows_are_bounded_by_the_table_that_tells_their_number_best(make: object) -> None:
    release = make(SCHEMA, exact_counts(), 1, None, "grouped tables")  # type: ignore[operator]
    found = GroupedBounds.of(release.record).region(Region.everything(SHAPE), 0.95)
    assert found.low <= exact_counts().sum() <= found.high
    first = release.record.measurements[0]
    widths = [
        2 * half_widths(first.noise, np.array([part.size]), 0.95)[0] / times
        for part, times in zip(first.grouped.parts(first.values), first.grouped.multipliers, strict=True)
    ]
    assert found.high - found.low == pytest.approx(min(widths))
    assert min(widths) < 0.6 * max(widths)


def test_a_file_that_tells_nothing_of_an_attribute_bounds_its_questions_by_the_others() -> None:
    bounds, counts = without_noise(measured(([(1, np.arange(8))], [(0,)], 1))), exact_counts()
    masks = (np.arange(12) < 4, np.arange(8) < 3, None, None)
    found = bounds.region(Region(SHAPE, (Box(SHAPE, masks),)), 0.95)
    assert found.low == 0.0
    assert found.high == counts[:, :3].sum()


def test_a_release_gives_guaranteed_intervals_around_the_answers_of_its_model() -> None:
    counts = exact_counts()
    release = release_of(SCHEMA, counts, 2, 3, "grouped tables")
    release._fitted["latent_classes"] = LatentClasses(fits=1, replays=2).fit(release.record)
    asked = {"a": (2, 7), "c": (0, 3)}
    model, proved = release.count(asked), release.count(asked, interval="guaranteed")
    assert proved.low <= counts[2:8, :, :4].sum() <= proved.high
    assert proved.low <= proved.value <= proved.high
    assert proved.high - proved.low > model.high - model.low
    every = release.count({"a": (2, 7), "b": "s", "c": (0, 3), "d": 1}, interval="guaranteed")
    assert every.low >= 0.0
    with pytest.raises(QueryError, match="guaranteed intervals are for single counts"):
        release.count("SELECT COUNT(*) GROUP BY a", interval="guaranteed")
