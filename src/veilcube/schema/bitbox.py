"""Boxes as whole numbers: one bit per cell of each axis, so that cutting boxes around one another costs little.

Keeping a union disjoint compares every box with every other, mostly to find that they do not meet. On Python integers
each comparison is one AND per axis, whatever the axis's length up to thousands of cells.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeAlias

from veilcube.errors import QueryError

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
