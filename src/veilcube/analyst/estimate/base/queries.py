"""Questions about an adaptive release: blocks of cells, or lists of cells for any other shape.

Both say how many cells each question has, what a table sums up to in it, and the moments of its noise, so that one
question has one answer however it was asked: alone, in a workload, or as a group of a marginal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from veilcube.operators import BlockSums, CellLists, CellsAndRegions, PairedMoments, cells_of
from veilcube.schema import Region
from veilcube.system import Floats, Integers


class Table:
    """The cells of one table, and their sums."""

    def __init__(self, cells: Floats) -> None:
        self.cells = cells
        self.blocks = BlockSums(cells)


class CountQueries(Protocol):
    """A list of questions."""

    @property
    def sizes(self) -> Integers:
        """How many cells each has."""

    def sums(self, table: Table) -> Floats:
        """Return what a table counts in each."""

    def moments(self, answers: CellsAndRegions) -> PairedMoments:
        """Return the moments of the noise of each answer."""

    def listed(self, rows: Integers) -> CellLists:
        """Return the cells of some questions."""

    def each(self) -> Iterator[Integers]:
        """Return the cells of one question after another."""


@dataclass(frozen=True, eq=False)
class BlockQueries:
    """Blocks of cells, by their inclusive ends (questions, attributes)."""

    shape: tuple[int, ...]
    low: Integers
    high: Integers

    @cached_property
    def sizes(self) -> Integers:
        """How many cells each has."""
        return np.asarray(np.maximum(self.high - self.low + 1, 0).prod(axis=1))

    def sums(self, table: Table) -> Floats:
        """Return what a table counts in each."""
        return table.blocks(self.low, self.high)

    def moments(self, answers: CellsAndRegions) -> PairedMoments:
        """Return the moments of the noise of each answer."""
        return answers.paired_of_rectangles(self.low, self.high)

    def each(self) -> Iterator[Integers]:
        """Return the cells of one question after another."""
        return (self.listed(np.array([row])).cells for row in range(len(self.low)))

    def listed(self, rows: Integers) -> CellLists:
        """Return the cells of some questions."""
        low, high, sizes = self.low[rows], self.high[rows], self.sizes[rows]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
        cells, step = np.zeros(within.size, dtype=np.int64), 1
        for axis in reversed(range(len(self.shape))):
            sides = np.repeat(np.maximum(high[:, axis] - low[:, axis] + 1, 1), sizes)
            within, offset = np.divmod(within, sides)
            cells += (np.repeat(low[:, axis], sizes) + offset) * step
            step *= self.shape[axis]
        return CellLists(cells, ends)


@dataclass(frozen=True, eq=False)
class CellQueries:
    """Questions that list their cells."""

    lists: CellLists

    @property
    def sizes(self) -> Integers:
        """How many cells each has."""
        return self.lists.sizes

    def sums(self, table: Table) -> Floats:
        """Return what a table counts in each."""
        numbers = np.repeat(np.arange(len(self.lists)), self.sizes)
        weights = table.cells.ravel()[self.lists.cells]
        return np.bincount(numbers, weights=weights, minlength=len(self.lists)).astype(np.float64)

    def moments(self, answers: CellsAndRegions) -> PairedMoments:
        """Return the moments of the noise of each answer."""
        return answers.overlaps.of_lists(self.lists)

    def listed(self, rows: Integers) -> CellLists:
        """Return the cells of some questions."""
        is_asked = np.zeros(len(self.lists), dtype=np.bool_)
        is_asked[rows] = True
        ends = np.concatenate([[0], np.cumsum(self.sizes[rows])]).astype(np.int64)
        return CellLists(self.lists.cells[np.repeat(is_asked, self.sizes)], ends)

    def each(self) -> Iterator[Integers]:
        """Return the cells of one question after another."""
        return (self.lists.cells[start:stop] for start, stop in pairwise(self.lists.ends.tolist()))


def queries_about_region(region: Region) -> CountQueries:
    """Return a region of the cube as one question."""
    block = region.rectangle()
    if block is None:
        return CellQueries(cells_of(region))
    low, high = block
    return BlockQueries(region.shape, low[np.newaxis], high[np.newaxis])


def queries_about_groups(region: Region, axes: Sequence[int]) -> tuple[CountQueries, Integers]:
    """Return the groups that a region makes along some axes, and the place of each among all combinations of cells."""
    shape = tuple(region.shape[axis] for axis in axes)
    block = region.rectangle()
    if block is None:
        return CellQueries(group_lists(region, axes)), np.arange(np.prod(shape, dtype=np.int64))
    index = np.indices(shape, dtype=np.int64).reshape(len(shape), -1).T
    lows, highs = (np.tile(end, (len(index), 1)) for end in block)
    lows[:, list(axes)] = highs[:, list(axes)] = index
    inside = np.flatnonzero(np.all((block[0] <= lows) & (highs <= block[1]), axis=1))
    return BlockQueries(region.shape, lows[inside], highs[inside]), inside


def group_lists(region: Region, axes: Sequence[int]) -> CellLists:
    """Return the cells of a region for every combination of cells of some axes, in the order of those axes."""
    mask = region.mask()
    numbers, many = np.zeros((1,) * mask.ndim, dtype=np.int64), 1
    for axis in reversed(axes):
        along = np.arange(mask.shape[axis], dtype=np.int64) * many
        numbers = numbers + along.reshape([-1 if other == axis else 1 for other in range(mask.ndim)])
        many *= mask.shape[axis]
    group = np.broadcast_to(numbers, mask.shape)[mask]
    order = np.argsort(group, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=many))]).astype(np.int64)
    return CellLists(np.flatnonzero(mask.ravel())[order], ends)
