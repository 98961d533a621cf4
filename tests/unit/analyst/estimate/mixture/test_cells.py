"""Cells corrected by what tables tell beyond a model: all of it, nothing, or what dense least squares gives."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.analyst.estimate.mixture.cells import NUMBERS_OF_A_BAND, CellSums, _bands, correct_cells
from veilcube.analyst.estimate.mixture.observed import ObservedTable
from veilcube.schema import Box, Region

Floats = NDArray[np.float64]
SHAPE = (4, 1, 3, 5)
ORDINAL = (True, False, False, True)


def table_of(cells: Floats, axes: tuple[int, ...], variance: float, noise: np.random.Generator | None) -> ObservedTable:
    """Return a table of single values; attributes with one value belong to none."""
    exact = cells.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in axes))
    shaken = exact if noise is None else exact + noise.normal(0, np.sqrt(variance), exact.shape)
    return ObservedTable(axes, tuple(np.arange(cells.shape[axis]) for axis in axes), shaken, variance)


def dense_least_squares(tables: list[ObservedTable], shape: tuple[int, ...]) -> Floats:
    rows, values, precisions = [], [], []
    for table in tables:
        places = np.indices(shape).reshape(len(shape), -1)[list(table.axes)]
        numbers = np.ravel_multi_index(tuple(places), tuple(shape[axis] for axis in table.axes))
        rows.append((np.arange(table.counts.size)[:, None] == numbers).astype(np.float64))
        values.append(table.counts.ravel())
        precisions.append(np.full(table.counts.size, 1 / table.variance))
    matrix, measured, weights = np.concatenate(rows), np.concatenate(values), np.concatenate(precisions)
    normal = matrix.T @ (weights[:, None] * matrix)
    return np.linalg.solve(normal, matrix.T @ (weights * measured)).reshape(shape)


def test_measured_cells_come_back_where_there_is_no_noise() -> None:
    random = np.random.default_rng(1)
    cells, model = random.poisson(30, SHAPE).astype(float), np.full(SHAPE, 30.0)
    found = correct_cells(model, [table_of(cells, (0, 2, 3), 1e-9, None)], ORDINAL)
    np.testing.assert_allclose(found, cells, atol=1e-6)


def test_tables_are_weighed_as_dense_least_squares_weighs_them_where_all_is_kept() -> None:
    """What is measured is so far from the model that all of it is kept, and tables contradict one another by noise."""
    random = np.random.default_rng(2)
    cells = random.normal(0, 1e7, SHAPE)
    tables = [table_of(cells, (0, 2, 3), 9e4, random)]
    for variance, axes in [(4e3, (0,)), (1e4, (3,)), (2e4, (0, 2)), (3e5, (2, 3)), (1e4, (0, 3))]:
        tables.append(table_of(cells, axes, variance, random))
    expected = dense_least_squares(tables, SHAPE)
    assert np.abs(expected - tables[0].counts.reshape(SHAPE)).max() > 50  # the cells alone are not the answer
    found = correct_cells(np.zeros(SHAPE), tables, ORDINAL)
    np.testing.assert_allclose(found, expected, atol=2.0)


def test_noise_alone_leaves_about_the_model() -> None:
    shape = (16, 12, 10)
    model = np.random.default_rng(3).gamma(1.0, 2.0, shape)
    moved, noise = [], []
    for seed in range(10):
        random = np.random.default_rng(seed)
        tables = [table_of(model, axes, 400.0, random) for axes in [(0, 1, 2), (0,), (1,), (0, 1)]]
        found = correct_cells(model, tables, (True, True, False))
        moved.append(np.mean(np.square(found - model)))
        noise.append(np.mean(np.square(tables[0].counts - model)))
    assert np.mean(moved) < 0.01 * np.mean(noise)


def test_what_no_table_of_the_model_shows_is_taken_over_where_it_exceeds_the_noise() -> None:
    """A chequered cube beside a flat model: most of the difference comes back, at a part of the cells' noise."""
    shape = (8, 8, 8)
    cells = 60.0 * (np.indices(shape).sum(axis=0) % 2)
    table = table_of(cells, (0, 1, 2), 100.0, np.random.default_rng(4))
    found = correct_cells(np.full(shape, 30.0), [table], (True, True, True))
    error = np.mean(np.square(found - cells))
    assert error < 0.1 * np.mean(np.square(30.0 - cells))
    assert error < 0.75 * np.mean(np.square(table.counts - cells))


def test_full_cells_keep_the_spread_that_counts_have() -> None:
    """Beside counts of 1,000 rows with a spread of 32, noise of 10 is little: cells are nearer than model and noise."""
    random = np.random.default_rng(5)
    model = np.full((6, 6, 6), 1000.0)
    cells = random.poisson(model).astype(float)
    table = table_of(cells, (0, 1, 2), 100.0, random)
    error = np.mean(np.square(correct_cells(model, [table], (False,) * 3) - cells))
    assert error < np.mean(np.square(table.counts - cells))
    assert error < 0.2 * np.mean(np.square(model - cells))


@pytest.mark.parametrize(
    ("shape", "is_ordinal", "bands"),
    [
        ((64, 64), (True, True), 7 * 7),  # by octaves: 0, 1, 2-3, 4-7, ..., 32-63
        ((64, 64), (True, False), 7 * 2),
        ((20, 20), (True, True), 4),  # octaves are too narrow: the effects of each set of attributes
        ((4, 4, 4), (True, True, False), 4),  # and so are effects: their number of attributes
        ((2, 1, 3), (False, False, False), 3),
        ((1, 1), (True, True), 1),
        ((5,), (True,), 2),
    ],
)
def test_bands_cover_every_coefficient_once(shape: tuple[int, ...], is_ordinal: tuple[bool, ...], bands: int) -> None:
    found = _bands(shape, is_ordinal)
    assert found.shape == shape
    assert np.unique(found).size == bands
    assert found.min() == 0
    if bands > 1 and bands != len([size for size in shape if size > 1]) + 1:
        assert prod(shape) / bands >= NUMBERS_OF_A_BAND
    # Effects of different attributes, or of a different number of them, are never in one band.
    order = sum(np.minimum(one, 1) for one in np.indices(shape))
    for number in range(bands):
        assert np.unique(order[found == number]).size == 1


def test_sums_of_cells_answer_blocks_and_groups_as_brute_force_does() -> None:
    random = np.random.default_rng(6)
    cells = random.normal(3, 4, SHAPE)
    sums = CellSums(cells.copy())
    low, high = np.zeros((50, 4), dtype=np.int64), np.zeros((50, 4), dtype=np.int64)
    for row in range(50):
        for axis, size in enumerate(SHAPE):
            low[row, axis], high[row, axis] = np.sort(random.integers(0, size, 2))
    expected = [cells[tuple(map(slice, a, b + 1))].sum() for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(sums.blocks(low, high), expected, atol=1e-9)
    masks = tuple(np.arange(size) % 2 == 0 for size in SHAPE)
    region = Region(SHAPE, (Box(SHAPE, masks),))
    kept = cells * region.mask()
    for axes in [(), (0,), (3,), *combinations(range(4), 2), (3, 0)]:
        summed = kept.sum(axis=tuple(axis for axis in range(4) if axis not in axes))
        assert np.allclose(sums.groups(region, axes), summed.T if axes == (3, 0) else summed)
    with pytest.raises(ValueError, match="read-only"):
        sums.values[0] = 0.0
