"""Blocks of a staged tree that were measured at once with Gaussian noise: least squares, and how far its noise goes.

All noise of a block is independent and no decision looked at it, so least squares on the block alone is unbiased
whatever the data are. Of a node at height h, what is measured below tells the sum of its halves with variance
2 c_(h-1), and its own value has variance s_h = sigma²: together c_h with 1/c_h = 1/(2 c_(h-1)) + 1/s_h. The errors of a
node's halves differ by a variable of variance 2 c_(h-1) that is uncorrelated with all above, so the variance of any sum
of cells follows as that of joint noise does (``laws.JointVariances``).

A weighted sum of independent discrete Gaussian noises is sub-Gaussian: with the sum V of squared weights times sigma²,
P(|S| > w) <= 2 exp(-w² / (2 V)) (docs/proofs/discrete-gaussian.md, Theorem 2; docs/proofs/intervals.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.laws import JointVariances
from veilcube.record import JointBlocks
from veilcube.system import Floats, Integers


def sub_gaussian_reach(variance: Floats, missed: float) -> Floats:
    """Return w with P(|S| > w) <= ``missed`` for sub-Gaussian sums with these sums of squared weights times sigma²."""
    return np.asarray(np.sqrt(2.0 * np.log(2.0 / missed) * variance))


@dataclass(frozen=True, eq=False)
class GaussianReach:
    """All such blocks of a release, and the number of the last measurement of each of their cells: (blocks, leaves)."""

    blocks: tuple[JointBlocks, ...]
    numbers: tuple[Integers, ...]
    laws: tuple[JointVariances, ...]

    @classmethod
    def of(cls, blocks: Sequence[JointBlocks], numbers: Integers) -> "GaussianReach":
        """Collect them; ``numbers`` tells for each cell, in the tree's order, the last measurement that it is in."""
        places = tuple(numbers[part.cells()] for part in blocks)
        return cls(tuple(blocks), places, tuple(_variances(part) for part in blocks))

    def cells(self) -> list[tuple[Integers, Floats]]:
        """Return the numbers of the blocks' cells with their least-squares estimates."""
        estimates = (_least_squares(part) for part in self.blocks)
        return list(zip(self.numbers, estimates, strict=True))

    def reach(self, is_in: NDArray[np.bool_], variance: Floats, missed: float) -> Floats:
        """Return w for each query with P(|noise of its cells| > w) at most ``missed``; ``variance`` is theirs."""
        return sub_gaussian_reach(variance, missed)

    def variance(self, is_in: NDArray[np.bool_]) -> Floats:
        """Return the variance of the noise of each query's cells, not too small."""
        total = np.zeros(is_in.shape[0])
        for law, places in zip(self.laws, self.numbers, strict=True):
            total += law.of_sums(is_in[:, places])
        return total


def _below(blocks: JointBlocks) -> Floats:
    """Return c_h of each height, the cells' first."""
    own = [float(parameter) for parameter in blocks.scales]
    below = own[:1]
    for here in own[1:]:
        below.append(1.0 / (0.5 / below[-1] + 1.0 / here))
    return np.array(below)


def _variances(blocks: JointBlocks) -> JointVariances:
    below = _below(blocks)
    return JointVariances(float(below[-1]), 2.0 * below[:-1])


def _least_squares(blocks: JointBlocks) -> Floats:
    """Return the estimate of each cell, (blocks, leaves): one pass up and one down."""
    below, up, sums = _below(blocks), [blocks.values[0].astype(np.float64)], []
    for height, own in enumerate(blocks.values[1:], start=1):
        sums.append(up[-1].reshape(len(own), -1, 2).sum(axis=2))
        of_halves, of_own = 0.5 / below[height - 1], 1.0 / float(blocks.scales[height])
        up.append(below[height] * (of_halves * sums[-1] + of_own * own))
    counts = up[-1]
    for halves, total in zip(reversed(up[:-1]), reversed(sums), strict=True):
        counts = halves + np.repeat(0.5 * (counts - total), 2, axis=1)
    return counts
