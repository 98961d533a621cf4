"""Replays of a release: rows drawn from a model, counted by brute force, with noise of the release's own law."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.analyst.estimate.mixture import replicates
from veilcube.analyst.estimate.mixture.cells import CellSums
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import ModelAxis, Observations, ObservedTable
from veilcube.analyst.estimate.mixture.replicates import Answering, DrawnRows, Replicate, replay, rows_of_a_clump
from veilcube.schema import Box, Region

SHAPE = (5, 3, 4)
LABELS = (np.array([0, 1, 1, 0, 2]), np.arange(3), np.array([1, 0, 0, 1]))
EVERYTHING = Region.everything(SHAPE)


def mixture(rows: float = 900.0) -> Mixture:
    random = np.random.default_rng(1)
    laws = tuple(random.dirichlet(np.ones(size), 3) for size in SHAPE)
    return Mixture(tuple(ModelAxis.plain(size) for size in SHAPE), random.dirichlet(np.ones(3)), laws, rows)


def observed(*, has_cells: bool, family: str = "gaussian", variance: float = 25.0, rows: float = 900.0) -> Observations:
    """Return tables of grouped values over one and two attributes, and if wanted that of every cell."""
    model, tables = mixture(rows), []
    for axes in [(0,), (1,), (2,), *combinations(range(3), 2)]:
        groups = tuple(LABELS[axis] for axis in axes)
        tables.append(ObservedTable(axes, groups, model.table(axes, groups), variance))
    cells = ObservedTable((0, 1, 2), tuple(np.arange(size) for size in SHAPE), model.cells(), 4 * variance)
    return Observations(model.axes, tuple(tables), cells if has_cells else None, SHAPE, family, None)


def fake_refit(again: Observations, seed: int) -> tuple[Mixture, Answering]:
    return mixture(), mixture()


def replayed(seen: Observations, seed: int = 0) -> Replicate:
    cells = CellSums(mixture().cells()) if seen.cells is not None else None
    return replay(seen, mixture(seen.rows), cells, fake_refit, np.random.default_rng(seed))


def cells_of(rows: DrawnRows) -> NDArray[np.float64]:
    found = np.zeros(rows.shape)
    for row, weight in zip(zip(*rows.columns, strict=True), rows.weights, strict=True):
        found[row] += weight
    return found


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw every row on its own."""
    monkeypatch.setattr(replicates, "CLUMP", 0.0)


def test_drawn_rows_are_counted_as_brute_force_counts_them() -> None:
    random = np.random.default_rng(2)
    rows = DrawnRows(SHAPE, [random.integers(0, size, 200) for size in SHAPE], random.uniform(0.5, 2.0, 200))
    cells = cells_of(rows)
    ends = [[(low, high) for low in range(size) for high in range(low - 1, size)] for size in SHAPE]
    blocks = np.array(list(product(*ends)))
    expected = [cells[tuple(slice(low, high + 1) for low, high in block)].sum() for block in blocks]
    np.testing.assert_allclose(rows.blocks(blocks[:, :, 0], blocks[:, :, 1]), expected)
    boxes = [Region(SHAPE, (Box(SHAPE, tuple(random.random(size) < 0.6 for size in SHAPE)),)) for _ in range(3)]
    region = boxes[0].union(*boxes[1:])
    for axes in [(), (1,), (0, 2), (2, 0), (0, 1, 2)]:
        kept = (cells * region.mask()).sum(axis=tuple(axis for axis in range(3) if axis not in axes))
        np.testing.assert_allclose(rows.groups(region, axes), kept.T if axes == (2, 0) else kept)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("has_cells", [True, False], ids=["cells", "rows"])
def test_every_table_of_a_replay_counts_the_same_rows(has_cells: bool) -> None:
    found = replayed(observed(has_cells=has_cells))
    truth = found.truth.groups(EVERYTHING, (0, 1, 2))
    assert truth.sum() == pytest.approx(900.0)
    assert np.array_equal(truth, np.rint(truth))
    for table, exact in zip(found.observed.tables, found.exact, strict=True):
        expected = np.zeros(table.counts.shape)
        for cell in product(*(range(size) for size in SHAPE)):
            expected[tuple(LABELS[axis][cell[axis]] for axis in table.axes)] += truth[cell]
        np.testing.assert_allclose(exact, expected)
    assert (found.observed.cells is not None) == has_cells


@pytest.mark.usefixtures("alone")
def test_tables_are_drawn_from_the_model_and_differ_from_replay_to_replay() -> None:
    seen = observed(has_cells=False)
    truths = [replayed(seen, seed).truth.groups(EVERYTHING, (0, 1, 2)) for seed in range(40)]
    expected = mixture().cells()
    mean_error = (np.mean(truths, axis=0) - expected) / np.sqrt(expected / 40)
    assert np.abs(mean_error).max() < 4.5
    assert np.var(truths, axis=0).sum() == pytest.approx(expected.sum(), rel=0.15)


@pytest.mark.parametrize(("family", "kurtosis"), [("laplace", 6.0), ("gaussian", 3.0)])
@pytest.mark.parametrize("has_cells", [True, False], ids=["cells", "rows"])
def test_noise_is_of_the_releases_own_law(has_cells: bool, family: str, kurtosis: float) -> None:
    seen, noises = observed(has_cells=has_cells, family=family), []
    for seed in range(200):
        found = replayed(seen, seed)
        parts = [table.counts - exact for table, exact in zip(found.observed.tables, found.exact, strict=True)]
        noises.append(np.concatenate([part.ravel() for part in parts]) / 5.0)
        if found.observed.cells is not None:
            truth = found.truth.groups(EVERYTHING, (0, 1, 2))
            noises.append((found.observed.cells.counts - truth).ravel() / 10.0)
    noise = np.concatenate(noises)
    assert noise.mean() == pytest.approx(0.0, abs=0.05)
    assert noise.var() == pytest.approx(1.0, rel=0.08)
    assert np.mean(noise**4) == pytest.approx(kurtosis, rel=0.25)


def test_no_row_of_a_replay_is_where_none_can_be() -> None:
    corner = Region(SHAPE, (Box(SHAPE, (np.arange(5) < 3, np.arange(3) < 2, None)),))
    found = replayed(replace(observed(has_cells=False), impossible=corner))
    assert found.truth.groups(corner, ()) == 0.0
    assert found.truth.groups(EVERYTHING, ()) == pytest.approx(900.0)
    assert all(exact.sum() == pytest.approx(900.0) for exact in found.exact)


@pytest.mark.usefixtures("alone")
def test_very_many_rows_are_drawn_as_fewer_that_stand_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicates, "MOST_ROWS", 300)
    found = replayed(observed(has_cells=False))
    assert isinstance(found.truth, DrawnRows)
    np.testing.assert_allclose(found.truth.weights, 3.0)
    assert len(found.truth.columns[0]) == 300
    assert all(exact.sum() == pytest.approx(900.0) for exact in found.exact)


def test_a_table_without_rows_is_played_again_with_one() -> None:
    found = replayed(observed(has_cells=False, rows=0.0))
    assert found.truth.groups(EVERYTHING, ()) == pytest.approx(1.0)


@pytest.mark.parametrize("has_cells", [True, False], ids=["cells", "rows"])
def test_clumps_stray_further_than_rows_but_not_in_single_attributes(has_cells: bool) -> None:
    """A clump of 20 rows: cells vary more, as no table of groups would show; what was counted by value does not."""
    seen = observed(has_cells=has_cells, variance=1_600.0, rows=4_000.0)
    model = mixture(4_000.0)
    assert rows_of_a_clump(seen) == 20.0
    truths = []
    for seed in range(40):
        replicate = replay(
            seen, model, CellSums(model.cells()) if has_cells else None, fake_refit, np.random.default_rng(seed)
        )
        truths.append(replicate.truth.groups(EVERYTHING, (0, 1, 2)))
    expected = model.cells()
    assert np.mean(truths) == pytest.approx(expected.mean(), rel=1e-3)
    assert np.var(truths, axis=0).sum() > 4 * expected.sum()
    for axis in range(3):
        others = tuple(other for other in range(3) if other != axis)
        found, wanted = np.array([one.sum(axis=others) for one in truths]), expected.sum(axis=others)
        assert np.square(found - wanted).mean() < 0.1 * np.mean(wanted), "less than a tenth of what rows would vary by"


def test_noise_that_hides_no_clump_leaves_rows_as_they_are() -> None:
    assert rows_of_a_clump(observed(has_cells=False, variance=1.0)) == 1.0
