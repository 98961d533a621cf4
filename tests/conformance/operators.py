"""Every operator and every axis registers here once and inherits the checks of its L2 sensitivity."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import (
    BlockLevels,
    Blocks,
    FlatAxis,
    GroupedTablesOperator,
    HaarAxis,
    HalvingTree,
    IdentityOperator,
    MarginalsOperator,
    MatchedAxis,
    NeighbourName,
    NodeCounts,
    NominalAxis,
    Operator,
    ProductOperator,
    RegionCounts,
    TreeAxis,
)
from veilcube.planner.partition.design import CellsAndBlocks
from veilcube.schema import Nominal, Ordinal, Schema

Columns = NDArray[np.int64]
Cell = tuple[int, ...]

SMALL_SCHEMA = Schema(
    [Ordinal("age", 1, 5), Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": ["Judge"]})]
)
LARGE_SCHEMA = Schema([Ordinal("age", 1, 90), Ordinal("hour", 0, 23)])


def product_of(*axes: Any) -> ProductOperator:
    return ProductOperator(axes, tuple(f"axis {number}" for number in range(len(axes))))


def matched(size: int, rows: int, seed: int) -> MatchedAxis:
    shared = np.random.default_rng(seed).integers(0, 9, size=(rows, size))
    return MatchedAxis(int(shared.sum(axis=0).max()) + 2, shared)


def matched_by_length(size: int, rows: int, seed: int) -> MatchedAxis:
    """Return an axis whose columns have different sums, as those of about one L2 norm do."""
    generator = np.random.default_rng(seed)
    return MatchedAxis.of_own(generator.integers(1, 9, size), generator.integers(0, 9, size=(rows, size)))


def levels(size: int, *inner: list[int]) -> list[Columns]:
    return [np.array([0, size]), *(np.array([0, *level, size]) for level in inner)]


def blocks_of(schema: Schema) -> BlockLevels:
    tree = HalvingTree.of(schema)
    return BlockLevels(tree, (tree.depth, 3, 1, 0), (2, 5, 3, 7))


def nodes_of(schema: Schema, level: int) -> NodeCounts:
    tree = HalvingTree.of(schema)
    chosen = np.arange(0, tree.nodes(level), 2)
    return NodeCounts(tree, level, chosen.size, chosen)


def grouped_tables(
    shape: tuple[int, ...], groups: tuple[int, ...], multipliers: tuple[int, ...]
) -> GroupedTablesOperator:
    """Return a table over all attributes, grouped in runs, and one for each attribute, value by value."""
    runs = [(axis, np.arange(size) * many // size) for axis, (size, many) in enumerate(zip(shape, groups, strict=True))]
    values = [(axis, np.arange(size)) for axis, size in enumerate(shape)]
    alone = [(len(shape) + axis,) for axis in range(len(shape))]
    return GroupedTablesOperator.of(shape, runs + values, [tuple(range(len(shape))), *alone], multipliers)


HIGH_LEAVES = levels(9, [1, 4], [1, 2, 4, 5])
SMALL: Mapping[str, Operator] = {
    "identity": IdentityOperator((3, 4), ("a", "b")),
    "flat": product_of(FlatAxis(7)),
    "tree": product_of(TreeAxis.balanced(11, (1, 2, 3), (3, 5, 2, 4))),
    "tree of runs": product_of(TreeAxis(9, (*HIGH_LEAVES, np.arange(10)), (1, 4, 2, 3))),
    "tree without a root": product_of(TreeAxis.balanced(7, (3,), (5, 2)), FlatAxis(2)),
    "matched": product_of(matched(9, 4, seed=1)),
    "matched by length": product_of(matched_by_length(7, 3, seed=5), FlatAxis(2)),
    "haar": product_of(HaarAxis(11)),
    "nominal": product_of(NominalAxis(9, HIGH_LEAVES)),
    "nominal with opposed columns": product_of(NominalAxis(4, levels(4, [2]), {1: 1, 2: 9}), HaarAxis(3)),
    "product of all": product_of(matched(3, 2, seed=2), HaarAxis(3), TreeAxis.balanced(3, (1, 2), (2, 1, 3))),
    "marginals": MarginalsOperator((2, 3, 4), ("a", "b", "c"), 2, (3, 1, 4)),
    "marginals with an attribute of one cell": MarginalsOperator((1, 3, 4), ("a", "b", "c"), 1, (9, 2, 5)),
    "nodes": nodes_of(SMALL_SCHEMA, 1),
    "block levels": blocks_of(SMALL_SCHEMA),
    "regions": RegionCounts.of(np.array([[0, 0, 1], [2, 1, 1]])),
    "cells and blocks": CellsAndBlocks(Blocks((4, 6), (2, 3)), (7, 3)),
    "grouped tables": grouped_tables((5, 3, 4), (2, 3, 3), (7, 1, 4, 9)),
    "grouped tables with an attribute of one cell": grouped_tables((5, 1), (2, 1), (7, 3, 4)),
}
LARGE: Mapping[str, Operator] = {
    "identity": IdentityOperator((90, 70), ("a", "b")),
    "tree": product_of(TreeAxis.balanced(1000, (1, 7, 5, 3), (30, 5, 20, 4, 9)), FlatAxis(5)),
    "matched": product_of(matched(120, 9, seed=3), matched(30, 5, seed=4)),
    "matched by length": product_of(matched_by_length(120, 9, seed=6), FlatAxis(30)),
    "wavelets": product_of(HaarAxis(100), NominalAxis(60, levels(60, [3, 20, 31], [1, 3, 9, 20, 25, 31, 50]))),
    "marginals": MarginalsOperator((9, 8, 7, 6), tuple("abcd"), 2, (3, 1, 4, 1, 5, 9)),
    "block levels": blocks_of(LARGE_SCHEMA),
    "nodes": nodes_of(LARGE_SCHEMA, 2),
    "regions": RegionCounts.of(np.arange(2000).reshape(40, 50) % 37),
    "cells and blocks": CellsAndBlocks(Blocks((60, 70), (5, 10)), (40, 13)),
    "grouped tables": grouped_tables((60, 9, 40), (7, 4, 5), (70, 1, 40, 9)),
}


def column_of(operator: Operator, cell: Cell) -> NDArray[Any]:
    """Return the column of a cell, in whole numbers of any length."""
    table = np.zeros(operator.cell_shape, dtype=np.int64)
    table[cell] = 1
    return operator.apply(table).ravel().astype(object)


def check_sensitivity_l2(operator: Operator) -> None:
    """The declared squared L2 sensitivity is the largest over all cells and all pairs of cells: no less, no more."""
    columns = [column_of(operator, cell) for cell in np.ndindex(operator.cell_shape)]
    _same(operator, "add-remove", max((column**2).sum() for column in columns))
    _same(operator, "replace", max(((ours - theirs) ** 2).sum() for ours in columns for theirs in columns))


def _same(operator: Operator, neighbours: NeighbourName, largest: int) -> None:
    declared = operator.sensitivity_l2_squared(neighbours)
    assert type(declared) is int
    assert declared == largest, f"{neighbours}: declared {declared}, found {largest}"


def check_against_search(operator: Operator, seed: int) -> None:
    """A search for cells that are farthest apart finds what is declared, and nothing above it."""
    rng = np.random.default_rng(seed)
    searches = [climb(operator, neighbours == "replace", rng) for neighbours in ("add-remove", "replace")]
    _same(operator, "add-remove", searches[0])
    _same(operator, "replace", searches[1])


def climb(operator: Operator, exchanged: bool, rng: np.random.Generator, climbs: int = 4) -> int:
    """Move one coordinate of one cell at a time, to wherever the change is largest, from some random starts."""
    best = 0
    for _ in range(climbs):
        start = [tuple(int(rng.integers(size)) for size in operator.cell_shape) for _ in range(2)]
        columns = [column_of(operator, cell) for cell in start]
        if not exchanged:
            columns[1] = np.zeros_like(columns[0])
        best = max(best, _climb_from(operator, start, columns, exchanged, rng))
    return best


def _climb_from(
    operator: Operator, cells: list[Cell], columns: list[NDArray[Any]], exchanged: bool, rng: np.random.Generator
) -> int:
    height, idle = int(((columns[0] - columns[1]) ** 2).sum()), 0
    while idle < 60 * sum(size > 1 for size in operator.cell_shape) * (1 + exchanged):
        which, axis = int(rng.integers(1 + exchanged)), int(rng.integers(len(operator.cell_shape)))
        cell = list(cells[which])
        cell[axis] = int(rng.integers(operator.cell_shape[axis]))
        moved = column_of(operator, tuple(cell))
        reached = int(((moved - columns[1 - which]) ** 2).sum())
        idle = 0 if reached > height else idle + 1
        if reached >= height:
            height, cells[which], columns[which] = reached, tuple(cell), moved
    return height
