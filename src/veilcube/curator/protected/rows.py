"""The private rows behind a protected table, counted no further than a question needs.

A cube that is small enough is counted once, when the first question comes, and answers all of them. Otherwise each
question streams the table, reads the columns that it mentions, and counts the cells of those. Of a person at most
``max_rows`` rows exist, and always the same ones: they are chosen by all attributes of the schema, whatever a question
mentions, because what is spent on parts of a partition adds up only over one fixed choice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veilcube.curator.binning import CellRule
from veilcube.curator.capacity import zero_counts
from veilcube.curator.counting import columns_of, count, normalised_batches
from veilcube.curator.cube import Cube
from veilcube.curator.kernels import add_to_counts
from veilcube.curator.tables import Engine, open_table
from veilcube.errors import TableError
from veilcube.operators.grouping import group_cells
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Region, Schema

Integers = NDArray[np.int64]

# 128 MiB of counts: less than what the engine takes to read a table.
LARGEST_CUBE_KEPT = 2**24


@dataclass(frozen=True, eq=False)
class PrivateRows:
    """A source with its schema and unit. PRIVATE: its repr shows nothing of the rows."""

    source: object = field(repr=False)
    schema: Schema
    unit: PrivacyUnit
    table: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.source, Cube):
            if self.source.schema != self.schema or self.source.unit != self.unit:
                raise TableError(
                    "the cube has another schema or privacy unit than the protected table; leave those out"
                )
        elif self._counts_each_time and _is_read_once(self.source):
            raise TableError(
                "a stream of batches can be read once only, but every question about so wide a table reads it again; "
                "write the stream to Parquet and protect those files"
            )

    def counts_within(self, region: Region, axes: Sequence[int]) -> Integers:
        """Return the exact counts over the cells of some axes, in their order, of the rows in a region. PRIVATE."""
        if self._counts_each_time:
            return self._stream_counts(region, axes)
        counts, _ = group_cells(self._cube.exact_counts, region, axes)
        return counts

    @property
    def _counts_each_time(self) -> bool:
        return not isinstance(self.source, Cube) and self.schema.cells > LARGEST_CUBE_KEPT

    @cached_property
    def _cube(self) -> Cube:
        if isinstance(self.source, Cube):
            return self.source
        return count(self.source, self.schema, self.unit.column, self._most_rows, table=self.table)

    @property
    def _most_rows(self) -> int | None:
        return self.unit.max_rows if self.unit.kind == "person" else None

    def _stream_counts(self, region: Region, axes: Sequence[int]) -> Integers:
        counts = _zero_counts(self.schema, axes)
        narrowed = {axis for box in region.boxes for axis, mask in enumerate(box.axes) if mask is not None}
        needed = sorted(narrowed | set(axes)) or [0]
        sizes = tuple(self.schema.shape[axis] for axis in axes)
        for cells in self._cells(needed):
            inside = np.zeros(len(cells[needed[0]]), dtype=np.bool_)
            for box in region.boxes:
                masks = [mask[cells[axis]] for axis, mask in enumerate(box.axes) if mask is not None]
                inside |= np.logical_and.reduce(masks) if masks else True
            chosen = [cells[axis][inside] for axis in axes]
            flat = np.ravel_multi_index(chosen, sizes) if axes else np.zeros(np.count_nonzero(inside), dtype=np.int64)
            add_to_counts(flat.astype(np.int64, copy=False), counts.reshape(-1))
        return counts

    def _cells(self, needed: Sequence[int]) -> Iterator[dict[int, Integers]]:
        """Stream, for each batch of rows, the cell of every row on each needed axis."""
        # Which rows of a person are kept depends on all attributes; without persons nothing else is read.
        read = list(range(len(self.schema))) if self.unit.kind == "person" else list(needed)
        schema = Schema([self.schema.attributes[axis] for axis in read])
        rules = {axis: CellRule(self.schema.attributes[axis]) for axis in needed}
        with Engine() as engine:
            opened = open_table(engine, self.source, columns_of(schema, self.unit), self.table)
            for batch in normalised_batches(engine, opened, schema, self.unit):
                yield {axis: _cells_of(rules[axis], batch, read.index(axis)) for axis in needed}


def _cells_of(rule: CellRule, batch: pa.RecordBatch, position: int) -> Integers:
    cells = np.zeros(batch.num_rows, dtype=np.int64)
    rule.fold(batch.column(position), cells)
    return cells


def _zero_counts(schema: Schema, axes: Sequence[int]) -> Integers:
    if not axes:
        return np.zeros((), dtype=np.int64)
    return zero_counts(Schema([schema.attributes[axis] for axis in axes]))


def _is_read_once(source: object) -> bool:
    return isinstance(source, pa.RecordBatchReader)
