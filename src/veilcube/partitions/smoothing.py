"""Smoothing of noisy cells by the Gaussian mask of ISPE (appendix B), and how much noise it leaves between neighbours.

The mask is three cells wide on every axis, a Gaussian of standard deviation 0.5 that sums to one: (a, 1, a)/(1 + 2a)
with a = exp(-2), in two dimensions 0.619347 in the middle. It is a product over the axes, so a pass is one short
convolution for each axis. Cells beyond an edge repeat the cell at the edge (the paper does not say).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from veilcube.partitions.reading import read_cells, read_ordered, read_positive
from veilcube.system import read_whole

# A pass takes time for every cell; after so many, cells a hundred apart are alike.
MOST_PASSES = 10_000
_SIDE = math.exp(-2)
# Cells above this are smoothed as sixteenths: the sum of two neighbours would leave floats before it is weighed.
_LARGE = 1e307
MASK = np.array([_SIDE, 1.0, _SIDE]) / (1 + 2 * _SIDE)


def smooth(cells: ArrayLike, passes: int, *, ordered: Sequence[int] | None = None) -> NDArray[np.float64]:
    """Return the cells after ``passes`` passes of the mask over all axes; zero passes give the cells themselves.

    ``ordered`` says for each axis how many of its first cells are neighbours in turn: as in ``grow_regions``.

    >>> float(smooth([[12, 25, 34, 7], [18, 2, -3, 5], [51, -4, 1, 3]], 1)[0, 0].round(8))
    13.69466424
    """
    numbers = read_cells(cells)
    least, largest = float(numbers.min()), float(numbers.max())
    unit = 16.0 if max(largest, -least) > _LARGE else 1.0
    result = numbers / unit
    count = read_whole(passes, "passes", 0, MOST_PASSES)
    for axis, in_order in enumerate(read_ordered(ordered, result.shape)):
        part = result[(slice(None),) * axis + (slice(in_order),)]
        other = np.empty_like(part)
        # Axes do not interfere, so all passes over one axis may come before those over the next.
        for _ in range(count if in_order > 1 else 0):
            ndimage.correlate1d(part, MASK, axis=axis, output=other, mode="nearest")
            part, other = other, part
        result[(slice(None),) * axis + (slice(in_order),)] = part
    # Rounding may leave the range of the cells by a digit, and so floats.
    return np.asarray(unit * np.clip(result, least / unit, largest / unit) if unit > 1 else result)


def smoothed_difference_stddev(passes: int, dimensions: int, stddev: float) -> float:
    """Return the standard deviation of the difference of two neighbouring smoothed cells that hold equal counts.

    Exact for independent noise of this ``stddev`` in every cell, at least ``passes`` cells away from the edges: with m
    the mask convolved with itself ``passes`` times, it is stddev · |m * (1, -1)| · |m|^(dimensions - 1), where |·| is
    the Euclidean norm.
    """
    count, axes = read_whole(passes, "passes", 0, MOST_PASSES), read_whole(dimensions, "dimensions", 1)
    noise = read_positive(stddev, "stddev")
    mask = np.ones(1)
    for _ in range(count):
        mask = np.convolve(mask, MASK)
    difference = np.convolve(mask, [1.0, -1.0])
    return noise * float(np.linalg.norm(difference)) * float(np.linalg.norm(mask)) ** (axes - 1)
