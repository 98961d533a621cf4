"""How a partition divides rows: by values, levels of hierarchies, bands or conditions; no row is in two parts.

Only that is asked of a division by the proof (docs/proofs/protected-tables.md, "Parts of a partition"). What it is said
by, ``said``, is plain data from which, with the schema, every part follows: the ledger knows a partition by it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError, quoted
from veilcube.query import Query, read_cells
from veilcube.record import canonical_region, region_from_data, region_to_data
from veilcube.schema import Attribute, Grouping, Ordinal, Region, Schema, read_groupings, split_level
from veilcube.system import show

MOST_PARTS = 1000
MOST_CONDITIONS = 100
PART = "part"
Label: TypeAlias = str | tuple[str, ...]


class Division(Protocol):
    """Parts that share no row, each with a label; in the order of the rows of an array of the axes' labels."""

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of the parts along each axis."""

    @property
    def said(self) -> object:
        """What the division is known by, with the schema."""

    def place(self, values: Sequence[object]) -> tuple[list[int], Region]:
        """Return the numbers that the ledger knows a part by, and its cells."""


def labels_of(division: Division) -> Iterator[Label]:
    """Iterate over the labels of the parts, as they are named to get one."""
    for labels in product(*division.axes.values()):
        yield labels[0] if len(labels) == 1 else labels


def number_of_parts(division: Division) -> int:
    """Return how many parts there are."""
    return prod(len(labels) for labels in division.axes.values())


@dataclass(frozen=True, eq=False)
class ByValues:
    """A part for each value of an attribute, or of several together."""

    schema: Schema
    named: tuple[int, ...]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that decide."""
        return tuple(self.schema.attributes[axis] for axis in self.named)

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of the parts along each axis."""
        return {attribute.name: tuple(attribute.labels()) for attribute in self.attributes}

    @property
    def said(self) -> object:
        """The names of the attributes, in the order of the schema: the same parts in whatever order they are named."""
        return [self.schema.names[axis] for axis in sorted(self.named)]

    def place(self, values: Sequence[object]) -> tuple[list[int], Region]:
        """Return the cells on the attributes that a part is named by, and where it lies."""
        if len(values) != len(self.named):
            raise _wrong_number(tuple(self.axes))
        cells = {
            axis: _cell_of(attribute, value)
            for axis, attribute, value in zip(self.named, self.attributes, values, strict=True)
        }
        return [cells[axis] for axis in sorted(cells)], self.lying(self.schema, cells)

    @staticmethod
    def lying(schema: Schema, cells: Mapping[int, int]) -> Region:
        """Return the rows that have some cells on some axes."""
        region = Region.everything(schema.shape)
        for axis, cell in cells.items():
            region = region.intersect(Region.on_axis(schema.shape, axis, range(cell, cell + 1)))
        return region


@dataclass(frozen=True, eq=False)
class ByGroups:
    """A part for each combination of groups: levels of hierarchies, bands of ordinal attributes, values."""

    schema: Schema
    groupings: tuple[Grouping, ...]
    bands: Mapping[str, Sequence[int]]

    @classmethod
    def read(cls, schema: Schema, names: Sequence[str], bands: Mapping[str, Sequence[object]]) -> "ByGroups":
        """Check names of attributes and levels, and where bands begin; a band ends where the next one begins."""
        cuts = {schema.names[schema.axis(name)]: _cells_of(schema[name], given) for name, given in bands.items()}
        every = [*names, *(name for name in cuts if not any(schema.axis(name) == _axis(schema, one) for one in names))]
        found = cls.made(schema, every, cuts)
        for name, labels in found.axes.items():
            if len(set(labels)) < len(labels):
                raise QueryError(f"two parts of '{quoted(name)}' have the same name; divide by conditions with labels")
        if number_of_parts(found) > MOST_PARTS:
            raise QueryError(
                f"that gives {number_of_parts(found):,} parts, and at most {MOST_PARTS:,} are told apart by groups; "
                "divide by fewer attributes, or by a higher level"
            )
        return found

    @classmethod
    def made(cls, schema: Schema, names: Sequence[str], cuts: Mapping[str, Sequence[int]]) -> "ByGroups":
        """Return the division by attributes, levels, and bands that begin at some cells."""
        found = []
        for grouping in read_groupings(schema, names):
            begins = cuts.get(grouping.name)
            found.append(grouping if begins is None else _bands(schema.attributes[grouping.axis], grouping, begins))
        return cls(schema, tuple(found), cuts)

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of the parts along each axis."""
        return {grouping.name: grouping.labels for grouping in self.groupings}

    @property
    def said(self) -> object:
        """The names of attributes and levels in the order of the schema, and the cells at which bands begin."""
        groups = [self.groupings[place].name for place in self._order]
        return {"groups": groups, "bands": {name: list(cells) for name, cells in self.bands.items()}}

    def place(self, values: Sequence[object]) -> tuple[list[int], Region]:
        """Return the number of the group on each axis, and the cells of the part."""
        if len(values) != len(self.groupings):
            raise _wrong_number(tuple(self.axes))
        numbers = [_group_of(grouping, value) for grouping, value in zip(self.groupings, values, strict=True)]
        return [numbers[place] for place in self._order], self.lying(numbers)

    @property
    def _order(self) -> list[int]:
        return sorted(range(len(self.groupings)), key=lambda place: self.groupings[place].axis)

    def lying(self, numbers: Sequence[int]) -> Region:
        """Return the cells of the part of some groups."""
        shape, region = self.schema.shape, Region.everything(self.schema.shape)
        for grouping, number in zip(self.groupings, numbers, strict=True):
            cells = range(int(grouping.first[number]), int(grouping.last[number]) + 1)
            region = region.intersect(Region.on_axis(shape, grouping.axis, cells))
        return region


@dataclass(frozen=True, eq=False)
class ByConditions:
    """A part for each of some conditions that no row meets two of; rows that meet none are in no part."""

    schema: Schema
    parts: Mapping[str, Region]

    @classmethod
    def read(cls, schema: Schema, conditions: object, region_of: Callable[[Query], Region]) -> "ByConditions":
        """Check conditions, a mapping from labels or a list; refuses two that some row could meet both of."""
        if isinstance(conditions, str) or not isinstance(conditions, Mapping | Sequence) or not conditions:
            raise QueryError(
                'conditions= is a list such as ["age < 18", "age >= 18"], or a mapping from labels to them'
            )
        if len(conditions) > MOST_CONDITIONS:
            raise QueryError(
                f"{len(conditions):,} conditions are more than the {MOST_CONDITIONS} that make a partition"
            )
        named = conditions if isinstance(conditions, Mapping) else {_label(one): one for one in conditions}
        if len(named) < len(conditions) or not all(isinstance(label, str) and label for label in named):
            raise QueryError("each part needs a label of its own, a text; give a mapping from labels to conditions")
        parts: dict[str, Region] = {}
        for label, condition in named.items():
            region = canonical_region(region_of(condition))
            if not region.cells:
                raise QueryError(f"no row can meet the condition of the part '{quoted(label)}'; leave it out")
            for other, taken in parts.items():
                if region.intersect(taken).cells:
                    raise QueryError(
                        f"a row could be in both '{quoted(other)}' and '{quoted(label)}', and the parts of a partition "
                        "share none; change one of the conditions"
                    )
            parts[label] = region
        return cls(schema, parts)

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of the parts."""
        return {PART: tuple(self.parts)}

    @property
    def said(self) -> object:
        """The cells of each part, whatever words the conditions had."""
        return {"conditions": [region_to_data(self.schema, region) for region in self.parts.values()]}

    def place(self, values: Sequence[object]) -> tuple[list[int], Region]:
        """Return the number of a part, and its cells."""
        label = values[0] if len(values) == 1 else values
        if not isinstance(label, str) or label not in self.parts:
            raise QueryError(f"there is no part {show(label)}; the parts are {', '.join(map(quoted, self.parts))}")
        return [list(self.parts).index(label)], self.parts[label]


def region_said(schema: Schema, said: object, numbers: Sequence[int]) -> Region:
    """Return the cells of the part that a ledger's words and numbers name; raises where they name none.

    That conditions share no row is checked where they are given.
    """
    if min(numbers, default=0) < 0:
        raise QueryError("parts are numbered from 0 on")
    if isinstance(said, list):
        cells = dict(zip((schema.axis(name) for name in said), numbers, strict=True))
        return ByValues.lying(schema, cells)
    if not isinstance(said, Mapping):
        raise QueryError("a partition is known by names, by groups or by conditions")
    if "conditions" in said:
        (number,) = numbers
        return region_from_data(schema, [*said["conditions"]][number])
    return ByGroups.made(schema, said["groups"], said["bands"]).lying(numbers)


def _axis(schema: Schema, name: object) -> int:
    return split_level(schema, name)[0]


def _label(condition: Query) -> str:
    if isinstance(condition, str) or not isinstance(condition, Mapping):
        return str(condition)
    return ", ".join(f"{name}: {value}" for name, value in condition.items())


def _wrong_number(names: Sequence[str]) -> QueryError:
    return QueryError(f"a part is named by one value of each of {', '.join(names)}")


def _cells_of(attribute: Attribute, given: object) -> list[int]:
    """Return the cells at which bands begin, the first cell among them."""
    if not isinstance(attribute, Ordinal) or isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise QueryError("bands= names ordinal attributes and where their bands begin, such as {'age': [18, 65]}")
    found = {0}
    for begin in given:
        cells = _numbers(read_cells(attribute, (begin, None)))
        if not len(cells):
            raise QueryError(f"no value of '{quoted(attribute.name)}' is {show(begin)} or more; leave that band out")
        found.add(int(cells[0]))
    return sorted(found)


def _bands(attribute: Attribute, cells: Grouping, begins: Sequence[int]) -> Grouping:
    """Return the bands that begin at some cells; stray cells, behind the last value, stay groups of their own."""
    labels, regular = attribute.labels(), attribute.regular_size
    ends = [*(begin - 1 for begin in begins[1:]), regular - 1]
    stray = np.arange(regular, attribute.size, dtype=np.int64)
    said = [
        labels[begin] if begin == end else f"{labels[begin]}..{labels[end]}"
        for begin, end in zip(begins, ends, strict=True)
    ]
    first = np.concatenate([np.array(begins, dtype=np.int64), stray])
    last = np.concatenate([np.array(ends, dtype=np.int64), stray])
    return Grouping(cells.name, cells.axis, first, last, (*said, *labels[regular:]))


def _group_of(grouping: Grouping, value: object) -> int:
    if isinstance(value, str) and value in grouping.labels:
        return grouping.labels.index(value)
    raise QueryError(f"'{quoted(grouping.name)}' has no part {show(value)}; it has {', '.join(grouping.labels[:20])}")


def _cell_of(attribute: Attribute, value: object) -> int:
    """Return the one cell that a value names."""
    if isinstance(value, str) and value in (labels := attribute.labels()):
        return labels.index(value)
    chosen = _numbers(read_cells(attribute, value))
    if len(chosen) != 1:
        raise QueryError(f"a part of '{attribute.name}' is one of its values, not a range or a group of them")
    return int(chosen[0])


def _numbers(cells: range | NDArray[np.bool_]) -> Sequence[int]:
    return cells if isinstance(cells, range) else [int(cell) for cell in cells.nonzero()[0]]
