"""Compiled loops of the search for matched strategies; symbols as in ``search``.

The matrices over shared rows are small and mostly sparse before inversion. They are worked on here and not by BLAS,
whose threads wait for one another at every call and slow down many times when the machine is shared.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.system import Floats, Integers, compiled

# C by columns: where each cell's entries start and the next cell's do, their rows, and the entries.
Columns: TypeAlias = tuple[Integers, Integers, Floats]

COLUMNS_AT_ONCE = 128


@compiled
def fill_spread(gram: Floats, own: Floats, columns: Columns, out: Floats, first: int, last: int) -> None:
    """Fill blocks of columns of H = C E G E, stored transposed; G is read once, in pieces that stay in the cache."""
    pointers, rows, entries = columns
    piece = np.empty((out.shape[1], COLUMNS_AT_ONCE))
    for block in range(first, last):
        low = block * COLUMNS_AT_ONCE
        width = min(len(own), low + COLUMNS_AT_ONCE) - low
        piece[:] = 0.0
        for cell in range(len(own)):
            line = gram[cell, low : low + width]
            for at in range(pointers[cell], pointers[cell + 1]):
                factor = entries[at] / own[cell] ** 2
                if factor != 0.0:
                    row = piece[rows[at]]
                    for i in range(width):
                        row[i] += factor * line[i]
        for i in range(width):
            for r in range(out.shape[1]):
                out[low + i, r] = piece[r, i] / own[low + i] ** 2


@compiled
def fill_spread_of_ranges(
    start: Integers, stop: Integers, weights: Floats, own: Floats, columns: Columns, out: Floats, first: int, last: int
) -> None:
    """Fill the shared rows from ``first`` to ``last`` of H = C E G E, stored transposed, for G = Σ u q q' of ranges q.

    C E q is a difference of sums over prefixes; (C E q) q' adds it to the cells of q, which is a step up and one down.
    """
    pointers, rows, entries = columns
    size, width = len(own), last - first
    before, steps = np.zeros((size + 1, width)), np.zeros((size + 1, width))
    for cell in range(size):
        before[cell + 1] = before[cell]
        for at in range(pointers[cell], pointers[cell + 1]):
            if first <= rows[at] < last:
                before[cell + 1, rows[at] - first] += entries[at] / own[cell] ** 2
    for query in range(len(start)):
        top, bottom, weight = before[stop[query]], before[start[query]], weights[query]
        up, down = steps[start[query]], steps[stop[query]]
        for r in range(width):
            value = weight * (top[r] - bottom[r])
            up[r] += value
            down[r] -= value
    total = np.zeros(width)
    for cell in range(size):
        weight = 1.0 / own[cell] ** 2
        for r in range(width):
            total[r] += steps[cell, r]
            out[cell, first + r] = total[r] * weight


@compiled
def add_inner_products(own: Floats, columns: Columns, spread: Floats, inverse: Floats, product: Floats) -> None:
    """Add C E C' to ``inverse`` and T = H C', a symmetric matrix, to ``product``."""
    pointers, rows, entries = columns
    for cell in range(len(own)):
        for at in range(pointers[cell], pointers[cell + 1]):
            entry, row = entries[at], rows[at]
            for other in range(pointers[cell], pointers[cell + 1]):
                inverse[row, rows[other]] += entry * entries[other] / own[cell] ** 2
            for r in range(spread.shape[1]):
                product[row, r] += entry * spread[cell, r]


@compiled
def invert(matrix: Floats) -> None:
    """Replace a symmetric positive definite matrix by its inverse.

    Cholesky's factor U'U is found row by row, zeros skipped; then U K = U'^-1 is solved for K from the last row up
    (Takahashi's recurrence), in time proportional to the non-zeros of U. Fine rows first leave U almost empty.
    """
    size = len(matrix)
    upper = matrix.copy()
    for k in range(size):
        upper[k, k:] /= np.sqrt(upper[k, k])
        for i in range(k + 1, size):
            factor = upper[k, i]
            if factor != 0.0:
                for j in range(i, size):
                    upper[i, j] -= factor * upper[k, j]
    for i in range(size - 1, -1, -1):
        matrix[i, i + 1 :] = 0.0
        for k in range(i + 1, size):
            factor = upper[i, k] / upper[i, i]
            if factor != 0.0:
                for j in range(i + 1, size):
                    matrix[i, j] -= factor * matrix[k, j]
        diagonal = 1.0 / upper[i, i]
        for k in range(i + 1, size):
            diagonal -= upper[i, k] * matrix[i, k]
            matrix[k, i] = matrix[i, k]
        matrix[i, i] = diagonal / upper[i, i]


@compiled
def fill_core(inner: Floats, product: Floats, met: NDArray[np.bool_], core: Floats, first: int, last: int) -> None:
    """Fill rows of Q = K T K, at the pairs of shared rows that meet in a cell; the others are not needed."""
    half = np.empty(len(inner))
    for r in range(first, last):
        half[:] = 0.0
        for a in range(len(inner)):
            factor = inner[r, a]
            for b in range(len(inner)):
                half[b] += factor * product[a, b]
        for s in range(len(inner)):
            if met[r, s]:
                total = 0.0
                for b in range(len(inner)):
                    total += half[b] * inner[s, b]
                core[r, s] = total


@compiled
def fill_slopes(
    own: Floats,
    diagonal: Floats,
    columns: Columns,
    spread: Floats,
    inner: Floats,
    core: Floats,
    own_slopes: Floats,
    entry_slopes: Floats,
    first: int,
    last: int,
) -> None:
    """Fill dF/dA on the support, cell by cell."""
    pointers, rows, entries = columns
    for cell in range(first, last):
        weight = 1.0 / own[cell] ** 2
        pulled = returned = 0.0
        for at in range(pointers[cell], pointers[cell + 1]):
            pull = back = 0.0
            for r in range(len(inner)):
                pull += inner[rows[at], r] * spread[cell, r]
            for other in range(pointers[cell], pointers[cell + 1]):
                back += core[rows[at], rows[other]] * entries[other] * weight
            entry_slopes[at] = -2.0 * (pull - back)
            pulled += entries[at] * pull
            returned += entries[at] * back
        own_slopes[cell] = -2.0 * own[cell] * weight * (weight * diagonal[cell] - 2.0 * pulled + returned)
