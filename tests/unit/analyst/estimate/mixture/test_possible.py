"""Structural zeros: nothing is impossible and has rows, all rows are still there, and brute force agrees."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import ModelAxis, impossible_region
from veilcube.analyst.estimate.mixture.possible import LEAST_SHARE, PossibleMixture, are_possible, without_impossible
from veilcube.schema import Box, Nominal, Ordinal, Region, Schema

ATTRIBUTES = [Ordinal("a", 0, 5), Nominal("b", ["x", "y", "z"]), Ordinal("c", 0, 3)]
SHAPE = (6, 3, 4)
ENTRIES = {
    "one": [{"a": (0, 2), "b": "x"}],
    "several that overlap": [{"a": (0, 3), "b": "x"}, {"a": (2, 5), "c": (1, 2)}, {"b": ["x", "y"], "c": 2}],
    "a value that nobody has": [{"c": 1}],
}
each_schema = pytest.mark.parametrize("entries", ENTRIES.values(), ids=ENTRIES)


def forbidden(entries: list[dict[str, object]]) -> Region:
    region = impossible_region(Schema(ATTRIBUTES, impossible=entries))
    assert region is not None
    return region


def random_mixture() -> Mixture:
    random = np.random.default_rng(1)
    places = np.array([0, 1, 1, 2, 0, 2])
    within = np.array([1, 2, 3, 1, 4, 2]) / np.array([5, 5, 5, 3, 5, 3])
    axes = (ModelAxis(places, within), ModelAxis.plain(3), ModelAxis.plain(4))
    laws = tuple(random.dirichlet(np.ones(axis.size), 4) for axis in axes)
    return Mixture(axes, random.dirichlet(np.ones(4)), laws, 500.0)


def brute_force(entries: list[dict[str, object]]) -> NDArray[np.float64]:
    cells = np.where(forbidden(entries).mask(), 0.0, random_mixture().cells())
    return cells * 500.0 / cells.sum()


@each_schema
def test_blocks_are_those_of_cells_from_which_the_impossible_ones_are_taken(entries: list[dict[str, object]]) -> None:
    possible, cells = PossibleMixture(random_mixture(), forbidden(entries)), brute_force(entries)
    ends = [[(low, high) for low in range(size) for high in range(low, size)] for size in SHAPE]
    blocks = np.array(list(product(*ends)))
    expected = [cells[tuple(slice(low, high + 1) for low, high in block)].sum() for block in blocks]
    np.testing.assert_allclose(possible.blocks(blocks[:, :, 0], blocks[:, :, 1]), expected, atol=1e-9)
    whole = possible.blocks(np.zeros((1, 3), dtype=np.int64), np.array([SHAPE]) - 1)
    assert whole[0] == pytest.approx(500.0)


@each_schema
@pytest.mark.parametrize("axes", [(), (0,), (2, 1), (0, 1, 2)])
def test_groups_are_those_of_cells_from_which_the_impossible_ones_are_taken(
    entries: list[dict[str, object]], axes: tuple[int, ...]
) -> None:
    possible, cells = PossibleMixture(random_mixture(), forbidden(entries)), brute_force(entries)
    random = np.random.default_rng(2)
    for _ in range(8):
        boxes = [Region(SHAPE, (Box(SHAPE, tuple(random.random(size) < 0.6 for size in SHAPE)),)) for _ in range(2)]
        region = boxes[0].union(boxes[1])
        kept = (cells * region.mask()).sum(axis=tuple(axis for axis in range(3) if axis not in axes))
        expected = kept.T if axes == (2, 1) else kept
        np.testing.assert_allclose(possible.groups(region, axes), expected, atol=1e-9)
    everything = possible.groups(Region.everything(SHAPE), axes)
    assert everything.sum() == pytest.approx(500.0)
    np.testing.assert_allclose(possible.groups(forbidden(entries), axes), 0.0, atol=1e-9)


@each_schema
def test_cells_that_are_impossible_have_none_and_the_others_add_up_as_before(entries: list[dict[str, object]]) -> None:
    region, before = forbidden(entries), random_mixture().cells()
    found = without_impossible(before, region)
    assert (found[region.mask()] == 0.0).all()
    assert found.sum() == pytest.approx(before.sum())
    others = ~region.mask()
    np.testing.assert_allclose(found[others] / before[others], found.sum() / before[others].sum())
    assert without_impossible(before, None) is before


def test_cells_that_are_all_impossible_stay_empty() -> None:
    cells = np.zeros(SHAPE)
    cells[:, 0] = 1.0
    region = forbidden([{"b": "x"}])
    assert not without_impossible(cells, region).any()


@each_schema
def test_rows_are_possible_where_no_entry_holds_them(entries: list[dict[str, object]]) -> None:
    columns = [one.ravel() for one in np.indices(SHAPE)]
    region = forbidden(entries)
    assert np.array_equal(are_possible(columns, region), ~region.mask().ravel())
    assert are_possible(columns, None).all()


def test_a_model_with_hardly_a_row_where_rows_can_be_gives_finite_answers() -> None:
    laws = (np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]))
    model = Mixture((ModelAxis.plain(2), ModelAxis.plain(2)), np.ones(1), laws, 10.0)
    corner = Region((2, 2), (Box((2, 2), (np.array([True, False]), np.array([True, False]))),))
    possible = PossibleMixture(model, corner)
    found = possible.groups(Region.everything((2, 2)), (0, 1))
    assert np.isfinite(found).all()
    assert np.abs(found).sum() <= 10.0 * 1e-9 / LEAST_SHARE
