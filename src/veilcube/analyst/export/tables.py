"""Labelled tables of counts for other programs: one row for each combination of values, with its interval.

Several tables go into one long one, whose column ``table`` names the attributes of each row; an attribute that a table
does not have is empty there, as in SQL's GROUPING SETS.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from veilcube.analyst.export.cells import axis_values, label_column
from veilcube.errors import QueryError
from veilcube.query import Answers
from veilcube.record import ReleaseRecord
from veilcube.schema import Schema, level_name, read_groupings, split_level
from veilcube.system import Floats, Integers, read_whole, show

ESTIMATES: Mapping[str, str] = {
    "value": "estimated number of rows; single estimates may be negative where nothing but noise was seen",
    "low": "lower end of the interval",
    "high": "upper end of the interval: the true number of rows lies between low and high with the stated confidence",
    "stddev": "standard deviation of the estimate's error",
}
WHOLE = "whole number of rows that adds up: every total is the sum of its parts, and none is negative"
TABLE = "the attributes of this row's table; the others are summed out and left empty"
LARGEST_ROUNDING = 2**31
# What tables are commonly shown with: multiples of a number, and the least count that is shown.
PRESETS: Mapping[str, tuple[int | None, int | None]] = {
    "tens": (10, None),
    "hundreds": (100, None),
    "no-small": (None, 11),
    "publication": (5, 11),
}
# Whole counts are never negative.
SUPPRESSED = -1


@dataclass(frozen=True, eq=False)
class CountTable:
    """The counts over some attributes; ``whole`` are the whole numbers beside them, if asked for."""

    schema: Schema
    names: tuple[str, ...]
    answers: Answers
    whole: Integers | None = None

    @property
    def title(self) -> str:
        """What the table is called: its attributes."""
        return " x ".join(self.names)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.answers.value.size)

    def to_arrow(self, every: Sequence[str] | None = None) -> pa.Table:
        """Return it as columns; with ``every``, as a part of one long table over all these attributes."""
        index = np.unravel_index(np.arange(self.rows), self.answers.value.shape)
        own = {
            name: label_column(pa.array(_labels(self.schema, name)), places)
            for name, places in zip(self.names, index, strict=True)
        }
        columns: dict[str, pa.Array] = dict(own)
        if every is not None:
            first = np.zeros(self.rows, dtype=np.int64)
            title = label_column(pa.array([self.title]), first)
            columns = {free_name("table", self.schema.names): title}
            columns |= {name: own[name] if name in own else self._empty(name) for name in every}
        for name in ESTIMATES:
            numbers = getattr(self.answers, name).ravel()
            columns[name] = pa.array(numbers, mask=np.isnan(numbers))
        if self.whole is not None:
            counts = self.whole.ravel()
            columns[free_name("whole", self.schema.names)] = pa.array(counts, mask=counts == SUPPRESSED)
        return pa.table(columns)

    def _empty(self, name: str) -> pa.Array:
        kind = label_column(pa.array(_labels(self.schema, name)), np.zeros(0, dtype=np.int64)).type
        return pa.nulls(self.rows, kind)

    def rounded(self, base: int) -> "CountTable":
        """Return it with every number a multiple of ``base``, intervals widened so that they hold what they held."""
        found = self.answers
        answers = replace(
            found,
            value=np.round(found.value / base) * base,
            low=np.floor(found.low / base) * base,
            high=np.ceil(found.high / base) * base,
        )
        if self.whole is None:
            return replace(self, answers=answers)
        multiples = (self.whole + base // 2) // base * base
        return replace(self, answers=answers, whole=np.where(self.whole < 0, SUPPRESSED, multiples))

    def suppressed(self, least: int) -> "CountTable":
        """Return it with the counts below ``least`` left empty."""
        is_small = self.answers.value < least
        if self.whole is not None:
            is_small |= self.whole < least

        def emptied(numbers: Floats) -> Floats:
            return np.where(is_small, np.nan, numbers)

        found = self.answers
        value, low, high, stddev = map(emptied, (found.value, found.low, found.high, found.stddev))
        answers = replace(found, value=value, low=low, high=high, stddev=stddev)
        return replace(
            self, answers=answers, whole=None if self.whole is None else np.where(is_small, SUPPRESSED, self.whole)
        )


@dataclass(frozen=True)
class Manner:
    """How counts are shown: rounded to multiples, and empty where they are small. Cosmetics, no privacy."""

    base: int | None = None
    least: int | None = None

    @classmethod
    def read(cls, base: object, least: object, preset: object = None) -> "Manner":
        """Check what was asked for: numbers, or a preset by its name."""
        if preset is not None:
            if base is not None or least is not None:
                raise QueryError("a preset says how to round and what to leave empty; leave out round and suppress")
            if not isinstance(preset, str) or preset not in PRESETS:
                raise QueryError(f"the preset must be one of {', '.join(PRESETS)}, not {show(preset)}")
            return cls(*PRESETS[preset])
        return cls(
            None if base is None else read_whole(base, "what counts are rounded to (round)", 1, LARGEST_ROUNDING),
            None if least is None else read_whole(least, "the least count shown (suppress)", 1, LARGEST_ROUNDING),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What readers of the numbers must know."""
        notes = [] if self.least is None else [f"Counts below {self.least} are left empty."]
        notes += [] if self.base is None else [f"Numbers are rounded to multiples of {self.base}."]
        return (*notes, "This is for the eye; privacy comes from the noise alone.") if notes else ()

    def shown(self, table: CountTable) -> CountTable:
        """Return a table as it is to be shown: small counts are judged before they are rounded."""
        kept = table if self.least is None else table.suppressed(self.least)
        return kept if self.base is None else kept.rounded(self.base)


def measured_tables(record: ReleaseRecord) -> list[tuple[str, ...]]:
    """Return the attributes of every table that was measured, fewest first; without tables, of the cube."""
    schema, found = record.schema, set()
    for part in record.telling.measurements:
        if part.grouped is not None:
            found |= {part.grouped.axes(table) for table in part.grouped.tables}
        elif part.tables is not None:
            found |= set(part.tables.tables)
        else:
            found.add(tuple(range(len(schema))))
    return [tuple(schema.names[axis] for axis in axes) for axes in sorted(found, key=lambda axes: (len(axes), axes))]


def size_of(schema: Schema, tables: Sequence[Sequence[str]]) -> int:
    """Return how many rows some tables have together."""
    sizes = dict(zip(schema.names, schema.shape, strict=True))
    for name in {name for names in tables for name in names} - sizes.keys():
        sizes[name] = len(read_groupings(schema, [name])[0])
    total = 0
    for names in tables:
        rows = 1
        for name in names:
            rows *= sizes[name]
        total += rows
    return total


def attributes_of(schema: Schema, tables: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return all attributes of some tables, and levels of their hierarchies, in the order of the schema."""
    named = dict.fromkeys(name for table in tables for name in table)
    return tuple(sorted(named, key=lambda name: split_level(schema, name)[0]))


def read_attributes(schema: Schema, by: object) -> tuple[str, ...]:
    """Return the attributes, or levels of them, that a table was asked for by, as the schema spells them."""
    if isinstance(by, str) or not isinstance(by, Sequence):
        raise QueryError(f"by= is a list of attributes such as ['{schema.names[0]}'], or None for every measured table")
    if not by:
        raise QueryError(f"by= names no attribute; choose from {', '.join(schema.names)}")
    named = [split_level(schema, name) for name in by]
    schema.axes([schema.names[axis] for axis, _ in named])  # refuses an attribute that is named twice
    read_groupings(schema, [name for name, (_, level) in zip(by, named, strict=True) if level is not None])
    return tuple(level_name(schema, axis, level) for axis, level in named)


def _labels(schema: Schema, name: str) -> list[object]:
    """Return what stands in a column: the values of an attribute, or the groups of a level of its hierarchy."""
    axis, level = split_level(schema, name)
    return axis_values(schema.attributes[axis]) if level is None else list(read_groupings(schema, [name])[0].labels)


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """Return a column's name that no attribute has.

    >>> free_name("whole", ["age", "whole"])
    'whole_'
    """
    while wanted in taken:
        wanted += "_"
    return wanted


def as_one(tables: Sequence[CountTable], schema: Schema) -> Iterator[pa.Table]:
    """Yield the tables as parts of one table of the same columns."""
    if len(tables) == 1:
        yield tables[0].to_arrow()
        return
    every = attributes_of(schema, [table.names for table in tables])
    for table in tables:
        yield table.to_arrow(every)
