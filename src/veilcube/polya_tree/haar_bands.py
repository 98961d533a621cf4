"""An orthonormal transform of a cube of any shape whose coefficients fall into groups by kind of question.

Along one axis the Haar coefficients are the sum of all cells and, for each run of cells that is halved, what its left
half holds more than its right one. Halving is at powers of two, so that runs may be ragged at the end of an axis;
with a and b cells the weights are ±sqrt(ab/(a+b)) over a and b (unbalanced Haar). In several dimensions coefficients
are products: the one that sums all axes is the total, those that sum all axes but one are about one-way marginals.

A prior that takes halves to be alike bends slopes, and neighbouring slopes alike. So in a plane the coefficients of
each level along an axis are transformed once more, by their own Haar transform (a wavelet packet): a slope that is
the same everywhere is then one large coefficient and not many small ones. On a line there are too few of them to
tell.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.system import Floats, Integers

# Fewer coefficients are looked at together with their likes.
LEAST_OF_A_GROUP = 12


class HaarBands:
    """The transform of cubes of one shape, and which coefficients belong together."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.is_line = sum(size > 1 for size in shape) <= 1

    def forward(self, cubes: Floats) -> Floats:
        """Return the coefficients of cubes, (cubes, cells) flat in the cube's order, in the same form."""
        return self._along_axes(cubes, is_inverse=False)

    def inverse(self, coefficients: Floats) -> Floats:
        """Return the cubes with these coefficients."""
        return self._along_axes(coefficients, is_inverse=True)

    def _along_axes(self, rows: Floats, *, is_inverse: bool) -> Floats:
        cubes = rows.reshape(-1, *self.shape)
        for axis, size in enumerate(self.shape):
            if size > 1:
                moved = np.moveaxis(cubes, axis + 1, 0)
                turned = np.ascontiguousarray(moved).reshape(size, -1)
                for matrix in self._matrices(size, is_inverse=is_inverse):
                    turned = matrix @ turned
                cubes = np.moveaxis(turned.reshape(moved.shape), 0, axis + 1)
        return np.ascontiguousarray(cubes).reshape(rows.shape)

    def _matrices(self, size: int, *, is_inverse: bool) -> "list[scipy.sparse.csr_array]":
        matrices = [_haar(size)] if self.is_line else [_haar(size), _haar_of_levels(size)]
        return [matrix.T for matrix in reversed(matrices)] if is_inverse else matrices

    @cached_property
    def levels(self) -> Integers:
        """Each coefficient's level on each axis, (coefficients, axes): 0 sums the axis, larger ones are finer."""
        return _grid([_levels(size) for size in self.shape])

    @cached_property
    def is_slope(self) -> NDArray[np.bool_]:
        """Which coefficients sum all those of their level along each axis: how cells differ on the whole."""
        within = [_levels_within(size) for size in self.shape]
        slopes: NDArray[np.bool_] = np.all(_grid(within) == 0, axis=1) & (not self.is_line)
        return slopes

    @cached_property
    def groups(self) -> Integers:
        """The number of the group of each coefficient: its levels, or with its likes where these have few.

        Likes of a coefficient differ along the same axes; where these are few too, along as many axes. Slopes have only
        each other as likes.
        """
        axes = self.levels > 0
        keys = (self.levels, axes, np.count_nonzero(axes, axis=1)[:, None])
        chosen, found = np.full(axes.shape[0], -1), 0
        for kind, key in enumerate(keys):
            number = _numbered(np.column_stack([self.is_slope, key]))
            is_left = (chosen < 0) & ~(self.is_slope & (kind == 0))
            count = np.bincount(number[is_left], minlength=int(number.max()) + 1)[number]
            is_last = kind == len(keys) - 1 or (self.is_slope & (len(self.shape) <= 2))
            takes = is_left & ((count >= LEAST_OF_A_GROUP) | is_last)
            chosen[takes] = found + number[takes]
            found += int(number.max()) + 1
        return np.unique(chosen, return_inverse=True)[1].reshape(-1)


def _numbered(keys: Integers) -> Integers:
    """Return a number for each row of small whole numbers, the same for equal rows, without gaps."""
    places = np.ravel_multi_index(tuple(keys.T), tuple(keys.max(axis=0) + 1))
    numbers: Integers = np.unique(places, return_inverse=True)[1].reshape(-1)
    return numbers


def _grid(of_axes: Sequence[Integers]) -> Integers:
    return np.stack(np.meshgrid(*of_axes, indexing="ij"), axis=-1).reshape(-1, len(of_axes))


@lru_cache(maxsize=64)
def _haar(size: int) -> "scipy.sparse.csr_array":
    """Return the transform along an axis."""
    rows, columns, weights = [np.zeros(size, np.int64)], [np.arange(size)], [np.full(size, size**-0.5)]
    number = 1
    for width, runs in zip(_widths(size), _runs(size)[1:], strict=True):
        cells = np.arange(min(runs * width, size))
        run, place = np.divmod(cells, width)
        # Only the last run of a level may be cut short.
        right = np.minimum(size - run * width, width) - width // 2
        height = np.sqrt(width // 2 * right / (width // 2 + right))
        rows.append(number + run)
        columns.append(cells)
        weights.append(np.where(place < width // 2, height / (width // 2), -height / right))
        number += runs
    entries = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
    return scipy.sparse.csr_array(entries, shape=(size, size))


@lru_cache(maxsize=64)
def _haar_of_levels(size: int) -> "scipy.sparse.csr_array":
    """Return the transform of the coefficients of each level along an axis."""
    return scipy.sparse.csr_array(scipy.sparse.block_diag([_haar(run) for run in _runs(size)], format="csr"))


def _levels(size: int) -> Integers:
    """Return the level of each coefficient along an axis, in the order of the transform."""
    runs = _runs(size)
    return np.repeat(np.arange(len(runs)), runs)


def _levels_within(size: int) -> Integers:
    """Return the level of each coefficient within those of its own level."""
    return np.concatenate([_levels(run) for run in _runs(size)])


def _runs(size: int) -> list[int]:
    """Return how many coefficients each level has, the sum's first."""
    return [1, *(len(range(0, size - width // 2, width)) for width in _widths(size))]


def _widths(size: int) -> list[int]:
    """Return the widths of the runs that are halved, from coarse to fine."""
    return [2**bit for bit in range((size - 1).bit_length(), 0, -1)]
