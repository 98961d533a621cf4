"""What the functions of this package accept: arrays of finite numbers, whole and positive parameters."""

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import QueryError
from veilcube.system import read_whole


def read_cells(cells: ArrayLike) -> NDArray[np.float64]:
    """Return the cells as a contiguous array of floats with at least one axis and one cell."""
    try:
        array = np.asarray(cells)
    except (TypeError, ValueError, RecursionError):  # rows of different lengths, or no numbers at all
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise QueryError("cells must be an array of finite numbers: give noisy counts, one for each cell")
    if array.ndim == 0 or array.size == 0:
        raise QueryError("cells must have at least one axis and one cell: give an array that is not empty")
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    if not np.all(np.isfinite(numbers)):
        raise QueryError("cells must be finite numbers, without nan or infinity: remove or replace those")
    return numbers


def read_ordered(ordered: Sequence[int] | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many first cells of each axis stand in an order that makes them neighbours; all of them for None."""
    if ordered is None:
        return shape
    given = ordered if isinstance(ordered, Sequence) and not isinstance(ordered, str) else []
    numbers = tuple(read_whole(number, "each number of ordered cells", 0) for number in given)
    if len(numbers) != len(shape) or any(number > size for number, size in zip(numbers, shape, strict=True)):
        raise QueryError(f"ordered must say for each axis how many of its cells have neighbours, at most {shape}")
    return numbers


def read_positive(number: object, name: str) -> float:
    """Return a finite number above zero."""
    try:
        value = float(number) if isinstance(number, Real) and not isinstance(number, bool) else math.nan
    except OverflowError:  # a whole number beyond all floats
        value = math.inf
    if not 0 < value < math.inf:
        raise QueryError(f"{name} must be a finite number above 0, at most 1.8e308: choose such a number")
    return value
