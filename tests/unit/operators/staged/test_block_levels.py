"""Whole levels of a halving tree against dense least squares."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from support.halving_trees import SCHEMAS, TREES, matrix_of
from veilcube.operators.staged.block_levels import BlockLevels
from veilcube.schema import Region

FULL = ["one cell", "two cells", "power of two", "two axes"]


def blocks_of(name: str) -> BlockLevels:
    """Return about every other level of a tree, the cells last, with different multipliers."""
    depth = TREES[name].depth
    levels = tuple(sorted({0, depth // 2, max(depth - 1, 0)}, reverse=True))
    return BlockLevels(TREES[name], levels, (3, 1, 2)[: len(levels)])


def all_blocks(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    ranges = [[(i, j) for i in range(size) for j in range(i, size)] for size in shape]
    ends = np.array(list(product(*ranges)))
    return ends[:, :, 0], ends[:, :, 1]


def masks(name: str) -> Iterator[np.ndarray]:
    shape = SCHEMAS[name].shape
    for low, high in zip(*all_blocks(shape), strict=True):
        mask = np.zeros(shape)
        mask[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] = 1
        yield mask


def dense_variances(name: str) -> np.ndarray:
    """Return q'(A'A)^-1 q for every block."""
    matrix = matrix_of(blocks_of(name))
    inverse = np.linalg.inv(matrix.T @ matrix)
    return np.array([mask.ravel() @ inverse @ mask.ravel() for mask in masks(name)])


@pytest.mark.parametrize("name", TREES)
def test_rows_are_multiples_of_the_nodes_counts_and_the_adjoint_is_the_transpose(name: str) -> None:
    operator, tree = blocks_of(name), TREES[name]
    expected = []
    for multiplier, level in zip(operator.multipliers, operator.levels, strict=True):
        prefixes = np.empty(tree.cells, dtype=np.int64)
        prefixes[tree.order] = tree.positions >> level
        expected += [multiplier * (prefixes == prefix) for prefix in np.unique(prefixes)]
    matrix = matrix_of(operator)
    np.testing.assert_array_equal(matrix, np.array(expected))
    assert operator.measurement_shape == (len(matrix),)
    measured = np.random.default_rng(0).normal(size=len(matrix))
    np.testing.assert_allclose(operator.adjoint(measured).ravel(), matrix.T @ measured, atol=1e-12)


@pytest.mark.parametrize("name", FULL)
def test_variances_are_those_of_least_squares_where_sizes_are_powers_of_two(name: str) -> None:
    found = blocks_of(name).variance_of_rectangles(*all_blocks(SCHEMAS[name].shape))
    np.testing.assert_allclose(found, dense_variances(name), rtol=1e-10)


@pytest.mark.parametrize("name", FULL)
def test_solve_is_least_squares_where_sizes_are_powers_of_two(name: str) -> None:
    operator = blocks_of(name)
    measured = np.random.default_rng(4).integers(-20, 90, size=operator.measurement_shape)
    np.testing.assert_allclose(
        operator.solve(measured).ravel(), np.linalg.pinv(matrix_of(operator)) @ measured, atol=1e-9
    )


@pytest.mark.parametrize("name", TREES)
def test_variances_are_never_below_those_of_the_estimate_nor_of_least_squares(name: str) -> None:
    operator = blocks_of(name)
    promised = operator.variance_of_rectangles(*all_blocks(SCHEMAS[name].shape))
    actual = np.array([np.square(operator.noise_weights(mask)).sum() for mask in masks(name)])
    assert (promised >= actual * (1 - 1e-10)).all()
    assert (actual >= dense_variances(name) * (1 - 1e-10)).all()


@pytest.mark.parametrize("name", TREES)
def test_blocks_and_regions_agree(name: str) -> None:
    operator, shape = blocks_of(name), SCHEMAS[name].shape
    lows, highs = all_blocks(shape)
    for low, high, variance in zip(lows, highs, operator.variance_of_rectangles(lows, highs), strict=True):
        sides = [
            Region.on_axis(shape, axis, (np.arange(size) >= low[axis]) & (np.arange(size) <= high[axis]))
            for axis, size in enumerate(shape)
        ]
        assert operator.variance_of_region(sides[0].intersect(*sides[1:])) == pytest.approx(variance)


@pytest.mark.parametrize("name", FULL)
def test_the_variance_of_scattered_cells_is_that_of_least_squares(name: str) -> None:
    operator, shape = blocks_of(name), SCHEMAS[name].shape
    chosen = np.arange(shape[0]) % 3 != 1
    mask = np.zeros(shape)
    mask[chosen] = 1
    matrix = matrix_of(operator)
    expected = mask.ravel() @ np.linalg.inv(matrix.T @ matrix) @ mask.ravel()
    assert operator.variance_of_region(Region.on_axis(shape, 0, chosen)) == pytest.approx(expected)


@pytest.mark.parametrize("name", TREES)
def test_cells_come_back_when_there_is_no_noise(name: str) -> None:
    counts = np.random.default_rng(5).integers(0, 1000, size=SCHEMAS[name].shape)
    operator = blocks_of(name)
    np.testing.assert_allclose(operator.solve(operator.apply(counts)), counts, atol=1e-8)


@pytest.mark.parametrize("name", TREES)
def test_noise_weights_are_what_solve_makes_of_each_measurement(name: str) -> None:
    operator = blocks_of(name)
    query = np.random.default_rng(6).normal(size=SCHEMAS[name].shape)
    rows = operator.measurement_shape[0]
    answers = [(operator.solve(row) * query).sum() for row in np.eye(rows, dtype=np.int64)]
    np.testing.assert_allclose(operator.noise_weights(query), answers, atol=1e-10)


@pytest.mark.parametrize("name", TREES)
def test_sensitivity_is_the_largest_change_that_a_row_makes(name: str) -> None:
    operator = blocks_of(name)
    columns = matrix_of(operator).T
    assert operator.sensitivity("add-remove") == columns.sum(axis=1).max()
    exchanged = max(np.abs(a - b).sum() for a in columns for b in columns)
    assert operator.sensitivity("replace") == exchanged


def test_a_level_that_holds_everything_in_one_node_costs_an_exchange_nothing() -> None:
    tree = TREES["odd size"]
    operator = BlockLevels(tree, (tree.depth, 0), (5, 2))
    assert operator.sensitivity("add-remove") == 7
    assert operator.sensitivity("replace") == 4
