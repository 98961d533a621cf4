"""Guaranteed intervals of grouped tables: from the cells of one table that a question fills or cuts.

The tables of the second step, and their groups, follow from the first step's noise alone, and their own noise is drawn
afterwards. So whichever of them answers, if it is chosen by the question and not by its counts, its cells are exact
counts plus fresh noise. A question about attributes of the table fills some of its cells and cuts others: it counts at
least the filled ones and at most both. One about more attributes than any table has counts at most that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimates
from veilcube.laws import Noise, half_widths
from veilcube.record import ReleaseRecord
from veilcube.schema import Box, Region
from veilcube.system import Floats, Integers

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Table:
    axes: tuple[int, ...]
    groups: tuple[Integers, ...]
    values: Integers
    multiplier: int
    noise: Noise


@dataclass(frozen=True, eq=False)
class GroupedBounds:
    """The tables of a release, of which one bounds each question."""

    shape: tuple[int, ...]
    tables: tuple[_Table, ...]

    @classmethod
    def of(cls, record: ReleaseRecord) -> "GroupedBounds":
        """Collect the tables of all steps."""
        found = []
        for part in record.measurements:
            operator = part.grouped
            if operator is not None:
                counted = zip(operator.tables, operator.multipliers, operator.parts(part.values), strict=True)
                for table, times, values in counted:
                    groups = tuple(operator.group_of_values(number) for number in table)
                    found.append(_Table(operator.axes(table), groups, values, times, part.noise))
        return cls(record.schema.shape, tuple(found))

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Bound the count of each block."""
        bounds = [self._bound([_between(begin, end)], confidence) for begin, end in zip(low, high, strict=True)]
        return _estimates(np.array(bounds).reshape(-1, 2))

    def region(self, region: Region, confidence: float) -> Estimates:
        """Bound the count of a region."""
        boxes = [_masks_of(box) for box in region.boxes]
        found = _estimates(np.array([self._bound(boxes, confidence)]))
        parts = [part.reshape(()) for part in (found.value, found.low, found.high, found.stddev)]
        return Estimates(parts[0], parts[1], parts[2], parts[3])

    def _bound(self, boxes: "Sequence[Sequence[_Chosen]]", confidence: float) -> tuple[float, float]:
        masks = [[chosen.mask(size) for chosen, size in zip(box, self.shape, strict=True)] for box in boxes]
        masks = [box for box in masks if all(mask.any() for mask in box)]
        if not masks:
            return 0.0, 0.0
        narrowed = {axis for box in masks for axis, mask in enumerate(box) if not mask.all()}
        table = max(self.tables, key=lambda one: _fitness(one, narrowed))
        whole, touched = _met(table, masks)
        if not narrowed <= set(table.axes):
            whole = np.zeros_like(whole)
        low = self._end(table, whole, confidence, -1) if whole.any() else 0.0
        return low, self._end(table, touched, confidence, 1)

    def _end(self, table: _Table, chosen: Flags, confidence: float, sign: int) -> float:
        reach = half_widths(table.noise, np.array([np.count_nonzero(chosen)]), confidence)[0]
        return (float(table.values[chosen].sum()) + sign * float(reach)) / table.multiplier


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The values that a question takes of one attribute: a mask, or inclusive ends."""

    given: Flags | None
    low: int = 0
    high: int | None = None

    def mask(self, size: int) -> Flags:
        if self.given is not None:
            return self.given
        places = np.arange(size)
        return (places >= self.low) & (places <= (size - 1 if self.high is None else self.high))


def _between(low: Integers, high: Integers) -> list[_Chosen]:
    return [_Chosen(None, int(begin), int(end)) for begin, end in zip(low, high, strict=True)]


def _masks_of(box: Box) -> list[_Chosen]:
    return [_Chosen(mask) for mask in box.axes]


def _fitness(table: _Table, narrowed: set[int]) -> tuple[int, int, float]:
    """Rank tables for a question: most of its attributes, fewest others, most cells; least noise for all rows.

    No count is looked at, nor anything that follows from the noise of a table that may be taken instead.
    """
    own, cells = set(table.axes), table.values.size
    noise = cells * table.noise.variance / table.multiplier**2
    return len(own & narrowed), -len(own - narrowed), float(cells) if narrowed else -noise


def _met(table: _Table, boxes: Iterable[Sequence[Flags]]) -> tuple[Flags, Flags]:
    """Return which cells of a table some box fills, and which any box touches."""
    whole, touched = np.zeros(table.values.shape, dtype=np.bool_), np.zeros(table.values.shape, dtype=np.bool_)
    for masks in boxes:
        filled, met = np.ones(()), np.ones(())
        for axis, groups in zip(table.axes, table.groups, strict=True):
            inside = np.bincount(groups, weights=masks[axis])
            met = np.multiply.outer(met, inside > 0)
            filled = np.multiply.outer(filled, inside == np.bincount(groups))
        whole |= filled.astype(np.bool_)
        touched |= met.astype(np.bool_)
    return whole, touched


def _estimates(bounds: Floats) -> Estimates:
    low, high = bounds[:, 0], np.maximum(bounds[:, 1], bounds[:, 0])
    return Estimates((low + high) / 2, low, high, (high - low) / 4)
