"""What the nominal transform knows of its tree: parents, depths, the row of each cell; and the noise of its answers.

Down a wavelet's tree every child starts from an equal share of its parent: (row / m + S) / f. So a query q has at each
node v a mean G_v, equal to q on a cell and to the plain average of the children's G above. The noise of node v's rows
enters the answer by the children's deviations from G_v alone, and a node on which q is constant adds nothing: an
answer's moments need only the nodes that a cut of the query goes through, and of their children only those that hold a
cut one by one; the others come in runs that are alike.
"""

from dataclasses import dataclass

import numpy as np

from veilcube.operators.base import Moments
from veilcube.operators.tree import TreeShape, child_holding
from veilcube.system import Floats, Integers, compiled, share_out

# First cell, last cell + 1, first child and number of children of each inner node, and what divides its deviations.
Nodes = tuple[Integers, Integers, Integers, Integers, Floats]


@dataclass(frozen=True, eq=False)
class WaveletTree:
    """A tree's nodes in level order, the root first, with the arrays that passes walk on.

    ``parent`` and ``depth`` are of every node, cells included; ``cell_row[c]`` is the node of cell c.
    """

    shape: TreeShape
    parent: Integers
    depth: Integers
    cell_row: Integers

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
        depth = np.zeros(nodes, dtype=np.int64)
        for level in range(1, shape.depth + 2):
            depth[1:][depth[parent[1:]] == level - 1] = level
        return cls(shape, parent, depth, cell_row)

    @property
    def deepest(self) -> int:
        """How many levels lie below the root."""
        return int(self.depth.max())

    def moments_of_steps(self, cuts: Integers, values: Floats, divisor: Floats, base: float) -> Moments:
        """Return the moments of step functions whose deviations at node v are divided by ``divisor[v]``.

        ``base`` divides the mean of all cells, which the total's noise enters by.
        """
        cuts = np.ascontiguousarray(cuts, dtype=np.int64)
        values = np.ascontiguousarray(values, dtype=np.float64)
        shape, found = self.shape, np.zeros((len(cuts), 3))
        nodes = (shape.first, shape.end, shape.child_start, shape.child_count, divisor)
        settings = (nodes, self.deepest, base, cuts, values, found)
        share_out(lambda start, stop: _step_moments(*settings, start, stop), len(cuts), len(cuts) * 64)
        return Moments(*np.ascontiguousarray(found.T))


@compiled
def _child_holding(nodes: Nodes, v: int, cell: int) -> int:
    """Return the position among the children of node v of the one that holds a cell."""
    first, _, child_start, child_count, _ = nodes
    if child_start[v] >= first.size:
        return int(cell - first[v])
    return child_holding(first, child_start[v], child_count[v], cell)


@compiled
def _next_run(nodes: Nodes, v: int, position: int, cuts: Integers) -> tuple[int, int]:
    """Return the step that the next child lies in, and how many children from there on lie in it whole; 0 if cut."""
    first, end, child_start, child_count, _ = nodes
    child = child_start[v] + position
    cell = first[child] if child < first.size else first[v] + position
    step = 0
    while step < cuts.size and cuts[step] <= cell:
        step += 1
    if step == cuts.size or cuts[step] >= end[v]:
        return step, int(child_count[v] - position)
    return step, int(_child_holding(nodes, v, cuts[step]) - position)


@compiled
def _add_powers(runs: Floats, many: int, mean: float, divisor: float, sums: Floats) -> None:
    for run in range(many):
        square = ((runs[run, 0] - mean) / divisor) ** 2
        sums[0] += runs[run, 1] * square
        sums[1] += runs[run, 1] * square * square
        sums[2] += runs[run, 1] * square * square * square


@compiled
def _mean_of_all(nodes: Nodes, cuts: Integers, values: Floats, path: Integers, runs: Floats, sums: Floats) -> float:
    """Return the mean of a query at the root, adding up the powers of the noise weights of all rows that count.

    ``path`` is the way from the root to the node at hand (node, children done, runs found); ``runs`` has at each depth
    the children's means and how many in a row have them. A walk without recursion, which cached code does not allow.
    """
    child_start, child_count, divisor = nodes[2], nodes[3], nodes[4]
    at, mean, is_back = 0, 0.0, False
    path[0, 0], path[0, 1], path[0, 2] = 0, 0, 0
    while at >= 0:
        v, position, many = path[at]
        if position == child_count[v] and not is_back:
            mean = (runs[at, :many, 0] * runs[at, :many, 1]).sum() / child_count[v]
            _add_powers(runs[at], many, mean, divisor[v], sums)
            at, is_back = at - 1, True
            continue
        value, length = mean, 1
        if not is_back:
            step, length = _next_run(nodes, v, position, cuts)
            value = values[step]
        if length == 0:
            at += 1
            path[at, 0], path[at, 1], path[at, 2] = child_start[v] + position, 0, 0
            continue
        runs[at, many, 0], runs[at, many, 1] = value, length
        path[at, 1], path[at, 2], is_back = position + length, many + 1, False
    return float(mean)


@compiled
def _step_moments(
    nodes: Nodes, deepest: int, base: float, cuts: Integers, values: Floats, sums: Floats, start: int, stop: int
) -> None:
    runs, path = np.empty((deepest + 1, 2 * cuts.shape[1] + 2, 2)), np.empty((deepest + 1, 3), dtype=np.int64)
    for q in range(start, stop):
        step = int(np.searchsorted(cuts[q], 0, side="right"))
        mean = values[q, step]
        if step < cuts.shape[1] and cuts[q, step] < nodes[1][0]:
            mean = _mean_of_all(nodes, cuts[q], values[q], path, runs, sums[q])
        square = (mean / base) ** 2
        sums[q, 0] += square
        sums[q, 1] += square * square
        sums[q, 2] += square * square * square
