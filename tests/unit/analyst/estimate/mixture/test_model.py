"""A mixture against brute force: every cell of a small one listed, with and without places that join values."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from veilcube.analyst.estimate.mixture import model as module
from veilcube.analyst.estimate.mixture.model import Mixture, grouped
from veilcube.analyst.estimate.mixture.observed import ModelAxis
from veilcube.schema import Box, Region

SHAPE = (4, 3, 6)


def joining_axis(places: list[int], shares: list[float]) -> ModelAxis:
    """Return an axis whose values share places, in these proportions."""
    of_values, within = np.array(places), np.array(shares)
    return ModelAxis(of_values, within / np.bincount(of_values, weights=within)[of_values])


AXES = {
    "plain": tuple(ModelAxis.plain(size) for size in SHAPE),
    "joined": (
        ModelAxis.plain(4),
        joining_axis([1, 0, 1], [3, 1, 2]),
        joining_axis([2, 0, 0, 1, 2, 0], [1, 2, 3, 1, 5, 4]),
    ),
}
each_kind = pytest.mark.parametrize("kind", ["plain", "joined"])


def random_mixture(kind: str, classes: int = 5, seed: int = 1, rows: float = 730.0) -> Mixture:
    random, axes = np.random.default_rng(seed), AXES[kind]
    laws = tuple(random.dirichlet(np.full(axis.size, 0.7), classes) for axis in axes)
    return Mixture(axes, random.dirichlet(np.ones(classes)), laws, rows)


def all_cells(model: Mixture) -> NDArray[np.float64]:
    """Return the count of every cell, one cell and one class at a time."""
    found = np.zeros(tuple(axis.places.size for axis in model.axes))
    for cell in product(*(range(size) for size in found.shape)):
        for number, weight in enumerate(model.weights):
            share = weight
            for value, axis, laws in zip(cell, model.axes, model.laws, strict=True):
                share *= laws[number, axis.places[value]] * axis.within[value]
            found[cell] += model.rows * share
    return found


def random_masks(random: np.random.Generator) -> tuple[NDArray[np.bool_] | None, ...]:
    return tuple(None if random.random() < 0.3 else random.random(size) < 0.5 for size in SHAPE)


def inside(masks: tuple[NDArray[np.bool_] | None, ...]) -> NDArray[np.bool_]:
    every = [np.ones(size, dtype=np.bool_) if mask is None else mask for mask, size in zip(masks, SHAPE, strict=True)]
    return every[0][:, None, None] & every[1][:, None] & every[2]


def summed(cells: NDArray[np.float64], axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Return sums over all other axes, in the order that the axes are given in."""
    kept = np.asarray(cells.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in axes)))
    return kept.transpose([sorted(axes).index(axis) for axis in axes]) if axes else kept


@each_kind
def test_every_cell_is_that_of_brute_force_and_all_add_up_to_the_rows(kind: str) -> None:
    model = random_mixture(kind)
    np.testing.assert_allclose(model.cells(), all_cells(model))
    assert model.cells().sum() == pytest.approx(730.0)


@each_kind
def test_blocks_are_sums_of_cells_and_those_that_end_before_they_begin_are_empty(kind: str) -> None:
    model, cells = random_mixture(kind), all_cells(random_mixture(kind))
    ends = [[(low, high) for low in range(size) for high in range(low - 1, size)] for size in SHAPE]
    blocks = np.array(list(product(*ends)))
    expected = [cells[tuple(slice(low, high + 1) for low, high in block)].sum() for block in blocks]
    assert len(blocks) > module.QUESTIONS_AT_ONCE  # in several parts
    np.testing.assert_allclose(model.blocks(blocks[:, :, 0], blocks[:, :, 1]), expected, atol=1e-9)
    backwards = model.blocks(np.array([[3, 0, 0]]), np.array([[1, 2, 5]]))
    assert backwards.tolist() == [0.0]


@each_kind
@pytest.mark.parametrize("axes", [(), (0,), (2,), (0, 1), (2, 0), (1, 2, 0), (0, 1, 2)])
def test_groups_are_sums_of_cells_inside_regions_of_several_boxes(kind: str, axes: tuple[int, ...]) -> None:
    model, random = random_mixture(kind), np.random.default_rng(3)
    cells, several = all_cells(model), 0
    for _ in range(12):
        boxes = [Region(SHAPE, (Box(SHAPE, random_masks(random)),)) for _ in range(3)]
        region = boxes[0].union(*boxes[1:])
        several += len(region.boxes) > 1
        found = model.groups(region, axes)
        assert found.shape == tuple(SHAPE[axis] for axis in axes)
        np.testing.assert_allclose(found, summed(cells * region.mask(), axes), atol=1e-9)
    assert several >= 6
    assert not model.groups(Region.nothing(SHAPE), axes).any()


@each_kind
def test_a_part_within_masks_answers_about_the_cells_that_are_left(kind: str) -> None:
    model, random = random_mixture(kind), np.random.default_rng(4)
    cells = all_cells(model)
    low, high = np.array([[0, 0, 0], [1, 0, 2], [0, 1, 0]]), np.array([[3, 2, 5], [2, 2, 4], [3, 2, 5]])
    for _ in range(10):
        masks = random_masks(random)
        kept = np.where(inside(masks), cells, 0.0)
        part = model.within(masks)
        np.testing.assert_allclose(part.cells(), kept, atol=1e-9)
        expected = [kept[tuple(map(slice, begin, end + 1))].sum() for begin, end in zip(low, high, strict=True)]
        np.testing.assert_allclose(part.blocks(low, high), expected, atol=1e-9)
        np.testing.assert_allclose(model.of_masks(masks, (2, 0)), summed(kept, (2, 0)), atol=1e-9)
        np.testing.assert_allclose(model.of_masks(masks, ()), kept.sum(), atol=1e-9)


@each_kind
def test_a_table_of_grouped_places_is_the_sum_of_its_cells(kind: str) -> None:
    model = random_mixture(kind)
    cells = all_cells(model)
    labels = {0: np.array([0, 1, 1, 0]), 2: np.array([1, 0, 1, 0, 2, 2])[: model.axes[2].size]}
    expected = np.zeros((2, int(labels[2].max()) + 1))
    for cell in product(*(range(size) for size in SHAPE)):
        expected[labels[0][cell[0]], labels[2][model.axes[2].places[cell[2]]]] += cells[cell]
    np.testing.assert_allclose(model.table((0, 2), (labels[0], labels[2])), expected)


def test_grouped_laws_add_up_and_stay_as_they_are_where_every_place_is_its_own_group() -> None:
    laws = np.random.default_rng(1).dirichlet(np.ones(5), 3)
    assert grouped(laws, np.arange(5)) is laws
    found = grouped(laws, np.array([1, 0, 1, 1, 0]))
    np.testing.assert_allclose(found, np.stack([laws[:, [1, 4]].sum(axis=1), laws[:, [0, 2, 3]].sum(axis=1)], axis=1))


def test_tables_are_the_same_when_they_are_made_of_a_few_classes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_mixture("plain", classes=23)
    expected = model.cells()
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 30)
    np.testing.assert_allclose(model.cells(), expected)
    assert model.table((), ()) == pytest.approx(730.0)


def test_the_mean_of_models_has_the_mean_of_their_cells() -> None:
    models = [random_mixture("joined", classes=count, seed=count, rows=100.0 * count) for count in (2, 5, 3)]
    mean = Mixture.mean_of(models)
    assert mean.rows == pytest.approx(1000 / 3)
    assert mean.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(mean.cells(), np.mean([all_cells(model) for model in models], axis=0))


@each_kind
def test_drawn_values_follow_the_law_of_the_cells(kind: str) -> None:
    model = random_mixture(kind)
    random, rows = np.random.default_rng(8), 40_000
    places = model.draw(rows, random)
    values = [axis.values_of(one, random) for axis, one in zip(model.axes, places, strict=True)]
    found = np.bincount(np.ravel_multi_index(values, SHAPE), minlength=72)
    expected = all_cells(model).ravel() / model.rows * rows
    assert stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue > 0.001
    # It would be noticed if two neighbouring values were confused.
    turned = np.roll(all_cells(model), 1, axis=2).ravel() / model.rows * rows
    assert stats.chisquare(found, turned * found.sum() / turned.sum()).pvalue < 1e-6


def classes_apart() -> Mixture:
    """Return a mixture whose rows tell their class: it is the first attribute."""
    random = np.random.default_rng(2)
    weights = random.dirichlet(np.ones(7))
    laws = (np.eye(7), random.dirichlet(np.ones(4), 7), random.dirichlet(np.full(9, 0.3), 7))
    return Mixture((ModelAxis.plain(7), ModelAxis.plain(4), ModelAxis.plain(9)), weights, laws, 100.0)


@pytest.mark.parametrize("rows", [1, 2, 57, 1000, 12_345])
def test_even_rows_have_as_many_in_each_class_and_up_to_each_value_as_they_should_up_to_one(rows: int) -> None:
    model = classes_apart()
    for seed in range(5):
        owners, *columns = model.draw_values(rows, np.random.default_rng(seed))
        assert owners.size == rows
        sizes = np.bincount(owners, minlength=7)
        assert np.abs(sizes - rows * model.weights).max() <= 1 + 1e-9
        for column, laws in zip(columns, model.laws[1:], strict=True):
            table = np.zeros((7, laws.shape[1]))
            np.add.at(table, (owners, column), 1)
            upto = sizes[:, None] * np.cumsum(laws, axis=1)
            assert np.abs(np.cumsum(table, axis=1) - upto).max() <= 1 + 1e-9
    if rows == 12_345:  # a sample is further from them
        owners = model.draw(rows, np.random.default_rng(0))[0]
        assert np.abs(np.bincount(owners, minlength=7) - rows * model.weights).max() > 5


def test_even_rows_come_in_no_order_and_are_independent_within_their_class() -> None:
    model = classes_apart()
    owners, first, second = model.draw_values(60_000, np.random.default_rng(5))
    assert abs(np.corrcoef(owners[1:], owners[:-1])[0, 1]) < 0.02
    largest = int(np.argmax(model.weights))
    chosen = owners == largest
    found = np.zeros((4, 9))
    np.add.at(found, (first[chosen], second[chosen]), 1)
    expected = np.outer(model.laws[1][largest], model.laws[2][largest]) * chosen.sum()
    kept = expected > 5
    assert stats.chi2.sf((np.square(found - expected) / expected)[kept].sum(), kept.sum() - 1) > 0.001


def test_values_of_a_place_are_drawn_by_their_shares_of_it() -> None:
    axis = joining_axis([2, 0, 0, 1, 2, 0], [1, 2, 3, 1, 5, 4])
    drawn = axis.values_of(np.repeat([0, 1, 2], 9_000), np.random.default_rng(3))
    found = np.bincount(drawn, minlength=6)
    np.testing.assert_allclose(found, 9_000 * axis.within, atol=4 * np.sqrt(9_000 / 4))
    assert np.array_equal(axis.places[drawn], np.repeat([0, 1, 2], 9_000))
    plain = ModelAxis.plain(4)
    assert np.array_equal(plain.values_of(np.array([3, 0, 2]), np.random.default_rng(1)), [3, 0, 2])
