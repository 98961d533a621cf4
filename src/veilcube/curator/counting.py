"""Counting: from a private table to the exact cube, in batches, with memory that is asked for before it is taken.

Files and frames are read here (``streaming``); databases count by themselves (``pushdown``), in one statement, and send
the cells that hold rows.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.curator import pushdown
from veilcube.curator.cube import Cube, RowList, Tally, require_table
from veilcube.curator.persons import PersonRows
from veilcube.curator.pushdown import grouped_axes
from veilcube.curator.streaming import PlacedRows, placed_batches, rows_of, smallest_kind
from veilcube.curator.tables import Engine, add_to_counts, add_to_tables, open_table
from veilcube.errors import CapacityError, TableError
from veilcube.operators import Axes
from veilcube.privacy import PrivacyUnit, Private, leaves_no_trace
from veilcube.schema import Schema
from veilcube.system import read_progress, read_text, require_memory

BYTES_PER_CELL = 8  # int64
# What the engine and its batches take beside a large cube.
WORKING_BYTES = 320 * 2**20
WAYS_OUT = "use coarser bins, fewer attributes or a larger machine, or strategy='marginals', which needs no cube"


def zero_counts(schema: Schema) -> NDArray[np.int64]:
    """Allocate the counts of a schema's cube; refuses, before taking any memory, a cube that would not fit."""
    needed, task = schema.cells * BYTES_PER_CELL, f"the cube has {schema.cells:,} cells and"
    require_memory(needed, task, WAYS_OUT, beside=min(needed, WORKING_BYTES))
    try:
        return np.zeros(schema.shape, dtype=np.int64)
    except MemoryError:
        raise CapacityError(f"{task} cannot be allocated as a whole; {WAYS_OUT}") from None


Progress: TypeAlias = Callable[[float | None], None]
_Add: TypeAlias = Callable[[PlacedRows], None]
_Keep: TypeAlias = Callable[[NDArray[np.int64], NDArray[np.int64]], None]

SECONDS_BETWEEN_REPORTS = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Source(Private):
    """A table that is named, with the public facts that say how to read it: what every door takes, read in one place.

    ``data`` is a cube, or anything that ``count`` takes.
    """

    data: object
    schema: Schema
    unit: PrivacyUnit
    table: str | None = None

    @classmethod
    def read(
        cls,
        data: object,
        schema: Schema | str | Path | None,
        person: str | None,
        max_rows: int | None,
        table: str | None,
        max_groups: Mapping[str, int] | None = None,
    ) -> "Source":
        """Check what a user named; nothing is opened yet."""
        if isinstance(data, Cube):
            if any(given is not None for given in (schema, person, max_rows, table, max_groups)):
                raise TableError("a cube brings its own schema and privacy unit; leave out schema, person and max_rows")
            return cls(data, data.schema, data.unit)
        if schema is None:
            raise TableError("a table needs its schema: pass schema=veilcube.Schema.from_toml('table.toml')")
        if table is not None:
            read_text(table, "table, the name of a table in a database,", TableError)
        facts, unit = Schema.read(schema), PrivacyUnit.read(person, max_rows, max_groups)
        named = {facts.names[axis]: most for axis, most in grouped_axes(facts, unit).items()}
        return cls(data, facts, replace(unit, max_groups=tuple(sorted(named.items()))), table)

    @property
    def is_cube(self) -> bool:
        """Whether it was counted before."""
        return isinstance(self.data, Cube)

    def count(self, progress: Progress | None = None) -> Cube:
        """Count into the cube of the schema."""
        if isinstance(self.data, Cube):
            return self.data
        counts = zero_counts(self.schema)
        if self.is_remote:
            flat = counts.reshape(-1)
            persons = self._gather(
                progress, pushdown.Wanted((), True), lambda keys, rows: np.put(flat, keys[:, 0], rows)
            )
        else:
            persons = self._fold_in(progress, _into_cube(counts))
        return Cube.owning(self.schema, counts, self.unit, persons)

    def count_tables(self, tables: Sequence[Axes], progress: Progress | None = None) -> Tally:
        """Count into small tables over few attributes each, in one pass and without the cube."""
        sizes = [prod(self.schema.shape[axis] for axis in axes) for axes in tables]
        require_memory(8 * sum(sizes), f"counting {len(tables):,} tables of {sum(sizes):,} cells")
        counts = np.zeros(sum(sizes), dtype=np.int64)
        starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        if self.is_remote:
            wanted = pushdown.Wanted(tuple(dict.fromkeys(tuple(axes) for axes in tables)), False)
            persons = self._gather(progress, wanted, _tables_from_keys(self.schema, tables, wanted, starts, counts))
        else:
            persons = self._fold_in(progress, _into_tables(self.schema, tables, starts, counts))
        return Tally(self.schema, tables, counts, self.unit, persons)

    def list_rows(self, progress: Progress | None = None) -> RowList:
        """List the cell of each row along each attribute, in one pass and without the cube."""
        columns: list[list[NDArray[np.unsignedinteger[Any]]]] = [[] for _ in self.schema]
        rows: list[NDArray[np.unsignedinteger[Any]]] = []
        try:
            add = _into_lists(self.schema, columns)
            persons = self._list_remotely(progress, add) if self.is_remote else self._fold_in(progress, add)
            for size, parts in zip(self.schema.shape, columns, strict=True):
                rows.append(np.concatenate([np.zeros(0, smallest_kind(size)), *parts]))
                parts.clear()
        except MemoryError:
            raise CapacityError(
                "the rows of the table cannot be listed in the memory of this machine, and its cube is larger still; "
                f"{WAYS_OUT}"
            ) from None
        return RowList(self.schema, rows, self.unit, persons)

    def count_persons(self, progress: Progress | None = None) -> PersonRows:
        """Count how many rows each person has; every row is read and checked, as when the table is counted."""
        if self.is_remote:
            return self._gather(progress, pushdown.Wanted(((0,),), False), lambda *_: None)
        return self._fold_in(progress, lambda _: None)

    @property
    def is_remote(self) -> bool:
        """Whether it is counted where it lies."""
        return pushdown.is_remote(self.data)

    def _list_remotely(self, progress: Progress | None, add: _Add) -> PersonRows:
        wanted = pushdown.Wanted((tuple(range(len(self.schema))),), False)
        return self._gather(progress, wanted, lambda keys, rows: add(rows_of(self.schema, keys, rows)))

    def _gather(self, progress: Progress | None, wanted: pushdown.Wanted, keep: _Keep) -> PersonRows:
        """Have the table counted where it lies and keep the results; returns how many rows each person has."""
        persons, total = PersonRows(), 0
        report = _Reporter(progress, None)
        with pushdown.open_remote(self.data, self.table) as remote:
            for found in pushdown.count_remotely(remote, self.schema, self.unit, wanted):
                keep(found.keys, found.rows)
                if found.persons is not None:
                    persons.add_counted(found.persons)
                total += int(found.rows.sum()) if len(wanted.sets) < 2 else 0
                report.advance(len(found.rows))
        require_table(total)
        report.finish()
        return persons

    def _fold_in(self, progress: Progress | None, add: _Add) -> PersonRows:
        """Stream the rows and hand on each batch; returns how many rows each person has, kept or not."""
        unit, persons = self.unit, PersonRows()
        with Engine() as engine:
            opened = open_table(engine, self.data, columns_of(self.schema, unit), self.table)
            report, rows = _Reporter(progress, opened.rows if unit.kind == "row" else None), 0
            for batch in placed_batches(engine, opened, self.schema, unit):
                add(batch)
                if batch.rows_in_all is not None:
                    persons.add(batch.rows_in_all)
                report.advance(batch.rows)
                rows += batch.rows
            require_table(rows)
            report.finish()
        return persons

    def __repr__(self) -> str:
        return f"Source({', '.join(self.schema.names)}; rows not shown)"


@leaves_no_trace
def count(
    source: object,
    schema: Schema | str | Path,
    person: str | None = None,
    max_rows: int | None = None,
    *,
    table: str | None = None,
    progress: Progress | None = None,
    max_groups: Mapping[str, int] | None = None,
) -> Cube:
    """Count a table into the cube of a schema; with ``person``, at most ``max_rows`` rows of each person.

    ``max_groups={"district": 2}`` keeps rows of at most two districts of each person; it makes no noise smaller.

    ``source`` is a CSV (also .gz) or Parquet path, a glob or list of them, a pandas or polars frame, Arrow data, a
    DuckDB relation, or the URL of a database (``duckdb:///file.db``, ``postgresql://user@host/db``) with ``table``
    naming a table or holding a SELECT. ``progress`` is called now and then with the fraction that is done, or None
    where that is unknown.

    >>> import pyarrow as pa
    >>> from veilcube.schema import Ordinal
    >>> cube = count(pa.table({"age": [30, 31, 31]}), Schema([Ordinal("age", 30, 32)]))
    >>> cube
    Cube(age (3): 3 cells, exact counts not shown)
    """
    read_progress(progress, TableError)
    return Source.read(source, schema, person, max_rows, table, max_groups).count(progress)


def columns_of(schema: Schema, unit: PrivacyUnit) -> list[str]:
    """Return the columns that must be read, each once."""
    person = [] if unit.column is None else [unit.column]
    return list(dict.fromkeys([attribute.column for attribute in schema] + person))


def _into_cube(counts: NDArray[np.int64]) -> _Add:
    flat = counts.reshape(-1)
    return lambda rows: add_to_counts(rows.flat(), flat)


def _into_tables(schema: Schema, tables: Sequence[Axes], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> _Add:
    axes = np.full((len(tables), max(map(len, tables))), -1, dtype=np.int64)
    for row, chosen in zip(axes, tables, strict=True):
        row[: len(chosen)] = chosen
    sizes = np.array(schema.shape, dtype=np.int64)

    def add(rows: PlacedRows) -> None:
        cells = np.stack([rows.along(axis) for axis in range(len(schema))])
        add_to_tables(cells, axes, sizes, starts, counts)

    return add


def _into_lists(schema: Schema, columns: list[list[NDArray[np.unsignedinteger[Any]]]]) -> _Add:
    def add(rows: PlacedRows) -> None:
        for axis, column in enumerate(columns):
            column.append(rows.along(axis).astype(smallest_kind(schema.shape[axis])))

    return add


def _tables_from_keys(
    schema: Schema,
    tables: Sequence[Axes],
    wanted: pushdown.Wanted,
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> _Keep:
    """Return what puts counts by the cells of axes, all others ``ABSENT``, into the tables of these axes."""
    named = sorted({axis for one in wanted.sets for axis in one})
    weights = 2 ** np.arange(len(named), dtype=np.uint64)

    def keep(keys: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        present = (keys != pushdown.ABSENT) @ weights
        for axes, start in zip(tables, starts, strict=True):
            places = [named.index(axis) for axis in axes]
            chosen = present == sum(int(weights[place]) for place in places)
            flat = np.full(np.count_nonzero(chosen), start, dtype=np.int64)
            if flat.size:
                flat += np.ravel_multi_index(
                    [keys[chosen, place] for place in places], [schema.shape[axis] for axis in axes]
                )
            counts[flat] = rows[chosen]

    return keep


class _Reporter:
    """Tells the caller how far counting is: a fraction, and not too often, so that no number of rows shows."""

    def __init__(self, progress: Progress | None, rows: int | None) -> None:
        self._progress, self._rows, self._done = progress, rows, 0
        self._next_report = time.monotonic() + SECONDS_BETWEEN_REPORTS

    def advance(self, rows: int) -> None:
        self._done += rows
        if self._progress is not None and time.monotonic() >= self._next_report:
            self._next_report = time.monotonic() + SECONDS_BETWEEN_REPORTS
            self._progress(self._fraction())

    def _fraction(self) -> float | None:
        """Return whole percent only: an exact fraction of batches of a known size would tell the number of rows."""
        return min(self._done * 100 // self._rows, 100) / 100 if self._rows else None

    def finish(self) -> None:
        if self._progress is not None:
            self._progress(1.0)
