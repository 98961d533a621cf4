"""Regions: which cells of the cube a query counts, as disjoint boxes, without ever listing the cells.

A box is a product of one set of cells per attribute. Boxes are closed under intersection; a union is kept disjoint by
cutting the later box around the earlier one, so counts and variances of a region are plain sums over its boxes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError

Axis: TypeAlias = NDArray[np.bool_] | None  # None: every cell of the axis
MAX_BOXES = 4096


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

    def minus(self, other: "Box") -> list["Box"]:
        """Return disjoint boxes that hold the cells of this box outside ``other``."""
        pieces: list[Box] = []
        rest = self
        for axis in range(len(self.shape)):
            theirs = other.axes[axis]
            if theirs is None:
                continue
            outside = rest.with_axis(axis, rest.mask(axis) & ~theirs)
            if outside.cells:
                pieces.append(outside)
            rest = rest.with_axis(axis, rest.mask(axis) & theirs)
            if not rest.cells:
                break
        return pieces


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

    def intersect(self, other: "Region") -> "Region":
        """Return the cells in both."""
        if len(self.boxes) * len(other.boxes) > MAX_BOXES * 16:
            raise _too_complex()
        met = (ours.intersect(theirs) for ours in self.boxes for theirs in other.boxes)
        return Region(self.shape, tuple(box for box in met if box.cells))._limited()

    def union(self, other: "Region") -> "Region":
        """Return the cells in either."""
        boxes = list(self.boxes)
        for extra in other.boxes:
            pieces = [extra]
            for box in self.boxes:
                pieces = [part for piece in pieces for part in piece.minus(box)]
                if len(pieces) > MAX_BOXES:
                    raise _too_complex()
            for piece in pieces:
                _absorb(boxes, piece)
        return Region(self.shape, tuple(boxes))._limited()

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

    def _limited(self) -> "Region":
        if len(self.boxes) > MAX_BOXES:
            raise _too_complex()
        return self


def _absorb(boxes: list[Box], piece: Box) -> None:
    """Add a disjoint piece, merging it with a box that differs on one axis only (``a = 1 OR a = 2`` stays one box)."""
    for position, box in enumerate(boxes):
        differing = [k for k in range(len(box.shape)) if not np.array_equal(box.mask(k), piece.mask(k))]
        if len(differing) == 1:
            axis = differing[0]
            boxes[position] = box.with_axis(axis, box.mask(axis) | piece.mask(axis))
            return
    boxes.append(piece)


def _too_complex() -> QueryError:
    return QueryError(
        f"the condition falls into more than {MAX_BOXES} separate blocks of cells; "
        "split it into several simpler queries"
    )
