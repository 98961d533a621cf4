"""The innermost sums of belief propagation: over all divisions of one count, left message x right message x split law.

All take whole arrays with offsets: a slice made for every count would cost more than the sum itself, and offsets of no
sign let the loops compile to vector instructions. The right half's message is stored backwards, so that all
three factors run forwards. Rows of large counts are given as two rows and a ``part`` of the way between them,
without the split law's atoms, which have functions of their own.
"""

import numpy as np

from veilcube.polya_tree.split_law import ALL_LEFT, ALL_RIGHT, HALF
from veilcube.system import Floats, compiled, compiled_fast


@compiled_fast
def dot(left: Floats, at_left: int, right: Floats, at_right: int, row: Floats, at_row: int, count: int) -> float:
    """Return the sum of the products."""
    a, b, c, total = np.uint64(at_left), np.uint64(at_right), np.uint64(at_row), 0.0
    for x in range(np.uint64(count)):
        total += left[a + x] * right[b + x] * row[c + x]
    return total


@compiled_fast
def dot_between(
    left: Floats,
    at_left: int,
    right: Floats,
    at_right: int,
    lower: Floats,
    upper: Floats,
    at_row: int,
    part: float,
    count: int,
) -> float:
    """Return the sum of the products with a row between two."""
    a, b, c, total = np.uint64(at_left), np.uint64(at_right), np.uint64(at_row), 0.0
    for x in range(np.uint64(count)):
        total += left[a + x] * right[b + x] * (lower[c + x] + part * (upper[c + x] - lower[c + x]))
    return total


@compiled
def dot_atoms(
    left: Floats, at_left: int, right: Floats, at_right: int, weights: Floats, j: int, low: int, high: int
) -> float:
    """Return the sum over the atoms at one half, at all and at nothing; offsets are those of i = 0."""
    total = 0.0
    for middle in (j // 2, (j + 1) // 2):
        if low <= middle <= high:
            total += 0.5 * weights[HALF] * left[at_left + middle] * right[at_right + middle]
    if low == 0:
        total += weights[ALL_RIGHT] * left[at_left] * right[at_right]
    if high == j:
        total += weights[ALL_LEFT] * left[at_left + j] * right[at_right + j]
    return total


@compiled_fast
def spread(
    factor: float,
    left: Floats,
    at_left: int,
    right: Floats,
    at_right: int,
    row: Floats,
    at_row: int,
    count: int,
    to_left: Floats,
    to_right: Floats,
) -> None:
    """Add ``factor`` times each product to both halves, where their messages stand."""
    a, b, c = np.uint64(at_left), np.uint64(at_right), np.uint64(at_row)
    for x in range(np.uint64(count)):
        share = factor * left[a + x] * right[b + x] * row[c + x]
        to_left[a + x] += share
        to_right[b + x] += share


@compiled_fast
def spread_between(
    factor: float,
    left: Floats,
    at_left: int,
    right: Floats,
    at_right: int,
    lower: Floats,
    upper: Floats,
    at_row: int,
    part: float,
    count: int,
    to_left: Floats,
    to_right: Floats,
) -> None:
    """Add ``factor`` times each product with a row between two to both halves."""
    a, b, c = np.uint64(at_left), np.uint64(at_right), np.uint64(at_row)
    for x in range(np.uint64(count)):
        row = lower[c + x] + part * (upper[c + x] - lower[c + x])
        share = factor * left[a + x] * right[b + x] * row
        to_left[a + x] += share
        to_right[b + x] += share


@compiled
def spread_atoms(
    factor: float,
    left: Floats,
    at_left: int,
    right: Floats,
    at_right: int,
    weights: Floats,
    j: int,
    low: int,
    high: int,
    to_left: Floats,
    to_right: Floats,
) -> None:
    """Add ``factor`` times the atoms' products to both halves; offsets are those of i = 0."""
    for i, weight in (
        (j // 2, 0.5 * weights[HALF]),
        ((j + 1) // 2, 0.5 * weights[HALF]),
        (0, weights[ALL_RIGHT]),
        (j, weights[ALL_LEFT]),
    ):
        if low <= i <= high:
            share = factor * weight * left[at_left + i] * right[at_right + i]
            to_left[at_left + i] += share
            to_right[at_right + i] += share


@compiled_fast
def add_products(
    factor: float,
    left: Floats,
    at_left: int,
    right: Floats,
    at_right: int,
    row: Floats,
    at_row: int,
    count: int,
    out: Floats,
) -> None:
    """Add ``factor`` times each product where the row stands."""
    a, b, c = np.uint64(at_left), np.uint64(at_right), np.uint64(at_row)
    for x in range(np.uint64(count)):
        out[c + x] += factor * left[a + x] * right[b + x] * row[c + x]
