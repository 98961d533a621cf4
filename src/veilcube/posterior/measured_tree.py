"""The part of a halving tree that measurements reach, as arrays for belief propagation."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import HalvingTree, NodeCounts
from veilcube.release import NoisyMeasurement, in_force

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
NONE = -1


@dataclass(frozen=True, eq=False)
class NodeValues:
    """Noisy counts of nodes of one level: ``values`` = exact counts + Laplace noise of ``scale``."""

    level: int
    nodes: Integers
    values: Integers | Floats
    scale: float


def node_values(measurements: Sequence[NoisyMeasurement]) -> list[NodeValues]:
    """Return the noisy counts of nodes that a refined tree published, but those that sharper ones took the place of.

    Raises TypeError if others than nodes are among them.
    """
    found = []
    for part in in_force(measurements):
        if not isinstance(part.operator, NodeCounts):
            raise TypeError("a measurement is not of nodes of a halving tree")
        found.append(NodeValues(part.operator.level, part.operator.chosen, part.values, float(part.noise.scale)))
    return found


@dataclass(frozen=True, eq=False)
class MeasuredTree:
    """A binary tree, parents before children, whose leaves hold no measured node.

    ``left`` and ``right`` are the children, NONE if there is none; ``level`` is each node's level in the halving tree
    and ``rank`` its number there. Node v was measured as ``values[first[v]:first[v+1]]``, with those ``scales``.
    """

    tree: HalvingTree
    left: Integers
    right: Integers
    level: Integers
    rank: Integers
    first: Integers
    values: Floats
    scales: Floats

    @classmethod
    def of(cls, tree: HalvingTree, measured: Sequence[NodeValues]) -> "MeasuredTree":
        """Keep every node that was measured, its ancestors, and their children."""
        members = _members(tree, measured)
        sizes = [nodes.size for nodes in members]
        ends = np.cumsum(sizes[::-1])[::-1]
        numbers = [start + np.arange(size) for start, size in zip([*ends[1:], 0], sizes, strict=True)]
        left, right = _children(tree, members, numbers)
        level = np.repeat(np.arange(tree.depth, -1, -1), sizes[::-1])
        owners = [numbers[part.level][np.searchsorted(members[part.level], part.nodes)] for part in measured]
        owner = np.concatenate([*owners, np.empty(0, np.int64)])
        order = np.argsort(owner, kind="stable")
        values = np.concatenate([part.values for part in measured]).astype(np.float64)
        scales = np.concatenate([np.full(part.values.size, part.scale) for part in measured])
        first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=ends[0]))]).astype(np.int64)
        rank = np.concatenate(members[::-1])
        return cls(tree, left, right, level, rank, first, values[order], scales[order])

    @cached_property
    def heights(self) -> tuple[Integers, ...]:
        """The nodes by their distance from the farthest leaf below: each group needs only those before it."""
        height = np.zeros(self.left.size, dtype=np.int64)
        for level in range(1, self.tree.depth + 1):
            nodes = np.flatnonzero((self.level == level) & (self.left != NONE))
            right = np.where(self.right[nodes] == NONE, self.left[nodes], self.right[nodes])
            height[nodes] = 1 + np.maximum(height[self.left[nodes]], height[right])
        return tuple(np.flatnonzero(height == step) for step in range(int(height.max()) + 1))

    @cached_property
    def kinds(self) -> Integers:
        """The class of each node's split."""
        kinds = np.empty(self.level.size, dtype=np.int64)
        for level in range(self.tree.depth + 1):
            here = np.flatnonzero(self.level == level)
            kinds[here] = self.tree.kinds(level)[self.rank[here]]
        return kinds

    @property
    def leaves(self) -> Integers:
        """The nodes without children."""
        return np.flatnonzero(self.left == NONE)

    @property
    def is_covered(self) -> bool:
        """Whether every leaf was measured; the count of one that was not could be anything."""
        leaves = self.leaves
        return bool((self.first[leaves + 1] > self.first[leaves]).all())

    def node_at(self, level: int) -> Integers:
        """Return for each node of a level of the halving tree its number here, NONE if it is not here."""
        here = np.flatnonzero(self.level == level)
        numbers = np.full(self.tree.nodes(level), NONE)
        numbers[self.rank[here]] = here
        return numbers

    def spans(self) -> tuple[Integers, Integers]:
        """Return where in the order of the cells each node's cells start and end."""
        starts, ends = np.empty(self.level.size, np.int64), np.empty(self.level.size, np.int64)
        for level in range(self.tree.depth + 1):
            here = np.flatnonzero(self.level == level)
            borders = np.append(self.tree.starts(level), self.tree.cells)
            starts[here], ends[here] = borders[self.rank[here]], borders[self.rank[here] + 1]
        return starts, ends


def _members(tree: HalvingTree, measured: Sequence[NodeValues]) -> list[Integers]:
    """Return for each level the nodes to keep."""
    needed = [np.zeros(tree.nodes(level), dtype=bool) for level in range(tree.depth + 1)]
    for part in measured:
        needed[part.level][part.nodes] = True
    for level in range(1, tree.depth + 1):
        np.logical_or.at(needed[level], tree.ancestors(level - 1, level), needed[level - 1])
    members = [np.zeros(1, dtype=np.int64)]
    for level in range(tree.depth, 0, -1):
        parents = tree.ancestors(level - 1, level)
        reaches = np.zeros(tree.nodes(level), dtype=bool)
        np.logical_or.at(reaches, parents, needed[level - 1])
        members.append(np.flatnonzero(reaches[parents]))
    return members[::-1]


def _children(tree: HalvingTree, members: list[Integers], numbers: list[Integers]) -> tuple[Integers, Integers]:
    total = sum(nodes.size for nodes in members)
    left, right = np.full(total, NONE), np.full(total, NONE)
    for level in range(1, tree.depth + 1):
        below = members[level - 1]
        parents = tree.ancestors(level - 1, level)[below]
        owner = numbers[level][np.searchsorted(members[level], parents)]
        is_first = np.append(True, np.diff(owner) > 0) if owner.size else np.empty(0, dtype=bool)
        left[owner[is_first]] = numbers[level - 1][is_first]
        right[owner[~is_first]] = numbers[level - 1][~is_first]
    return left, right
