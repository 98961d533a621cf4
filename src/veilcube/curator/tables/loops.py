"""Compiled loops that turn normalised columns into cells of the cube, one batch of rows at a time.

Each ``place_*`` loop checks one attribute's values against its public domain and policies and folds the cell it finds
into ``cells``, the flat index of every row (row-major, so ``cells = cells * size + cell``). ``add_to_counts`` then
counts the rows in place. Loops stop at the first value that a policy refuses and say only why, never which.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilcube.system import Floats, Integers, compile_loop

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Bits = NDArray[np.uint8]

ALL_PLACED, MISSING, OUTSIDE, UNREADABLE = 0, 1, 2, 3

# How the engine's projection marks text that is no date; no calendar reaches it. Text that is no number is NaN.
UNREADABLE_NUMBER = -(2**63)


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile for the processor on first use, keep the result on disk, and let other threads run meanwhile."""
    return compile_loop(function)


@compiled
def _is_present(valid: Bits, position: int) -> bool:
    """Read one bit of an Arrow validity bitmap; an empty bitmap means that every value is present."""
    return valid.size == 0 or (valid[position >> 3] >> (position & 7)) & 1 == 1


@compiled
def place_integers(
    values: Integers, valid: Bits, low: int, high: int, clip: bool, other: int, missing: int, size: int, cells: Integers
) -> int:
    """Place whole numbers, calendar numbers or codes; ``other`` and ``missing`` are cells, or -1 to refuse."""
    for row in range(values.size):
        value = values[row]
        if not _is_present(valid, row):
            cell = missing
            if cell < 0:
                return MISSING
        elif low <= value <= high:
            cell = value - low
        elif clip:
            if value == UNREADABLE_NUMBER:
                return UNREADABLE
            cell = 0 if value < low else high - low
        else:
            cell = other
            if cell < 0:
                return OUTSIDE
        cells[row] = cells[row] * size + cell
    return ALL_PLACED


@compiled
def place_whole_floats(
    values: Floats, valid: Bits, low: int, high: int, clip: bool, other: int, missing: int, size: int, cells: Integers
) -> int:
    """Place whole numbers that arrive as floats; a fraction is outside, and is rounded down under clip."""
    for row in range(values.size):
        floor = np.floor(values[row])
        if not _is_present(valid, row):
            cell = missing
            if cell < 0:
                return MISSING
        elif floor == values[row] and low <= floor <= high:
            cell = int(floor) - low
        elif clip:
            if np.isnan(floor):
                return UNREADABLE
            cell = int(min(max(floor, float(low)), float(high))) - low
        else:
            cell = other
            if cell < 0:
                return OUTSIDE
        cells[row] = cells[row] * size + cell
    return ALL_PLACED


@compiled
def _bin_of(value: float, edges: Floats, hints: Integers, hints_per_unit: float) -> int:
    """Return the half-open bin of a value inside the edges; the last bin is closed.

    ``hints`` holds, for equal slices of the line, the bin where each begins: it narrows the search to a bin or two.
    Only comparisons with the edges decide, so a rounded or absurd hint costs time and never changes the answer.
    """
    slices = hints.size - 2
    slice_number = (value - edges[0]) * hints_per_unit
    hint = int(slice_number) if 0 <= slice_number < slices else slices * (slice_number >= slices)
    first, last = int(hints[hint]), int(hints[hint + 1])
    while first > 0 and edges[first] > value:
        first -= 1
    while first < last:
        middle = (first + last + 1) >> 1
        if edges[middle] <= value:
            first = middle
        else:
            last = middle - 1
    while first < edges.size - 2 and edges[first + 1] <= value:
        first += 1
    return first


@compiled
def place_in_bins(
    values: Floats,
    valid: Bits,
    edges: Floats,
    hints: Integers,
    hints_per_unit: float,
    clip: bool,
    other: int,
    missing: int,
    size: int,
    cells: Integers,
) -> int:
    """Place numbers into the bins between increasing edges."""
    for row in range(values.size):
        value = values[row]
        if not _is_present(valid, row):
            cell = missing
            if cell < 0:
                return MISSING
        elif edges[0] <= value <= edges[-1]:
            cell = _bin_of(value, edges, hints, hints_per_unit)
        elif clip:
            if np.isnan(value):
                return UNREADABLE
            cell = 0 if value < edges[0] else edges.size - 2
        else:
            cell = other
            if cell < 0:
                return OUTSIDE
        cells[row] = cells[row] * size + cell
    return ALL_PLACED


@compiled
def add_to_counts(cells: Integers, counts: Integers) -> None:
    """Count every row in the flat cube."""
    for row in range(cells.size):
        counts[cells[row]] += 1


@compiled
def add_to_tables(cells: Integers, axes: Integers, sizes: Integers, starts: Integers, counts: Integers) -> None:
    """Count every row in every table; ``cells`` is (attributes, rows), and a table's axes end with -1."""
    for table in range(starts.size):
        for row in range(cells.shape[1]):
            flat = 0
            for place in range(axes.shape[1]):
                axis = axes[table, place]
                if axis >= 0:
                    flat = flat * sizes[axis] + cells[axis, row]
            counts[starts[table] + flat] += 1
