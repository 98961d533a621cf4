"""Partitions of neighbouring cells: regions grown from cells that are alike, and blocks that look at no data.

Region growing (ISPE, Algorithm 2, corrected) finds the connected components of the grid graph whose edges join cells
that are neighbours along an axis and differ by less than the threshold. A union-find whose roots are the first cells of
their regions numbers them in scan order without sorting.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import QueryError
from veilcube.partitions.reading import read_cells, read_ordered, read_positive
from veilcube.system import compiled, read_whole


def block_regions(shape: Sequence[int], sides: int | Sequence[int]) -> NDArray[np.int64]:
    """Return the block of each cell, numbered in scan order; ``sides`` says how many cells a block has along each axis.

    One number stands for all axes. The last block of an axis is shorter where the side does not divide its size.

    >>> block_regions((3, 4), (2, 3))
    array([[0, 0, 0, 1],
           [0, 0, 0, 1],
           [2, 2, 2, 3]])
    """
    sizes = [read_whole(size, "each size of the shape", 1) for size in shape]
    given = list(sides) if isinstance(sides, Sequence | np.ndarray) else [sides] * len(sizes)
    lengths = [read_whole(side, "each side of a block", 1) for side in given]
    if not sizes or len(lengths) != len(sizes):
        raise QueryError(
            f"sides must be one whole number, or one for each of the {len(sizes)} axes, not {len(lengths)}: match them"
        )
    labels = np.zeros((1,) * len(sizes), dtype=np.int64)
    for axis, (size, side) in enumerate(zip(sizes, lengths, strict=True)):
        along = np.arange(size, dtype=np.int64) // side
        blocks = -(-size // side)
        labels = labels * blocks + along.reshape([-1 if other == axis else 1 for other in range(len(sizes))])
    return labels


def grow_regions(cells: ArrayLike, threshold: float, *, ordered: Sequence[int] | None = None) -> NDArray[np.int64]:
    """Return the region of each cell, numbered from 0 in scan order; cells differ by less than ``threshold`` on a path.

    ``ordered`` says for each axis how many of its first cells are neighbours in turn (all of them by default): names
    have no order, and what is missing stands beside the largest value by chance.

    >>> grow_regions([[10, 21, 37], [20, 0, 0], [53, 0, 0]], 12)
    array([[0, 0, 1],
           [0, 2, 2],
           [3, 2, 2]])
    """
    numbers = read_cells(cells)
    most = read_positive(threshold, "threshold")
    labels = np.arange(numbers.size)
    for axis, in_order in enumerate(read_ordered(ordered, numbers.shape)):
        inner = prod(numbers.shape[axis + 1 :])
        _join_neighbours(numbers.reshape(-1, numbers.shape[axis], inner), in_order, most, labels)
    _number_roots(labels)
    return labels.reshape(numbers.shape)


@compiled
def _join_neighbours(cells: NDArray[np.float64], in_order: int, threshold: float, parent: NDArray[np.int64]) -> None:
    """Join neighbours among the first cells of the middle axis; every root is the smallest cell of its tree."""
    _, size, inner = cells.shape
    flat = cells.ravel()
    for start in range(0, flat.size, size * inner):
        for cell in range(start, start + (in_order - 1) * inner):
            if abs(flat[cell + inner] - flat[cell]) < threshold:
                first, second = cell, cell + inner
                # Both climb to their roots; each step halves the path for those who come later.
                while parent[first] != first:
                    parent[first] = parent[parent[first]]
                    first = parent[first]
                while parent[second] != second:
                    parent[second] = parent[parent[second]]
                    second = parent[second]
                if first < second:
                    parent[second] = first
                else:
                    parent[first] = second


@compiled
def _number_roots(parent: NDArray[np.int64]) -> None:
    """Replace parents by region numbers: a parent comes before its children, so it has its number already."""
    regions = 0
    for cell in range(parent.size):
        if parent[cell] == cell:
            parent[cell] = regions
            regions += 1
        else:
            parent[cell] = parent[parent[cell]]
