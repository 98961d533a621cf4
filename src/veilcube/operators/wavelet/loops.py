"""Compiled passes of the wavelet transforms along one axis of a cube, a tile of neighbouring vectors at a time.

Arrays are (before, axis, after). A tile is copied into a small matrix that stays in the processor's cache, worked on
there and copied out, so each pass reads and writes the cube once, and may write it where it read.

Haar: a vector of n cells, worked on in place. Each inner node of a binary tree is a pair (first, mid): the first cells
of its two children. ``butterflies_up`` turns (left sum, right sum) into (their sum, their difference), which leaves the
difference at ``mid`` and the sum at ``first``, where the parent finds it; row 0 keeps the total. The inverse walks down
with halves. Its matrix is symmetric in each butterfly, so the transposes are the same loops in the other direction.

Nominal: rows are the nodes of the hierarchy in level order, S_v the sum below node v, f the fan-out of its parent p and
m its multiplier: row v is m (f S_v - S_p), row 0 the total times its own multiplier. Least squares subtracts from the
rows of siblings their mean, and walks down S_v = (row / m + S_p) / f.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.system import Floats, Integers, compiled

# Children of each inner node, the parent of each node but the root, the row of each cell, multipliers of all rows.
Family = tuple[Integers, Integers, Integers, Integers, Integers]


@compiled
def _load(source: NDArray[Any], block: int, start: int, stop: int, tile: NDArray[Any]) -> None:
    for i in range(source.shape[1]):
        for c in range(start, stop):
            tile[i, c - start] = source[block, i, c]


@compiled
def _store(tile: NDArray[Any], target: NDArray[Any], block: int, start: int, stop: int) -> None:
    for i in range(target.shape[1]):
        for c in range(start, stop):
            target[block, i, c] = tile[i, c - start]


@compiled
def haar_pass(
    source: NDArray[Any], target: NDArray[Any], pairs: Integers, upwards: bool, factor: Any, width: int,
    first_tile: int, last_tile: int,
) -> None:  # fmt: skip
    """Run all butterflies of some tiles, each scaled by a factor; pairs are (first, mid), parents before children."""
    after, nodes = source.shape[2], pairs.shape[0]
    across = -(-after // width)
    tile = np.empty((source.shape[1], width), dtype=target.dtype)
    for number in range(first_tile, last_tile):
        block, start = number // across, (number % across) * width
        stop = min(start + width, after)
        _load(source, block, start, stop, tile)
        for step in range(nodes):
            node = nodes - 1 - step if upwards else step
            first, mid = pairs[node, 0], pairs[node, 1]
            for c in range(stop - start):
                left, right = tile[first, c], tile[mid, c]
                tile[first, c] = (left + right) * factor
                tile[mid, c] = (left - right) * factor
        _store(tile, target, block, start, stop)


@compiled
def nominal_measure(
    source: Integers, target: Integers, family: Family, width: int, first_tile: int, last_tile: int
) -> None:
    """Fill the rows m (f S_v - S_p) of some tiles: sums up the hierarchy, then differences, deepest nodes first."""
    _, child_count, parent, cell_row, multiplier = family
    after, rows = source.shape[2], parent.size
    across = -(-after // width)
    tile = np.empty((rows, width), dtype=np.int64)
    for number in range(first_tile, last_tile):
        block, start = number // across, (number % across) * width
        stop = min(start + width, after)
        tile[:] = 0
        for cell in range(source.shape[1]):
            for c in range(start, stop):
                tile[cell_row[cell], c - start] = source[block, cell, c]
        for v in range(rows - 1, 0, -1):
            for c in range(stop - start):
                tile[parent[v], c] += tile[v, c]
        for v in range(rows - 1, 0, -1):
            p = parent[v]
            for c in range(stop - start):
                tile[v, c] = multiplier[v] * (child_count[p] * tile[v, c] - tile[p, c])
        for c in range(stop - start):
            tile[0, c] *= multiplier[0]
        _store(tile, target, block, start, stop)


@compiled
def nominal_solve(
    source: NDArray[Any], target: Floats, family: Family, width: int, first_tile: int, last_tile: int
) -> None:
    """Estimate the cells of some tiles by least squares: siblings less their mean, then sums down the hierarchy."""
    child_start, child_count, _, cell_row, multiplier = family
    after, rows = source.shape[2], source.shape[1]
    across = -(-after // width)
    tile, mean = np.empty((rows, width)), np.empty(width)
    for number in range(first_tile, last_tile):
        block, start = number // across, (number % across) * width
        stop = min(start + width, after)
        _load(source, block, start, stop, tile)
        for c in range(stop - start):
            tile[0, c] /= multiplier[0]
        for p in range(child_start.size):
            begin, count = child_start[p], child_count[p]
            mean[:] = 0.0
            for v in range(begin, begin + count):
                for c in range(stop - start):
                    mean[c] += tile[v, c] / count
            for v in range(begin, begin + count):
                for c in range(stop - start):
                    tile[v, c] = ((tile[v, c] - mean[c]) / multiplier[v] + tile[p, c]) / count
        for cell in range(target.shape[1]):
            for c in range(start, stop):
                target[block, cell, c] = tile[cell_row[cell], c - start]


@compiled
def nominal_adjoint(
    source: Floats, target: Floats, family: Family, width: int, first_tile: int, last_tile: int
) -> None:
    """Fill A'y of some tiles: each node's share less its children's, added up from the root to the cells."""
    child_start, child_count, parent, cell_row, multiplier = family
    after, rows = source.shape[2], source.shape[1]
    across = -(-after // width)
    tile = np.empty((rows, width))
    for number in range(first_tile, last_tile):
        block, start = number // across, (number % across) * width
        stop = min(start + width, after)
        _load(source, block, start, stop, tile)
        for v in range(rows):
            for c in range(stop - start):
                tile[v, c] *= multiplier[v]
        for v in range(rows):
            own = child_count[parent[v]] if v > 0 else 1
            for c in range(stop - start):
                tile[v, c] = own * tile[v, c] + (tile[parent[v], c] if v > 0 else 0.0)
            if v < child_start.size:
                for child in range(child_start[v], child_start[v] + child_count[v]):
                    for c in range(stop - start):
                        tile[v, c] -= tile[child, c]
        for cell in range(target.shape[1]):
            for c in range(start, stop):
                target[block, cell, c] = tile[cell_row[cell], c - start]


@compiled
def nominal_weigh(source: Floats, target: Floats, family: Family, width: int, first_tile: int, last_tile: int) -> None:
    """Fill A (A'A)^-1 q of some tiles, the transpose of ``nominal_solve``: from the cells to the root."""
    child_start, child_count, parent, cell_row, multiplier = family
    after, rows = source.shape[2], parent.size
    across = -(-after // width)
    tile = np.empty((rows, width))
    for number in range(first_tile, last_tile):
        block, start = number // across, (number % across) * width
        stop = min(start + width, after)
        for cell in range(source.shape[1]):
            for c in range(start, stop):
                tile[cell_row[cell], c - start] = source[block, cell, c]
        for p in range(child_start.size - 1, -1, -1):
            begin, count = child_start[p], child_count[p]
            if count == 0:  # a cell that sits higher than others
                continue
            tile[p] = 0.0
            for v in range(begin, begin + count):
                for c in range(stop - start):
                    tile[p, c] += tile[v, c] / count
            for v in range(begin, begin + count):
                for c in range(stop - start):
                    tile[v, c] = (tile[v, c] - tile[p, c]) / (count * multiplier[v])
        for c in range(stop - start):
            tile[0, c] /= multiplier[0]
        _store(tile, target, block, start, stop)


@compiled
def read_up_to(measurements: Integers, ends: Integers) -> Floats:
    """Return the least-squares sum of the first ``ends`` cells, one node a level; cells are never written out.

    The left half of a node has half of the total, and half of what the halves differ by.
    """
    found = np.zeros(ends.size)
    for i in range(ends.size):
        first, length, total = 0, measurements.size, float(measurements[0])
        while ends[i] > first:
            if ends[i] >= first + length:
                found[i] += total
                break
            half = length // 2
            left = (total + measurements[first + half]) * 0.5
            if ends[i] >= first + half:
                found[i] += left
                first, length, total = first + half, length - half, total - left
            else:
                length, total = half, left
    return found
