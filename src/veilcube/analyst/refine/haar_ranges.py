"""The noise weights of ranges of a Haar axis, as sparse rows: a range of a million cells touches forty of them.

Every node of the tree of halves has one row, which measures its left half less its right one. The row's number is the
first cell of the right half, and row 0 is the total. A node's mean is the plain one of its halves' means, and the row's
weight half of the left mean less the right one. The first b cells have the means 1 and 0 but for the nodes that b cuts,
one at each level, so those are all the rows that count; a range is the difference of two such beginnings.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def haar_range_weights(size: int, low: Integers, high: Integers) -> csr_array:
    """Return A (A'A)^-1 q of each inclusive range q, (ranges, rows)."""
    ends, which = np.unique(np.concatenate([low, high + 1]), return_inverse=True)
    weights = _weights_of_beginnings(size, ends)
    return csr_array(weights[which[len(low) :]] - weights[which[: len(low)]])


def _weights_of_beginnings(size: int, ends: Integers) -> csr_array:
    """Return the weights of the first ``ends`` cells: down the paths of the nodes they cut, then up for the means."""
    first, length = np.zeros_like(ends), np.full_like(ends, size)
    path: list[tuple[Integers, Integers, NDArray[np.bool_]]] = []
    cut = np.flatnonzero((ends > first) & (ends < first + length))
    while len(cut):
        middle = first[cut] + length[cut] // 2
        is_left = ends[cut] <= middle
        path.append((cut, middle, is_left))
        length[cut] = np.where(is_left, length[cut] // 2, length[cut] - length[cut] // 2)
        first[cut] = np.where(is_left, first[cut], middle)
        cut = cut[(ends[cut] > first[cut]) & (ends[cut] < first[cut] + length[cut])]
    # What a beginning does not cut any more it holds whole or not at all.
    mean = (ends >= first + length).astype(np.float64)
    entries: list[tuple[Integers, Integers, Floats]] = []
    for cut, middle, is_left in reversed(path):
        left, right = np.where(is_left, mean[cut], 1.0), np.where(is_left, 0.0, mean[cut])
        entries.append((cut, middle, (left - right) / 2))
        mean[cut] = (left + right) / 2
    entries.append((np.arange(len(ends)), np.zeros(len(ends), dtype=np.int64), mean))
    rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return csr_array((values, (rows, columns)), shape=(len(ends), size))
