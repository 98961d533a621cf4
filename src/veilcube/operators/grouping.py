"""Grouping: cells of a region summed down to the axes of a marginal."""

from collections.abc import Sequence
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from veilcube.schema import Box, Region

Number = TypeVar("Number", np.int64, np.float64)


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
        if not _is_run(box, axis):
            part = np.take(part, box.indices(axis), axis=axis)
    summed = part.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in axes), dtype=cells.dtype)
    kept = sorted(axes)
    return np.asarray(np.transpose(summed, [kept.index(axis) for axis in axes]), dtype=cells.dtype)


def _is_run(box: Box, axis: int) -> bool:
    chosen = box.indices(axis)
    return bool(chosen[-1] - chosen[0] + 1 == chosen.size)


def _view(box: Box, axis: int) -> slice:
    if not _is_run(box, axis):
        return slice(None)
    chosen = box.indices(axis)
    return slice(int(chosen[0]), int(chosen[-1]) + 1)
