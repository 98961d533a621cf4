"""Cells that were measured, seen beside a model of them: it is corrected as far as measurements speak against it.

What tables of single values tell beyond the model, y - m, is cut into bands: by the cosine transform, which is
orthonormal, into the effects of each set of attributes, and along ordinal attributes into octaves of frequency. A table
that sums up n cells in each of its own tells an effect of its attributes with the precision n / σ²; those of several
tables add up. In a band of d numbers told with variance v each, a mean square above v is what the model misses: the
part 1 - d v / Σ (y - m)² of the band, if above 0, is added to the model (James and Stein's shrinkage towards it). That
is all of it where cells are full, and nothing where noise hides them.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
import scipy

from veilcube.analyst.estimate.base import PlainData, Runs, cells_of_runs
from veilcube.analyst.estimate.mixture.observed import ObservedTable
from veilcube.operators import BlockSums, group_cells
from veilcube.schema import Region
from veilcube.system import Floats, Integers

NUMBERS_OF_A_BAND = 64


class CellSums:
    """Estimated cells that answer as a model does."""

    def __init__(self, cells: Floats) -> None:
        cells.setflags(write=False)
        self.values = cells
        self._sums = BlockSums(cells)

    def blocks(self, low: Integers, high: Integers) -> Floats:
        """Return the count of each block, inclusive indices (questions, attributes)."""
        return self._sums(low, high)

    def groups(self, region: Region, axes: Sequence[int]) -> Floats:
        """Return the counts inside a region for every combination of values of some attributes."""
        return np.asarray(group_cells(self.values, region, axes)[0], dtype=np.float64)

    def portable(self, cuts: Sequence[Runs]) -> PlainData:
        """Return how to compute its counts elsewhere."""
        return cells_of_runs(self.values, cuts)


def correct_cells(model: Floats, tables: Sequence[ObservedTable], is_ordinal: Sequence[bool]) -> Floats:
    """Return the model's cells with what tables of single values, every cell's among them, tell beyond it."""
    bands = _bands(model.shape, is_ordinal)
    told, precisions = np.zeros(model.shape), np.zeros(model.shape)
    for table in tables:
        others = tuple(axis for axis in range(model.ndim) if axis not in table.axes)
        summed = prod(model.shape[axis] for axis in others)
        shape = tuple(1 if axis in others else size for axis, size in enumerate(model.shape))
        apart = scipy.fft.dctn(table.counts.reshape(shape) - model.sum(axis=others, keepdims=True), norm="ortho")
        effects = tuple(slice(0, 1) if axis in others else slice(None) for axis in range(model.ndim))
        told[effects] += apart / np.sqrt(summed) * summed / table.variance
        precisions[effects] += summed / table.variance
    apart = told / precisions
    energy = np.bincount(bands.ravel(), weights=(np.square(apart) * precisions).ravel())
    sizes = np.bincount(bands.ravel())
    # A band of few numbers may exceed its noise by luck, and there are many.
    luck = 1.0 + 3.0 * np.sqrt(2.0 / np.maximum(sizes, 1)) + 10.0 / np.maximum(sizes, 1)
    missed = 1.0 - sizes * luck / np.maximum(energy, 1e-300)
    # No model knows by how much counts of rows miss what is expected of them: their variance is that expectation. What
    # single attributes tell is in the model already.
    order = sum(_along(np.minimum(np.arange(size), 1), axis, model.ndim) for axis, size in enumerate(model.shape))
    spread = max(float(model.mean()), 0.0) * precisions * (order > 1)
    kept = np.maximum(spread / (1.0 + spread), missed[bands])
    return np.asarray(model + scipy.fft.idctn(apart * kept, norm="ortho"))


def _bands(shape: Sequence[int], is_ordinal: Sequence[bool]) -> Integers:
    """Return the number of each coefficient's band: as narrow as leaves a band NUMBERS_OF_A_BAND on average.

    By octaves of each attribute, by the attributes whose effect it is, or by their number.
    """
    octaves = [_octaves(size, ordinal) for size, ordinal in zip(shape, is_ordinal, strict=True)]
    effects = [np.minimum(np.arange(size), 1) for size in shape]
    for parts in (octaves, effects):
        if prod(shape) / prod(int(part.max()) + 1 for part in parts) >= NUMBERS_OF_A_BAND:
            numbers = np.zeros((1,) * len(shape), dtype=np.int64)
            for axis, part in enumerate(parts):
                numbers = numbers * (int(part.max()) + 1) + _along(part, axis, len(shape))
            return np.ascontiguousarray(np.broadcast_to(numbers, tuple(shape)))
    order = sum((_along(part, axis, len(shape)) for axis, part in enumerate(effects)), np.zeros((1,) * len(shape)))
    return np.ascontiguousarray(np.broadcast_to(order, tuple(shape))).astype(np.int64)


def _along(part: Integers, axis: int, dimensions: int) -> Integers:
    return part.reshape([-1 if other == axis else 1 for other in range(dimensions)])


def _octaves(size: int, is_ordinal: bool) -> Integers:
    numbers = np.arange(size)
    if not is_ordinal:
        return np.minimum(numbers, 1)
    found = np.zeros(size, dtype=np.int64)
    found[1:] = 1 + np.log2(numbers[1:]).astype(np.int64)
    return found
