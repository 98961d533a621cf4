"""Whole releases in the shapes that other tools read: xarray, pandas, Parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from veilcube.analyst.estimate import Estimate
from veilcube.errors import QueryError
from veilcube.privacy import PrivacyStatement
from veilcube.record import ReleaseRecord
from veilcube.schema import Attribute, Ordinal, WholeNumbers
from veilcube.system import atomic_file, require_cells

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

ROWS_PER_PART = 1_000_000
# Some hundred gigabytes and hours of work.
LARGEST_TABLE = 2**32
# Beside the labels: four columns, as parts, as one table, and as a frame of its own.
BYTES_PER_ROW = 4 * 8 * 3
BYTES_PER_LABEL = 8 * 3
# The estimate, what it is solved from, and copies of either on the way.
BYTES_PER_CELL = 8 * 6
WAYS_OUT = "ask for counts or marginals, or write the cells with to_parquet, a part at a time"


def cells_to_xarray(record: ReleaseRecord, estimate: Estimate) -> "xr.DataArray":
    """Return the estimated count of every cell as a labelled array, the promise in its attributes."""
    import xarray as xr  # noqa: PLC0415 - xarray is an extra, needed only by who asks for it

    _require_writable(record)
    require_cells(record.schema.cells, BYTES_PER_CELL, "a labelled array", WAYS_OUT)
    return xr.DataArray(
        estimate.cells(),
        dims=record.schema.names,
        coords={attribute.name: np.array(_axis_values(attribute)) for attribute in record.schema},
        name="count",
        attrs={"privacy": record.statement.words, **_promised(record.statement)},
    )


def _promised(statement: PrivacyStatement) -> dict[str, float]:
    """Return what is promised in numbers: epsilon, and where it is not promised alone, delta and rho."""
    if statement.rho is None:
        return {"epsilon": float(statement.epsilon)}
    return {"epsilon": float(statement.epsilon), "delta": float(statement.delta), "rho": float(statement.rho)}


def cells_to_pandas(record: ReleaseRecord, estimate: Estimate, confidence: float) -> "pd.DataFrame":
    """Return one row per cell as a data frame; labels that repeat are categories."""
    import pandas as pd  # noqa: PLC0415 - pandas is an extra, needed only by who asks for it

    _require_writable(record)
    each = BYTES_PER_ROW + BYTES_PER_LABEL * len(record.schema)
    require_cells(record.schema.cells, each, "a data frame", WAYS_OUT)
    table = pa.Table.from_batches(list(_parts(record, estimate, confidence)))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def cells_to_parquet(record: ReleaseRecord, estimate: Estimate, confidence: float, path: Path) -> None:
    """Write one row per cell to a Parquet file, a part at a time, whole or not at all."""
    parts = _parts(record, estimate, confidence)
    first = next(parts)
    with atomic_file(path) as stream, pq.ParquetWriter(stream, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for part in parts:
            writer.write_batch(part)


def _require_writable(record: ReleaseRecord) -> None:
    if record.schema.cells > LARGEST_TABLE:
        raise QueryError(
            f"a table of all {record.schema.cells:,} cells is too long to write, at most {LARGEST_TABLE:,} can be; ask "
            "for counts or marginals"
        )


def _parts(record: ReleaseRecord, estimate: Estimate, confidence: float) -> Iterator[pa.RecordBatch]:
    _require_writable(record)
    schema = record.schema
    labels = [pa.array(_axis_values(attribute)) for attribute in schema]
    for start in range(0, schema.cells, ROWS_PER_PART):
        flat = np.arange(start, min(start + ROWS_PER_PART, schema.cells), dtype=np.int64)
        index = np.stack(np.unravel_index(flat, schema.shape), axis=1).astype(np.int64)
        found = estimate.rectangles(index, index, confidence)
        columns = {attribute.name: _label_column(labels[axis], index[:, axis]) for axis, attribute in enumerate(schema)}
        columns |= {name: pa.array(getattr(found, name)) for name in ("value", "low", "high", "stddev")}
        yield pa.RecordBatch.from_pydict(columns)


def _label_column(labels: pa.Array, index: NDArray[np.int64]) -> pa.Array:
    if pa.types.is_string(labels.type):
        return pa.DictionaryArray.from_arrays(pa.array(index, type=pa.int32()), labels)
    return labels.take(pa.array(index))


def _axis_values(attribute: Attribute) -> list[object]:
    """Return whole numbers as numbers when no stray cell forces texts, else the cells' labels."""
    labels = attribute.labels()
    plain = attribute.regular_size == attribute.size
    if isinstance(attribute, Ordinal) and isinstance(attribute.division, WholeNumbers) and plain:
        return [int(label) for label in labels]
    return list(labels)
