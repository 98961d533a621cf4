"""Trees of one attribute, packed for the search: nodes with equal subtrees become one class."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.planner.design import (
    Chain,
    Family,
    Price,
    SquaresPrice,
    balance_weights,
    longest_chains,
    price_of,
)
from veilcube.planner.tree.loops import PackedRanges, PackedTree, range_variances
from veilcube.system import Floats, Integers

_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class TreeClasses:
    """A tree over the cells of one attribute: ``levels`` are boundaries of runs, the root first, without the cells.

    The cells need no arrays: all children of a node of the lowest level are alike. If ``measures_total`` is false, the
    root has no weight of its own.
    """

    levels: tuple[Integers, ...]
    measures_total: bool

    @property
    def weights(self) -> int:
        """How many levels have a weight, the cells included."""
        return len(self.levels) + self.measures_total

    @cached_property
    def _packed(self) -> tuple[PackedTree, list[Integers], Integers]:
        """The classes, the class of every node of every level, and the class of the cells of each lowest node."""
        starts = [np.searchsorted(below, above) for above, below in pairwise(self.levels)]
        spans, unsplit = _spans(starts, np.diff(self.levels[-1]))
        kinds, cell_classes = np.unique(np.where(unsplit[-1], spans[-1], len(self.levels)), return_inverse=True)
        found = _ClassList(0 if self.measures_total else 1)
        for kind in kinds.tolist():
            found.add(kind, len(self.levels), np.zeros(0, dtype=np.int64))
        node_classes: list[Integers] = []
        for level in range(len(self.levels) - 1, -1, -1):
            is_lowest = not node_classes
            lengths = np.diff(self.levels[level])
            rows = _scatter(cell_classes, lengths) if is_lowest else _row_keys(node_classes[0], starts[level])
            keys = _scatter(rows, 2 * spans[level] + unsplit[level])
            _, examples, classes = np.unique(keys, return_index=True, return_inverse=True)
            known = len(found.first)
            for node in examples.tolist():
                cells = slice(0, 0) if is_lowest else slice(*starts[level][node : node + 2])
                below = np.full(lengths[node], cell_classes[node]) if is_lowest else node_classes[0][cells]
                found.add(int(spans[level][node]), level, below, is_measured=not unsplit[level][node])
            node_classes.insert(0, known + classes.reshape(-1))
        return found.pack(), node_classes, cell_classes.reshape(-1)

    def ranges(self, low: Integers, high: Integers) -> PackedRanges:
        """Return where each inclusive range begins and ends on every level."""
        _, node_classes, cell_classes = self._packed
        found: list[tuple[Integers, ...]] = []
        starts_above = (np.zeros_like(low), np.zeros_like(high))
        left = right = np.zeros_like(low)
        for boundaries, of_node in zip(self.levels, node_classes, strict=True):
            left, right = (np.searchsorted(boundaries, cells, side="right") - 1 for cells in (low, high))
            eldest = [np.searchsorted(boundaries, start) for start in starts_above]
            found.append((of_node[left], left - eldest[0], of_node[right], right - eldest[1], left == right))
            starts_above = (boundaries[left], boundaries[right])
        cells = (cell_classes[left], low - starts_above[0], cell_classes[right], high - starts_above[1], low == high)
        first, first_position, last, last_position, together = (
            np.stack(rows) for rows in zip(*found, cells, strict=True)
        )
        return PackedRanges(first, first_position, last, last_position, together.astype(np.bool_))

    def variances(self, ranges: PackedRanges, theta: Floats) -> Floats:
        """Return the exact variance of each range, in units of the noise on one measurement of weight 1."""
        queries = ranges.together.shape[1]
        variances = np.zeros(queries)
        range_variances(self._packed[0], ranges, theta, np.zeros(queries), variances)
        return variances

    def price(self, family: Family) -> Price:
        """Return what weights cost: a cell's node that stands on several levels is one row, with the sum of theirs."""
        return price_of(family) if family == "laplace" else self._squares

    @cached_property
    def _squares(self) -> SquaresPrice:
        tree = self._packed[0]
        below: list[frozenset[Chain]] = []
        for c, (first, end) in enumerate(zip(tree.first.tolist(), tree.end.tolist(), strict=True)):
            children = np.unique(tree.children[tree.child_start[c] : tree.child_start[c + 1]]).tolist()
            rest = frozenset[Chain]().union(*(below[child] for child in children)) if children else {()}
            below.append(frozenset(((first, end), *chain) if end > first else chain for chain in rest))
        return SquaresPrice(longest_chains(below[-1]))

    def optimise(
        self, ranges: PackedRanges, cost: Floats, start: Floats | None = None, family: Family = "laplace"
    ) -> tuple[Floats, float]:
        """Return the weights of norm 1 with the least Σ cost · variance, and that value."""
        variances = np.zeros(cost.size)
        return balance_weights(
            lambda theta: range_variances(self._packed[0], ranges, theta, cost, variances),
            np.ones(self.weights) if start is None else start,
            self.price(family),
        )


class _ClassList:
    """Classes of nodes as they are found, children before parents; weights count from level ``offset`` on."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.first: list[int] = []
        self.end: list[int] = []
        self.children: list[Integers] = []

    def add(self, span: int, level: int, children: Integers, *, is_measured: bool = True) -> None:
        """Add a class of nodes of a level, whose cells stand on the levels from ``span`` on."""
        first = max(span - self.offset, 0)
        self.first.append(first)
        self.end.append(level - self.offset + 1 if is_measured and level >= self.offset else first)
        self.children.append(children)

    def pack(self) -> PackedTree:
        """Return the classes as flat arrays."""
        sizes = np.cumsum([0, *(below.size for below in self.children)])
        return PackedTree(
            np.array(self.first, dtype=np.int64),
            np.array(self.end, dtype=np.int64),
            sizes.astype(np.int64),
            np.concatenate(self.children).astype(np.int64),
        )


def _spans(starts: Sequence[Integers], lowest: Integers) -> tuple[list[Integers], list[NDArray[np.bool_]]]:
    """For each node the level of the topmost node with the same cells, and whether the next level leaves it whole."""
    spans = [np.zeros(1, dtype=np.int64)]
    unsplit: list[NDArray[np.bool_]] = []
    for level, begins in enumerate(starts, start=1):
        children = np.diff(begins)
        unsplit.append(children == 1)
        spans.append(np.repeat(np.where(unsplit[-1], spans[-1], level), children))
    return spans, [*unsplit, lowest == 1]


def _row_keys(classes: Integers, starts: Integers) -> NDArray[np.uint64]:
    """Return a number for each node that tells which classes its children have, in their order."""
    position = np.arange(classes.size, dtype=np.int64) - np.repeat(starts[:-1], np.diff(starts))
    keys: NDArray[np.uint64] = np.add.reduceat(_scatter(position, classes), starts[:-1])
    return keys


def _scatter(one: NDArray[np.integer[Any]], other: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Return a 64-bit number for each pair; different pairs get the same one with probability of about 2^-64."""
    return _permute(_permute(one.astype(np.uint64)) + other.astype(np.uint64))


def _permute(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Permute the 64-bit integers so that neighbours end up far apart: odd factors and shifts can be undone."""
    mixed = (numbers + np.uint64(1)) * _ODD
    for shift in (30, 27, 31):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * _ODD
    return mixed
