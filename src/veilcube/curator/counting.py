"""Counting: from a private table to the exact cube, in batches, with bounded memory."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import prod
from pathlib import Path
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veilcube.curator.binning import CellRule
from veilcube.curator.capacity import zero_counts
from veilcube.curator.cube import Cube, require_table
from veilcube.curator.kernels import add_to_counts, add_to_tables
from veilcube.curator.normalising import normalised, person_text
from veilcube.curator.person_cap import NOBODY, PERSON, cap_rows
from veilcube.curator.tables import Engine, Part, Table, always, open_table, shielded
from veilcube.curator.tally import Tally
from veilcube.errors import TableError
from veilcube.operators.components import Axes
from veilcube.privacy import PrivacyUnit
from veilcube.privacy.secrecy import leaves_no_trace
from veilcube.schema import Schema
from veilcube.system.arguments import read_progress
from veilcube.system.memory import require_memory

Progress: TypeAlias = Callable[[float | None], None]
_Add: TypeAlias = Callable[[pa.RecordBatch], None]

# Small enough that a batch's flat indices stay in the processor's cache between one attribute and the next.
ROWS_PER_BATCH = 2**16
SECONDS_BETWEEN_REPORTS = 0.1


@leaves_no_trace
def count(
    source: object,
    schema: Schema | str | Path,
    person: str | None = None,
    max_rows: int | None = None,
    *,
    table: str | None = None,
    progress: Progress | None = None,
) -> Cube:
    """Count a table into the cube of a schema; with ``person``, at most ``max_rows`` rows of each person.

    ``source`` is a CSV (also .gz) or Parquet path, a glob or list of them, a pandas or polars frame, Arrow data, a
    DuckDB relation, or a ``duckdb:///`` URL with ``table`` naming a table or holding a SELECT. ``progress`` is called
    now and then with the fraction that is done, or None where that is unknown.

    >>> import pyarrow as pa
    >>> from veilcube.schema import Ordinal
    >>> cube = count(pa.table({"age": [30, 31, 31]}), Schema([Ordinal("age", 30, 32)]))
    >>> cube
    Cube(age (3): 3 cells, exact counts not shown)
    """
    schema = Schema.read(schema)
    unit = PrivacyUnit.read(person, max_rows)
    read_progress(progress, TableError)
    counts = zero_counts(schema)
    _fold_in(source, schema, unit, table, progress, _into_cube(schema, counts))
    return Cube.owning(schema, counts, unit)


@leaves_no_trace
def count_tables(
    source: object,
    schema: Schema,
    tables: Sequence[Axes],
    person: str | None = None,
    max_rows: int | None = None,
    *,
    table: str | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Count a table into small ones over few attributes each, in one pass and without the cube, else as ``count``."""
    unit = PrivacyUnit.read(person, max_rows)
    sizes = [prod(schema.shape[axis] for axis in axes) for axes in tables]
    require_memory(8 * sum(sizes), f"counting {len(tables):,} tables of {sum(sizes):,} cells")
    counts = np.zeros(sum(sizes), dtype=np.int64)
    starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
    _fold_in(source, schema, unit, table, progress, _into_tables(schema, tables, starts, counts))
    return Tally(schema, tables, counts, unit)


def _fold_in(
    source: object, schema: Schema, unit: PrivacyUnit, table: str | None, progress: Progress | None, add: _Add
) -> None:
    """Stream the rows and hand on each batch."""
    with Engine() as engine:
        opened = open_table(engine, source, columns_of(schema, unit), table)
        report, rows = _Reporter(progress, opened.rows if unit.kind == "row" else None), 0
        for batch in normalised_batches(engine, opened, schema, unit):
            add(batch)
            report.advance(batch.num_rows)
            rows += batch.num_rows
        require_table(rows)
        report.finish()


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


def normalised_batches(engine: Engine, table: Table, schema: Schema, unit: PrivacyUnit) -> Iterator[pa.RecordBatch]:
    """Stream the normalised columns of the rows to count, one column per attribute."""
    relations = [_project(engine, part, schema, unit) for part in table.parts]
    if unit.kind == "row":
        for part, relation in zip(table.parts, relations, strict=True):
            yield from _stream(relation, part.explain)
        return
    # A person's rows may lie in several parts, so they are capped together.
    names = [f"value{position}" for position in range(len(schema))]
    kept = cap_rows(reduce(lambda above, below: above.union(below), relations), names, unit.max_rows)
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
