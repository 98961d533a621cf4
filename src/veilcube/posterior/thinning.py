"""A smaller tree to learn the split law from: weights are few, and a part of the measurements tells them well enough.

Going down from the root, only some of the measured nodes of a level keep what was measured below them; the others
become leaves. What is left is a set of measurements like any other, and no count is looked at twice.
"""

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.halving import SIDES
from veilcube.posterior.measured_tree import NONE, MeasuredTree, NodeValues

Integers = NDArray[np.int64]
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
    owner, values, scales = owner[rows], measured.values[rows], measured.scales[rows]
    level, rank = measured.level[owner], measured.rank[owner]
    parts = []
    for scale in np.unique(scales):
        for height in np.unique(level[scales == scale]):
            here = np.flatnonzero((level == height) & (scales == scale))
            parts.append(NodeValues(int(height), rank[here], values[here], float(scale)))
    return MeasuredTree.of(measured.tree, parts)
