"""The kd-tree partition: blocks of noisy cells, cut where they are least uniform until the noise explains the rest.

A cut of a block of m cells into l and r = m - l lowers the sum of squared deviations from the mean by the gain
g = (l r / m) (mean of the left - mean of the right)². Uniform counts under noise of variance σ² give E g = σ²; a block
is cut, at its best cut, while

* the gain is more than noise would show at the best of the block's cuts: g > σ² (sqrt(2 Λ) + a Λ / sqrt 2)², where Λ is
  log(cuts / ``CHANCE``) and a the largest weight of a cell in the difference (Bernstein's bound for Laplace noise); or
* the squared deviations, less the (m - 1) σ² that noise puts there, are more than noise would show: a spike inside a
  large block shows there long before any single cut gains from it.

The largest gain goes first, so ``most_regions`` keeps the cuts that matter most. Loops take cells in units of the
noise.
"""

import math
from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.partitions.reading import read_cells, read_positive
from veilcube.system import Floats, Integers, compiled, read_whole

# Rounding of a sum of squares from a table, as a share of the table's last entry.
_ROUNDING = 1e-13


@compiled
def _table_sum(table: Floats, strides: Integers, low: Integers, high: Integers) -> float:
    """The sum over the cells low <= i < high: the alternating sum over the corners of an inclusive table."""
    axes = strides.size
    total = 0.0
    for corner in range(1 << axes):
        offset, sign = 0, 1.0
        for axis in range(axes):
            if corner >> axis & 1:
                offset += (high[axis] - 1) * strides[axis]
            elif low[axis] > 0:
                offset += (low[axis] - 1) * strides[axis]
                sign = -sign
            else:
                sign = 0.0
                break
        if sign != 0.0:
            total += sign * table[offset]
    return total


@compiled
def _project_from_table(
    table: Floats, strides: Integers, low: Integers, high: Integers, start: Integers, slabs: Floats
) -> None:
    """Sums of the block's slabs, those of axis a from slabs[start[a]] on, by differences of sums of thicker slabs."""
    corner = high.copy()
    for axis in range(strides.size):
        before = 0.0
        for place in range(high[axis] - low[axis]):
            corner[axis] = low[axis] + place + 1
            upto = _table_sum(table, strides, low, corner)
            slabs[start[axis] + place] = upto - before
            before = upto
        corner[axis] = high[axis]


@compiled
def _project_directly(
    cells: Floats, strides: Integers, low: Integers, high: Integers, start: Integers, slabs: Floats
) -> float:
    """The same from the cells themselves; also returns the sum of their squares."""
    axes = strides.size
    for axis in range(axes):
        slabs[start[axis] : start[axis] + high[axis] - low[axis]] = 0.0
    place = low.copy()
    squares: float = 0.0
    while True:
        offset = 0
        for axis in range(axes):
            offset += place[axis] * strides[axis]
        value = float(cells[offset])
        squares += value * value
        for axis in range(axes):
            slabs[start[axis] + place[axis] - low[axis]] += value
        axis = axes - 1
        while axis >= 0:
            place[axis] += 1
            if place[axis] < high[axis]:
                break
            place[axis] = low[axis]
            axis -= 1
        if axis < 0:
            return squares


@compiled
def _best_cut(
    slabs: Floats, start: Integers, lengths: Integers, size: int, least_size: int, log_cuts: float
) -> tuple[float, float, int, int]:
    """The cut whose gain is most above what noise allows it: gain, allowance, axis, slabs to the left (0: no cut)."""
    best, best_gain, best_allowed, best_axis, best_place = -math.inf, 0.0, math.inf, 0, 0
    total = 0.0
    for place in range(lengths[0]):
        total += slabs[start[0] + place]
    for axis in range(lengths.size):
        thickness = size // lengths[axis]
        left_sum = 0.0
        for place in range(1, lengths[axis]):
            left_sum += slabs[start[axis] + place - 1]
            left = place * thickness
            right = size - left
            if min(left, right) < least_size:
                continue
            gain = (left_sum - total * left / size) ** 2 * size / left / right
            largest_weight = math.sqrt(max(left, right) / min(left, right) / size)
            allowed = (math.sqrt(2 * log_cuts) + largest_weight * log_cuts / math.sqrt(2.0)) ** 2
            if gain - allowed > best:
                best, best_gain, best_allowed, best_axis, best_place = gain - allowed, gain, allowed, axis, place
    return best_gain, best_allowed, best_axis, best_place


@compiled
def _judge(
    cells: Floats,
    sums: Floats,
    squares: Floats,
    strides: Integers,
    low: Integers,
    high: Integers,
    slabs: Floats,
    least_size: int,
    chance: float,
) -> tuple[float, int, int]:
    """The gain of a block's cut with its axis and place, or a gain of zero where the noise explains the block."""
    lengths = high - low
    start = np.zeros(lengths.size, dtype=np.int64)
    start[1:] = np.cumsum(lengths)[:-1]
    size = 1
    for length in lengths:
        size *= length
    cuts = lengths.sum() - lengths.size
    if size < 2 * least_size or cuts == 0:
        return 0.0, 0, 0
    # Whichever touches fewer numbers: the block's own cells, or the corners of all its slabs.
    is_direct = size <= (lengths.sum() << lengths.size)
    if is_direct:
        square_sum, rounding = _project_directly(cells, strides, low, high, start, slabs), 0.0
    else:
        _project_from_table(sums, strides, low, high, start, slabs)
        square_sum, rounding = 0.0, _ROUNDING * squares[-1]
    gain, allowed, axis, place = _best_cut(slabs, start, lengths, size, least_size, math.log(cuts / chance))
    if place == 0 or gain > allowed:
        return (gain if place else 0.0), axis, place
    if not is_direct:
        square_sum = _table_sum(squares, strides, low, high)
    total = slabs[: lengths[0]].sum()
    # A squared Laplace noise has variance 5 (in units of σ⁴), and among m the largest is near log(m)²/2.
    log_cells = math.log(size / chance)
    explained = size - 1 + math.sqrt(10 * size * log_cells) + log_cells * log_cells + rounding
    return (gain if square_sum - total * total / size > explained else 0.0), axis, place


@compiled
def cut_blocks(
    cells: Floats,
    sums: Floats,
    squares: Floats,
    shape: Integers,
    strides: Integers,
    capacity: int,
    least_size: int,
    chance: float,
) -> tuple[Integers, Integers]:
    """Cut the box of all cells, largest gain first, into at most ``capacity`` blocks low <= i < high, one a row."""
    low = np.empty((capacity, shape.size), dtype=np.int64)
    high = np.empty((capacity, shape.size), dtype=np.int64)
    slabs = np.empty(shape.sum())
    low[0], high[0] = 0, shape
    gain, axis, place = _judge(cells, sums, squares, strides, low[0], high[0], slabs, least_size, chance)
    waiting = [(-gain, 0, axis, place)]
    blocks = 1
    while len(waiting) > 0 and blocks < capacity:
        negative_gain, block, axis, place = heappop(waiting)
        if negative_gain == 0.0:
            break
        low[blocks], high[blocks] = low[block], high[block]
        middle = low[block, axis] + place
        high[block, axis], low[blocks, axis] = middle, middle
        for part in (block, blocks):
            gain, axis, place = _judge(cells, sums, squares, strides, low[part], high[part], slabs, least_size, chance)
            if gain > 0.0:
                heappush(waiting, (-gain, part, axis, place))
        blocks += 1
    return low[:blocks].copy(), high[:blocks].copy()


@compiled
def paint_blocks(low: Integers, high: Integers, strides: Integers, labels: Integers) -> None:
    """Write each block's row number into its cells."""
    axes = strides.size
    for block in range(low.shape[0]):
        place = low[block].copy()
        while True:
            offset = 0
            for axis in range(axes):
                offset += place[axis] * strides[axis]
            labels[offset : offset + high[block, axes - 1] - place[axes - 1]] = block
            axis = axes - 2
            while axis >= 0:
                place[axis] += 1
                if place[axis] < high[block, axis]:
                    break
                place[axis] = low[block, axis]
                axis -= 1
            if axis < 0:
                break


# The probability that a block of uniform counts is cut; a needless cut costs little, so it need not be small.
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
