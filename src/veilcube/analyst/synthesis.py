"""Synthetic rows in the shapes that other tools read: drawn cells become values with the types of the schema.

Whole numbers stay whole numbers, calendar cells become dates, and names become categories. A value of a bin is drawn
evenly inside it, whole if all edges are, and so is the day of a month or a year. Columns have the names that the schema
reads, so synthetic rows can be counted with it like the table itself.
"""

import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from enum import StrEnum
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from veilcube.errors import CapacityError, QueryError, ReleaseFileError
from veilcube.schema import Attribute, Bins, Calendar, Nominal, Ordinal, Schema, WholeNumbers
from veilcube.system import atomic_file, available_memory, format_bytes, load_extra, read_path, read_progress

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = NDArray[np.signedinteger[Any]]  # int32 where cell numbers allow it
Cells = NDArray[np.int32]

_EPOCH = date(1970, 1, 1)
_ROWS_PER_GROUP = 1 << 20
_BYTES_PER_VALUE = 24


def read_number_of_rows(n: object) -> int:
    """Return how many rows are wanted; refuses anything but a whole number of 1 or more."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise QueryError("the number of synthetic rows is a whole number of 1 or more")
    return int(n)


def read_target(path: str | Path | None, progress: object) -> Path | None:
    """Return the file that rows are to be written to; a name that will not do is told before they are drawn."""
    target = None if path is None else read_path(path, "the path of synthetic rows", ReleaseFileError)
    if target is None:
        load_extra("pandas", "a data frame of synthetic rows (pass path= to write a file)", "pandas")
    else:
        format_for(target)
    read_progress(progress)
    return target


def draw_cells(cells: NDArray[np.float64], number: int) -> Iterator[Rows]:
    """Yield rows as cell numbers, (rows, attributes), each cell as often as its count has a share of all."""
    generator, ends = np.random.default_rng(), np.cumsum(np.maximum(cells, 0.0).ravel())
    if not ends[-1] > 0:
        raise QueryError("no rows are left in the release once its noise is taken off, so none can be drawn")
    for start in range(0, number, _ROWS_PER_GROUP):
        places = generator.random(min(_ROWS_PER_GROUP, number - start)) * ends[-1]
        found = np.minimum(np.searchsorted(ends, places, side="right"), ends.size - 1)
        yield np.stack(np.unravel_index(found, cells.shape), axis=1).astype(np.int32)


def hand_over(
    schema: Schema,
    parts: Iterable[Rows],
    count: int,
    target: Path | None,
    privacy: str,
    progress: Callable[[float | None], None] | None,
) -> "pd.DataFrame | Path":
    """Return rows as a data frame, or write them to a file and return where."""
    if target is None:
        return rows_to_pandas(schema, parts, count)
    return write_rows(schema, parts, count, target, privacy, progress)


def rows_to_pandas(schema: Schema, parts: Iterable[Rows], count: int) -> "pd.DataFrame":
    """Return all rows as a data frame; refuses more than memory holds."""
    needed, free = count * len(schema) * _BYTES_PER_VALUE, available_memory()
    if needed > free:
        raise CapacityError(
            f"{count:,} synthetic rows need about {format_bytes(needed)} of memory, more than the "
            f"{format_bytes(free)} that are free; pass path= to write them to a file part by part"
        )
    table = pa.Table.from_batches(list(_batches(schema, parts)))
    frame: pd.DataFrame = table.to_pandas(date_as_object=False)
    # Where values are missing, pandas would turn whole numbers into floats.
    whole = [field.name for field in table.schema if pa.types.is_int64(field.type)]
    return frame.astype({name: "Int64" for name in whole if frame[name].isna().any()})


class RowsFormat(StrEnum):
    """The kinds of files that rows are written to, by the end of their names."""

    CSV = ".csv"
    ZIPPED_CSV = ".csv.gz"
    PARQUET = ".parquet"


def format_for(path: str | PathLike[str]) -> RowsFormat:
    """Return how rows are written to a file of this name; refuses names that promise anything else."""
    if not isinstance(path, str | PathLike):
        raise QueryError("path is the name of the file to write, ending in .csv, .csv.gz or .parquet")
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    ends = "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else suffixes[-1] if suffixes else ""
    if ends == ".pq":
        return RowsFormat.PARQUET
    if ends not in list(RowsFormat):
        raise QueryError(
            f"'{Path(path).name}' does not say how to write rows; end its name in .csv, .csv.gz or .parquet"
        )
    return RowsFormat(ends)


def write_rows(
    schema: Schema,
    parts: Iterable[Rows],
    count: int,
    path: Path,
    privacy: str = "",
    progress: Callable[[float | None], None] | None = None,
) -> Path:
    """Write rows to a file as they come, whole or not at all; Parquet holds the promise in its metadata."""
    written, waiting, room = 0, [], 0
    kinds, chosen = _types(schema, privacy), format_for(path)
    with atomic_file(path) as stream, _writer(stream, kinds, chosen) as writer:
        for batch in _batches(schema, parts):
            waiting.append(batch)
            room += batch.num_rows
            written += batch.num_rows
            if room >= _ROWS_PER_GROUP or written >= count:
                table = pa.Table.from_batches(waiting).replace_schema_metadata(kinds.metadata)
                writer.write_table(table if chosen == RowsFormat.PARQUET else table.cast(_plain(kinds)))
                waiting, room = [], 0
            if progress is not None:
                progress(written / count)
    return path


@contextmanager
def _writer(stream: BinaryIO, kinds: pa.Schema, chosen: RowsFormat) -> Iterator[pq.ParquetWriter | csv.CSVWriter]:
    if chosen == RowsFormat.PARQUET:
        with pq.ParquetWriter(stream, kinds, compression="zstd") as writer:
            yield writer
    elif chosen == RowsFormat.CSV:
        with csv.CSVWriter(stream, _plain(kinds)) as writer:
            yield writer
    else:
        with (
            gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as zipped,
            csv.CSVWriter(zipped, _plain(kinds)) as writer,
        ):
            yield writer


def _plain(kinds: pa.Schema) -> pa.Schema:
    """Return the types with names as text: CSV knows no categories."""
    is_category = pa.types.is_dictionary
    fields = [field.with_type(pa.string()) if is_category(field.type) else field for field in kinds]
    return pa.schema(fields, metadata=kinds.metadata)


def _batches(schema: Schema, parts: Iterable[Rows]) -> Iterator[pa.RecordBatch]:
    random, names = np.random.default_rng(), [attribute.column for attribute in schema]
    for part in parts:
        columns = [_column(attribute, part[:, axis], random) for axis, attribute in enumerate(schema)]
        yield pa.RecordBatch.from_arrays(columns, names)


def _types(schema: Schema, privacy: str) -> pa.Schema:
    random, empty = np.random.default_rng(0), np.empty(0, dtype=np.int32)
    fields = [pa.field(attribute.column, _column(attribute, empty, random).type) for attribute in schema]
    return pa.schema(fields, metadata={"veilcube.privacy": privacy} if privacy else None)


def _column(attribute: Attribute, cells: Cells, random: np.random.Generator) -> pa.Array:
    """The values of drawn cells. Missing values are null; a stray value is a name, number or day beyond the domain."""
    missing = cells == attribute.missing_cell if attribute.missing_cell is not None else None
    if isinstance(attribute, Nominal):
        labels = pa.array(attribute.labels()[: attribute.size - (attribute.missing_cell is not None)])
        index = pa.array(np.where(missing, 0, cells) if missing is not None else cells, mask=missing, type=pa.int32())
        return pa.DictionaryArray.from_arrays(index, labels)
    if not isinstance(attribute, Ordinal):
        raise AssertionError("attributes are ordinal or nominal")
    if missing is not None:
        cells = np.where(missing, 0, cells)
    division = attribute.division
    if isinstance(division, Calendar):
        return pa.array(_inside_calendar(division, cells, random), mask=missing, type=pa.int32()).cast(pa.date32())
    if isinstance(division, WholeNumbers):
        return pa.array(cells.astype(np.int64) + division.low, mask=missing)
    if isinstance(division, Bins):
        return pa.array(_inside_bins(division, cells, random), mask=missing)
    raise AssertionError("a division is whole numbers, bins or a calendar")


def _inside_calendar(calendar: Calendar, cells: Cells, random: np.random.Generator) -> NDArray[np.int32]:
    """Days since 1970, drawn evenly inside months and years; a stray value is the day after the last."""
    first = [(calendar.first_day(cell) - _EPOCH).days for cell in range(calendar.size)]
    beyond = (calendar.last_day(calendar.size - 1) - _EPOCH).days + 1
    starts = np.array([*first, beyond], dtype=np.int32)
    lengths = np.diff(np.array([*first, beyond, beyond + 1], dtype=np.int32))
    shift = np.floor(random.random(cells.size) * lengths[cells]).astype(np.int32)
    return np.asarray(starts[cells] + shift, dtype=np.int32)


def _inside_bins(bins: Bins, cells: Cells, random: np.random.Generator) -> NDArray[np.int64] | NDArray[np.float64]:
    """Numbers inside bins; a stray value lies a bin's width beyond the last edge."""
    edges = np.array([*bins.edges, 2 * bins.edges[-1] - bins.edges[-2]], dtype=np.float64)
    low, width = edges[cells], np.diff(edges)[cells]
    if all(isinstance(edge, int) for edge in bins.edges):
        shift = (cells == bins.size).astype(np.int64)
        return np.asarray((low + np.floor(random.random(cells.size) * width)).astype(np.int64) + shift)
    beyond = np.where(cells == bins.size, np.nextafter(edges[-2], np.inf) - edges[-2], 0.0)
    return np.asarray(low + random.random(cells.size) * width + beyond)
