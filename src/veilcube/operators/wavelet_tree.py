"""What both wavelet transforms know of their trees: parents, depths, the row of each cell, and who splits at a cut.

Down a wavelet's tree every child starts from an equal share of its parent: (S + difference) / 2, or (row / m + S) / f.
So a query q has at each node v a mean G_v, equal to q on a cell and to the plain average of the children's G above.
The noise of node v's rows enters the answer by the children's deviations from G_v alone, and a node on which q is
constant adds nothing: an answer's moments need only the nodes that a cut of the query goes through, O(log n) of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.moments import Moments
from veilcube.operators.parallel import compiled, share_out
from veilcube.operators.tree_shape import TreeShape

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
# First cell, first child and number of children of each inner node; parent and depth; the node that splits at a cut.
Walk = tuple[Integers, Integers, Integers, Integers, Integers, Integers]


@dataclass(frozen=True, eq=False)
class WaveletTree:
    """A tree's nodes in level order, the root first, with the arrays that passes walk on.

    ``parent`` and ``depth`` are of every node, cells included; ``cell_row[c]`` is the node of cell c; ``cut_node[c]``
    the node of which one child ends before cell c and another begins there. ``height`` counts the levels below a node.
    """

    shape: TreeShape
    parent: Integers
    depth: Integers
    height: Integers
    cell_row: Integers
    cut_node: Integers

    @classmethod
    def of(cls, shape: TreeShape) -> "WaveletTree":
        """Derive the arrays; every node but the root has a parent before it."""
        nodes, inner = shape.inner + shape.leaves, np.arange(shape.inner, dtype=np.int64)
        parent = np.full(nodes, -1, dtype=np.int64)
        order = np.argsort(shape.child_start[shape.child_count > 0], kind="stable")
        parents = inner[shape.child_count > 0][order]
        parent[1:] = np.repeat(parents, shape.child_count[parents])
        first = np.empty(nodes, dtype=np.int64)
        first[: shape.inner] = shape.first
        is_cell = shape.child_count == 0
        below = (shape.child_count > 0) & (shape.child_start >= shape.inner)
        lengths = shape.child_count[below]
        within = np.arange(shape.leaves, dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        first[shape.inner :] = np.repeat(shape.first[below], lengths) + within
        cell_row = np.empty(shape.size, dtype=np.int64)
        cell_row[first[: shape.inner][is_cell]] = inner[is_cell]
        cell_row[first[shape.inner :]] = np.arange(shape.inner, nodes)
        depth, height = np.zeros((2, nodes), dtype=np.int64)
        _measure_levels(parent, depth, height)
        cut_node = np.full(shape.size + 1, -1, dtype=np.int64)
        younger = np.flatnonzero(first[1:] > shape.first[parent[1:]]) + 1
        cut_node[first[younger]] = parent[younger]
        return cls(shape, parent, depth, height, cell_row, cut_node)

    @property
    def deepest(self) -> int:
        """How many levels lie below the root."""
        return int(self.depth.max())

    def moments_of_steps(
        self, cuts: Integers, values: Floats, divisor: Floats, base: float, *, is_paired: bool
    ) -> Moments:
        """Return the moments of step functions whose deviations at node v are divided by ``divisor[v]``.

        ``is_paired`` nodes have one row for both children (Haar); others one for each child. ``base`` divides the mean
        of all cells, which the total's noise enters by.
        """
        cuts = np.ascontiguousarray(cuts, dtype=np.int64)
        values = np.ascontiguousarray(values, dtype=np.float64)
        found, shape = np.empty((3, len(cuts))), self.shape
        walk = (shape.first, shape.child_start, shape.child_count, self.parent, self.depth, self.cut_node)
        settings = (walk, divisor, base, is_paired, cuts, values, found)
        share_out(lambda start, stop: _step_moments(*settings, start, stop), len(cuts), len(cuts) * 64)
        return Moments(*found)


@compiled
def _measure_levels(parent: Integers, depth: Integers, height: Integers) -> None:
    """Fill in how many levels lie above and below each node; parents come before children."""
    for v in range(1, parent.size):
        depth[v] = depth[parent[v]] + 1
    for v in range(parent.size - 1, 0, -1):
        height[parent[v]] = max(height[parent[v]], height[v] + 1)


@compiled
def _fill_means(
    walk: Walk, v: int, cuts: Integers, values: Floats, done: Integers, means: Floats, children: Floats
) -> float:
    """Write the mean of the query on each child of node v, and return their average."""
    first, child_start, child_count, _, _, _ = walk
    begin, count, inner = child_start[v], child_count[v], first.size
    step = 0
    total: float = 0.0
    for k in range(count):
        child = begin + k
        cell = first[child] if child < inner else first[v] + k
        while step < cuts.size and cuts[step] <= cell:
            step += 1
        children[k] = values[step]
        for j in range(cuts.size):
            if done[j] == child:
                children[k] = means[j]
        total += children[k]
    mean: float = total / count
    return mean


@compiled
def _deepest(walk: Walk, at: Integers) -> int:
    """Return the deepest node that the paths from the cuts have reached; -1 once all are through."""
    found = -1
    for v in at:
        if v >= 0 and (found < 0 or walk[4][v] > walk[4][found]):
            found = v
    return found


@compiled
def _step_moments(
    walk: Walk, divisor: Floats, base: float, is_paired: bool, cuts: Integers, values: Floats, moments: Floats,
    start: int, stop: int,
) -> None:  # fmt: skip
    """Climb from the nodes that split at the cuts to the root, adding up the powers of their rows' noise weights."""
    parent, cut_node = walk[3], walk[5]
    many = cuts.shape[1]
    at, done, means = np.empty(many, dtype=np.int64), np.empty(many, dtype=np.int64), np.empty(many)
    children = np.empty(max(walk[2].max(), 1))
    for q in range(start, stop):
        second, fourth, sixth = 0.0, 0.0, 0.0
        whole = values[q, np.searchsorted(cuts[q], 0, side="right")]
        for j in range(many):
            at[j], done[j] = (cut_node[cuts[q, j]] if 0 < cuts[q, j] < cut_node.size - 1 else -1), -1
        v = _deepest(walk, at)
        while v >= 0:
            mean = _fill_means(walk, v, cuts[q], values[q], done, means, children)
            for k in range(1 if is_paired else walk[2][v]):
                square = ((children[k] - mean) / divisor[v]) ** 2
                second += square
                fourth += square * square
                sixth += square * square * square
            for j in range(many):
                if at[j] == v:
                    at[j], done[j], means[j] = parent[v], v, mean
            whole = mean
            v = _deepest(walk, at)
        square = (whole / base) ** 2
        moments[0, q] = second + square
        moments[1, q] = fourth + square * square
        moments[2, q] = sixth + square * square * square
