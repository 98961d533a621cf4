"""Counting: from a private table to the exact cube, in batches, with memory that is asked for before it is taken.

With ``person``, at most ``max_rows`` rows of each person are kept. Claim: let c(T) be the counts of the kept rows of a
table T. If T' is T without one person, then c(T) - c(T') >= 0 and its entries sum to at most ``max_rows``, so the L1
sensitivity for adding or removing a person is ``max_rows``. Proof: the kept rows of a person are the first ``max_rows``
in an order of this person's rows by a digest of the person, the row's normalised values and, among equal rows, a
running number. The order uses no row ids, no positions and no other person's rows. So every other person keeps the same
rows in T and T', up to a swap of equal rows, which have the same cell. With ``max_groups`` only rows of a person's
first groups come so far, by a digest of the person and the group: that again looks at this person's rows alone.

The digest (MD5, as a pseudo-random order, not as a secret) makes the choice look random and stable over runs, machines
and row orders; the running number makes each of several equal rows as likely to be kept as any other row.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, cast

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veilcube.curator.binning import CellRule
from veilcube.curator.cube import Cube, RowList, Tally, require_table
from veilcube.curator.normalising import normalised, person_text
from veilcube.curator.persons import PersonRows
from veilcube.curator.tables import Engine, Part, Table, add_to_counts, add_to_tables, always, open_table, shielded
from veilcube.errors import CapacityError, PrivacyError, TableError
from veilcube.operators import Axes
from veilcube.privacy import PrivacyUnit, Private, leaves_no_trace
from veilcube.schema import Nominal, Schema
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


PERSON = "person"
NOBODY = "nobody"
ROWS_IN_ALL = "rows_of_person"
_SEPARATOR = "chr(31)"


def cap_rows(
    rows: duckdb.DuckDBPyRelation, values: Sequence[str], max_rows: int, max_groups: Mapping[str, int] | None = None
) -> duckdb.DuckDBPyRelation:
    """Return the kept rows: the columns ``values``, a flag, ``nobody``, on rows without a person, and ``rows_in_all``.

    That is the number of a person's rows, kept or not, on one of her rows, and 0 on the others. ``max_groups`` tells of
    how many different values of some columns a person's rows are kept at all.
    """
    listed = ", ".join(values)
    # Whole numbers come as BIGINT or DOUBLE, depending on the source; as DOUBLE they have one text and so one digest.
    floats = [f"CAST({value} AS DOUBLE)" for value in values]
    # Equal values must have equal texts, or equal rows would not be interchangeable: -0.0 becomes 0.
    plain = ", ".join(f"CASE WHEN {value} = 0 THEN 0 ELSE {value} END AS {value}" for value in values)
    texts = ", ".join(f"coalesce(CAST({value} AS VARCHAR), '')" for value in floats)
    digest = f"md5_number(concat_ws({_SEPARATOR}, {PERSON}, {texts}, CAST(running AS VARCHAR)))"
    # The values follow the digest so that rows with equal digests, should there be any, are still in a fixed order.
    order = ", ".join(f"{key} ASC NULLS FIRST" for key in ["digest", *floats, "running"])
    kept = rows.project(f"{PERSON}, {plain}").query(
        "given",
        f"""
        WITH grouped AS (
            SELECT * FROM given {_kept_groups(max_groups or {})}
        ), numbered AS (
            SELECT *, row_number() OVER (PARTITION BY {PERSON}, {", ".join(floats)}) AS running FROM grouped
        ), digested AS (
            SELECT *, {digest} AS digest FROM numbered
        )
        SELECT {listed}, {PERSON} IS NULL AS {NOBODY}, CASE WHEN place = 1 THEN rows_in_all ELSE 0 END AS {ROWS_IN_ALL}
        FROM (
            SELECT *, row_number() OVER (PARTITION BY {PERSON} ORDER BY {order}) AS place,
                count(*) OVER (PARTITION BY {PERSON}) AS rows_in_all
            FROM digested
        ) WHERE place <= {max_rows}
        """,
    )
    return cast(duckdb.DuckDBPyRelation, kept)  # None only for statements that return nothing


def _kept_groups(max_groups: Mapping[str, int]) -> str:
    """Return which rows lie in the first groups of their person, by a digest of the person and the group."""
    kept = []
    for value, most in max_groups.items():
        text = f"coalesce(CAST(CAST({value} AS DOUBLE) AS VARCHAR), '')"
        digest = f"md5_number(concat_ws({_SEPARATOR}, 'group', {PERSON}, '{value}', {text}))"
        order = f"{digest} ASC, CAST({value} AS DOUBLE) ASC NULLS FIRST"
        kept.append(f"dense_rank() OVER (PARTITION BY {PERSON} ORDER BY {order}) <= {most}")
    return f"QUALIFY {' AND '.join(kept)}" if kept else ""


Progress: TypeAlias = Callable[[float | None], None]
_Add: TypeAlias = Callable[[pa.RecordBatch], None]

# Small enough that a batch's flat indices stay in the processor's cache between one attribute and the next.
ROWS_PER_BATCH = 2**16
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
        persons = self._fold_in(progress, _into_cube(self.schema, counts))
        return Cube.owning(self.schema, counts, self.unit, persons)

    def count_tables(self, tables: Sequence[Axes], progress: Progress | None = None) -> Tally:
        """Count into small tables over few attributes each, in one pass and without the cube."""
        sizes = [prod(self.schema.shape[axis] for axis in axes) for axes in tables]
        require_memory(8 * sum(sizes), f"counting {len(tables):,} tables of {sum(sizes):,} cells")
        counts = np.zeros(sum(sizes), dtype=np.int64)
        starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        persons = self._fold_in(progress, _into_tables(self.schema, tables, starts, counts))
        return Tally(self.schema, tables, counts, self.unit, persons)

    def list_rows(self, progress: Progress | None = None) -> RowList:
        """List the cell of each row along each attribute, in one pass and without the cube."""
        columns: list[list[NDArray[np.unsignedinteger[Any]]]] = [[] for _ in self.schema]
        rows: list[NDArray[np.unsignedinteger[Any]]] = []
        try:
            persons = self._fold_in(progress, _into_lists(self.schema, columns))
            for size, parts in zip(self.schema.shape, columns, strict=True):
                rows.append(np.concatenate([np.zeros(0, _smallest_kind(size)), *parts]))
                parts.clear()
        except MemoryError:
            raise CapacityError(
                "the rows of the table cannot be listed in the memory of this machine, and its cube is larger still; "
                f"{WAYS_OUT}"
            ) from None
        return RowList(self.schema, rows, self.unit, persons)

    def count_persons(self, progress: Progress | None = None) -> PersonRows:
        """Count how many rows each person has; every row is read and checked, as when the table is counted."""
        return self._fold_in(progress, lambda _: None)

    def _fold_in(self, progress: Progress | None, add: _Add) -> PersonRows:
        """Stream the rows and hand on each batch; returns how many rows each person has, kept or not."""
        unit, persons = self.unit, PersonRows()
        with Engine() as engine:
            opened = open_table(engine, self.data, columns_of(self.schema, unit), self.table)
            report, rows = _Reporter(progress, opened.rows if unit.kind == "row" else None), 0
            for batch in normalised_batches(engine, opened, self.schema, unit):
                add(batch)
                if unit.kind == "person":
                    persons.add(batch.column(ROWS_IN_ALL))
                report.advance(batch.num_rows)
                rows += batch.num_rows
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
    DuckDB relation, or a ``duckdb:///`` URL with ``table`` naming a table or holding a SELECT. ``progress`` is called
    now and then with the fraction that is done, or None where that is unknown.

    >>> import pyarrow as pa
    >>> from veilcube.schema import Ordinal
    >>> cube = count(pa.table({"age": [30, 31, 31]}), Schema([Ordinal("age", 30, 32)]))
    >>> cube
    Cube(age (3): 3 cells, exact counts not shown)
    """
    read_progress(progress, TableError)
    return Source.read(source, schema, person, max_rows, table, max_groups).count(progress)


def grouped_axes(schema: Schema, unit: PrivacyUnit) -> dict[int, int]:
    """Return of how many values of which attributes a person's rows are kept; refuses what has no such values."""
    found = {schema.axis(name): most for name, most in unit.max_groups}
    if len(found) < len(unit.max_groups):
        raise PrivacyError("max_groups names an attribute twice; give one number for it")
    for axis in found:
        if not isinstance(schema.attributes[axis], Nominal):
            raise PrivacyError(
                f"max_groups caps values of nominal attributes, and '{schema.names[axis]}' is an ordinal one; leave it "
                "out"
            )
    return found


def columns_of(schema: Schema, unit: PrivacyUnit) -> list[str]:
    """Return the columns that must be read, each once."""
    person = [] if unit.column is None else [unit.column]
    return list(dict.fromkeys([attribute.column for attribute in schema] + person))


def _into_cube(schema: Schema, counts: NDArray[np.int64]) -> _Add:
    rules, flat = [CellRule(attribute) for attribute in schema], counts.reshape(-1)

    def add(batch: pa.RecordBatch) -> None:
        cells = np.zeros(batch.num_rows, dtype=np.int64)
        for position, rule in enumerate(rules):
            rule.fold(batch.column(position), cells)
        add_to_counts(cells, flat)

    return add


def _into_tables(schema: Schema, tables: Sequence[Axes], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> _Add:
    rules = [CellRule(attribute) for attribute in schema]
    axes = np.full((len(tables), max(map(len, tables))), -1, dtype=np.int64)
    for row, chosen in zip(axes, tables, strict=True):
        row[: len(chosen)] = chosen
    sizes = np.array(schema.shape, dtype=np.int64)

    def add(batch: pa.RecordBatch) -> None:
        cells = np.zeros((len(rules), batch.num_rows), dtype=np.int64)
        for position, rule in enumerate(rules):
            rule.fold(batch.column(position), cells[position])
        add_to_tables(cells, axes, sizes, starts, counts)

    return add


def _smallest_kind(size: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32 if size <= 2**32 else np.uint64


def _into_lists(schema: Schema, columns: list[list[NDArray[np.unsignedinteger[Any]]]]) -> _Add:
    rules = [CellRule(attribute) for attribute in schema]

    def add(batch: pa.RecordBatch) -> None:
        for position, (rule, column) in enumerate(zip(rules, columns, strict=True)):
            cells = np.zeros(batch.num_rows, dtype=np.int64)
            rule.fold(batch.column(position), cells)
            column.append(cells.astype(_smallest_kind(schema.shape[position])))

    return add


def normalised_batches(engine: Engine, table: Table, schema: Schema, unit: PrivacyUnit) -> Iterator[pa.RecordBatch]:
    """Stream the normalised columns of the rows to count, one column per attribute."""
    relations = [_project(engine, part, schema, unit) for part in table.parts]
    if unit.kind == "row":
        for part, relation in zip(table.parts, relations, strict=True):
            yield from _stream(relation, part.explain)
        return
    # A person's rows may lie in several parts, so they are capped together.
    names = [f"value{position}" for position in range(len(schema))]
    groups = {names[axis]: most for axis, most in grouped_axes(schema, unit).items()}
    kept = cap_rows(reduce(lambda above, below: above.union(below), relations), names, unit.max_rows, groups)
    explain = table.parts[0].explain if len(relations) == 1 else always("one of the files cannot be read; check each")
    for batch in _stream(kept, explain):
        if batch.column(NOBODY).true_count:
            raise TableError(
                f"the column '{unit.column}' that names the person has missing values, but every row must belong to "
                "somebody; complete the column, or drop those rows"
            )
        yield batch


def _project(engine: Engine, part: Part, schema: Schema, unit: PrivacyUnit) -> duckdb.DuckDBPyRelation:
    expressions = [
        f"{normalised(engine, attribute, part.columns[attribute.column])} AS value{position}"
        for position, attribute in enumerate(schema)
    ]
    if unit.column is not None:
        expressions.append(f"{person_text(unit.column, part.columns[unit.column])} AS {PERSON}")
    return shielded(lambda: part.relation.project(", ".join(expressions)), part.explain)


def _stream(relation: duckdb.DuckDBPyRelation, explain: Callable[[Exception], str]) -> Iterator[pa.RecordBatch]:
    reader = shielded(lambda: relation.to_arrow_reader(ROWS_PER_BATCH), explain)
    while (batch := shielded(lambda: next(reader, None), explain)) is not None:
        yield batch


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
