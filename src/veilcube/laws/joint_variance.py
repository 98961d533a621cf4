"""The exact variance of sums of jointly drawn noise (docs/proofs/joint-noise.md, Theorem 4).

In a block all differences D_v = z_left - z_right are uncorrelated with each other and with the root's noise, so the
variance of any sum of cells follows from one number for each height. These come from the law itself: messages up and
down a tree whose nodes of one height are alike, on a grid fine beside the scales.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.laws.noise import DiscreteLaplace
from veilcube.system import Floats

STEPS_IN_A_SCALE = 24
SCALES_AWAY = 36.0
# The grid misses the variance by less than a thousandth; guaranteed intervals must not be too narrow.
MARGIN = 1.01
# Planned scales differ by a factor of 12 or so. A file may say anything: beyond this, bounds must do.
MOST_POINTS = 1 << 20


@dataclass(frozen=True, eq=False)
class JointVariances:
    """``of_root`` is the variance of the root's noise, ``of_difference[h]`` that of D_v at height h + 1."""

    of_root: float
    of_difference: Floats

    def of_sums(self, is_in: NDArray[np.bool_]) -> Floats:
        """Return the variance of the noise of the chosen leaves: ``is_in`` is (queries, blocks, leaves).

        With a the chosen share of each half's leaves, a node adds ((a_left - a_right) / 2)² Var(D), the root (its
        share)² times its variance.
        """
        shares, total = is_in.astype(np.float32), np.zeros(is_in.shape[0])
        for variance in self.of_difference:
            left, right = shares[..., 0::2], shares[..., 1::2]
            total += variance * np.square(0.5 * (left - right)).sum(axis=(1, 2), dtype=np.float64)
            shares = 0.5 * (left + right)
        sums: Floats = total + self.of_root * np.square(shares).sum(axis=(1, 2), dtype=np.float64)
        return sums


@lru_cache(maxsize=64)
def joint_variances(scales: tuple[float, ...]) -> JointVariances:
    """Return the variances of a block with these scales by height, the leaves' first, not too small."""
    step = max(1.0, float(np.floor(min(scales) / STEPS_IN_A_SCALE)))
    if SCALES_AWAY * max(scales) / step > MOST_POINTS:
        return _bounds(scales)
    reach = int(np.ceil(SCALES_AWAY * max(scales) / step)) + 1
    grid = step * np.arange(-reach, reach + 1)
    factors = [np.exp(-np.abs(grid) / scale) for scale in scales]
    inside, halves = [_scaled(factors[0])], []
    for factor in factors[1:]:
        halves.append(_summed(inside[-1], inside[-1], reach))
        inside.append(_scaled(factor * halves[-1]))
    differences, outside = [], np.ones(grid.size)
    for height in range(len(scales) - 1, 0, -1):
        around, half = outside * factors[height], inside[height - 1]
        chance = float((halves[height - 1] * around).sum())
        of_half = float((_summed(half * grid**2, half, reach) * around).sum()) / chance
        of_node = float((halves[height - 1] * around * grid**2).sum()) / chance
        differences.append(max(4.0 * of_half - of_node, 0.0))  # E(a - b)² = 2 E(a² + b²) - E(a + b)²
        outside = _scaled(_summed(around, half, reach))
    root = inside[-1] / inside[-1].sum()
    return JointVariances(MARGIN * float(root @ grid**2), MARGIN * np.array(differences[::-1]))


def _bounds(scales: tuple[float, ...]) -> JointVariances:
    """Return bounds from Theorem 2: no node is noisier than its scale says, and Var(a - b) is at most 4 Var(a)."""
    alone = np.array([DiscreteLaplace(Fraction(scale)).variance for scale in scales])
    return JointVariances(float(alone[-1]), 4.0 * alone[:-1])


def _summed(one: Floats, other: Floats, reach: int) -> Floats:
    size = scipy.fft.next_fast_len(one.size + other.size - 1, real=True)
    product = scipy.fft.rfft(one, size) * scipy.fft.rfft(other, size)
    return np.asarray(np.maximum(scipy.fft.irfft(product, size)[reach : 3 * reach + 1], 0.0))


def _scaled(law: Floats) -> Floats:
    return np.asarray(law / law.max())
