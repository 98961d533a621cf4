"""How far sums of jointly drawn noise go, for all data: bounds without any prior.

In a joint draw P(z) ∝ exp(-Σ_v |z_v| / t_v) over the nodes of a binary tree, the noise of one node is no larger, at any
probability, than independent discrete Laplace noise of its scale (docs/proofs/joint-noise.md, Theorem 2). The noise of
some cells is the sum of that of the largest nodes that they fill, so each of these m nodes gets an m-th of the
probability of an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import HalvingTree, NodeCounts
from veilcube.privacy.noise import JointLaplace
from veilcube.release import NoisyMeasurement

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NONE = -1


@dataclass(frozen=True, eq=False)
class JointNodes:
    """All nodes with joint noise: which run of cells' numbers each holds, its scale, and the node above it."""

    start: Integers
    end: Integers
    scales: Floats
    above: Integers

    @classmethod
    def of(cls, tree: HalvingTree, measurements: Sequence[NoisyMeasurement], numbers: Integers) -> "JointNodes | None":
        """Collect them; ``numbers`` tells for each cell, in the tree's order, the last measurement that it is in."""
        starts, ends, scales, levels = [], [], [], []
        for part in measurements:
            if isinstance(part.noise, JointLaplace) and isinstance(part.operator, NodeCounts):
                borders, chosen = np.append(tree.starts(part.operator.level), tree.cells), part.operator.chosen
                starts.append(borders[chosen])
                ends.append(borders[chosen + 1])
                scales.append(np.full(chosen.size, float(part.noise.scale)))
                levels.append(np.full(chosen.size, part.operator.level))
        if not starts:
            return None
        start, end, level = np.concatenate(starts), np.concatenate(ends), np.concatenate(levels)
        # Coarse before fine at each place: the node above is the nearest one before that has not ended.
        order = np.lexsort((-level, start))
        start, end = start[order], end[order]
        above = _nearest_around(start, end)
        # The cells of a block were published in one run, so their numbers are one as well.
        first = numbers[start]
        return cls(first, first + (end - start), np.concatenate(scales)[order], above)

    def reach(self, is_in: NDArray[np.bool_], missed: float) -> Floats:
        """Return w for each query, a row of ``is_in``, with P(|noise of its cells| > w) at most ``missed``."""
        upto = np.concatenate([np.zeros((is_in.shape[0], 1), np.int64), np.cumsum(is_in, axis=1)], axis=1)
        filled = upto[:, self.end] - upto[:, self.start] == self.end - self.start
        has_filled_above = np.where(self.above == NONE, False, filled[:, self.above])
        largest = filled & ~has_filled_above
        share = missed / np.maximum(largest.sum(axis=1), 1)
        # P(|x| > k) = 2 p^(k+1) / (1 + p) with p = exp(-1/t), below the share from this k on.
        surplus = np.log(2.0 / (1.0 + np.exp(-1.0 / self.scales)))
        widths = self.scales * (surplus - np.log(share)[:, None])
        reached: Floats = np.where(largest, np.ceil(widths), 0.0).sum(axis=1)
        return reached


def _nearest_around(start: Integers, end: Integers) -> Integers:
    """Return for each run, sorted by start and long before short, the shortest run around it; NONE if there is none."""
    above = np.full(start.size, NONE)
    open_runs: list[int] = []
    for number in range(start.size):
        while open_runs and end[open_runs[-1]] <= start[number]:
            open_runs.pop()
        if open_runs:
            above[number] = open_runs[-1]
        open_runs.append(number)
    return above
