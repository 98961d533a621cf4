"""The part of a halving tree that measurements reach, as arrays for belief propagation; a thinned one to learn from.

The weights of the split law are few, and a part of the measurements tells them well enough. Going down from the root,
only some of the measured nodes of a level keep what was measured below them; the others become leaves. What is left is
a set of measurements like any other, and no count is looked at twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.laws import Noise, joint_variances
from veilcube.operators import SIDES, HalvingTree
from veilcube.record import NoisyMeasurement, drop_superseded
from veilcube.system import Floats, Integers

NONE = -1
# A node goes on where its noise was high, so its value is high on average (0.1 to 1.2 standard deviations were seen).
# Least squares takes it to be so many times as noisy as it is and relies on the fresh noise below it instead.
DOUBT_OF_WHAT_DECIDED = 3.0
# Values without noise would leave least squares nothing to weigh.
LEAST_VARIANCE = 1e-9
NEXT_TO_NO_PRECISION = 1e-9


@dataclass(frozen=True, eq=False)
class NodeValues:
    """Noisy counts of nodes of one level: ``values`` = exact counts + Laplace noise of ``scale``.

    Noise that ``is_normal`` is Gaussian instead, of parameter 2 · scale². ``variance`` is what least squares takes the
    noise to have, by default that of Laplace noise of the scale. ``decided`` are values by which nodes were chosen to
    go on.
    """

    level: int
    nodes: Integers
    values: Integers | Floats
    scale: float
    variance: float | None = None
    decided: bool = False
    is_normal: bool = False

    @property
    def noise_variance(self) -> float:
        """The variance, V = 2p/(1-p)² with p = exp(-1/t) for the discrete Laplace law of scale t; never quite 0."""
        if self.variance is None:
            variance = 2.0 * float(np.exp(-1.0 / self.scale)) / float(np.expm1(-1.0 / self.scale)) ** 2
        else:
            variance = self.variance
        return max(variance, LEAST_VARIANCE)


def node_values(measurements: Sequence[NoisyMeasurement], *, with_variances: bool = False) -> list[NodeValues]:
    """Return the noisy counts of nodes that a staged tree published, but those that sharper ones took the place of.

    ``with_variances`` finds those of joint noise, which only least squares needs. Raises TypeError if others than nodes
    are among them.
    """
    found: list[NodeValues] = []
    kept = drop_superseded(measurements)
    for number, part in enumerate(kept):
        nodes = part.nodes
        if nodes is None:
            raise TypeError("a measurement is not of nodes of a halving tree")
        noise = part.noise
        variance = noise.variance if is_normal(noise) else None
        if with_variances and noise.is_joint:
            variance = _variance_in_a_block(kept, number)
        law = noise.laplace_scale, variance, not noise.in_block, is_normal(noise)
        found.append(NodeValues(nodes.level, nodes.chosen, part.values, *law))
    return found


def is_normal(noise: Noise) -> bool:
    """Whether the likelihood of a count is that of normal noise."""
    return noise.family == "gaussian"


def _variance_in_a_block(kept: Sequence[NoisyMeasurement], number: int) -> float:
    """Return which variance, if noises of all heights were independent, would give a block its exact covariances.

    A block lists its heights from the root to the cells. With c_h = Var(D)/2 for the differences D of the halves of
    height h, and c of the root its variance, independent noises of variances v_0 = c_0 and
    1/v_h = 1/c_h - 1/(2 c_(h-1)) leave each node, given what is below it, the variance c_h.
    """
    first = number
    while first > 0 and kept[first - 1].noise.is_joint and _level(kept[first - 1]) > _level(kept[first]):
        first -= 1
    height = _level(kept[first])
    scales = tuple(float(part.noise.parameter) for part in reversed(kept[first : first + height + 1]))
    exact, here = joint_variances(scales), _level(kept[number])
    left = np.maximum([*(exact.of_difference / 2.0), exact.of_root], LEAST_VARIANCE)
    precision = 1.0 / left[here] - (0.5 / left[here - 1] if here else 0.0)
    return float(1.0 / max(precision, NEXT_TO_NO_PRECISION / left[here]))


def _level(part: NoisyMeasurement) -> int:
    return NONE if part.nodes is None else part.nodes.level


@dataclass(frozen=True, eq=False)
class MeasuredTree:
    """A binary tree, parents before children, whose leaves hold no measured node.

    ``left`` and ``right`` are the children, NONE if there is none; ``level`` is each node's level in the halving tree
    and ``rank`` its number there. Node v was measured as ``values[first[v]:first[v+1]]``, with those ``scales``;
    ``variances`` are what least squares takes their noises to have, and ``is_normal`` tells Gaussian ones.
    """

    tree: HalvingTree
    left: Integers
    right: Integers
    level: Integers
    rank: Integers
    first: Integers
    values: Floats
    scales: Floats
    variances: Floats
    is_normal: "Booleans"

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
        variances = np.concatenate([np.full(part.values.size, part.noise_variance) for part in measured])
        decided = np.concatenate([np.full(part.values.size, part.decided) for part in measured])
        variances[decided & (left[owner] != NONE)] *= DOUBT_OF_WHAT_DECIDED
        normal = np.concatenate([np.full(part.values.size, part.is_normal) for part in measured])
        nodes = left, right, level, np.concatenate(members[::-1])
        return cls(tree, *nodes, first, values[order], scales[order], variances[order], normal[order])

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


Booleans = NDArray[np.bool_]

# Spreads numbers in a row over all 64 bits (Knuth's multiplicative hash), so that no pattern of the data is followed.
SCATTERING = np.uint64(0x9E3779B97F4A7C15)


def thinned(measured: MeasuredTree, most: int) -> MeasuredTree:
    """Return the tree with about ``most`` nodes of each measured level going on, or itself if few do anyway."""
    is_kept = np.ones(measured.left.size, dtype=bool)
    is_measured = np.diff(measured.first) > 0
    for level in range(measured.tree.depth, 0, -1):
        here = np.flatnonzero((measured.level == level) & (measured.left != NONE))
        goes_on = is_kept.copy()
        can_stop = here[is_kept[here] & is_measured[here]]
        if can_stop.size > most:
            goes_on[can_stop] = False
            goes_on[_chosen(measured, can_stop, most)] = True
        for children in (measured.left, measured.right):
            parents = here[children[here] != NONE]
            is_kept[children[parents]] = goes_on[parents]
    return measured if is_kept.all() else _restricted(measured, is_kept)


def _chosen(measured: MeasuredTree, nodes: Integers, most: int) -> Integers:
    """Return about ``most`` of some nodes of one level, those at the ends of the domain not being passed over.

    At which ends nodes lie shows in their own classes, for the axis that they divide, and their children's.
    """
    order = np.argsort(nodes.astype(np.uint64) * SCATTERING)
    chosen = [order[:most]]
    for divided in (nodes[order], measured.left[nodes[order]]):
        sides = measured.kinds[divided] % SIDES
        chosen += [order[sides == side][: most // 4] for side in range(1, SIDES)]
    return nodes[np.unique(np.concatenate(chosen))]


def _restricted(measured: MeasuredTree, is_kept: Booleans) -> MeasuredTree:
    owner = np.repeat(np.arange(measured.left.size), np.diff(measured.first))
    rows = np.flatnonzero(is_kept[owner])
    owner, values = owner[rows], measured.values[rows]
    level, rank = measured.level[owner], measured.rank[owner]
    laws, law_of = np.unique(np.stack([measured.scales[rows], measured.is_normal[rows]]), axis=1, return_inverse=True)
    parts = []
    for number, (scale, normal) in enumerate(laws.T):
        for height in np.unique(level[law_of == number]):
            here = np.flatnonzero((level == height) & (law_of == number))
            parts.append(NodeValues(int(height), rank[here], values[here], float(scale), is_normal=bool(normal)))
    return MeasuredTree.of(measured.tree, parts)
