"""Tables over few attributes whose values are grouped, each table with a whole multiplier.

A grouping gives every value of one attribute a group: ages in bands, rare countries together. A table is a list of
groupings of different attributes, and counts the rows of every combination of their groups; A stacks, for each table,
its multiplier times its counts. A row lies in one cell of every table, so that it changes table S by m_S in one place:
Σ m_S in L1 and Σ m_S² in squared L2 (docs/proofs/grouped-tables.md, Lemma 1). Tables work on the cube or on rows alone,
so that a cube of sixty attributes is no obstacle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.operators.base import NeighbourName, OperatorDefaults, queries_of_one_term, read_size
from veilcube.query import Factor, LinearQueries
from veilcube.schema import Region, Schema
from veilcube.system import Floats, Integers

LARGEST_MULTIPLIER = 2**31
MOST_AXES, MOST_TABLES, LARGEST_MEASUREMENT = 64, 100_000, 2**40
ROWS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Grouping:
    """The values of one attribute in so many groups; as many groups as values is every value on its own."""

    axis: int
    groups: int


@dataclass(frozen=True, eq=False)
class GroupedTablesOperator(OperatorDefaults):
    """Some tables one after the other, each a list of ``groupings`` by their numbers.

    ``labels`` hold the group of every value, of one grouping after the other, without those that leave every value on
    its own; None where they are not known yet.
    """

    cell_shape: tuple[int, ...]
    groupings: tuple[Grouping, ...]
    tables: tuple[tuple[int, ...], ...]
    multipliers: tuple[int, ...]
    labels: Integers | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.tables or len(self.multipliers) != len(self.tables) or len(self.tables) > MOST_TABLES:
            raise ValueError("there must be tables, and a multiplier for each")
        if not all(type(times) is int and 1 <= times <= LARGEST_MULTIPLIER for times in self.multipliers):
            raise ValueError("multipliers are whole numbers above 0")
        for grouping in self.groupings:
            if not 0 <= grouping.axis < len(self.cell_shape):
                raise ValueError("a grouping is of an attribute of the cube")
            if not 1 <= grouping.groups <= self.cell_shape[grouping.axis]:
                raise ValueError("an attribute has at least one group and at most as many as values")
        for table in self.tables:
            if not all(0 <= number < len(self.groupings) for number in table):
                raise ValueError("a table is of groupings that are there")
            axes = self.axes(table)
            if not table or list(axes) != sorted(set(axes)):
                raise ValueError("the groupings of a table are of different attributes, in their order")
        if self.measurement_shape[0] > LARGEST_MEASUREMENT:
            raise ValueError("the tables are larger than any file")
        if self.labels is not None:
            self._check_labels(self.labels)

    def _check_labels(self, labels: Integers) -> None:
        if labels.shape != (self._label_ends[-1],):
            raise ValueError("there is one label for each value of each grouping")
        for grouping, (start, end) in zip(self.groupings, pairwise(self._label_ends), strict=True):
            found = labels[start:end]
            if found.size and (found.min() < 0 or found.max() != grouping.groups - 1):
                raise ValueError("labels number the groups")
        labels.setflags(write=False)

    @classmethod
    def of(
        cls,
        cell_shape: tuple[int, ...],
        labelled: Sequence[tuple[int, Integers]],
        tables: Sequence[tuple[int, ...]],
        multipliers: Sequence[int],
    ) -> "GroupedTablesOperator":
        """Return the tables of groupings that are given as an axis and the group of each of its values."""
        groupings = tuple(Grouping(axis, int(labels.max()) + 1) for axis, labels in labelled)
        is_kept = [grouping.groups < cell_shape[grouping.axis] for grouping in groupings]
        kept = [labels for (_, labels), grouped in zip(labelled, is_kept, strict=True) if grouped]
        joined = np.concatenate([np.zeros(0, dtype=np.int64), *kept]).astype(np.int64)
        return cls(cell_shape, groupings, tuple(tables), tuple(multipliers), joined)

    def axes(self, table: Sequence[int]) -> tuple[int, ...]:
        """Return the attributes of a table."""
        return tuple(self.groupings[number].axis for number in table)

    def sizes(self, table: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of a table."""
        return tuple(self.groupings[number].groups for number in table)

    def group_of_values(self, number: int) -> Integers:
        """Return the group of each value of a grouping's attribute."""
        if self.labels is None:
            raise ValueError("the groups of this measurement are not known yet")
        return self._labels_of(self.labels, number)

    def _labels_of(self, labels: Integers, number: int) -> Integers:
        start, end = self._label_ends[number], self._label_ends[number + 1]
        return labels[start:end] if end > start else np.arange(self.cell_shape[self.groupings[number].axis])

    @cached_property
    def _label_ends(self) -> list[int]:
        ends = [0]
        for grouping in self.groupings:
            size = self.cell_shape[grouping.axis]
            ends.append(ends[-1] + (size if grouping.groups < size else 0))
        return ends

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for table in self.tables:
            starts.append(starts[-1] + prod(self.sizes(table)))
        return starts

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """One axis: the cells of all tables."""
        return (self._starts[-1],)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The name of the one axis."""
        return ("grouped_cell",)

    @property
    def array_shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays that a file keeps beside the measured values: the labels, if any value shares its group."""
        return {"labels": (self._label_ends[-1],)} if self._label_ends[-1] else {}

    @property
    def array_dimensions(self) -> dict[str, tuple[str, ...]]:
        """The axes of those arrays: there is a label for each value of each grouping."""
        return {"labels": ("grouped_value",)} if self._label_ends[-1] else {}

    def arrays(self) -> dict[str, Integers]:
        """Return the labels, for the file."""
        if self.labels is None:
            raise ValueError("the groups of this measurement are not known yet")
        return {"labels": self.labels} if self._label_ends[-1] else {}

    def with_arrays(self, arrays: Mapping[str, Integers]) -> "GroupedTablesOperator":
        """Return the operator with the labels that a file kept."""
        return replace(self, labels=arrays["labels"] if self._label_ends[-1] else np.zeros(0, dtype=np.int64))

    def parts(self, measured: NDArray[np.generic]) -> list[NDArray[Any]]:
        """Return each table as a view of the measurements."""
        pieces = pairwise(self._starts)
        return [
            measured[start:end].reshape(self.sizes(table))
            for (start, end), table in zip(pieces, self.tables, strict=True)
        ]

    @property
    def words_to_apply(self) -> int:
        """How many 64-bit words ``apply`` holds at most: all tables, and the table before its values are grouped."""
        ungrouped = (prod(self.cell_shape[axis] for axis in self.axes(table)) for table in self.tables)
        return 2 * self.measurement_shape[0] + 2 * min(max(ungrouped), prod(self.cell_shape))

    def apply(self, cells: Integers) -> Integers:
        """Return multiplier times count of every cell of every table."""
        measured = np.empty(self.measurement_shape, dtype=np.int64)
        for table, times, part in zip(self.tables, self.multipliers, self.parts(measured), strict=True):
            axes = self.axes(table)
            others = tuple(axis for axis in range(cells.ndim) if axis not in axes)
            counts = cells.sum(axis=others) if others else cells
            for place, number in enumerate(table):
                counts = self._grouped(counts, place, number)
            np.multiply(counts, times, out=part)
        return measured

    def _grouped(self, counts: Integers, place: int, number: int) -> Integers:
        grouping = self.groupings[number]
        if grouping.groups == self.cell_shape[grouping.axis]:
            return counts
        ahead = np.moveaxis(counts, place, 0)
        found = np.zeros((grouping.groups, *ahead.shape[1:]), dtype=np.int64)
        np.add.at(found, self.group_of_values(number), ahead)
        return np.moveaxis(found, 0, place)

    def apply_to_rows(self, rows: Sequence[NDArray[np.integer[Any]]]) -> Integers:
        """Return the same from rows: the value of each row, one array for each attribute."""
        measured = np.empty(self.measurement_shape, dtype=np.int64)
        for table, times, part in zip(self.tables, self.multipliers, self.parts(measured), strict=True):
            part[...] = 0
            for start in range(0, len(rows[0]), ROWS_AT_ONCE):
                place = np.zeros(min(ROWS_AT_ONCE, len(rows[0]) - start), dtype=np.int64)
                for number in table:
                    place *= self.groupings[number].groups
                    cells = rows[self.groupings[number].axis][start : start + ROWS_AT_ONCE]
                    place += self.group_of_values(number)[cells]
                part[...] += times * np.bincount(place, minlength=part.size).reshape(part.shape)
        return measured

    def adjoint(self, measurements: Floats) -> Floats:
        """Return the transposed map applied to measurements."""
        found = np.zeros(self.cell_shape)
        for table, times, part in zip(self.tables, self.multipliers, self.parts(measurements), strict=True):
            spread = part[np.ix_(*(self.group_of_values(number) for number in table))]
            axes = self.axes(table)
            found += times * np.expand_dims(spread, [axis for axis in range(found.ndim) if axis not in axes])
        return found

    def solve(self, measurements: Integers) -> Floats:
        """Refuse: grouped tables do not determine the cells."""
        raise _no_least_squares()

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return the sum of the multipliers; for an exchanged row twice that of the tables with two cells or more."""
        if neighbours == "add-remove":
            return sum(self.multipliers)
        return 2 * sum(self._changing)

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the same for the squares of the multipliers."""
        if neighbours == "add-remove":
            return sum(times**2 for times in self.multipliers)
        return 2 * sum(times**2 for times in self._changing)

    @property
    def _changing(self) -> list[int]:
        """The multipliers of the tables that an exchanged row can change."""
        sizes = (prod(self.sizes(table)) for table in self.tables)
        return [times for times, size in zip(self.multipliers, sizes, strict=True) if size > 1]

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Refuse: grouped tables do not determine the cells."""
        raise _no_least_squares()

    def variance_of_region(self, region: Region) -> float:
        """Refuse: grouped tables do not determine the cells."""
        raise _no_least_squares()

    def queries(self, schema: Schema) -> tuple[LinearQueries, Floats]:
        """Return one query for each cell of each table; the multipliers are those of the tables."""
        terms: list[list[Integers]] = [[np.empty(0, dtype=np.int64)] for _ in schema]
        rows: list[list[Floats]] = [[np.empty((0, size))] for size in schema.shape]
        for table, start in zip(self.tables, self._starts, strict=False):
            sizes = self.sizes(table)
            for number, chosen in zip(table, np.indices(sizes).reshape(len(sizes), -1), strict=True):
                axis = self.groupings[number].axis
                terms[axis].append(start + np.arange(chosen.size))
                rows[axis].append((self.group_of_values(number) == chosen[:, np.newaxis]).astype(np.float64))
        factors = [
            Factor.of_rows(np.concatenate(numbers), np.concatenate(weights))
            for numbers, weights in zip(terms, rows, strict=True)
        ]
        each = np.repeat(np.array(self.multipliers, dtype=np.float64), np.diff(self._starts))
        return queries_of_one_term(schema, factors, self._starts[-1]), each

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from; the labels are kept as an array."""
        return {
            "kind": "grouped tables",
            "shape": list(self.cell_shape),
            "groupings": [[grouping.axis, grouping.groups] for grouping in self.groupings],
            "tables": [list(table) for table in self.tables],
            "multipliers": list(self.multipliers),
        }


def _no_least_squares() -> QueryError:
    return QueryError("tables of grouped values do not determine every count; use the release's own estimator")


def read_grouped_tables(data: Mapping[str, object]) -> GroupedTablesOperator:
    """Rebuild from ``to_dict``, without the labels; the data is untrusted."""
    shape, groupings, tables, multipliers = (data[key] for key in ("shape", "groupings", "tables", "multipliers"))
    if not isinstance(shape, list) or not isinstance(groupings, list):
        raise TypeError("shape and groupings must be lists")
    if not isinstance(tables, list) or not isinstance(multipliers, list):
        raise TypeError("tables and multipliers must be lists")
    if len(shape) > MOST_AXES or len(tables) > MOST_TABLES or len(groupings) > MOST_TABLES:
        raise ValueError("there are too many attributes or tables")
    if not all(_are_whole(one, 2) for one in groupings) or not all(_are_whole(table) for table in tables):
        raise TypeError("groupings and tables are lists of whole numbers")
    found = GroupedTablesOperator(
        tuple(read_size(size) for size in shape),
        tuple(Grouping(axis, groups) for axis, groups in groupings),
        tuple(tuple(table) for table in tables),
        tuple(multipliers),
    )
    return found if found.array_shapes else found.with_arrays({})


def _are_whole(given: object, length: int | None = None) -> bool:
    is_list = isinstance(given, list) and (length is None or len(given) == length)
    return is_list and all(type(one) is int for one in given)  # type: ignore[attr-defined]
