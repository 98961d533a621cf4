"""The kd-tree partition: blocks of noisy cells, cut where they are least uniform until the noise explains the rest.

A cut of a block of m cells into l and r = m - l lowers the sum of squared deviations from the mean by the gain
g = (l r / m) (mean of the left - mean of the right)². Uniform counts under noise of variance σ² give E g = σ²; a block
is cut, at its best cut, while

* the gain is more than noise would show at the best of the block's cuts: g > σ² (sqrt(2 Λ) + a Λ / sqrt 2)², where Λ is
  log(cuts / ``CHANCE``) and a the largest weight of a cell in the difference (Bernstein's bound for Laplace noise); or
* the squared deviations, less the (m - 1) σ² that noise puts there, are more than noise would show: a spike inside a
  large block shows there long before any single cut gains from it.

The largest gain goes first, so ``most_regions`` keeps the cuts that matter most.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.regions.kd_kernels import cut_blocks, paint_blocks
from veilcube.regions.reading import read_cells, read_positive
from veilcube.system.arguments import read_whole

# The chance that a block of uniform counts is cut; a needless cut costs little, so it need not be small.
CHANCE = 0.05


def kd_regions(
    cells: ArrayLike, stddev: float, *, most_regions: int | None = None, least_size: int = 1
) -> NDArray[np.int64]:
    """Return the block of each noisy cell, numbered in the order of their first cells.

    ``stddev`` is the standard deviation of the noise in one cell; no cut leaves fewer than ``least_size`` cells.

    >>> kd_regions([[3, 4, 50, 51], [2, 4, 49, 50]], stddev=1)
    array([[0, 0, 1, 1],
           [0, 0, 1, 1]])
    """
    numbers = read_cells(cells)
    variance = read_positive(stddev, "stddev") ** 2
    smallest = read_whole(least_size, "least_size", 1)
    most = numbers.size if most_regions is None else read_whole(most_regions, "most_regions", 1)
    capacity = max(1, min(most, numbers.size // smallest))
    # In units of the noise around zero: sums of squares then lose the fewest digits.
    centred = (numbers - numbers.mean()) / np.sqrt(variance)
    sums, squares = _summed_area_table(centred), _summed_area_table(centred * centred)
    shape = np.array(numbers.shape, dtype=np.int64)
    strides = np.array(centred.strides, dtype=np.int64) // centred.itemsize
    tables = (centred.ravel(), sums.ravel(), squares.ravel())
    low, high = cut_blocks(*tables, shape, strides, capacity, smallest, CHANCE)
    first = low @ strides
    order = np.argsort(first)
    labels = np.empty(numbers.size, dtype=np.int64)
    paint_blocks(low[order], high[order], strides, labels)
    return labels.reshape(numbers.shape)


def _summed_area_table(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of all cells up to and including each one, on every axis."""
    table = cells.copy()
    for axis in range(table.ndim):
        np.cumsum(table, axis=axis, out=table)
    return table
