"""Non-negative estimates: least squares, then a walk from the root that keeps every total.

No cell is below zero and all answers add up, which least squares alone cannot promise; on sparse tables the error is
usually smaller as well, though it is no longer zero on average. Intervals are those of least squares, cut at zero.

At the root the total is clamped at zero. Then each group of siblings is projected onto the simplex of its parent's
total: the nearest point (Euclidean) with entries >= 0 and that sum, max(x_i - τ, 0) for one τ. Clamping cells alone
would inflate every large sum; here large sums stay what least squares made them. ``walk_tree`` follows the nodes of a
tree over one axis, ``walk_halves`` a binary tree over the cells of any cube, its widest axis halved first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from veilcube.analyst.estimate.base import AdjustedEstimate, project_onto_simplex
from veilcube.analyst.estimate.linear.least_squares import LeastSquares
from veilcube.operators import Nodes, ProductOperator, TreeShape, nodes_of
from veilcube.record import ReleaseRecord
from veilcube.system import Floats, Integers, compiled, share_out


def walk_tree(shape: TreeShape, cells: Floats) -> Floats:
    """Return non-negative cells whose sums over nodes follow the walk along a tree."""
    nodes, walked = nodes_of(shape), cells.astype(np.float64)
    sums = np.empty(shape.inner)
    levels = list(pairwise(shape.segments.tolist()))
    for start, stop in reversed(levels):
        _each_level(shape, start, stop, lambda low, high: _sum_up(nodes, walked, sums, low, high))
    sums[0] = max(sums[0], 0.0)
    for start, stop in levels:
        _each_level(shape, start, stop, lambda low, high: _walk_down(nodes, walked, sums, low, high))
    return walked


def _each_level(shape: TreeShape, start: int, stop: int, work: Callable[[int, int], None]) -> None:
    entries = (stop - start) * 32 if stop < shape.inner else shape.size
    share_out(lambda low, high: work(start + low, start + high), stop - start, entries)


@compiled
def _sum_up(nodes: Nodes, cells: Floats, sums: Floats, start: int, stop: int) -> None:
    first, child_start, child_count = nodes
    for v in range(start, stop):
        begin, count = child_start[v], child_count[v]
        if begin >= first.size or count == 0:
            sums[v] = cells[first[v] : first[v] + max(count, 1)].sum()
        else:
            sums[v] = sums[begin : begin + count].sum()


@compiled
def _walk_down(nodes: Nodes, cells: Floats, sums: Floats, start: int, stop: int) -> None:
    first, child_start, child_count = nodes
    for v in range(start, stop):
        begin, count = child_start[v], child_count[v]
        if count == 0:
            cells[first[v]] = sums[v]
        elif begin >= first.size:
            project_onto_simplex(cells, first[v], first[v] + count, sums[v])
        else:
            project_onto_simplex(sums, begin, begin + count, sums[v])


def walk_halves(cells: Floats) -> Floats:
    """Return non-negative cells whose sums over halved blocks follow the walk, for a cube of any shape."""
    blocks, steps = cells.astype(np.float64), _halvings(cells.shape)
    finer: list[Floats] = []
    for axis, starts in reversed(steps):
        finer.append(blocks)
        blocks = _merged(blocks, axis, starts)
    blocks = np.maximum(blocks, 0.0)
    for axis, starts in steps:
        halves = finer.pop()
        _split(halves, blocks, axis, starts)
        blocks = halves
    return blocks


def _halvings(shape: tuple[int, ...]) -> list[tuple[int, Integers]]:
    """Return, from the whole cube to the cells, which axis is halved and where each block's halves start.

    The blocks of an axis differ in length by at most one, so single cells occur only beside pairs, before the last
    halving of that axis.
    """
    lengths = [np.array([size], dtype=np.int64) for size in shape]
    longest = list(shape)
    steps = []
    while max(longest) > 1:
        axis = int(np.argmax(longest))
        whole = lengths[axis]
        starts = np.zeros(whole.size + 1, dtype=np.int64)
        np.cumsum(np.minimum(whole, 2), out=starts[1:])
        steps.append((axis, starts))
        longest[axis] = -(-longest[axis] // 2)
        if longest[axis] > 1:
            lengths[axis] = np.stack([whole // 2, whole - whole // 2], axis=1).ravel()
    return steps


def _as_three_axes(blocks: Floats, axis: int) -> Floats:
    """View an array as (what is before an axis, the axis, what is behind it)."""
    before = int(np.prod(blocks.shape[:axis], dtype=np.int64))
    return blocks.reshape(before, blocks.shape[axis], -1)


def _merged(blocks: Floats, axis: int, starts: Integers) -> Floats:
    """Sum the halves of each block along one axis."""
    whole = np.empty((*blocks.shape[:axis], starts.size - 1, *blocks.shape[axis + 1 :]))
    halves, wholes = _as_three_axes(blocks, axis), _as_three_axes(whole, axis)
    rows = wholes.shape[0] * wholes.shape[1]
    share_out(lambda low, high: _merge_rows(halves, wholes, starts, low, high), rows, blocks.size)
    return whole


def _split(halves: Floats, blocks: Floats, axis: int, starts: Integers) -> None:
    """Replace the halves of each block by the nearest non-negative ones with its total, in place."""
    parts, wholes = _as_three_axes(halves, axis), _as_three_axes(blocks, axis)
    rows = wholes.shape[0] * wholes.shape[1]
    share_out(lambda low, high: _split_rows(parts, wholes, starts, low, high), rows, halves.size)


@compiled
def _merge_rows(halves: Floats, wholes: Floats, starts: Integers, low: int, high: int) -> None:
    blocks, behind = wholes.shape[1], wholes.shape[2]
    before, block = low // blocks, low % blocks
    for _ in range(low, high):
        first = starts[block]
        if starts[block + 1] - first == 1:
            for i in range(behind):
                wholes[before, block, i] = halves[before, first, i]
        else:
            for i in range(behind):
                wholes[before, block, i] = halves[before, first, i] + halves[before, first + 1, i]
        block += 1
        if block == blocks:
            before, block = before + 1, 0


@compiled
def _split_rows(halves: Floats, wholes: Floats, starts: Integers, low: int, high: int) -> None:
    blocks, behind = wholes.shape[1], wholes.shape[2]
    before, block = low // blocks, low % blocks
    for _ in range(low, high):
        first = starts[block]
        if starts[block + 1] - first == 1:
            for i in range(behind):
                halves[before, first, i] = wholes[before, block, i]
        else:
            for i in range(behind):
                total = wholes[before, block, i]
                left = (halves[before, first, i] - halves[before, first + 1, i] + total) / 2
                left = min(max(left, 0.0), total)
                halves[before, first, i], halves[before, first + 1, i] = left, total - left
        block += 1
        if block == blocks:
            before, block = before + 1, 0


@dataclass(frozen=True)
class Nonnegative:
    """Least squares made non-negative from the root down; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "nonnegative"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether least squares can read the release, and totals are known better than cells.

        Rows matched to a workload may leave the total, from which the walk starts, with enormous noise.
        """
        product = record.measurements[0].product
        return LeastSquares().can_read(record) and (product is None or all(axis.keeps_totals for axis in product.axes))

    def fit(self, record: ReleaseRecord) -> AdjustedEstimate:
        """Return its answers about this release."""
        unbiased = LeastSquares().fit(record)
        cells = walked_cells(record.measurements[0].product, unbiased.cells())
        return AdjustedEstimate(unbiased, cells, least=0.0)


def walked_cells(product: ProductOperator | None, cells: Floats) -> Floats:
    """Return least-squares cells made non-negative, along the measured tree of one axis or else by halves."""
    tree = None if product is None else product.tree
    return walk_halves(cells) if tree is None else walk_tree(tree.shape, cells)
