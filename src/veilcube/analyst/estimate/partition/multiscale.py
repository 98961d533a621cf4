"""Smoothing that goes as far as the data allow: a table is split into details of growing scale, and each is shrunk.

The undecimated transform smooths the cells with a short kernel whose taps lie 1, 2, 4, ... cells apart; the details of
a scale are what that smoothing takes away. Noise of variance v in the cells has the known variance v c_j in the details
of scale j. Where the mean square e of nearby details is about that, they are noise; where it is more, they are signal.
So each is multiplied by max(e - v c_j, 0) / e, the empirical-Bayes (Wiener) factor. Nothing is shifted, so there is
nothing to average over shifts.

The kernel (1, 2, 1)/4 removes most noise but also bends every curve a little, in the same direction over a whole slope,
which adds up in sums. (-1, 4, 10, 4, -1)/16 keeps cubic curves and removes less. Edges are reflected, which keeps
totals. Loops run on one core each: whoever smooths in several ways gives each a thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilcube.system import Floats, compiled

REACH_OF_MEANS = 3
MOST_SCALES = 4


@dataclass(frozen=True)
class Smoother:
    """A kernel of an odd number of taps that sum to 1."""

    taps: tuple[float, ...]

    def __call__(self, cells: Floats, variance: float, along: Sequence[bool]) -> Floats:
        """Return the cells with the details of every scale shrunk as far as noise of this variance explains them.

        ``along`` tells on which axes neighbours may be alike.
        """
        axes = [axis for axis, size in enumerate(cells.shape) if along[axis] and size > 1]
        remaining, kept = np.ascontiguousarray(cells), np.zeros(cells.shape)
        scales = scales_of([cells.shape[axis] for axis in axes])
        for scale, share in enumerate(detail_variances(self.taps, scales, len(axes))):
            coarser = _filtered(remaining, np.array(self.taps), 2**scale, axes)
            details = remaining - coarser
            means = _filtered(details * details, _flat(REACH_OF_MEANS), 2**scale, axes)
            _add_shrunk(details.ravel(), means.ravel(), variance * share, kept.ravel())
            remaining = coarser
        kept += remaining
        return kept


def surroundings(cells: Floats, along: Sequence[bool]) -> Floats:
    """Return the mean of the cells around each one, on the axes along which neighbours may be alike."""
    axes = [axis for axis, size in enumerate(cells.shape) if along[axis] and size > 1]
    return _filtered(cells, _flat(REACH_OF_MEANS), 1, axes)


PLAIN = Smoother((0.25, 0.5, 0.25))
CURVED = Smoother((-1 / 16, 4 / 16, 10 / 16, 4 / 16, -1 / 16))


def scales_of(sizes: Sequence[int]) -> int:
    """Return how many scales of details axes of these sizes have room for."""
    return max(0, min(MOST_SCALES, max(sizes, default=1).bit_length() - 2))


@lru_cache(maxsize=64)
def detail_variances(taps: tuple[float, ...], scales: int, dimensions: int) -> tuple[float, ...]:
    """Return the variance of the details of each scale if the cells have independent noise of variance 1.

    The smoothing of all axes multiplies, so inner products of its weights are powers of those of one axis.
    """
    before, found = np.ones(1), []
    for scale in range(scales):
        spaced = np.zeros((len(taps) - 1) * 2**scale + 1)
        spaced[:: 2**scale] = taps
        after = np.convolve(before, spaced)
        padded = np.pad(before, (after.size - before.size) // 2)
        own, both, next_own = padded @ padded, padded @ after, after @ after
        found.append(float(own**dimensions - 2 * both**dimensions + next_own**dimensions))
        before = after
    return tuple(found)


def _flat(reach: int) -> Floats:
    return np.full(2 * reach + 1, 1 / (2 * reach + 1))


def _filtered(cells: Floats, taps: Floats, spacing: int, axes: Sequence[int]) -> Floats:
    """Return the cells smoothed along some axes, with taps ``spacing`` cells apart."""
    result = cells
    for axis in axes:
        behind = int(np.prod(cells.shape[axis + 1 :], dtype=np.int64))
        block = np.ascontiguousarray(result).reshape(-1, cells.shape[axis], behind)
        smoothed = np.empty_like(block)
        _share(block, smoothed, taps, spacing)
        result = smoothed.reshape(cells.shape)
    return result


def _share(block: Floats, smoothed: Floats, taps: Floats, spacing: int) -> None:
    reach = spacing * (taps.size // 2)
    sources = _reflected(block.shape[1], reach)
    if block.shape[2] == 1:
        _smooth_lines(block, smoothed, taps, spacing, sources)
    else:
        _smooth_rows(block, smoothed, taps, spacing, sources)


@lru_cache(maxsize=256)
def _reflected(size: int, reach: int) -> NDArray[np.int64]:
    """Return which cell stands at each position from -reach to size + reach, the edges reflected."""
    positions = np.arange(-reach, size + reach) % (2 * size)
    return np.where(positions < size, positions, 2 * size - 1 - positions)


@compiled
def _smooth_lines(block: Floats, smoothed: Floats, taps: Floats, spacing: int, sources: NDArray[np.int64]) -> None:
    """Smooth vectors of the last axis, whose entries are neighbours."""
    size, padded = block.shape[1], np.empty(sources.size)
    for line in range(block.shape[0]):
        values, result = block[line, :, 0], smoothed[line, :, 0]
        for i in range(sources.size):
            padded[i] = values[sources[i]]
        for i in range(size):
            result[i] = taps[0] * padded[i]
        for k in range(1, taps.size):
            for i in range(size):
                result[i] += taps[k] * padded[i + k * spacing]


@compiled
def _add_shrunk(details: Floats, means: Floats, noise: float, kept: Floats) -> None:
    """Add details times max(mean - noise, 0) / mean."""
    for i in range(kept.size):
        if means[i] > noise:
            kept[i] += details[i] * (means[i] - noise) / means[i]


@compiled
def _smooth_rows(block: Floats, smoothed: Floats, taps: Floats, spacing: int, sources: NDArray[np.int64]) -> None:
    """Smooth along the middle axis; kernels are symmetric, of 3, 5 or 7 taps, each written out for speed."""
    size, behind, reach = block.shape[1], block.shape[2], taps.size // 2
    middle, near = taps[reach], taps[reach + 1]
    further = taps[reach + 2] if reach > 1 else 0.0
    furthest = taps[reach + 3] if reach > 2 else 0.0
    for row in range(block.shape[0] * size):
        values, result, i = block[row // size], smoothed[row // size, row % size], row % size + reach * spacing
        own, left, right = values[sources[i]], values[sources[i - spacing]], values[sources[i + spacing]]
        if reach == 1:
            for c in range(behind):
                result[c] = middle * own[c] + near * (left[c] + right[c])
            continue
        left2, right2 = values[sources[i - 2 * spacing]], values[sources[i + 2 * spacing]]
        if reach == 2:
            for c in range(behind):
                result[c] = middle * own[c] + near * (left[c] + right[c]) + further * (left2[c] + right2[c])
            continue
        left3, right3 = values[sources[i - 3 * spacing]], values[sources[i + 3 * spacing]]
        for c in range(behind):
            inner = middle * own[c] + near * (left[c] + right[c]) + further * (left2[c] + right2[c])
            result[c] = inner + furthest * (left3[c] + right3[c])
