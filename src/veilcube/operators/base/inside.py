"""Axis operators that work inside a cube: along any axis of it, where it lies, without turning it around first."""

from collections.abc import Callable
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.system import Floats, Integers, share_out

Way: TypeAlias = Literal["apply", "adjoint", "solve", "noise_weights"]
# Works on tiles of a number of vectors: (source, target, width, first tile, last tile).
Pass: TypeAlias = Callable[[NDArray[Any], NDArray[Any], int, int, int], None]

# Neighbouring vectors that are worked on at once: whole cache lines, while a tile stays in the cache.
WIDEST_TILE, NARROWEST_TILE = 64, 8
ENTRIES_OF_A_TILE = 1 << 16


class InsideAxis:
    """The four maps of an axis operator from one method that works along the middle axis of a block."""

    size: int

    @property
    def inside(self) -> "InsideAxis":
        """Itself: it needs no cube turned around."""
        return self

    def along(self, way: Way, block: NDArray[Any], *, may_overwrite: bool) -> NDArray[Any]:
        """Map every vector of a block (before, vector, after); the result may lie where the block was."""
        raise NotImplementedError

    def apply(self, cells: Integers) -> Integers:
        """Return the exact measurements A x: (..., size) to (..., rows)."""
        return self._along_last("apply", cells)

    def adjoint(self, measurements: Floats) -> Floats:
        """Return A' y: (..., rows) to (..., size)."""
        return self._along_last("adjoint", measurements)

    def solve(self, measurements: Floats | Integers) -> Floats:
        """Return the least-squares estimate (A'A)^-1 A' y: (..., rows) to (..., size)."""
        return self._along_last("solve", measurements)

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^-1 q, the transpose of ``solve``: (..., size) to (..., rows)."""
        return self._along_last("noise_weights", query)

    def _along_last(self, way: Way, array: NDArray[Any]) -> NDArray[Any]:
        block = np.ascontiguousarray(array).reshape(prod(array.shape[:-1]), array.shape[-1], 1)
        result = self.along(way, block, may_overwrite=False)
        return result.reshape((*array.shape[:-1], result.shape[1]))


def in_tiles(
    work: Pass, block: NDArray[Any], expected: int, length: int, kind: type, *, may_overwrite: bool
) -> NDArray[Any]:
    """Run a pass on both cores over a block whose vectors have ``expected`` entries, giving vectors of ``length``."""
    before, given, after = block.shape
    if given != expected:
        raise ValueError(f"the axis must have {expected} entries, not {given}")
    source = np.ascontiguousarray(block)
    reuses = may_overwrite and given == length and source.dtype == kind
    target = source if reuses else np.empty((before, length, after), dtype=kind)
    width = max(min(WIDEST_TILE, after, ENTRIES_OF_A_TILE // max(given, length)), min(NARROWEST_TILE, after), 1)
    tiles = before * -(-after // width)
    share_out(lambda start, stop: work(source, target, width, start, stop), tiles, max(source.size, target.size))
    return target


def along_axis(axis: InsideAxis, way: Way, array: NDArray[Any], place: int, *, may_overwrite: bool) -> NDArray[Any]:
    """Map a cube along one of its axes."""
    shape = array.shape
    block = np.ascontiguousarray(array).reshape(prod(shape[:place]), shape[place], prod(shape[place + 1 :]))
    result = axis.along(way, block, may_overwrite=may_overwrite)
    return result.reshape((*shape[:place], result.shape[1], *shape[place + 1 :]))
