"""All cells of a release in the shapes that other tools read: xarray, pandas, Parquet.

The estimate is handed in as a function, since fitting it may take a minute: what is refused is refused before.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from veilcube.analyst.estimate import Estimate
from veilcube.errors import QueryError, quoted
from veilcube.privacy import PrivacyStatement
from veilcube.record import ReleaseRecord
from veilcube.schema import Attribute, Ordinal, WholeNumbers
from veilcube.system import atomic_file, format_bytes, load_extra, require_cells

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

ROWS_PER_PART = 1_000_000
# A minute of work, and up to some gigabytes of text.
LARGEST_TABLE = 2**24
LARGEST_ARRAY = 2**32
BYTES_OF_A_ROW_AS_TEXT = 60
MOST_NAMES = 6
# Beside the labels: four columns, as parts, as one table, and as a frame of its own.
BYTES_PER_ROW = 4 * 8 * 3
BYTES_PER_LABEL = 8 * 3
# The estimate, what it is solved from, and copies of either on the way.
BYTES_PER_CELL = 8 * 6
WAYS_OUT = "ask for counts or marginals, or write tables of fewer attributes with export"


def cells_to_xarray(record: ReleaseRecord, estimate: Callable[[], Estimate]) -> "xr.DataArray":
    """Return the estimated count of every cell as a labelled array, the promise in its attributes."""
    xarray = load_extra("xarray", "a labelled array", "xarray")
    if record.schema.cells > LARGEST_ARRAY:
        raise QueryError(f"an array of all {record.schema.cells:,} cells fits no memory; {WAYS_OUT}")
    require_cells(record.schema.cells, BYTES_PER_CELL, "a labelled array", WAYS_OUT)
    found: xr.DataArray = xarray.DataArray(
        estimate().cells(),
        dims=record.schema.names,
        coords={attribute.name: np.array(axis_values(attribute)) for attribute in record.schema},
        name="count",
        attrs={"privacy": record.statement.words, **_promised(record.statement)},
    )
    return found


def _promised(statement: PrivacyStatement) -> dict[str, float]:
    """Return what is promised in numbers: epsilon, and where it is not promised alone, delta and rho."""
    if statement.rho is None:
        return {"epsilon": float(statement.epsilon)}
    return {"epsilon": float(statement.epsilon), "delta": float(statement.delta), "rho": float(statement.rho)}


def cells_to_pandas(record: ReleaseRecord, estimate: Callable[[], Estimate], confidence: float) -> "pd.DataFrame":
    """Return one row per cell as a data frame; labels that repeat are categories."""
    load_extra("pandas", "a data frame", "pandas")
    require_writable(record.schema.cells, record.schema.names)
    each = BYTES_PER_ROW + BYTES_PER_LABEL * len(record.schema)
    require_cells(record.schema.cells, each, "a data frame", WAYS_OUT)
    table = pa.Table.from_batches(list(_parts(record, estimate, confidence)))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def cells_to_parquet(record: ReleaseRecord, estimate: Callable[[], Estimate], confidence: float, path: Path) -> None:
    """Write one row per cell to a Parquet file, a part at a time, whole or not at all."""
    parts = _parts(record, estimate, confidence)
    first = next(parts)
    with atomic_file(path) as stream, pq.ParquetWriter(stream, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for part in parts:
            writer.write_batch(part)


def require_writable(rows: int, names: Sequence[str]) -> None:
    """Refuse, before any work, a table of so many rows over some attributes that nobody could use it."""
    if rows > LARGEST_TABLE:
        raise QueryError(
            f"a table over {listed(names)} has {rows:,} rows, about {format_bytes(rows * BYTES_OF_A_ROW_AS_TEXT)} as "
            f"text, and at most {LARGEST_TABLE:,} rows are written; ask for counts or marginals, or export fewer "
            "attributes (by=)"
        )


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them, the first ones if they are many.

    >>> listed(["age"]), listed(["age", "sex", "job"])
    ('age', 'age, sex and job')
    """
    shown = [quoted(name) for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        return f"{', '.join(shown)} and {len(names) - MOST_NAMES} more attributes"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _parts(record: ReleaseRecord, estimate: Callable[[], Estimate], confidence: float) -> Iterator[pa.RecordBatch]:
    schema = record.schema
    require_writable(schema.cells, schema.names)
    fitted = estimate()
    labels = [pa.array(axis_values(attribute)) for attribute in schema]
    for start in range(0, schema.cells, ROWS_PER_PART):
        flat = np.arange(start, min(start + ROWS_PER_PART, schema.cells), dtype=np.int64)
        index = np.stack(np.unravel_index(flat, schema.shape), axis=1).astype(np.int64)
        found = fitted.rectangles(index, index, confidence)
        columns = {attribute.name: label_column(labels[axis], index[:, axis]) for axis, attribute in enumerate(schema)}
        columns |= {name: pa.array(getattr(found, name)) for name in ("value", "low", "high", "stddev")}
        yield pa.RecordBatch.from_pydict(columns)


def label_column(labels: pa.Array, index: NDArray[np.int64]) -> pa.Array:
    """Return a label for each row, texts as categories."""
    if pa.types.is_string(labels.type):
        return pa.DictionaryArray.from_arrays(pa.array(index, type=pa.int32()), labels)
    return labels.take(pa.array(index))


def axis_values(attribute: Attribute) -> list[object]:
    """Return whole numbers as numbers when no stray cell forces texts, else the cells' labels."""
    labels = attribute.labels()
    plain = attribute.regular_size == attribute.size
    if isinstance(attribute, Ordinal) and isinstance(attribute.division, WholeNumbers) and plain:
        return [int(label) for label in labels]
    return list(labels)
