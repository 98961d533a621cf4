"""How many cells of each region of a partition a block holds, by going through its cells: for blocks of few cells."""

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.parallel import compiled, share_out

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def weighted_squares(labels: Integers, weights: Floats, low: Integers, high: Integers) -> Floats:
    """Return for each block the sum over regions of the squared number of their cells in it, times their weight."""
    found = np.empty(len(low))
    strides = np.array(labels.strides, dtype=np.int64) // labels.itemsize
    flat, lows, highs = labels.ravel(), np.ascontiguousarray(low), np.ascontiguousarray(high)
    cells = int((high - low + 1).prod(axis=1).sum())
    share_out(lambda start, stop: _squares(flat, strides, weights, lows, highs, found, start, stop), len(low), cells)
    return found


@compiled
def _squares(
    labels: Integers, strides: Integers, weights: Floats, low: Integers, high: Integers, found: Floats,
    first_query: int, last_query: int,
) -> None:  # fmt: skip
    held, at = np.zeros(weights.size, dtype=np.int64), np.empty(strides.size, dtype=np.int64)
    for q in range(first_query, last_query):
        found[q] = 0.0
        # Once to count, once to add up and forget: far fewer steps than there are regions.
        for is_counting in (True, False):
            at[:] = low[q]
            while at[0] <= high[q, 0]:
                region = labels[(at * strides).sum()]
                if is_counting:
                    held[region] += 1
                else:
                    found[q] += float(held[region]) ** 2 * weights[region]
                    held[region] = 0
                axis = strides.size - 1
                at[axis] += 1
                while axis > 0 and at[axis] > high[q, axis]:
                    at[axis] = low[q, axis]
                    axis -= 1
                    at[axis] += 1
