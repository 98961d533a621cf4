"""What questions about cells and regions hold of each region, and the powers of the noise weights that follow from it.

A question with m of the K cells of a region, whose share of its total is a, takes the noise of these m cells by
1 - m a, of the K - m others by -m a, and of the total by m a. The sums over regions of the second, fourth and sixth
powers are all that intervals need, those of the cells' noise and those of the totals' apart, since each has its own
law. Where a question is a block, its cells are gone through, or the regions if these are boxes and fewer; other
questions list their cells.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.base import Moments
from veilcube.operators.partition.regions import RegionCounts
from veilcube.system import Floats, Integers, compiled, share_out

# Three powers of the weights of cells, three of those of totals, what totals keep, and the cells of whole regions.
SUMS = 8
# Steps that any call may take to be exact, and for each question more.
STEPS_OF_A_CALL, STEPS_OF_A_QUESTION = 2**23, 8


@dataclass(frozen=True, eq=False)
class PairedMoments:
    """The moments of the noise weights of answers: those of the cells' noises and those of the totals'.

    ``kept`` is the sum over regions of m² a / K: times the variance of a total it is the variance that comes from the
    totals of regions alone, which no spreading inside of them changes. ``whole`` is how many cells of each question
    belong to regions that it holds whole.
    """

    cells: Moments
    totals: Moments
    kept: Floats
    whole: Floats

    @classmethod
    def of_sums(cls, sums: Floats) -> "PairedMoments":
        """Return moments of ``SUMS`` rows of sums, which rounding may have left a little below zero."""
        found = np.maximum(sums, 0.0)
        return cls(Moments(*found[:3]), Moments(*found[3:6]), found[6], found[7])

    def variance(self, cell_variance: float, region_variance: float) -> Floats:
        """Return the variance of each answer."""
        return self.cells.second * cell_variance + self.totals.second * region_variance

    def at(self, index: NDArray[np.generic] | slice | int) -> "PairedMoments":
        """Return those of some answers."""
        return PairedMoments(_at(self.cells, index), _at(self.totals, index), self.kept[index], self.whole[index])


def _at(moments: Moments, index: NDArray[np.generic] | slice | int) -> Moments:
    powers = (moments.second[index], moments.fourth[index], moments.sixth[index])
    return Moments(*powers, bounded=moments.bounded)


@dataclass(frozen=True, eq=False)
class CellLists:
    """Questions that list their cells: ``cells`` by number, those of question k from ``ends[k]`` to ``ends[k + 1]``."""

    cells: Integers
    ends: Integers

    def __len__(self) -> int:
        return self.ends.size - 1

    @property
    def sizes(self) -> Integers:
        """How many cells each question has."""
        return np.diff(self.ends)


@dataclass(frozen=True, eq=False)
class RegionOverlaps:
    """A partition with the share that each region's total has in its cells."""

    regions: RegionCounts
    gains: Floats

    @cached_property
    def boxes(self) -> tuple[Integers, Integers] | None:
        """The first and last cell of each region on every axis if all regions are boxes, else None."""
        labels = self.regions.chosen
        low = np.full((self.regions.regions, labels.ndim), np.iinfo(np.int64).max)
        high = np.full((self.regions.regions, labels.ndim), -1)
        _bounds(labels.ravel(), np.array(labels.shape, dtype=np.int64), low, high)
        is_box = np.array_equal((high - low + 1).prod(axis=1), self.regions.sizes)
        return (low, high) if is_box else None

    def steps_of_blocks(self, low: Integers, high: Integers) -> Integers:
        """Return how many steps each block takes."""
        cells: Integers = np.maximum(high - low + 1, 0).prod(axis=1)
        return cells if self.boxes is None else np.minimum(cells, self.regions.regions)

    def of_blocks(self, low: Integers, high: Integers) -> PairedMoments:
        """Return the moments of each block, exactly."""
        found = np.zeros((SUMS, len(low)))
        lows, highs = (np.ascontiguousarray(ends, dtype=np.int64) for ends in (low, high))
        steps = int(self.steps_of_blocks(low, high).sum())
        by_boxes = np.zeros(len(low), dtype=np.bool_)
        bounds = (np.empty((0, lows.shape[1]), dtype=np.int64),) * 2
        if self.boxes is not None:
            bounds, by_boxes = self.boxes, (high - low + 1).prod(axis=1) > self.regions.regions
        settings = (*self._settings, self._strides, lows, highs, by_boxes, *bounds, found)
        share_out(lambda start, stop: _blocks(*settings, start, stop), len(low), 2 * steps)
        return PairedMoments.of_sums(found)

    def of_lists(self, lists: CellLists) -> PairedMoments:
        """Return the moments of each list of cells, exactly."""
        found = np.zeros((SUMS, len(lists)))
        _lists(*self._settings, lists.cells, lists.ends, found)
        return PairedMoments.of_sums(found)

    def of_prefixes(self, lists: CellLists) -> Floats:
        """Return the sums for the first list, for the first two together, and so on; ``SUMS`` rows."""
        found = np.zeros((SUMS, len(lists)))
        _prefixes(*self._settings, lists.cells, lists.ends, found)
        return found

    @property
    def _settings(self) -> tuple[Integers, Integers, Floats]:
        return self.regions.chosen.ravel(), self.regions.sizes, self.gains

    @property
    def _strides(self) -> Integers:
        return np.array(self.regions.chosen.strides, dtype=np.int64) // self.regions.chosen.itemsize


@compiled
def add_overlap(held: float, cells: float, gain: float, times: float, sums: Floats) -> None:
    """Add so many times (or take off) what a region contributes of which a question holds some cells."""
    pull = held * gain
    ours, others = (1 - pull) ** 2, pull * pull
    sums[0] += times * (held * ours + (cells - held) * others)
    sums[1] += times * (held * ours**2 + (cells - held) * others**2)
    sums[2] += times * (held * ours**3 + (cells - held) * others**3)
    sums[3] += times * others
    sums[4] += times * others**2
    sums[5] += times * others**3
    sums[6] += times * held * pull / cells
    if held == cells:
        sums[7] += times * held


@compiled
def _bounds(labels: Integers, shape: Integers, low: Integers, high: Integers) -> None:
    at = np.zeros(shape.size, dtype=np.int64)
    for cell in range(labels.size):
        region = labels[cell]
        for axis in range(shape.size):
            low[region, axis] = min(low[region, axis], at[axis])
            high[region, axis] = max(high[region, axis], at[axis])
        axis = shape.size - 1
        at[axis] += 1
        while axis > 0 and at[axis] == shape[axis]:
            at[axis] = 0
            axis -= 1
            at[axis] += 1


@compiled
def _blocks(
    labels: Integers, sizes: Integers, gains: Floats, strides: Integers, low: Integers, high: Integers,
    by_boxes: NDArray[np.bool_], box_low: Integers, box_high: Integers, found: Floats, first: int, last: int,
) -> None:  # fmt: skip
    held, sums = np.zeros(sizes.size, dtype=np.int64), np.empty(found.shape[0])
    for q in range(first, last):
        sums[:] = 0.0
        if (low[q] > high[q]).any():
            continue
        if by_boxes[q]:
            _add_boxes(sizes, gains, low[q], high[q], box_low, box_high, sums)
        else:
            _add_cells(labels, sizes, gains, strides, low[q], high[q], held, sums)
        found[:, q] = sums


@compiled
def _add_boxes(
    sizes: Integers, gains: Floats, low: Integers, high: Integers, box_low: Integers, box_high: Integers, sums: Floats
) -> None:
    for region in range(sizes.size):
        both = 1.0
        for axis in range(low.size):
            both *= max(0, min(high[axis], box_high[region, axis]) - max(low[axis], box_low[region, axis]) + 1)
        if both > 0:
            add_overlap(both, float(sizes[region]), gains[region], 1.0, sums)


@compiled
def _add_cells(
    labels: Integers, sizes: Integers, gains: Floats, strides: Integers, low: Integers, high: Integers,
    held: Integers, sums: Floats,
) -> None:  # fmt: skip
    """Once to count, once to add up and forget: far fewer steps than there are regions."""
    last = strides.size - 1
    at = low.copy()
    for is_counting in (True, False):
        at[:] = low
        while at[0] <= high[0]:
            start = 0
            for axis in range(strides.size):
                start += at[axis] * strides[axis]
            stop = start + high[last] - low[last] + 1
            if is_counting:
                for cell in range(start, stop):
                    held[labels[cell]] += 1
            else:
                for cell in range(start, stop):
                    region = labels[cell]
                    if held[region] > 0:
                        add_overlap(float(held[region]), float(sizes[region]), gains[region], 1.0, sums)
                        held[region] = 0
            if last == 0:
                break
            axis = last - 1
            at[axis] += 1
            while axis > 0 and at[axis] > high[axis]:
                at[axis] = low[axis]
                axis -= 1
                at[axis] += 1


@compiled
def _lists(
    labels: Integers, sizes: Integers, gains: Floats, cells: Integers, ends: Integers, found: Floats
) -> None:  # fmt: skip
    held, sums = np.zeros(sizes.size, dtype=np.int64), np.empty(found.shape[0])
    for q in range(ends.size - 1):
        sums[:] = 0.0
        for i in range(ends[q], ends[q + 1]):
            held[labels[cells[i]]] += 1
        for i in range(ends[q], ends[q + 1]):
            region = labels[cells[i]]
            if held[region] > 0:
                add_overlap(float(held[region]), float(sizes[region]), gains[region], 1.0, sums)
                held[region] = 0
        found[:, q] = sums


@compiled
def _prefixes(
    labels: Integers, sizes: Integers, gains: Floats, cells: Integers, ends: Integers, found: Floats
) -> None:  # fmt: skip
    """Each cell replaces what its region contributed by what it contributes with one cell more."""
    held, sums = np.zeros(sizes.size, dtype=np.int64), np.zeros(found.shape[0])
    for q in range(ends.size - 1):
        for i in range(ends[q], ends[q + 1]):
            region = labels[cells[i]]
            if held[region] > 0:
                add_overlap(float(held[region]), float(sizes[region]), gains[region], -1.0, sums)
            held[region] += 1
            add_overlap(float(held[region]), float(sizes[region]), gains[region], 1.0, sums)
        found[:, q] = sums
