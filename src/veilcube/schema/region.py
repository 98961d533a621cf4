"""Regions: which cells of the cube a query counts, as disjoint boxes, without ever listing the cells.

A box is a product of one set of cells per attribute. Boxes are closed under intersection; a union is kept disjoint by
cutting one box around another, so counts and variances of a region are plain sums over its boxes. Cutting compares
every box with every other, mostly to find that they do not meet, so there boxes are whole numbers with a bit for each
cell of an axis: a comparison is one AND per axis.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.system import require_cells

MAX_BOXES = 4096

BitBox: TypeAlias = tuple[int, ...]


def intersect_all(groups: Sequence[Sequence[BitBox]]) -> list[BitBox]:
    """Return disjoint boxes that hold the cells found in every group; the boxes of one group are disjoint."""
    first, *others = sorted(groups, key=len)
    met = list(first)
    for group in others:
        if len(met) * len(group) > MAX_BOXES * 16:
            raise too_complex()
        pairs = (tuple(map(int.__and__, ours, theirs)) for ours in met for theirs in group)
        met = _limited([box for box in pairs if all(box)])
    return met


def unite_all(boxes: Iterable[BitBox]) -> list[BitBox]:
    """Return disjoint boxes that hold the cells of any box, later boxes cut around earlier ones."""
    # Large boxes first: small ones then vanish inside them instead of cutting them up.
    waiting = sorted(_merged(list(boxes)), key=_cells, reverse=True)
    disjoint: list[BitBox] = []
    for box in waiting:
        pieces = [box]
        for other in _meeting(box, disjoint):
            pieces = [part for piece in pieces for part in _minus(piece, other)]
            if len(pieces) > MAX_BOXES:
                raise too_complex()
        disjoint += pieces
        if len(disjoint) > MAX_BOXES:
            disjoint = _limited(disjoint)
    return _merged(disjoint)


def too_complex() -> QueryError:
    """Return the refusal of a region in too many pieces."""
    return QueryError(
        f"the condition falls into more than {MAX_BOXES} separate blocks of cells; "
        "split it into several simpler queries"
    )


def _cells(box: BitBox) -> int:
    return prod(axis.bit_count() for axis in box)


def _meet(one: BitBox, other: BitBox) -> bool:
    return all(ours & theirs for ours, theirs in zip(one, other, strict=True))


def _meeting(box: BitBox, others: Sequence[BitBox]) -> list[BitBox]:
    """Return the boxes that share a cell with ``box``, most others being told apart on its narrowest axis."""
    axis = min(range(len(box)), key=lambda axis: box[axis].bit_count())
    narrow = box[axis]
    return [other for other in others if narrow & other[axis] and _meet(box, other)]


def _minus(box: BitBox, other: BitBox) -> list[BitBox]:
    """Cut ``box`` around ``other``: one piece per axis, each inside ``other`` on the axes before it."""
    if not _meet(box, other):
        return [box]
    pieces: list[BitBox] = []
    inside: BitBox = ()
    for axis, (ours, theirs) in enumerate(zip(box, other, strict=True)):
        if outside := ours & ~theirs:
            pieces.append((*inside, outside, *box[axis + 1 :]))
        inside = (*inside, ours & theirs)
    return pieces


def _merged(boxes: list[BitBox]) -> list[BitBox]:
    """Join boxes that differ on one axis only, until none do: ``a = 1 OR a = 2`` is one box."""
    count = len(boxes) + 1
    while 1 < len(boxes) < count:
        count = len(boxes)
        for axis in range(len(boxes[0])):
            joined: dict[BitBox, int] = {}
            for box in boxes:
                rest = box[:axis] + box[axis + 1 :]
                joined[rest] = joined.get(rest, 0) | box[axis]
            boxes = [(*rest[:axis], chosen, *rest[axis:]) for rest, chosen in joined.items()]
    return boxes


def _limited(boxes: list[BitBox]) -> list[BitBox]:
    if len(boxes) > MAX_BOXES:
        boxes = _merged(boxes)
    if len(boxes) > MAX_BOXES:
        raise too_complex()
    return boxes


# A mask, the numbers of its cells, and a copy of each while it is looked at.
BYTES_PER_CELL = 24
Axis: TypeAlias = NDArray[np.bool_] | None  # None: every cell of the axis


@dataclass(frozen=True, eq=False)
class Box:
    """A product of one set of cells per axis."""

    shape: tuple[int, ...]
    axes: tuple[Axis, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells are chosen on each axis."""
        return tuple(
            size if axis is None else int(np.count_nonzero(axis))
            for size, axis in zip(self.shape, self.axes, strict=True)
        )

    @property
    def cells(self) -> int:
        """How many cells the box holds."""
        return prod(self.sizes)

    def mask(self, axis: int) -> NDArray[np.bool_]:
        """Return the chosen cells of one axis as a mask."""
        chosen = self.axes[axis]
        require_cells(self.shape[axis], BYTES_PER_CELL, "a question")
        return np.ones(self.shape[axis], dtype=np.bool_) if chosen is None else chosen

    def indices(self, axis: int) -> NDArray[np.int64]:
        """Return the chosen cells of one axis as indices."""
        return np.flatnonzero(self.mask(axis)).astype(np.int64)

    def with_axis(self, axis: int, mask: NDArray[np.bool_]) -> "Box":
        """Return the box with another choice on one axis."""
        return Box(self.shape, (*self.axes[:axis], None if mask.all() else mask, *self.axes[axis + 1 :]))

    def intersect(self, other: "Box") -> "Box":
        """Return the cells in both."""
        axes = tuple(
            theirs if ours is None else ours if theirs is None else ours & theirs
            for ours, theirs in zip(self.axes, other.axes, strict=True)
        )
        return Box(self.shape, axes)


@dataclass(frozen=True, eq=False)
class Region:
    """A set of cells as disjoint boxes."""

    shape: tuple[int, ...]
    boxes: tuple[Box, ...]

    @classmethod
    def everything(cls, shape: Sequence[int]) -> "Region":
        """Return the region of all cells."""
        return cls(tuple(shape), (Box(tuple(shape), (None,) * len(shape)),))

    @classmethod
    def nothing(cls, shape: Sequence[int]) -> "Region":
        """Return the region without cells."""
        return cls(tuple(shape), ())

    @classmethod
    def on_axis(cls, shape: Sequence[int], axis: int, mask: NDArray[np.bool_]) -> "Region":
        """Return the region that one attribute's mask selects."""
        if not mask.any():
            return cls.nothing(shape)
        return cls(tuple(shape), (cls.everything(shape).boxes[0].with_axis(axis, mask),))

    @cached_property
    def cells(self) -> int:
        """How many cells the region holds."""
        return sum(box.cells for box in self.boxes)

    def reached(self, axis: int) -> NDArray[np.bool_]:
        """Return the cells of one axis that any cell of the region lies in, as a mask."""
        require_cells(self.shape[axis], BYTES_PER_CELL, "a question")
        chosen = np.zeros(self.shape[axis], dtype=np.bool_)
        for box in self.boxes:
            chosen |= box.mask(axis)
        return chosen

    def mask(self) -> NDArray[np.bool_]:
        """Return an array of the cube's shape that says which cells the region holds."""
        chosen = np.zeros(self.shape, dtype=bool)
        for box in self.boxes:
            chosen[np.ix_(*(box.indices(axis) for axis in range(chosen.ndim)))] = True
        return chosen

    def intersect(self, *others: "Region") -> "Region":
        """Return the cells in all of them."""
        regions = (self, *others)
        if all(len(region.boxes) == 1 for region in regions):
            box = reduce(Box.intersect, (region.boxes[0] for region in regions))
            return Region(self.shape, (box,) if box.cells else ())
        return self._of_bits(intersect_all([region._bits() for region in regions]))

    def union(self, *others: "Region") -> "Region":
        """Return the cells in any of them."""
        return self._of_bits(unite_all(box for region in (self, *others) for box in region._bits()))

    def rectangle(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return inclusive lowest and highest cell indices if the region is one block of cells, else None."""
        if len(self.boxes) != 1:
            return None
        low, high = [], []
        for axis in range(len(self.shape)):
            chosen = self.boxes[0].indices(axis)
            if chosen[-1] - chosen[0] + 1 != chosen.size:
                return None
            low.append(chosen[0])
            high.append(chosen[-1])
        return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)

    def _bits(self) -> list[BitBox]:
        return [tuple(_pack(axis, size) for axis, size in zip(box.axes, self.shape, strict=True)) for box in self.boxes]

    def _of_bits(self, boxes: Sequence[BitBox]) -> "Region":
        # Boxes that were cut from one another share most of their axes: each is unpacked once.
        unpacked: dict[tuple[int, int], Axis] = {}
        for box in boxes:
            for size, bits in zip(self.shape, box, strict=True):
                if (size, bits) not in unpacked:
                    unpacked[size, bits] = _unpack(bits, size)
        axes = (tuple(unpacked[pair] for pair in zip(self.shape, box, strict=True)) for box in boxes)
        return Region(self.shape, tuple(Box(self.shape, chosen) for chosen in axes))


def _pack(axis: Axis, size: int) -> int:
    """Return a mask as a whole number whose bit ``i`` is cell ``i``."""
    if axis is None:
        return (1 << size) - 1
    return int.from_bytes(np.packbits(axis, bitorder="little").tobytes(), "little")


def _unpack(bits: int, size: int) -> Axis:
    if bits == (1 << size) - 1:
        return None
    packed = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=size, bitorder="little").view(np.bool_)
