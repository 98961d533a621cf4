"""One spelling for each set of cells: a region as plain data that does not depend on how it was written.

On the first axis, cells with the same rest (the cells of the further axes that go with them) are put together; each
group's rest is spelled in the same way. Groups are ordered by their first cell. The result is a function of the set
alone, since both the rests and the grouping by equal rests are.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.schema import BYTES_PER_CELL, Box, Region, Schema
from veilcube.system import require_cells

# Each box is the runs of cells chosen on each axis that it narrows, by axis.
Runs = tuple[tuple[int, int], ...]
PlainBox = tuple[tuple[int, Runs], ...]

_NOT_WELL_FORMED = "the stored question is not well formed; its ledger was changed by another program"


def canonical_region(region: Region) -> Region:
    """Return the same cells as disjoint boxes that depend on nothing but the cells."""
    if len(region.boxes) == 1:
        whole = Region.everything(region.shape).boxes[0]
        for axis, chosen in enumerate(region.boxes[0].chosen):
            whole = whole if chosen is None else whole.with_axis(axis, chosen)
        return Region(region.shape, (whole,))
    masks = [[box.mask(axis) for axis in range(len(region.shape))] for box in region.boxes]
    spelled = _Speller(masks).spell(0, tuple(range(len(masks))))
    return Region(region.shape, tuple(_box(region.shape, plain) for plain in spelled))


def region_to_data(schema: Schema, region: Region) -> list[dict[str, list[list[int]]]]:
    """Return a canonical region as plain data: for each box, the runs of cells of the attributes that it narrows."""
    return [
        {
            schema.names[axis]: [list(run) for run in _runs_on(box, axis)]
            for axis, chosen in enumerate(box.chosen)
            if chosen is not None
        }
        for box in region.boxes
    ]


def region_from_data(schema: Schema, data: object) -> Region:
    """Rebuild a region from ``region_to_data``; the data may come from anybody.

    A cell that lies in two boxes would be counted twice, for the price of one: it is taken once.
    """
    if not isinstance(data, list):
        raise QueryError(_NOT_WELL_FORMED)
    return Region(schema.shape, tuple(_read_box(schema, entry) for entry in data)).disjoint()


class _Speller:
    """Spells disjoint boxes, given by their masks; the rest of a choice of boxes is spelled once."""

    def __init__(self, boxes: Sequence[Sequence[NDArray[np.bool_]]]) -> None:
        self._boxes = boxes
        self._known: dict[tuple[int, tuple[int, ...]], tuple[PlainBox, ...]] = {}

    def spell(self, axis: int, chosen: tuple[int, ...]) -> tuple[PlainBox, ...]:
        """Return what the chosen boxes hold, from one axis on."""
        if not chosen:
            return ()
        if axis == len(self._boxes[chosen[0]]):
            return ((),)
        if (axis, chosen) not in self._known:
            self._known[axis, chosen] = self._spell(axis, chosen)
        return self._known[axis, chosen]

    def _spell(self, axis: int, chosen: tuple[int, ...]) -> tuple[PlainBox, ...]:
        member = np.stack([self._boxes[box][axis] for box in chosen])
        signatures, which = np.unique(member, axis=1, return_inverse=True)
        by_rest: dict[tuple[PlainBox, ...], NDArray[np.bool_]] = {}
        for number, signature in enumerate(signatures.T):
            rest = self.spell(axis + 1, tuple(box for box, holds in zip(chosen, signature, strict=True) if holds))
            cells = which.ravel() == number
            by_rest[rest] = by_rest[rest] | cells if rest in by_rest else cells
        found: list[PlainBox] = []
        for rest, cells in sorted(by_rest.items(), key=lambda entry: int(np.argmax(entry[1]))):
            here: PlainBox = () if cells.all() else ((axis, _runs_of(cells)),)
            found += [here + inner for inner in rest]
        return tuple(found)


def _runs_on(box: Box, axis: int) -> Runs:
    run = box.run(axis)
    return _runs_of(box.mask(axis)) if run is None else ((run.start, run.stop - 1),) if run else ()


def _runs_of(mask: NDArray[np.bool_]) -> Runs:
    """Return the inclusive first and last cell of each run of chosen cells."""
    padded = np.concatenate([[False], mask, [False]]).astype(np.int8)
    steps = np.diff(padded)
    firsts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return tuple((int(first), int(end) - 1) for first, end in zip(firsts, ends, strict=True))


def _box(shape: Sequence[int], plain: PlainBox) -> Box:
    axes: list[NDArray[np.bool_] | range | None] = [None] * len(shape)
    for axis, runs in plain:
        if len(runs) == 1:
            axes[axis] = range(runs[0][0], runs[0][1] + 1)
            continue
        require_cells(shape[axis], BYTES_PER_CELL, "a question")
        mask = np.zeros(shape[axis], dtype=np.bool_)
        for first, last in runs:
            mask[first : last + 1] = True
        axes[axis] = mask
    return Box(tuple(shape), tuple(axes))


def _read_box(schema: Schema, entry: object) -> Box:
    if not isinstance(entry, Mapping):
        raise QueryError(_NOT_WELL_FORMED)
    plain = []
    for name, runs in entry.items():
        axis = schema.axis(name)
        if not isinstance(runs, list) or not all(_is_run(run, schema.shape[axis]) for run in runs):
            raise QueryError(_NOT_WELL_FORMED)
        plain.append((axis, tuple((run[0], run[1]) for run in runs)))
    return _box(schema.shape, tuple(plain))


def _is_run(run: object, size: int) -> bool:
    is_pair = isinstance(run, list) and len(run) == 2 and all(type(cell) is int for cell in run)
    return is_pair and 0 <= run[0] <= run[1] < size  # type: ignore[index]
