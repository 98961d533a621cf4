"""Squared L2 distances of columns: random products against all pairs of columns, bounds, and numbers beyond 64 bits."""

from collections.abc import Callable
from functools import reduce
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.operators import AxisOperator, FlatAxis, HaarAxis, MatchedAxis, NominalAxis, ProductOperator, TreeAxis
from veilcube.operators.base import (
    AxisMoments,
    ColumnProducts,
    farthest_products,
    largest_squared_exchange,
    products_of_columns,
    squares,
)
from veilcube.operators.tree.squares import products_of_fanouts, products_of_nodes

Numbers = NDArray[np.object_]


def random_levels(size: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    levels = [np.array([0, size])]
    for _ in range(int(rng.integers(0, 4))):
        levels.append(np.unique(np.concatenate([levels[-1], np.flatnonzero(rng.random(size + 1) < 0.25)])))
    return levels


def some_numbers(rng: np.random.Generator, count: int) -> list[int]:
    return [int(number) for number in rng.integers(1, 9, size=count)]


def random_nominal(size: int, rng: np.random.Generator) -> NominalAxis:
    """Return a hierarchy with the usual multipliers or with any: columns may then point away from each other."""
    levels = random_levels(size, rng)
    fanouts = NominalAxis(size, levels).multipliers
    given = dict(zip(fanouts, some_numbers(rng, len(fanouts)), strict=True))
    return NominalAxis(size, levels, given if rng.random() < 0.5 else None)


def random_balanced(size: int, rng: np.random.Generator) -> TreeAxis:
    fanouts = [int(fanout) for fanout in rng.integers(1, 4, size=rng.integers(0, 4))]
    return TreeAxis.balanced(size, fanouts, some_numbers(rng, len(fanouts) + 1))


def random_runs(size: int, rng: np.random.Generator) -> TreeAxis:
    runs = (*random_levels(size, rng)[int(rng.integers(0, 2)) :], np.arange(size + 1))
    return TreeAxis(size, runs, some_numbers(rng, len(runs)))


def random_matched(size: int, rng: np.random.Generator) -> MatchedAxis:
    shared = rng.integers(0, 5, size=(int(rng.integers(0, 4)), size))
    return MatchedAxis(int(shared.sum(axis=0).max(initial=0)) + int(rng.integers(1, 4)), shared)


KINDS: list[Callable[[int, np.random.Generator], AxisOperator]] = [
    lambda size, _: FlatAxis(size),
    lambda size, _: HaarAxis(size),
    random_nominal,
    random_balanced,
    random_runs,
    random_matched,
]


def random_axis(rng: np.random.Generator) -> AxisOperator:
    return KINDS[int(rng.integers(len(KINDS)))](int(rng.integers(1, 8)), rng)


def columns_of(axes: tuple[AxisOperator, ...]) -> Numbers:
    """Return all columns of a product, one a line, in whole numbers of any length."""
    written = (axis.apply(np.eye(axis.size, dtype=np.int64)).astype(object) for axis in axes)
    return reduce(np.kron, written)


def farthest_columns(columns: Numbers) -> int:
    return max(((ours - theirs) ** 2).sum() for ours in columns for theirs in columns)


@pytest.mark.parametrize("seed", range(40))
def test_random_products_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(6):
        axes = tuple(random_axis(rng) for _ in range(int(rng.integers(1, 4))))
        columns = columns_of(axes)
        if len(columns) > 80:
            continue
        operator = ProductOperator(axes, tuple("abc"[: len(axes)]))
        longest = (columns**2).sum(axis=1).max()
        assert operator.sensitivity_l2_squared("add-remove") == longest
        expected = farthest_columns(columns) if len(columns) > 1 else 2 * longest
        assert operator.sensitivity_l2_squared("replace") == expected


@pytest.mark.parametrize("seed", range(10))
def test_where_pairs_are_too_many_the_bound_is_never_too_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squares, "MOST_KINDS", 1)
    rng, is_bound = np.random.default_rng(seed), []
    while len(is_bound) < 10:
        axes = tuple(random_axis(rng) for _ in range(2))
        columns = columns_of(axes)
        if 1 < len(columns) <= 50:
            is_bound.append(
                largest_squared_exchange([axis.column_products() for axis in axes]) >= farthest_columns(columns)
            )
    assert all(is_bound)


def test_balanced_trees_need_no_nodes_to_know_their_columns() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        size = int(rng.integers(1, 60))
        fanouts = tuple(int(fanout) for fanout in rng.integers(1, 6, size=rng.integers(0, 5)))
        axis = TreeAxis.balanced(size, fanouts, some_numbers(rng, len(fanouts) + 1))
        own = [weight**2 for weight in axis._weights.tolist()] + [axis.multipliers[-1] ** 2] * axis.shape.leaves
        listed = products_of_nodes(axis.shape, own, [0] * axis.shape.inner)
        assert set(products_of_fanouts(size, fanouts, axis.multipliers)) == set(listed)


def test_a_cell_that_sits_high_in_a_tree_has_the_longest_column() -> None:
    # Cell 0 is split off at once and weighs 1 + 1 below the root: 1 + 4, where the others have 1 + 1 + 1.
    axis = TreeAxis(4, (np.array([0, 4]), np.array([0, 1, 4]), np.arange(5)), (1, 1, 1))
    assert axis.column_sums().tolist() == [3, 3, 3, 3]
    assert axis.largest_square == 5
    assert ProductOperator((axis,), ("x",)).sensitivity_l2_squared("replace") == 5 + 3 - 2


def test_an_enormous_tree_takes_no_memory() -> None:
    operator = ProductOperator((TreeAxis.balanced(2**47, (1, 2**20, 2**20), (1, 2, 3, 4)),), ("x",))
    assert operator.sensitivity_l2_squared("add-remove") == 1 + 4 + 9 + 16
    assert operator.sensitivity_l2_squared("replace") == 2 * (4 + 9 + 16)


def test_squares_beyond_64_bits_are_exact() -> None:
    large = 2**31
    tree = TreeAxis(3, (np.array([0, 3]), np.array([0, 1, 3]), np.arange(4)), (large, large, large - 1))
    columns = columns_of((tree, tree))
    operator = ProductOperator((tree, tree), ("x", "y"))
    assert operator.sensitivity_l2_squared("add-remove") == (columns**2).sum(axis=1).max() > 2**120
    assert operator.sensitivity_l2_squared("replace") == farthest_columns(columns)
    written = products_of_columns(tree.apply(np.eye(3, dtype=np.int64)))
    assert set(written) == set(tree.column_products())


class OnlyApplied(AxisMoments):
    """A new kind of axis that says nothing of its columns."""

    size = 3

    def apply(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        return cells @ np.array([[3, 1, 0, -2], [0, 4, 1, 1], [5, 0, 2, 2]])


def test_an_axis_that_says_nothing_has_its_columns_compared() -> None:
    columns = columns_of((OnlyApplied(),))
    assert OnlyApplied().largest_square == 33
    assert largest_squared_exchange([OnlyApplied().column_products()]) == farthest_columns(columns)


def test_pairs_that_another_one_is_farther_than_are_left_out_and_no_others() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        pairs = [ColumnProducts(*map(int, rng.integers(0, 6, size=3))) for _ in range(12)]
        kept = farthest_products(pairs, 9)
        both = {pair for one in pairs for pair in (one, ColumnProducts(one.right, one.left, one.inner))}
        assert set(kept[1:]) == {pair for pair in both if not any(_is_farther(other, pair) for other in both)}
        assert kept[0] == (9, 9, 9)


def _is_farther(ours: ColumnProducts, theirs: ColumnProducts) -> bool:
    no_closer = ours.left >= theirs.left and ours.right >= theirs.right and ours.inner <= theirs.inner
    return ours != theirs and no_closer


def test_many_axes_are_combined_without_listing_all_combinations() -> None:
    axes = tuple(TreeAxis.balanced(3, (1, 2), (1, 1, 1)) for _ in range(16))
    kinds = axes[0].column_products()
    assert len(kinds) == 3
    # The axes are alike, so only how many of them have each kind of pair matters.
    distances = [
        reduce(ColumnProducts.times, chosen).distance for chosen in combinations_with_replacement(kinds, len(axes))
    ]
    assert ProductOperator(axes, tuple(map(str, range(16)))).sensitivity_l2_squared("replace") == max(distances)
