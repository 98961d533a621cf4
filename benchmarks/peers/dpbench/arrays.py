"""Count arrays from .npy files, and the sums of their blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LARGEST_EXACT = 2.0**53

Counts = NDArray[np.int64]

# DPBench writes the shape, and sometimes the dimension, into the name of a file.
_SHAPE_IN_NAME = re.compile(r"(\.n\d+|(_2D)?_\d+_\d+)$")


class InputError(Exception):
    """What the benchmark was given cannot be used; one sentence says why and what to do."""


@dataclass(frozen=True)
class CountArray:
    """A data set: its name and its exact counts."""

    name: str
    counts: Counts


def load_arrays(folder: Path, shape: tuple[int, ...]) -> tuple[CountArray, ...]:
    """Read every array of a folder, by name; all must have the shape."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; --data names the folder that holds 1D/*.npy and 2D/*.npy")
    paths = sorted(folder.glob("*.npy"), key=lambda path: path.name.lower())
    if not paths:
        raise InputError(
            f"the folder {folder} holds no .npy file; put the DPBench arrays there or leave it out by --only"
        )
    arrays = tuple(CountArray(_SHAPE_IN_NAME.sub("", path.stem), read_counts(path, shape)) for path in paths)
    names = [array.name for array in arrays]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two files in {folder} are both named {name} apart from their shape; rename one")
    return arrays


def read_counts(path: Path, shape: tuple[int, ...]) -> Counts:
    """Read one array of counts; whole numbers may be stored as floats, as DPBench stores some."""
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as problem:
        raise InputError(
            f"{path} cannot be read as a .npy array of numbers; give a file that numpy.save wrote"
        ) from problem
    if not isinstance(array, np.ndarray) or array.shape != shape:
        found = array.shape if isinstance(array, np.ndarray) else "several arrays"
        raise InputError(
            f"{path} has shape {found}, but this part of the benchmark takes {shape} only; remove the file"
        )
    if array.dtype.kind not in "iuf":
        raise InputError(f"{path} holds {array.dtype} values; counts are whole numbers from 0")
    # Also False for what is not a number.
    if not ((array >= 0) & (array < LARGEST_EXACT) & (array == np.floor(array))).all():
        raise InputError(f"{path} holds values that are no counts; counts are whole numbers from 0")
    return array.astype(np.int64)


def sum_blocks(counts: Counts, side: int) -> Counts:
    """Return the sums of the square blocks of a 2-D array, ``side`` cells to a side."""
    rows, columns = counts.shape
    sums: Counts = counts.reshape(rows // side, side, columns // side, side).sum(axis=(1, 3))
    return sums


def exact_answers(counts: Counts, low: NDArray[np.int64], high: NDArray[np.int64]) -> Counts:
    """Return the sum over each inclusive block: inclusion and exclusion over the corners of a table of prefix sums."""
    table = np.zeros([size + 1 for size in counts.shape], dtype=np.int64)
    table[(slice(1, None),) * counts.ndim] = counts
    for axis in range(counts.ndim):
        np.cumsum(table, axis=axis, out=table)
    total = np.zeros(len(low), dtype=np.int64)
    for corner in np.ndindex(*(2,) * counts.ndim):
        upper = np.array(corner, dtype=bool)
        sign = -1 if (counts.ndim - sum(corner)) % 2 else 1
        total += sign * table[tuple(np.where(upper, high + 1, low).T)]
    return total
