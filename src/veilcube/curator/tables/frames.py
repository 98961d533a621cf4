"""Tables in memory: pandas, polars, Arrow and DuckDB relations, each as a stream of Arrow batches.

A batch is converted only when the engine asks for it, so a frame is never copied whole. pandas, polars
and Arrow datasets are recognised by the name of their type and never imported.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa

from veilcube.curator.tables.engine import Engine
from veilcube.curator.tables.table import (
    LOST_DIGITS,
    Part,
    always,
    part_of,
    quoted,
    require_columns,
    require_declared_types,
    shielded,
)
from veilcube.errors import TableError

# The frames of foreign libraries are used through the few methods named here and checked by no type checker.
Frame: TypeAlias = Any
Opened: TypeAlias = tuple[Sequence[str], Callable[[Sequence[str]], pa.RecordBatchReader]]

ROWS_PER_BATCH = 2**16
_EXACT_FLOATS = 2**53
_MOST_DIGITS = 400


def is_frame(source: object) -> bool:
    """Tell whether a source is a table in memory that can be streamed."""
    known = isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader | duckdb.DuckDBPyRelation)
    return known or _class_of(source) in _FOREIGN or hasattr(source, "__arrow_c_stream__")


def open_frame(engine: Engine, source: Frame, wanted: Sequence[str] | None) -> Part:
    """Open a table in memory; ``wanted`` None means every column."""
    called = "the table"
    broken = always(f"{called} cannot be read; check that every row of it can be computed and that its types are plain")
    require_declared_types(shielded(lambda: _plan_of(source), broken), called)
    names, stream = shielded(lambda: _opener(source)(source), broken)
    require_columns(names, names if wanted is None else wanted, called)
    chosen = list(names if wanted is None else wanted)

    def opened() -> Part:
        return part_of(engine.stream(stream(chosen)), chosen, called, broken)

    return shielded(opened, broken)


def _opener(source: Frame) -> Callable[[Frame], Opened]:
    if isinstance(source, duckdb.DuckDBPyRelation):
        return _from_relation
    if isinstance(source, pa.RecordBatchReader):
        return _from_reader
    if isinstance(source, pa.RecordBatch):
        return lambda batch: _from_arrow_table(pa.Table.from_batches([batch]))
    if isinstance(source, pa.Table):
        return _from_arrow_table
    return _FOREIGN.get(_class_of(source), lambda frame: _from_reader(pa.RecordBatchReader.from_stream(frame)))


def _plan_of(source: Frame) -> str:
    """Return how a source that is not computed yet will be, where a library tells; else nothing."""
    if isinstance(source, duckdb.DuckDBPyRelation) or _class_of(source) == ("polars", "LazyFrame"):
        return str(source.explain())
    if _class_of(source)[0] != "pyarrow":
        return ""
    if _class_of(source)[1] == "CSVStreamingReader":
        return "csv scan"
    file_format = getattr(source, "format", None)
    formats = "" if file_format is None else f"{file_format.default_extname} scan"
    return formats + "".join(_plan_of(child) for child in getattr(source, "children", ()))


def _class_of(source: object) -> tuple[str, str]:
    return type(source).__module__.split(".")[0], type(source).__name__


def _positions(names: Sequence[str]) -> list[str]:
    """Name columns by position, so that names which differ in case only stay apart in SQL."""
    return [f"column{position}" for position in range(len(names))]


def _from_arrow_table(table: pa.Table) -> Opened:
    def stream(chosen: Sequence[str]) -> pa.RecordBatchReader:
        return table.select(chosen).rename_columns(_positions(chosen)).to_reader(ROWS_PER_BATCH)

    return table.column_names, stream


def _from_reader(reader: pa.RecordBatchReader) -> Opened:
    def stream(chosen: Sequence[str]) -> pa.RecordBatchReader:
        places = _positions(chosen)
        fields = [reader.schema.field(name).with_name(place) for name, place in zip(chosen, places, strict=True)]
        batches = (batch.select(chosen).rename_columns(places) for batch in reader)
        return pa.RecordBatchReader.from_batches(pa.schema(fields), batches)

    return reader.schema.names, stream


def _from_dataset(dataset: Frame) -> Opened:
    def stream(chosen: Sequence[str]) -> pa.RecordBatchReader:
        scanner = dataset.scanner(
            columns=list(chosen), batch_size=ROWS_PER_BATCH, batch_readahead=2, fragment_readahead=1
        )
        return _from_reader(scanner.to_reader())[1](chosen)

    return dataset.schema.names, stream


def _from_relation(relation: duckdb.DuckDBPyRelation) -> Opened:
    """Run the relation on its own connection, so that it means there what its owner meant, and stream the result."""

    def stream(chosen: Sequence[str]) -> pa.RecordBatchReader:
        renamed = (f"{quoted(name)} AS {place}" for name, place in zip(chosen, _positions(chosen), strict=True))
        return relation.project(", ".join(renamed)).to_arrow_reader(ROWS_PER_BATCH)

    return relation.columns, stream


def _from_polars(frame: Frame) -> Opened:
    def stream(chosen: Sequence[str]) -> pa.RecordBatchReader:
        renamed = frame.select(chosen).rename(dict(zip(chosen, _positions(chosen), strict=True)))
        return pa.RecordBatchReader.from_stream(renamed)

    return frame.columns, stream


def _from_polars_lazy(frame: Frame) -> Opened:
    def stream(chosen: Sequence[str]) -> pa.RecordBatchReader:
        renamed = frame.select(chosen).rename(dict(zip(chosen, _positions(chosen), strict=True)))
        layout = renamed.head(0).collect().to_arrow().schema

        def batches() -> Iterator[pa.RecordBatch]:
            for rows in renamed.collect_batches(chunk_size=ROWS_PER_BATCH, maintain_order=False):
                yield from rows.to_arrow().cast(layout).to_batches()

        return pa.RecordBatchReader.from_batches(layout, batches())

    return frame.collect_schema().names(), stream


def _from_pandas(frame: Frame) -> Opened:
    names = [str(name) for name in frame.columns]

    def stream(chosen: Sequence[str]) -> pa.RecordBatchReader:
        columns = [frame.iloc[:, names.index(name)] for name in chosen]
        layout = pa.schema(
            [(place, _arrow_type(column)) for place, column in zip(_positions(chosen), columns, strict=True)]
        )

        def batches() -> Iterator[pa.RecordBatch]:
            for start in range(0, len(frame), ROWS_PER_BATCH):
                rows = [column.iloc[start : start + ROWS_PER_BATCH] for column in columns]
                arrays = [_arrow_array(values, kind) for values, kind in zip(rows, layout.types, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=layout)

        return pa.RecordBatchReader.from_batches(layout, batches())

    return names, stream


def _holds_objects(column: Frame) -> bool:
    """Tell whether a pandas column holds Python objects, which may be of mixed types and are compared as text."""
    categories = getattr(column.dtype, "categories", None)
    return str(column.dtype if categories is None else categories.dtype) == "object"


def _arrow_type(column: Frame) -> pa.DataType:
    return pa.string() if _holds_objects(column) else pa.array(column.iloc[:0], from_pandas=True).type


def _arrow_array(column: Frame, kind: pa.DataType) -> pa.Array:
    if _holds_objects(column):
        column = column.astype("object").map(_spelled, na_action="ignore")
    array = pa.array(column, from_pandas=True)
    return array if array.type == kind else array.cast(kind)


def _spelled(value: Frame) -> str:
    """Write a value of a column of mixed types as ``normalising`` writes it where all values are of its type."""
    if isinstance(value, np.generic):
        value = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | Decimal):
        return _spelled_number(value)
    if isinstance(value, datetime):
        return _spelled_instant(value)
    # Members of enumerations are numbers or texts as well, and write themselves in other words.
    for kind in (str, int, date, UUID):
        if isinstance(value, kind):
            return kind.__str__(value) if kind is not int else int.__repr__(value)
    raise TableError("a column of mixed types holds something other than text, numbers and dates; convert it")


def _spelled_number(value: float | Decimal) -> str:
    if isinstance(value, float) and _EXACT_FLOATS <= abs(value) < math.inf:
        raise TableError(LOST_DIGITS)
    if -_EXACT_FLOATS < value < _EXACT_FLOATS and value == int(value):
        return str(int(value))
    if isinstance(value, float):
        return float.__repr__(value)
    if not value.is_finite() or abs(value.adjusted()) >= _MOST_DIGITS:
        return str(value)
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _spelled_instant(moment: datetime) -> str:
    if moment.tzinfo is None and moment.time() == time.min and not getattr(moment, "nanosecond", 0):
        return moment.date().isoformat()
    zone = "" if moment.tzinfo is None else "+00"
    text = (moment.astimezone(UTC) if zone else moment).isoformat(sep=" ").removesuffix("+00:00")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + zone


_FOREIGN: dict[tuple[str, str], Callable[[Frame], Opened]] = {
    ("pandas", "DataFrame"): _from_pandas,
    ("polars", "DataFrame"): _from_polars,
    ("polars", "LazyFrame"): _from_polars_lazy,
    # Told by name, because importing pyarrow.dataset also imports pandas wherever that is installed.
    ("pyarrow", "FileSystemDataset"): _from_dataset,
    ("pyarrow", "InMemoryDataset"): _from_dataset,
    ("pyarrow", "UnionDataset"): _from_dataset,
}
