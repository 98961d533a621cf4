"""What grouped tables tell, as a model reads it: tables of rows with the variance of their noise.

The model has an axis for each attribute. A long attribute has fewer places on it than values: its values are joined
where no table tells them apart, or only the attribute's own counts do; how rows lie within a place is told by those.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from veilcube.errors import QueryError
from veilcube.operators import Axes, GroupedTablesOperator
from veilcube.record import NoisyMeasurement, ReleaseRecord
from veilcube.schema import Box, Region, Schema
from veilcube.system import Floats, Integers

MOST_PLACES = 512
PLACES_OF_LONG = 256
MOST_BOXES = 1024
# A model needs some rows to share out; where there are none, the answer is 0 up to this.
LEAST_ROWS = 1e-3


@dataclass(frozen=True, eq=False)
class ModelAxis:
    """The place of each value on an axis of the model, and the share of its place's rows that a value has."""

    places: Integers
    within: Floats

    @classmethod
    def plain(cls, size: int) -> "ModelAxis":
        """Return the axis on which every value has a place of its own."""
        return cls(np.arange(size), np.ones(size))

    @property
    def size(self) -> int:
        """How many places there are."""
        return int(self.places.max()) + 1

    @property
    def is_plain(self) -> bool:
        """Whether every value has a place of its own."""
        return self.size == self.places.size

    def values_of(self, places: Integers, generator: np.random.Generator) -> Integers:
        """Draw a value for each of some places."""
        if self.is_plain:
            return places
        order = np.argsort(self.places, kind="stable")
        ends = np.cumsum(self.within[order])  # the shares of one place add up to 1
        found = np.searchsorted(ends, places + generator.random(places.size), side="right")
        return order[np.minimum(found, order.size - 1)]


@dataclass(frozen=True, eq=False)
class ObservedTable:
    """Noisy counts of rows of one table, the group of each place of its axes, and the variance of each count."""

    axes: Axes
    groups: tuple[Integers, ...]
    counts: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class Observations:
    """All that a release of grouped tables tells; ``cells`` is the table of every cell, if it was measured."""

    axes: tuple[ModelAxis, ...]
    tables: tuple[ObservedTable, ...]
    cells: ObservedTable | None
    shape: tuple[int, ...]
    family: str
    impossible: Region | None

    @property
    def rows(self) -> float:
        """The number of rows, by the sums of all tables and their precisions."""
        known = [*self.tables, *([self.cells] if self.cells is not None else [])]
        weights = [1.0 / (table.variance * table.counts.size) for table in known]
        return max(float(np.average([table.counts.sum() for table in known], weights=weights)), LEAST_ROWS)

    @property
    def of_values(self) -> list[ObservedTable]:
        """The tables of single values, not of groups, that of every cell among them."""
        plain = [table for table in self.tables if table.counts.shape == tuple(self.shape[axis] for axis in table.axes)]
        return plain if self.cells is None else [*plain, self.cells]

    def with_counts(self, counts: Sequence[Floats], of_cells: Floats | None) -> "Observations":
        """Return the same tables with other counts."""
        tables = tuple(replace(table, counts=found) for table, found in zip(self.tables, counts, strict=True))
        cells = None if self.cells is None or of_cells is None else replace(self.cells, counts=of_cells)
        return replace(self, tables=tables, cells=cells)


def read_observations(record: ReleaseRecord) -> Observations:
    """Return what a release of grouped tables tells."""
    measured = [(part, part.grouped) for part in record.measurements]
    found = [(part, operator) for part, operator in measured if operator is not None]
    shape = record.schema.shape
    axes = tuple(_axis_of(axis, size, found) for axis, size in enumerate(shape))
    tables = [table for part, operator in found for table in _tables_of(part, operator, axes)]
    own = {axis for axis, size in enumerate(shape) if size > 1}
    is_cells = [
        len(table.axes) > 1 and set(table.axes) == own and table.counts.size == record.schema.cells for table in tables
    ]
    if all(is_cells):  # a file may hold nothing else: a model has to be fitted to something
        is_cells = [False] * len(tables)
    if not tables:
        raise QueryError("no model can be fitted to the tables of the release; remake it")
    cells = [table for table, whole in zip(tables, is_cells, strict=True) if whole]
    others = tuple(table for table, whole in zip(tables, is_cells, strict=True) if not whole)
    family, impossible = record.measurements[0].noise.family, impossible_region(record.schema)
    return Observations(axes, others, cells[0] if cells else None, shape, family, impossible)


def _axis_of(axis: int, size: int, found: Sequence[tuple[NoisyMeasurement, GroupedTablesOperator]]) -> ModelAxis:
    """Return the axis of an attribute: values that share all groups of all tables share a place, if there are many."""
    if size <= MOST_PLACES:
        return ModelAxis.plain(size)
    own = _own_counts(axis, size, found)
    ends = np.cumsum(own)
    labels = [np.minimum((ends - own / 2) / ends[-1] * PLACES_OF_LONG, PLACES_OF_LONG - 1).astype(np.int64)]
    for _, operator in found:
        for number, grouping in enumerate(operator.groupings):
            if grouping.axis == axis and grouping.groups <= PLACES_OF_LONG:
                labels.append(operator.group_of_values(number))
    places = np.unique(np.stack(labels), axis=1, return_inverse=True)[1].ravel()
    return ModelAxis(places, own / np.bincount(places, weights=own)[places])


def _own_counts(axis: int, size: int, found: Sequence[tuple[NoisyMeasurement, GroupedTablesOperator]]) -> Floats:
    """Return the noisy counts of an attribute's values, none below a small part of a row."""
    for part, operator in found:
        for table, times, counts in zip(
            operator.tables, operator.multipliers, operator.parts(part.values), strict=True
        ):
            if operator.axes(table) == (axis,) and counts.size == size:
                return np.maximum(counts / times, 1e-3)
    return np.ones(size)


def _tables_of(
    part: NoisyMeasurement, operator: GroupedTablesOperator, axes: Sequence[ModelAxis]
) -> list[ObservedTable]:
    """Return the tables of a measurement, those that tell values of one place apart as sums of them."""
    found = []
    for table, times, counts in zip(operator.tables, operator.multipliers, operator.parts(part.values), strict=True):
        rows, variance = counts.astype(np.float64) / times, part.noise.variance / times**2
        groups = [_groups_of_places(axes[operator.groupings[one].axis], operator.group_of_values(one)) for one in table]
        kept = tuple(labels for labels in groups if labels is not None)
        if len(kept) == len(table):
            found.append(ObservedTable(operator.axes(table), kept, rows, variance))
        elif len(table) == 1 and rows.size == axes[operator.axes(table)[0]].places.size:
            axis = axes[operator.axes(table)[0]]
            joined = np.bincount(axis.places, weights=rows, minlength=axis.size).astype(np.float64)
            found.append(
                ObservedTable(operator.axes(table), (np.arange(axis.size),), joined, variance * rows.size / axis.size)
            )
    return found


def _groups_of_places(axis: ModelAxis, labels: Integers) -> Integers | None:
    """Return the group of each place; None if values of one place are in different groups."""
    of_places = np.zeros(axis.size, dtype=np.int64)
    of_places[axis.places] = labels
    return of_places if (of_places[axis.places] == labels).all() else None


def impossible_region(schema: Schema) -> Region | None:
    """Return the cells that a schema calls impossible; None if there is none, or if they fall into too many boxes."""
    if not schema.impossible:
        return None
    boxes = (
        Region(schema.shape, (Box(schema.shape, tuple(None if mask.all() else mask for mask in masks)),))
        for masks in schema.impossible_boxes
    )
    try:
        found = reduce(Region.union, boxes)
    except QueryError:  # more disjoint boxes than a question may have
        return None
    return found if len(found.boxes) <= MOST_BOXES else None
