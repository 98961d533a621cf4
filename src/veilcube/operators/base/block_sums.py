"""Sums over blocks of cells, and regions summed down to the axes of a marginal.

Many blocks are read off a summed-area table, few are plain slices. With S(i) the sum of all cells below i on every
axis, a block's sum is the alternating sum of S over its 2^d corners (inclusion-exclusion). Sums of integers are exact.
Sums of floats carry the rounding of the table's entries, about 1e-16 of the sum of all cells' sizes and so far below
any noise: a cube of 2^24 cells with noise of scale s has it near 1e-6 s.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilcube.schema import Box, Region
from veilcube.system import compile_loop

# What starting one slice costs, in cells summed; and how much larger than the cube a table may be.
CELLS_WORTH_A_SLICE = 5_000
LARGEST_GROWTH = 8


Number = TypeVar("Number", np.int64, np.float64)


class BlockSums(Generic[Number]):
    """Sums of cells over blocks; builds its table on the first call that is worth it."""

    def __init__(self, cells: NDArray[Number]) -> None:
        self._cells: NDArray[Number] = cells
        self._table: NDArray[Number] | None = None

    def __call__(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[Number]:
        """Return the sum of each block, inclusive indices of shape (blocks, axes); an empty block has high < low."""
        if np.array_equal(low, high):
            single: NDArray[Number] = self._cells[tuple(low.T)]
            return single
        if self._table is None and not self._is_table_worth_it(low, high):
            return self._by_slices(low, high)
        if self._table is None:
            self._table = _summed_area_table(self._cells)
        sums = np.empty(len(low), dtype=self._cells.dtype)
        strides = np.array([prod(self._table.shape[axis + 1 :]) for axis in range(self._table.ndim)], dtype=np.int64)
        _corner_sums(self._table.ravel(), strides, low, high, sums)
        return sums

    def _is_table_worth_it(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> bool:
        """Compare the cells that slices would touch with the cost of a table and of its 2^d corners per block.

        On many short axes a table is far larger than the cube (3^k entries for k binary attributes) and is never built.
        """
        axes = self._cells.ndim
        if prod(size + 1 for size in self._cells.shape) > LARGEST_GROWTH * self._cells.size:
            return False
        touched = float(np.prod((high - low + 1).astype(np.float64), axis=1).sum())
        by_slices = touched + CELLS_WORTH_A_SLICE * len(low)
        return bool(by_slices > 2.0 * axes * self._cells.size + len(low) * 2.0**axes)

    def _by_slices(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[Number]:
        blocks = (
            self._cells[tuple(slice(first, last + 1) for first, last in zip(lows, highs, strict=True))]
            for lows, highs in zip(low, high, strict=True)
        )
        return np.array([block.sum() for block in blocks], dtype=self._cells.dtype)


def _summed_area_table(cells: NDArray[Number]) -> NDArray[Number]:
    """Return sums over all cells below each corner, with a leading zero on every axis."""
    table = np.zeros(tuple(size + 1 for size in cells.shape), dtype=cells.dtype)
    inner = table[(slice(1, None),) * cells.ndim]
    inner[...] = cells
    for axis in range(cells.ndim):
        np.cumsum(inner, axis=axis, out=inner)
    return table


@compile_loop
def _corner_sums(
    table: NDArray[Any],
    strides: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    sums: NDArray[Any],
) -> None:
    axes = strides.size
    for block in range(low.shape[0]):
        total = table[0]  # zero, of the table's kind
        for corner in range(1 << axes):
            offset = 0
            lower_ends = 0
            for axis in range(axes):
                if corner >> axis & 1:
                    offset += low[block, axis] * strides[axis]
                    lower_ends += 1
                else:
                    offset += (high[block, axis] + 1) * strides[axis]
            total += -table[offset] if lower_ends & 1 else table[offset]
        sums[block] = total


def group_cells(
    cells: NDArray[Number], region: Region, axes: Sequence[int]
) -> tuple[NDArray[Number], NDArray[np.int64]]:
    """Return the sum of the region's cells per combination of cells of ``axes``, and how many cells each sum has."""
    shape = tuple(cells.shape[axis] for axis in axes)
    sums = np.zeros(shape, dtype=cells.dtype)
    sizes = np.zeros(shape, dtype=np.int64)
    for box in region.boxes:
        target = np.ix_(*(box.indices(axis) for axis in axes))
        sums[target] += _sum_out(cells, box, axes)
        sizes[target] += prod(size for axis, size in enumerate(box.sizes) if axis not in axes)
    return sums, sizes


def group_of(region: Region, axes: Sequence[int], index: Sequence[int]) -> Region:
    """Return the part of a region at one combination of cells of some axes."""
    cells = [(axis, np.arange(region.shape[axis]) == cell) for axis, cell in zip(axes, index, strict=True)]
    return region.intersect(*(Region.on_axis(region.shape, axis, chosen) for axis, chosen in cells))


def _sum_out(cells: NDArray[Number], box: Box, axes: Sequence[int]) -> NDArray[Number]:
    """Return a box's cells summed over every axis that is not kept, the kept ones in the order of ``axes``."""
    part = cells
    # Contiguous choices become views, so that a marginal of a large cube copies nothing.
    part = part[tuple(_view(box, axis) for axis in range(cells.ndim))]
    for axis in range(cells.ndim):
        if box.run(axis) is None:
            part = np.take(part, box.indices(axis), axis=axis)
    summed = part.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in axes), dtype=cells.dtype)
    kept = sorted(axes)
    return np.asarray(np.transpose(summed, [kept.index(axis) for axis in axes]), dtype=cells.dtype)


def _view(box: Box, axis: int) -> slice:
    run = box.run(axis)
    return slice(None) if run is None else slice(run.start, run.stop)
