"""Weighted sums of boxes of cells, thousands of them, without ever writing one out as a vector over the cube.

A box is a product of one set of cells per attribute. Thousands of boxes share few sets on each attribute, so each set
is looked at once (``AxisSets``) and a box is a tuple of positions. A fact or a question is a weighted sum of boxes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, vstack

from veilcube.operators import LARGEST_GROWTH, BlockSums
from veilcube.schema import Box, Region
from veilcube.system import Floats, Integers


@dataclass(frozen=True, eq=False)
class AxisSets:
    """Distinct sets of cells of one attribute: inclusive ranges first, then masks of the sets with gaps."""

    size: int
    low: Integers
    high: Integers
    masks: Floats  # (sets with gaps, size)

    def __len__(self) -> int:
        return len(self.low) + len(self.masks)

    @cached_property
    def lengths(self) -> Floats:
        """How many cells each set has."""
        return np.concatenate([(self.high - self.low + 1).astype(np.float64), self.masks.sum(axis=1)])

    def weights(self, chosen: Integers) -> Floats:
        """Return some of the sets as rows of ones and zeros over the cells."""
        rows = np.empty((len(chosen), self.size))
        cells, is_range = np.arange(self.size), chosen < len(self.low)
        ranges = chosen[is_range]
        rows[is_range] = (cells >= self.low[ranges, np.newaxis]) & (cells <= self.high[ranges, np.newaxis])
        rows[~is_range] = self.masks[chosen[~is_range] - len(self.low)]
        return rows

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each row of ``values`` (rows, cells) over each set: (rows, sets)."""
        running = np.zeros((len(values), self.size + 1))
        np.cumsum(values, axis=1, out=running[:, 1:])
        ranges = running[:, self.high + 1] - running[:, self.low]
        return np.concatenate([ranges, values @ self.masks.T], axis=1)


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes by their inclusive corners, (boxes, attributes); those with gaps on an attribute also as they are."""

    shape: tuple[int, ...]
    low: Integers
    high: Integers
    gapped: Mapping[int, Box] = field(default_factory=dict)

    @classmethod
    def of(cls, shape: tuple[int, ...], boxes: Sequence[Box]) -> "Boxes":
        """Return boxes of regions, none of them empty."""
        low = np.empty((len(boxes), len(shape)), dtype=np.int64)
        high, gapped = np.empty_like(low), {}
        for row, box in enumerate(boxes):
            for axis in range(len(shape)):
                chosen = box.indices(axis)
                low[row, axis], high[row, axis] = chosen[0], chosen[-1]
                if chosen[-1] - chosen[0] + 1 != chosen.size:
                    gapped[row] = box
        return cls(shape, low, high, gapped)

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def axes(self) -> tuple[tuple[AxisSets, Integers], ...]:
        """The distinct sets of each attribute, and which of them each box has."""
        return tuple(self._sets_of(axis) for axis in range(len(self.shape)))

    def _sets_of(self, axis: int) -> tuple[AxisSets, Integers]:
        size = self.shape[axis]
        keys, which = np.unique(self.low[:, axis] * size + self.high[:, axis], return_inverse=True)
        which = which.astype(np.int64)
        masks: dict[bytes, int] = {}
        for row, box in self.gapped.items():
            mask = box.mask(axis)
            if np.count_nonzero(mask) < self.high[row, axis] - self.low[row, axis] + 1:
                which[row] = keys.size + masks.setdefault(mask.tobytes(), len(masks))
        found = np.frombuffer(b"".join(masks), dtype=np.bool_).reshape(len(masks), size).astype(np.float64)
        return AxisSets(size, keys // size, keys % size, found), which

    @cached_property
    def _is_gapped(self) -> NDArray[np.bool_]:
        is_gapped = np.zeros(len(self), dtype=bool)
        is_gapped[list(self.gapped)] = True
        return is_gapped

    def sums(self, block_sums: BlockSums[np.float64], cells: Floats) -> Floats:
        """Return the sum of the cells of each box; ``block_sums`` are those of the same cells."""
        found = np.asarray(block_sums(self.low, self.high))
        for row, box in self.gapped.items():
            found[row] = cells[np.ix_(*(box.indices(axis) for axis in range(cells.ndim)))].sum()
        return found

    def spread(self, weights: Floats) -> Floats:
        """Return for each cell the sum of the weights of the boxes that hold it."""
        corners = tuple(size + 1 for size in self.shape)
        if prod(corners) > LARGEST_GROWTH * prod(self.shape):
            return self._added_one_by_one(weights)
        regular = np.flatnonzero(~self._is_gapped)
        table = np.zeros(corners)
        for ends in product((False, True), repeat=len(self.shape)):
            index = np.where(np.array(ends), self.high[regular] + 1, self.low[regular])
            np.add.at(table, tuple(index.T), weights[regular] * (-1.0) ** sum(ends))
        for axis in range(table.ndim):
            np.cumsum(table, axis=axis, out=table)
        cells = np.ascontiguousarray(table[tuple(slice(size) for size in self.shape)])
        for row, box in self.gapped.items():
            cells[np.ix_(*(box.indices(axis) for axis in range(cells.ndim)))] += weights[row]
        return cells

    def _added_one_by_one(self, weights: Floats) -> Floats:
        cells = np.zeros(self.shape)
        for row, weight in enumerate(weights.tolist()):
            if row in self.gapped:
                cells[np.ix_(*(self.gapped[row].indices(axis) for axis in range(cells.ndim)))] += weight
            else:
                ends = zip(self.low[row].tolist(), self.high[row].tolist(), strict=True)
                cells[tuple(slice(first, last + 1) for first, last in ends)] += weight
        return cells

    def take(self, chosen: Integers) -> "Boxes":
        """Return some of the boxes."""
        gapped = {new: self.gapped[old] for new, old in enumerate(chosen.tolist()) if old in self.gapped}
        return Boxes(self.shape, self.low[chosen], self.high[chosen], gapped)


@dataclass(frozen=True, eq=False)
class BoxSums:
    """Weighted sums of boxes: ``shares`` (sums, boxes) tells by how much each box enters; None: each box is a sum."""

    boxes: Boxes
    shares: csr_array | None = None

    @classmethod
    def of_regions(cls, shape: tuple[int, ...], regions: Sequence[Region]) -> "BoxSums":
        """Return the count of each region as a sum."""
        boxes = Boxes.of(shape, [box for region in regions for box in region.boxes])
        many = [len(region.boxes) for region in regions]
        if all(number == 1 for number in many):
            return cls(boxes)
        owner = np.repeat(np.arange(len(regions)), many)
        entries = (np.ones(len(boxes)), (owner, np.arange(len(boxes))))
        return cls(boxes, csr_array(entries, shape=(len(regions), len(boxes))))

    def __len__(self) -> int:
        return len(self.boxes) if self.shares is None else int(self.shares.shape[0])

    @cached_property
    def matrix(self) -> csr_array:
        """The shares, written out."""
        return csr_array(eye_array(len(self.boxes))) if self.shares is None else self.shares

    def values(self, block_sums: BlockSums[np.float64], cells: Floats) -> Floats:
        """Return what each sum is for given cells."""
        return np.asarray(self.matrix @ self.boxes.sums(block_sums, cells))

    def spread(self, weights: Floats) -> Floats:
        """Return for each cell its weight in the combination of all sums by ``weights``."""
        return self.boxes.spread(np.asarray(self.matrix.T @ weights))

    def take(self, chosen: Integers) -> "BoxSums":
        """Return some of the sums, with only the boxes that they need."""
        if self.shares is None:
            return BoxSums(self.boxes.take(chosen))
        shares = self.shares[chosen]
        used = np.unique(shares.indices).astype(np.int64)
        return BoxSums(self.boxes.take(used), csr_array(shares[:, used]))


def stack_sums(shape: tuple[int, ...], parts: Sequence[BoxSums]) -> BoxSums:
    """Return the sums of several parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part.boxes) for part in parts)]).tolist()
    low = np.concatenate([part.boxes.low for part in parts])
    high = np.concatenate([part.boxes.high for part in parts])
    gapped = {
        start + row: box for start, part in zip(starts, parts, strict=False) for row, box in part.boxes.gapped.items()
    }
    boxes = Boxes(shape, low, high, gapped)
    if all(part.shares is None for part in parts):
        return BoxSums(boxes)
    placed = [_placed(part.matrix, start, len(boxes)) for start, part in zip(starts, parts, strict=False)]
    return BoxSums(boxes, csr_array(vstack(placed)))


def _placed(shares: csr_array, start: int, width: int) -> csr_array:
    return csr_array((shares.data, shares.indices + start, shares.indptr), shape=(shares.shape[0], width))
