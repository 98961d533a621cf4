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
Chosen: TypeAlias = Axis | range  # a run of cells needs no mask


@dataclass(frozen=True, eq=False)
class Box:
    """A product of one set of cells per axis: a mask, a run of cells, or None for all."""

    shape: tuple[int, ...]
    chosen: tuple[Chosen, ...]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The set of cells of each axis as a mask, None for all."""
        return tuple(_as_mask(one, size) for one, size in zip(self.chosen, self.shape, strict=True))

    @cached_property
    def _runs(self) -> tuple[range | None, ...]:
        pairs = zip(self.chosen, self.shape, strict=True)
        return tuple(range(size) if one is None else run_of(one) for one, size in pairs)

    def run(self, axis: int) -> range | None:
        """Return the cells of one axis if they are a run without gaps, else None."""
        return self._runs[axis]

    def holds(self, axis: int, cell: int) -> bool:
        """Whether a cell of one axis is chosen."""
        run = self.run(axis)
        return bool(self.mask(axis)[cell]) if run is None else cell in run

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells are chosen on each axis."""
        pairs = zip(self._runs, self.chosen, strict=True)
        return tuple(int(np.count_nonzero(one)) if run is None else len(run) for run, one in pairs)  # type: ignore[arg-type]

    @property
    def cells(self) -> int:
        """How many cells the box holds."""
        return prod(self.sizes)

    def mask(self, axis: int) -> NDArray[np.bool_]:
        """Return the chosen cells of one axis as a mask."""
        require_cells(self.shape[axis], BYTES_PER_CELL, "a question")
        mask = _as_mask(self.chosen[axis], self.shape[axis])
        return np.ones(self.shape[axis], dtype=np.bool_) if mask is None else mask

    def indices(self, axis: int) -> NDArray[np.int64]:
        """Return the chosen cells of one axis as indices."""
        run = self.run(axis)
        if run is not None:
            require_cells(len(run), BYTES_PER_CELL, "a question")
            return np.arange(run.start, run.stop, dtype=np.int64)
        return np.flatnonzero(self.mask(axis)).astype(np.int64)

    def with_axis(self, axis: int, chosen: NDArray[np.bool_] | range) -> "Box":
        """Return the box with another choice on one axis."""
        run = run_of(chosen)
        some = chosen if run is None else None if len(run) == self.shape[axis] else run
        return Box(self.shape, (*self.chosen[:axis], some, *self.chosen[axis + 1 :]))

    def intersect(self, other: "Box") -> "Box":
        """Return the cells in both."""
        return Box(self.shape, tuple(map(_common, self.chosen, other.chosen, self.shape)))


def run_of(chosen: NDArray[np.bool_] | range) -> range | None:
    """Return a choice of cells as a run if it has no gaps, else None."""
    if isinstance(chosen, range):
        return chosen
    first, many = int(chosen.argmax()) if chosen.size else 0, int(np.count_nonzero(chosen))
    return range(first, first + many) if chosen[first : first + many].all() else None


def _as_mask(chosen: Chosen, size: int) -> Axis:
    if not isinstance(chosen, range):
        return chosen
    require_cells(size, BYTES_PER_CELL, "a question")
    mask = np.zeros(size, dtype=np.bool_)
    mask[chosen.start : chosen.stop] = True
    return mask


def _common(ours: Chosen, theirs: Chosen, size: int) -> Chosen:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    if isinstance(ours, range) and isinstance(theirs, range):
        first = max(ours.start, theirs.start)
        return range(first, max(first, min(ours.stop, theirs.stop)))
    both: NDArray[np.bool_] = _as_mask(ours, size) & _as_mask(theirs, size)  # type: ignore[operator]
    return both


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
    def on_axis(cls, shape: Sequence[int], axis: int, chosen: NDArray[np.bool_] | range) -> "Region":
        """Return the region that some cells of one attribute select: a mask or a run of them."""
        if not (len(chosen) if isinstance(chosen, range) else chosen.any()):
            return cls.nothing(shape)
        return cls(tuple(shape), (cls.everything(shape).boxes[0].with_axis(axis, chosen),))

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

    def disjoint(self) -> "Region":
        """Return the same cells in boxes that share none: for boxes that somebody else made, which may overlap."""
        if len(self.boxes) < 2:
            return self
        united = self.union()
        return self if united.cells == self.cells else united

    def rectangle(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return inclusive lowest and highest cell indices if the region is one block of cells, else None."""
        if len(self.boxes) != 1:
            return None
        runs = [self.boxes[0].run(axis) for axis in range(len(self.shape))]
        ends = [(run.start, run.stop - 1) for run in runs if run is not None and len(run)]
        if len(ends) < len(runs):
            return None
        low, high = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        return np.ascontiguousarray(low), np.ascontiguousarray(high)

    def _bits(self) -> list[BitBox]:
        return [
            tuple(_pack(axis, size) for axis, size in zip(box.chosen, self.shape, strict=True)) for box in self.boxes
        ]

    def _of_bits(self, boxes: Sequence[BitBox]) -> "Region":
        # Boxes that were cut from one another share most of their axes: each is unpacked once.
        unpacked: dict[tuple[int, int], Chosen] = {}
        for box in boxes:
            for size, bits in zip(self.shape, box, strict=True):
                if (size, bits) not in unpacked:
                    unpacked[size, bits] = _unpack(bits, size)
        axes = (tuple(unpacked[pair] for pair in zip(self.shape, box, strict=True)) for box in boxes)
        return Region(self.shape, tuple(Box(self.shape, chosen) for chosen in axes))


def _pack(chosen: Chosen, size: int) -> int:
    """Return a choice of cells as a whole number whose bit ``i`` is cell ``i``."""
    if chosen is None:
        chosen = range(size)
    if isinstance(chosen, range):
        require_cells(size, BYTES_PER_CELL, "a question")
        return ((1 << len(chosen)) - 1) << chosen.start
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")


def _unpack(bits: int, size: int) -> Chosen:
    if bits == (1 << size) - 1:
        return None
    packed = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=size, bitorder="little").view(np.bool_)
