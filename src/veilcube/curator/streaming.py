"""Tables that this machine reads, as batches of cells: opened, brought to one number a value, placed, and capped.

Of each person at most ``max_rows`` rows are kept: what keeps them, and why that is private, stands in
``pushdown.statement``, whose steps the counting engine carries out here on the cells of all rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veilcube.curator import pushdown
from veilcube.curator.placing import CellRule, normalised, person_text
from veilcube.curator.pushdown import (
    PERSON,
    ROWS_IN_ALL,
    Cap,
    Dialect,
    capped,
    cell_name,
    grouped_axes,
    missing_person,
)
from veilcube.curator.tables import Engine, Part, Table, always, shielded
from veilcube.errors import TableError, VeilcubeError
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Schema
from veilcube.system import Integers

# Small enough that a batch's flat indices stay in the processor's cache between one attribute and the next.
ROWS_PER_BATCH = 2**16
_GIVEN = "given_cells"

Result = TypeVar("Result")


@dataclass(frozen=True)
class PlacedRows:
    """A batch of rows with their cells, by normalised columns and the rules that place them, or by cells themselves.

    ``rows_in_all`` is the number of a person's rows, kept or not, on one of her rows, and 0 on the others; None if rows
    have no persons.
    """

    columns: Sequence[pa.Array | Integers]
    rules: Sequence[CellRule] | None
    shape: tuple[int, ...]
    rows: int
    rows_in_all: pa.Array | None = None

    def along(self, axis: int) -> Integers:
        """Return the cell of every row along one attribute."""
        column = self.columns[axis]
        if self.rules is None:
            return np.asarray(column, dtype=np.int64)
        cells = np.zeros(self.rows, dtype=np.int64)
        self.rules[axis].fold(column, cells)
        return cells

    def flat(self) -> Integers:
        """Return the flat cell of every row in the cube."""
        cells = np.zeros(self.rows, dtype=np.int64)
        for axis, column in enumerate(self.columns):
            if self.rules is None:
                cells = cells * self.shape[axis] + self.along(axis)
            else:
                self.rules[axis].fold(column, cells)
        return cells


def smallest_kind(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that holds the cells of an attribute."""
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32 if size <= 2**32 else np.uint64


def listed_batches(source: object, table: str | None, schema: Schema, unit: PrivacyUnit) -> Iterator[PlacedRows]:
    """Stream the cells of the rows of a table that is counted where it lies; rows of one cell come together."""
    wanted = pushdown.Wanted((tuple(range(len(schema))),), False)
    with pushdown.open_remote(source, table) as remote:
        for found in pushdown.count_remotely(remote, schema, unit, wanted):
            for start in range(0, len(found.rows), ROWS_PER_BATCH):
                part = slice(start, start + ROWS_PER_BATCH)
                yield rows_of(schema, found.keys[part], found.rows[part])


def rows_of(schema: Schema, cells: Integers, rows: Integers) -> PlacedRows:
    """Return rows by their cells along all attributes, one line for each cell, and how many rows it has."""
    columns = [np.repeat(cells[:, axis], rows) for axis in range(len(schema))]
    return PlacedRows(columns, None, schema.shape, len(columns[0]))


def placed_batches(engine: Engine, table: Table, schema: Schema, unit: PrivacyUnit) -> Iterator[PlacedRows]:
    """Stream the cells of the rows to count."""
    if unit.kind == "row":
        for part in table.parts:
            yield from _placed(engine, part, schema, unit)
        return
    # A person's rows may lie in several parts, so they are capped together.
    rows = _CellsWithPersons(engine, table, schema, unit)
    kept = _capped(rows, engine, schema, unit)
    while (batch := rows.heard(lambda: next(kept, None))) is not None:
        columns = [batch.column(cell_name(axis)) for axis in range(len(schema))]
        yield PlacedRows(columns, None, schema.shape, batch.num_rows, batch.column(ROWS_IN_ALL))


def _placed(engine: Engine, part: Part, schema: Schema, unit: PrivacyUnit) -> Iterator[PlacedRows]:
    rules = [CellRule(attribute) for attribute in schema]
    for batch in _stream(_project(engine, part, schema, unit), part.explain):
        yield PlacedRows(batch.columns[: len(rules)], rules, schema.shape, batch.num_rows)


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


class _CellsWithPersons:
    """The cells and the person of every row of a table, as a stream that the engine reads while it fills it."""

    def __init__(self, engine: Engine, table: Table, schema: Schema, unit: PrivacyUnit) -> None:
        self._parts = [(part, _project(engine, part, schema, unit)) for part in table.parts]
        self._schema, self._unit = schema, unit
        self._kinds = [smallest_kind(size) for size in schema.shape]
        self._ended: BaseException | None = None

    def heard(self, action: Callable[[], Result]) -> Result:
        """Run something that reads the stream, and raise what ended it: the engine hands on no exception as it was."""
        try:
            return action()
        except (VeilcubeError, KeyboardInterrupt):
            if self._ended is None:
                raise
        raise type(self._ended)(*self._ended.args)

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream."""
        kinds = [(cell_name(axis), pa.from_numpy_dtype(kind)) for axis, kind in enumerate(self._kinds)]
        layout = pa.schema([*kinds, (PERSON, pa.string())])
        return pa.RecordBatchReader.from_batches(layout, self._batches(layout))

    def _batches(self, layout: pa.Schema) -> Iterator[pa.RecordBatch]:
        rules = [CellRule(attribute) for attribute in self._schema]
        try:
            for part, relation in self._parts:
                for batch in _stream(relation, part.explain):
                    persons = batch.column(PERSON)
                    if persons.null_count:
                        raise TableError(missing_person(self._unit))
                    placed = PlacedRows(batch.columns, rules, self._schema.shape, batch.num_rows)
                    cells: list[NDArray[Any]] = [
                        placed.along(axis).astype(kind) for axis, kind in enumerate(self._kinds)
                    ]
                    yield pa.RecordBatch.from_arrays([*map(pa.array, cells), persons], schema=layout)
        except (VeilcubeError, KeyboardInterrupt) as problem:
            self._ended = problem
            raise


def _capped(rows: _CellsWithPersons, engine: Engine, schema: Schema, unit: PrivacyUnit) -> Iterator[pa.RecordBatch]:
    cap = Cap(unit.max_rows, grouped_axes(schema, unit))
    sql = f"WITH {', '.join(capped(Dialect(), _GIVEN, len(schema), cap, may_refuse=False))} SELECT * FROM kept"
    failed = always("the rows of the table cannot be read to their end; check it, or each of its files")
    yield from _stream(shielded(lambda: engine.query_stream(rows.reader(), _GIVEN, sql), failed), failed)
