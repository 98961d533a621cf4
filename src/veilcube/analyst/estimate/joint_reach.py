"""How far sums of jointly drawn noise go, for all data: bounds without any prior (docs/proofs/joint-noise.md).

Two bounds hold, and the narrower one counts. The noise of some cells has an exact variance (Theorem 4), and Chebyshev's
inequality needs no more. And it is the sum of the noise of the m largest nodes that the cells fill, each of which is no
larger than independent noise of its scale (Theorem 2): every one gets an m-th of the probability of an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.privacy.joint_variance import joint_variances
from veilcube.release import JointBlocks, NoisyMeasurement, joint_blocks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class JointReach:
    """All blocks of a release, and the number of the last measurement of each of their cells: (blocks, leaves)."""

    blocks: tuple[JointBlocks, ...]
    numbers: tuple[Integers, ...]

    @classmethod
    def of(cls, measurements: Sequence[NoisyMeasurement], numbers: Integers) -> "JointReach | None":
        """Collect them; ``numbers`` tells for each cell, in the tree's order, the last measurement that it is in."""
        blocks = tuple(joint_blocks(measurements))
        return cls(blocks, tuple(numbers[part.cells()] for part in blocks)) if blocks else None

    def reach(self, is_in: Flags, variance: Floats, missed: float) -> Floats:
        """Return w for each query, a row of ``is_in``, with P(|noise of its cells| > w) at most ``missed``.

        ``variance`` is that of ``variance(is_in)``.
        """
        filled = [_filled(is_in[:, places]) for places in self.numbers]
        share = missed / np.maximum(sum(counts.sum(axis=0) for counts in filled), 1)
        reached = np.zeros(is_in.shape[0])
        for blocks, counts in zip(self.blocks, filled, strict=True):
            for scale, count in zip(blocks.scales, counts, strict=True):
                # P(|x| > k) = 2 p^(k+1) / (1 + p) with p = exp(-1/t), below the share from this k on.
                surplus = np.log(2.0 / (1.0 + np.exp(-float(1 / scale))))
                reached += count * np.ceil(float(scale) * (surplus - np.log(share)))
        return np.minimum(reached, np.sqrt(variance / missed))

    def variance(self, is_in: Flags) -> Floats:
        """Return the variance of the noise of each query's cells."""
        total = np.zeros(is_in.shape[0])
        for blocks, places in zip(self.blocks, self.numbers, strict=True):
            total += joint_variances(tuple(map(float, blocks.scales))).of_sums(is_in[:, places])
        return total


def _filled(is_in: Flags) -> Integers:
    """Return how many nodes of each height (first axis) a query fills without filling the one above."""
    counts = [is_in.sum(axis=(1, 2))]
    while is_in.shape[2] > 1:
        is_in = is_in[..., 0::2] & is_in[..., 1::2]
        counts.append(is_in.sum(axis=(1, 2)))
    above = [2 * count for count in counts[1:]] + [np.zeros_like(counts[0])]
    alone: Integers = np.array(counts) - np.array(above)
    return alone
