"""Cells and regions against dense linear algebra."""

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.operators import RegionCounts, read_operator
from veilcube.operators.partition import cells_and_regions
from veilcube.operators.partition.cells_and_regions import CellsAndRegions, block_moments, step_moments
from veilcube.operators.partition.overlaps import CellLists
from veilcube.operators.partition.regions import Blocks, block_parts
from veilcube.schema import Region

GRIDS = [((7, 10), (3, 4)), ((5,), (2,)), ((3, 4, 5), (2, 1, 3)), ((4, 4), (1, 1)), ((2, 3), (2, 3))]
CELLS, REGIONS = 3.0, 5.0


def least_squares(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the map from cells and totals to estimates, by generalised least squares."""
    cells, regions = labels.size, int(labels.max()) + 1
    matrix = np.vstack([np.eye(cells), np.eye(regions)[:, labels.ravel()]])
    weights = np.diag([1 / CELLS] * cells + [1 / REGIONS] * regions)
    return np.linalg.inv(matrix.T @ weights @ matrix) @ matrix.T @ weights


def blocks_of_cells(shape: tuple[int, ...], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    ends = np.sort(np.stack([rng.integers(0, shape, (40, len(shape))) for _ in range(2)]), axis=0)
    return ends[0], ends[1]


def weights_of(low: NDArray[np.int64], high: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the noise weights of each block, times the standard deviations of the noises."""
    return masks_of(low, high, labels.shape) @ least_squares(labels) * deviations_of(labels)


def masks_of(low: NDArray[np.int64], high: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    masks = np.zeros((len(low), *shape))
    for mask, first, last in zip(masks, low, high, strict=True):
        mask[tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))] = 1.0
    return masks.reshape(len(low), -1)


def deviations_of(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.sqrt([CELLS] * labels.size + [REGIONS] * (int(labels.max()) + 1))


@pytest.mark.parametrize(("shape", "parts"), GRIDS)
def test_least_squares_is_the_generalised_one(shape: tuple[int, ...], parts: tuple[int, ...]) -> None:
    labels = Blocks(shape, parts).labels
    both = CellsAndRegions(RegionCounts.of(labels), CELLS, REGIONS)
    noisy = np.random.default_rng(0).normal(size=labels.size + int(labels.max()) + 1)
    found = both.solve(noisy[: labels.size].reshape(shape), noisy[labels.size :])
    np.testing.assert_allclose(found.ravel(), least_squares(labels) @ noisy, atol=1e-12)


@pytest.mark.parametrize(("shape", "parts"), GRIDS)
def test_moments_over_a_grid_are_exact(shape: tuple[int, ...], parts: tuple[int, ...]) -> None:
    grid = Blocks(shape, parts)
    low, high = blocks_of_cells(shape, 1)
    weights = weights_of(low, high, grid.labels)
    found = CellsAndRegions(RegionCounts.of(grid.labels), CELLS, REGIONS, grid).moments_of_rectangles(low, high)
    for power, moment in ((2, found.second), (4, found.fourth), (6, found.sixth)):
        np.testing.assert_allclose(moment, (weights**power).sum(axis=1))
    assert not found.bounded


def kd_labels() -> NDArray[np.int64]:
    """Return boxes that are no grid."""
    labels = np.zeros((8, 9), dtype=np.int64)
    labels[:3, 4:], labels[3:, :2], labels[3:, 2:], labels[6, 5] = 1, 2, 3, 4
    labels[6:, 5:] = 4
    labels[6:, 2:5] = 5
    return labels


ANY_REGIONS = [np.random.default_rng(2).integers(0, 12, (8, 9)), kd_labels()]


@pytest.mark.parametrize("labels", ANY_REGIONS, ids=["scattered", "boxes"])
def test_moments_over_any_regions_are_exact(labels: NDArray[np.int64]) -> None:
    low, high = blocks_of_cells(labels.shape, 3)
    weights = weights_of(low, high, labels)
    both = CellsAndRegions(RegionCounts.of(labels), CELLS, REGIONS)
    found = both.moments_of_rectangles(low, high)
    regions = [both.moments_of_region(_box(labels.shape, *ends)) for ends in zip(low, high, strict=True)]
    assert not found.bounded
    for power, name in ((2, "second"), (4, "fourth"), (6, "sixth")):
        exact = (weights**power).sum(axis=1)
        np.testing.assert_allclose(getattr(found, name), exact)
        np.testing.assert_allclose([getattr(one, name) for one in regions], exact)


def test_boxes_are_met_one_by_one_where_that_takes_fewer_steps() -> None:
    overlaps = CellsAndRegions(RegionCounts.of(kd_labels()), CELLS, REGIONS).overlaps
    low, high = np.array([[0, 0], [1, 1]]), np.array([[7, 8], [1, 2]])
    assert overlaps.steps_of_blocks(low, high).tolist() == [6, 2]
    scattered = CellsAndRegions(RegionCounts.of(ANY_REGIONS[0]), CELLS, REGIONS).overlaps
    assert scattered.steps_of_blocks(low, high).tolist() == [72, 2]


@pytest.mark.parametrize("labels", ANY_REGIONS, ids=["scattered", "boxes"])
def test_moments_of_too_many_large_blocks_are_never_too_small(
    labels: NDArray[np.int64], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells_and_regions, "STEPS_OF_A_CALL", 30)
    monkeypatch.setattr(cells_and_regions, "STEPS_OF_A_QUESTION", 0)
    low, high = blocks_of_cells(labels.shape, 3)
    weights = weights_of(low, high, labels)
    answers = CellsAndRegions(RegionCounts.of(labels), CELLS, REGIONS)
    found = answers.moments_of_rectangles(low, high)
    assert found.bounded
    for power, moment in ((2, found.second), (4, found.fourth), (6, found.sixth)):
        assert (moment >= (weights**power).sum(axis=1) * (1 - 1e-9)).all()
    kept = answers.kept_share(answers.paired_of_rectangles(low, high))
    assert (kept <= kept_shares(low, high, labels) + 1e-12).all()
    assert (kept > 0).all()


@pytest.mark.parametrize("labels", ANY_REGIONS, ids=["scattered", "boxes"])
def test_prefixes_of_lists_have_the_moments_of_their_cells_together(labels: NDArray[np.int64]) -> None:
    answers = CellsAndRegions(RegionCounts.of(labels), CELLS, REGIONS)
    rows = CellLists(np.arange(labels.size), np.arange(0, labels.size + 1, 9))
    first, rest = answers.paired_of_prefixes(rows)
    everything = answers.overlaps.of_lists(CellLists(np.arange(labels.size), np.array([0, labels.size])))
    weighed = step_moments(everything, (first, rest), 0.7, -0.3)
    for row in range(8):
        query = np.where(np.arange(8) <= row, 0.7, -0.3)[:, np.newaxis] * np.ones(9)
        exact, inside = answers.paired_of_query(query), answers.paired_of_query((query > 0).astype(np.float64))
        np.testing.assert_allclose(first.cells.fourth[row], inside.cells.fourth)
        for ours, theirs in ((weighed.cells, exact.cells), (weighed.totals, exact.totals)):
            np.testing.assert_allclose(ours.second[row], theirs.second)
            assert ours.fourth[row] >= theirs.fourth * (1 - 1e-9)
    assert rest.cells.second[-1] == 0


def test_without_any_noise_there_is_nothing_to_correct() -> None:
    answers = CellsAndRegions(RegionCounts.of(kd_labels()), 0.0, 0.0)
    assert (answers.gains == 0).all()
    assert answers.moments_of_rectangles(np.array([[0, 0]]), np.array([[7, 8]])).second.tolist() == [0.0]
    grid = Blocks((4, 4), (2, 2))
    free = CellsAndRegions(RegionCounts.of(grid.labels), 0.0, 0.0, grid)
    assert free.moments_of_rectangles(np.array([[0, 0]]), np.array([[3, 2]])).second.tolist() == [0.0]


def test_many_short_axes_are_planned_at_once() -> None:
    shape = (2,) * 30
    found = block_moments(Blocks(shape, shape), CELLS, REGIONS, np.zeros((1, 30), np.int64), np.ones((1, 30), np.int64))
    assert found.variance(CELLS, REGIONS)[0] == pytest.approx(2**30 * CELLS * REGIONS / (CELLS + REGIONS))


def _box(shape: tuple[int, ...], low: NDArray[np.int64], high: NDArray[np.int64]) -> Region:
    cells = [np.arange(size) for size in shape]
    axes = [(axis >= low[i]) & (axis <= high[i]) for i, axis in enumerate(cells)]
    return Region.everything(shape).intersect(*(Region.on_axis(shape, i, mask) for i, mask in enumerate(axes)))


def kept_shares(low: NDArray[np.int64], high: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the variance of the totals' even spread over the cells, as a share of the whole variance, densely."""
    spread = np.eye(int(labels.max()) + 1)[labels.ravel()]
    even = spread / spread.sum(axis=0) @ spread.T
    kept = masks_of(low, high, labels.shape) @ even @ least_squares(labels) * deviations_of(labels)
    return np.square(kept).sum(axis=1) / np.square(weights_of(low, high, labels)).sum(axis=1)


@pytest.mark.parametrize(("shape", "parts"), GRIDS)
def test_what_totals_keep_of_a_variance_is_exact_over_a_grid(shape: tuple[int, ...], parts: tuple[int, ...]) -> None:
    grid = Blocks(shape, parts)
    answers = CellsAndRegions(RegionCounts.of(grid.labels), CELLS, REGIONS, grid)
    low, high = blocks_of_cells(shape, seed=1)
    expected = kept_shares(low, high, grid.labels)
    assert answers.kept_share(answers.paired_of_rectangles(low, high)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("labels", ANY_REGIONS, ids=["scattered", "boxes"])
def test_what_totals_keep_of_a_variance_is_exact_over_any_regions(labels: NDArray[np.int64]) -> None:
    answers = CellsAndRegions(RegionCounts.of(labels), CELLS, REGIONS)
    low, high = blocks_of_cells(labels.shape, seed=2)
    found = answers.kept_share(answers.paired_of_rectangles(low, high))
    np.testing.assert_allclose(found, kept_shares(low, high, labels))


def test_regions_are_counted_in_whole_numbers_and_spread_evenly() -> None:
    regions = RegionCounts.of(np.array([[0, 0, 1], [2, 1, 1]]))
    counts = regions.apply(np.array([[1, 2, 3], [4, 5, 2**60]]))
    assert counts.tolist() == [3, 2**60 + 8, 4]
    assert regions.solve(np.array([3, 9, 4])).tolist() == [[1.5, 1.5, 3], [4, 3, 3]]
    assert (regions.sensitivity("add-remove"), regions.sensitivity("replace")) == (1, 2)


def test_regions_survive_their_plain_data_and_arrays() -> None:
    regions = RegionCounts.of(np.array([[0, 0, 1], [2, 1, 1]]))
    again = read_operator(regions.to_dict()).with_arrays(regions.arrays())
    assert again.chosen.tolist() == regions.chosen.tolist()


@pytest.mark.parametrize(
    "labels", [[[0, 0], [2, 2]], [[-1, 0], [1, 1]], [[0, 1], [2, 3]]], ids=["gap", "below", "many"]
)
def test_labels_that_do_not_number_the_regions_are_refused(labels: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="must number its regions, none of them empty"):
        RegionCounts((2, 2), 3, np.array(labels))


def test_regions_alone_answer_nothing() -> None:
    with pytest.raises(QueryError, match="do not answer questions alone"):
        RegionCounts.of(np.array([0, 1])).variance_of_rectangles(np.array([[0]]), np.array([[1]]))


def test_sides_of_blocks_are_near_what_is_asked_for() -> None:
    assert block_parts((100, 7, 1), (16, 16, 16)) == (6, 1, 1)
