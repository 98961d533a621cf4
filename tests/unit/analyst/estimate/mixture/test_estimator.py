"""Answers of latent classes: the same however a question is put, never negative, and something for every odd table."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from support.releases import gaussian_release_of, release_of
from veilcube.analyst import Release
from veilcube.analyst.estimate.mixture.estimator import LatentClasses, MixtureEstimate
from veilcube.analyst.estimate.mixture.possible import PossibleMixture
from veilcube.errors import QueryError
from veilcube.operators import GroupedTablesOperator
from veilcube.query import Workload
from veilcube.record import NoisyMeasurement
from veilcube.schema import Box, Nominal, Ordinal, Region, Schema

Counts = NDArray[np.int64]
QUICK = LatentClasses(fits=1, replays=2)
SMALL = Schema([Ordinal("age", 20, 27), Nominal("sex", ["f", "m"]), Ordinal("income", edges=[0, 10, 20, 50, 100])])
LARGE = Schema([Ordinal("a", 0, 79), Ordinal("b", 0, 79), Nominal("c", [f"v{number}" for number in range(60)])])
FORBIDDEN = [{"age": (20, 23), "income": (50, 100)}, {"age": 27, "sex": "f"}]


def small_counts() -> Counts:
    random = np.random.default_rng(1)
    age, sex, income = np.indices(SMALL.shape)
    return random.poisson(40.0 * np.exp(-np.abs(age / 2 - income)) * (1 + sex))


def large_counts() -> Counts:
    """Return few rows in a cube whose cells are too many to be measured."""
    random, counts = np.random.default_rng(2), np.zeros(LARGE.shape, dtype=np.int64)
    first = random.binomial(79, 0.4, 5000)
    places = (first, np.minimum(79, first // 2 + random.integers(0, 20, 5000)), random.geometric(0.2, 5000) % 60)
    np.add.at(counts, places, 1)
    return counts


def quickly(release: Release) -> Release:
    """Return a release that answers by few fits and replays."""
    release._fitted["latent_classes"] = QUICK.fit(release.record)
    return release


@pytest.fixture(scope="module", params=["cells", "cells and what is impossible", "no cells", "impossible alone"])
def release(request: pytest.FixtureRequest) -> Release:
    if request.param == "cells":
        return quickly(release_of(SMALL, small_counts(), 1, 1, "grouped tables"))
    if request.param == "cells and what is impossible":
        schema = Schema(SMALL.attributes, impossible=FORBIDDEN)
        return quickly(release_of(schema, possible_counts(), 1, 1, "grouped tables"))
    schema = LARGE
    if request.param == "impossible alone":
        schema = Schema(LARGE.attributes, impossible=[{"a": (0, 20), "b": (50, 79)}, {"a": 79, "c": "v3"}])
    return quickly(release_of(schema, large_counts(), 1, 1, "grouped tables"))


def possible_counts() -> Counts:
    counts = small_counts()
    counts[:4, :, 3], counts[7, 0] = 0, 0
    return counts


def fitted(release: Release) -> MixtureEstimate:
    found = release._fitted["latent_classes"]
    assert isinstance(found, MixtureEstimate)
    return found


def test_a_model_reads_grouped_tables_and_nothing_else(release: Release) -> None:
    assert QUICK.can_read(release.record)
    assert not QUICK.can_read(release_of(SMALL, small_counts(), 1, 1, "identity").record)
    assert QUICK.name == "latent_classes"
    assert release.count({}).value > 0
    assert release.marginal("age" if "age" in release.schema.names else "a").estimator == "latent_classes"


def test_a_question_has_one_answer_as_a_block_a_region_and_a_group(release: Release) -> None:
    estimate, schema = fitted(release), release.schema
    workload = Workload.random_ranges(schema, 12, seed=3)
    blocks = estimate.rectangles(workload.low, workload.high, 0.9)
    for row, (low, high) in enumerate(zip(workload.low, workload.high, strict=True)):
        masks = [
            (np.arange(size) >= begin) & (np.arange(size) <= end)
            for size, begin, end in zip(schema.shape, low, high, strict=True)
        ]
        region = Region(schema.shape, (Box(schema.shape, tuple(masks)),))
        alone, none_grouped = estimate.region(region, 0.9), estimate.grouped(region, ()).estimates(0.9)
        of_first = estimate.grouped(region, (0,)).counts
        for name in ("value", "low", "high", "stddev"):
            expected = getattr(blocks, name)[row]
            assert getattr(alone, name) == pytest.approx(expected, rel=1e-6, abs=1e-6)
            assert getattr(none_grouped, name) == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert max(of_first.sum(), 0.0) == pytest.approx(blocks.value[row], rel=1e-6, abs=1e-6)
        assert of_first[~masks[0]] == pytest.approx(0.0, abs=1e-6)


def test_groups_of_several_attributes_are_those_of_single_questions(release: Release) -> None:
    estimate, shape = fitted(release), release.schema.shape
    everything = Region.everything(shape)
    for axes in [(0, 1), (2, 0), (1,)]:
        groups = estimate.grouped(everything, axes)
        found = groups.estimates(0.95)
        assert found.value.shape == tuple(shape[axis] for axis in axes)
        assert (groups.sizes == np.prod([size for axis, size in enumerate(shape) if axis not in axes])).all()
        last = tuple(shape[axis] - 1 for axis in axes)
        low = np.array([[0] * 3])
        high = np.array([shape]) - 1
        low[0, list(axes)] = high[0, list(axes)] = last
        single = estimate.rectangles(low, high, 0.95)
        for name in ("value", "low", "high", "stddev"):
            assert getattr(found, name)[last] == pytest.approx(getattr(single, name)[0], rel=1e-6, abs=1e-6)


def test_regions_of_several_boxes_add_up(release: Release) -> None:
    estimate, shape = fitted(release), release.schema.shape
    random = np.random.default_rng(4)
    masks = [tuple((random.random(size) < 0.5) | (np.arange(size) == 0) for size in shape) for _ in range(3)]
    boxes = [Region(shape, (Box(shape, chosen),)) for chosen in masks]
    union = boxes[0].union(*boxes[1:])
    assert len(union.boxes) > 1
    parts = [estimate.answering.groups(Region(shape, (box,)), ()) for box in union.boxes]
    found = estimate.region(union, 0.95)
    assert found.value == pytest.approx(max(sum(float(part) for part in parts), 0.0), rel=1e-6)
    sizes = estimate.grouped(union, (2, 1)).sizes
    assert np.array_equal(sizes, union.mask().sum(axis=0).T)


def test_no_cell_has_the_answer_0_for_sure(release: Release) -> None:
    estimate, shape = fitted(release), release.schema.shape
    nothing = Region.nothing(shape)
    for found in (
        estimate.region(nothing, 0.95),
        estimate.grouped(nothing, ()).estimates(0.95),
        estimate.rectangles(np.array([[1, 0, 0]]), np.array([[0, 1, 1]]), 0.95),
    ):
        assert [float(np.ravel(part)[0]) for part in (found.value, found.low, found.high, found.stddev)] == [0.0] * 4
    half = Region.on_axis(shape, 0, np.arange(shape[0]) < 3)
    groups = estimate.grouped(half, (0,))
    assert (groups.sizes[3:] == 0).all()
    found = groups.estimates(0.95)
    assert not found.value[3:].any()
    assert not found.high[3:].any()
    assert (found.high[:3] > 0).all()


def test_answers_are_never_negative_and_lie_in_intervals_that_grow_with_confidence(release: Release) -> None:
    workload = Workload.random_ranges(release.schema, 400, seed=5)
    cells = Workload.ranges(release.schema, workload.low, workload.low)
    for asked in (workload, cells):
        narrow, wide = (release.answer(asked, confidence=confidence) for confidence in (0.5, 0.99))
        assert (wide.low >= 0).all()
        assert (wide.low <= narrow.low).all()
        assert (narrow.low <= narrow.value).all()
        assert (narrow.value <= narrow.high).all()
        assert (narrow.high < wide.high).all()
        assert (narrow.stddev > 0).all()


def test_cells_are_those_that_questions_add_up(release: Release) -> None:
    estimate, cells = fitted(release), fitted(release).cells()
    assert cells.shape == release.schema.shape
    workload = Workload.random_ranges(release.schema, 20, seed=6)
    blocks = zip(workload.low, workload.high, strict=True)
    expected = [cells[tuple(slice(a, b + 1) for a, b in zip(*block, strict=True))].sum() for block in blocks]
    found = estimate.answering.blocks(workload.low, workload.high)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    cells[...] = 0.0  # it is a copy
    assert fitted(release).cells().any()


def test_what_the_schema_calls_impossible_has_no_rows(release: Release) -> None:
    estimate = fitted(release)
    impossible = estimate._observed.impossible
    if impossible is None:
        assert not release.schema.impossible
        return
    assert estimate.region(impossible, 0.95).value == pytest.approx(0.0, abs=1e-6)
    assert np.abs(estimate.cells()[impossible.mask()]).max() == 0.0
    everything = estimate.region(Region.everything(release.schema.shape), 0.95)
    assert everything.value == pytest.approx(estimate.cells().sum())
    assert isinstance(estimate.answering, PossibleMixture) == (estimate._cells is None)


def test_sums_means_quantiles_and_distributions_of_an_attribute() -> None:
    release = quickly(release_of(SMALL, small_counts(), 4, 2, "grouped tables"))
    own = small_counts().sum(axis=(1, 2))
    total, mean = release.sum("age", confidence=0.999), release.mean("age", confidence=0.999)
    median = release.quantile("age")
    truth = (own * np.arange(20, 28)).sum()
    assert total.low <= truth <= total.high
    assert total.value == pytest.approx(truth, rel=0.05)
    assert mean.low <= truth / own.sum() <= mean.high
    assert mean.high - mean.low < 1.0
    assert 20 <= mean.low <= mean.high <= 27
    assert abs(median.value - (20 + np.searchsorted(np.cumsum(own), own.sum() / 2))) <= 1
    shares = release.cdf("age")
    assert shares.value.shape == (8,)
    assert (np.diff(shares.value) >= -1e-9).all()
    assert shares.value[-1] == pytest.approx(1.0)
    np.testing.assert_allclose(shares.value, np.cumsum(own) / own.sum(), atol=0.05)
    women = release.mean("income", where={"sex": "f"})
    assert 0 <= women.low <= women.value <= women.high <= 100
    assert release.sum("age", where="age < 20").value == 0.0


def test_a_marginal_of_two_attributes_has_the_shape_and_labels_of_both() -> None:
    release = quickly(release_of(SMALL, small_counts(), 1, 3, "grouped tables"))
    table = release.marginal("income", "sex")
    assert table.value.shape == (4, 2)
    assert table.axes == {"income": tuple(SMALL.attributes[2].labels()), "sex": ("f", "m")}
    truth = small_counts().sum(axis=0).T
    assert np.mean((table.low <= truth) & (truth <= table.high)) >= 7 / 8
    women = release.marginal("age", where={"sex": "f"})
    assert women.value.shape == (8,)
    single = release.count({"sex": "f", "age": 21})
    assert women.value[1] == pytest.approx(single.value)


def test_a_table_that_the_model_explains_is_called_good_and_one_that_contradicts_itself_is_not() -> None:
    release = quickly(release_of(SMALL, small_counts(), 1, 4, "grouped tables"))
    check = release.check()
    assert check.estimator == "latent_classes"
    assert check.is_good
    assert "agrees" in check.words
    record = release.record
    first = record.measurements[0]
    operator = first.grouped
    assert operator is not None
    values = first.values.copy()
    ages = [
        part
        for table, part in zip(operator.tables, operator.parts(values), strict=True)
        if operator.axes(table) == (0,) and part.size == 8
    ]
    ages[0][...] = ages[0][::-1].copy()
    ages[0][:4] += 4000
    broken = quickly(Release(replace(record, measurements=(replace(first, values=values), record.measurements[1]))))
    bad = broken.check()
    assert not bad.is_good
    assert "leaves more unexplained than noise does" in bad.words
    assert "tables over one attribute" in bad.words
    assert "intervals are wider" in bad.words
    asked = {"age": (20, 23)}
    assert broken.count(asked).stddev > 3 * release.count(asked).stddev


ODD_SHAPES = {
    "one attribute": (5,),
    "two attributes": (6, 4),
    "three attributes": (4, 3, 5),
    "an attribute with one value": (4, 1, 3),
    "three attributes of one value": (1, 1, 1),
}


@pytest.mark.parametrize("make", [release_of, gaussian_release_of], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("shape", ODD_SHAPES.values(), ids=ODD_SHAPES)
def test_tables_without_rows_with_one_and_with_all_alike_are_answered(
    shape: tuple[int, ...], rows: int, make: object
) -> None:
    schema = Schema([Ordinal(f"a{axis}", 0, size - 1) for axis, size in enumerate(shape)])
    counts = np.zeros(shape, dtype=np.int64)
    counts[(-1,) * len(shape)] = rows
    release = quickly(make(schema, counts, 2, 7, "grouped tables"))  # type: ignore[operator]
    total, last = release.count(confidence=0.999), release.count({"a0": shape[0] - 1}, confidence=0.999)
    for found in (total, last):
        assert found.low <= rows <= found.high
        assert found.high < rows + 250
    answers = release.answer(Workload.random_ranges(schema, 50, seed=1))
    assert np.isfinite([answers.value, answers.low, answers.high, answers.stddev]).all()
    assert (answers.low >= 0).all()
    mean = release.mean("a0")
    assert 0 <= mean.low <= mean.value <= mean.high <= shape[0] - 1
    if rows == 1000:
        assert release.quantile("a0").low <= shape[0] - 1 <= release.quantile("a0").high
    assert release.marginal(*schema.names).value.shape == shape
    assert isinstance(release.check().is_good, bool)
    assert len(release.synthesize(3)) == 3


def test_a_table_without_rows_is_not_said_to_have_some_however_little_noise_there_is() -> None:
    schema = Schema([Ordinal("a", 0, 0), Ordinal("b", 0, 2)])
    for seed in range(5):
        release = quickly(gaussian_release_of(schema, np.zeros((1, 3), dtype=np.int64), 500, seed, "grouped tables"))
        assert release.count().low == 0.0
        assert release.count({"b": (0, 1)}).low == 0.0
        assert release.count().high < 2.0


def test_rows_that_are_all_alike_are_found_as_surely_as_they_are_counted() -> None:
    schema = Schema([Ordinal("a", 0, 4), Ordinal("b", 0, 2)])
    counts = np.zeros((5, 3), dtype=np.int64)
    counts[4, 1] = 1000
    for seed in range(4):
        release = quickly(release_of(schema, counts, 2, seed, "grouped tables"))
        assert release.count({"a": 4}).stddev >= 0.9 * release.count().stddev


def part_of(release: Release, labelled: list[tuple[int, NDArray[np.int64]]], counts: Counts) -> Release:
    """Return the release with a single table in it, as a file of another maker may have."""
    record = release.record
    operator = GroupedTablesOperator.of(record.schema.shape, labelled, [tuple(range(len(labelled)))], [1])
    part = NoisyMeasurement(operator, operator.apply(counts), record.measurements[0].noise)
    return Release(replace(record, measurements=(part,)))


def test_a_file_with_nothing_but_cells_or_with_some_attributes_only_is_answered() -> None:
    release = release_of(SMALL, small_counts(), 1, 1, "grouped tables")
    axes = [(axis, np.arange(size)) for axis, size in enumerate(SMALL.shape)]
    for chosen in (axes, axes[:1], [*combinations(axes, 2)][2]):
        found = quickly(part_of(release, list(chosen), small_counts()))
        assert found.count().value == pytest.approx(small_counts().sum(), rel=0.05)
        guaranteed = found.count({"age": (20, 22), "sex": "f"}, interval="guaranteed")
        assert guaranteed.low <= small_counts()[:3, 0].sum() <= guaranteed.high


def test_a_file_without_a_table_for_the_model_is_refused() -> None:
    """Runs of sixteen of 20,000 values alone: finer than the places of the model, and not its values."""
    schema = Schema([Ordinal("a", 0, 19_999), Ordinal("b", 0, 1), Ordinal("c", 0, 1)])
    counts = np.ones(schema.shape, dtype=np.int64)
    release = release_of(schema, counts, 1, 1, "grouped tables")
    with pytest.raises(QueryError, match="remake"):
        part_of(release, [(0, np.arange(20_000) // 16)], counts).count()


def test_cells_of_a_cube_that_memory_does_not_hold_are_refused() -> None:
    schema = Schema([Ordinal(f"a{axis}", 0, 99) for axis in range(9)])
    record = release_of(SMALL, small_counts(), 1, 1, "grouped tables").record
    estimate = QUICK.fit(record)
    estimate._cells, estimate._schema = None, schema
    with pytest.raises(Exception, match="marginals of fewer attributes"):
        estimate.cells()
