"""The private rows behind a protected table, read once and kept, so that no question can meet a row that is refused.

The table is read, and checked against the schema, when it is put behind its budget: what an analyst asks later reads
what was kept then, and a source that changes, or that can be read only once, changes no answer. A cube that is small
enough is kept as it is. Otherwise the cells of every row are kept in a file without a name, which the operating system
removes with the process, and each question counts the attributes that it mentions. Of a person at most ``max_rows``
rows are kept, chosen by all attributes of the schema, because what is spent on parts of a partition adds up only over
one fixed choice.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.counting import columns_of, count
from veilcube.curator.cube import Cube, require_table
from veilcube.curator.pushdown import is_remote
from veilcube.curator.streaming import PlacedRows, listed_batches, placed_batches
from veilcube.curator.tables import Engine, add_to_counts, open_table
from veilcube.errors import CapacityError, TableError
from veilcube.operators import group_cells
from veilcube.privacy import PrivacyUnit, Private
from veilcube.schema import Box, Region, Schema
from veilcube.system import Integers, require_memory

# 128 MiB of counts: less than what the engine takes to read a table.
LARGEST_CUBE_KEPT = 2**24
# The counts of a question, a weighted copy of them, and room for one more: 64 bits each.
BYTES_WHILE_COUNTING = 3 * 8


@dataclass(frozen=True, eq=False)
class PrivateRows(Private):
    """The rows of a source, by its schema and unit. PRIVATE: its repr shows nothing of the rows."""

    source: InitVar[object]
    schema: Schema
    unit: PrivacyUnit
    table: InitVar[str | None] = None
    _kept: "Cube | _CellsOfRows" = field(init=False, repr=False)

    def __post_init__(self, source: object, table: str | None) -> None:
        if isinstance(source, Cube):
            if source.schema != self.schema or source.unit != self.unit:
                raise TableError(
                    "the cube has another schema or privacy unit than the protected table; leave those out"
                )
            kept: Cube | _CellsOfRows = source
        elif self.schema.cells > LARGEST_CUBE_KEPT:
            kept = _CellsOfRows(source, self.schema, self.unit, table)
        else:
            most = self.unit.max_rows if self.unit.kind == "person" else None
            kept = count(source, self.schema, self.unit.column, most, table=table)
        object.__setattr__(self, "_kept", kept)

    @property
    def exact_rows(self) -> float:
        """How many rows there are: private, but where neighbours exchange rows."""
        return self._kept.exact_rows

    def require_room(self, axes: Sequence[int], bytes_each: int = BYTES_WHILE_COUNTING) -> None:
        """Refuse, from public facts, a question whose counts would not fit: to be asked before it is paid for."""
        cells = float(np.prod([self.schema.shape[axis] for axis in axes], dtype=np.float64))
        require_memory(int(bytes_each * cells), f"counting {cells:,.0f} cells")

    def counts_within(self, region: Region, axes: Sequence[int]) -> Integers:
        """Return the exact counts over the cells of some axes, in their order, of the rows in a region. PRIVATE."""
        if isinstance(self._kept, _CellsOfRows):
            return self._kept.counts_within(region, axes)
        counts, _ = group_cells(self._kept.exact_counts, region, axes)
        return counts


class _CellsOfRows(Private):
    """The cell of every row on every axis, in batches of columns; silent about what it holds."""

    def __init__(self, source: object, schema: Schema, unit: PrivacyUnit, table: str | None) -> None:
        self._shape = schema.shape
        self._types = [np.min_scalar_type(size - 1) for size in schema.shape]
        self._batches: list[tuple[int, int]] = []  # where each begins in the file, and its rows
        self._file = TemporaryFile(prefix="veilcube-")  # noqa: SIM115  (lives as long as the table)
        if is_remote(source):
            for batch in listed_batches(source, table, schema, unit):
                self._keep(batch)
        else:
            with Engine() as engine:
                opened = open_table(engine, source, columns_of(schema, unit), table)
                for batch in placed_batches(engine, opened, schema, unit):
                    self._keep(batch)
        require_table(self.exact_rows)

    @property
    def exact_rows(self) -> float:
        """How many rows there are: private."""
        return float(sum(rows for _, rows in self._batches))

    def counts_within(self, region: Region, axes: Sequence[int]) -> Integers:
        """Count the cells of some axes over the rows in a region. PRIVATE."""
        sizes = tuple(self._shape[axis] for axis in axes)
        counts = np.zeros(sizes, dtype=np.int64)
        narrowed = {axis for box in region.boxes for axis, chosen in enumerate(box.chosen) if chosen is not None}
        for rows, cells in self._columns(sorted(narrowed | set(axes))):
            inside = np.zeros(rows, dtype=np.bool_)
            for box in region.boxes:
                masks = [_held(box, axis, cells[axis]) for axis, some in enumerate(box.chosen) if some is not None]
                inside |= np.logical_and.reduce(masks) if masks else True
            chosen = [cells[axis][inside] for axis in axes]
            flat = np.ravel_multi_index(chosen, sizes) if axes else np.zeros(np.count_nonzero(inside), dtype=np.int64)
            add_to_counts(flat.astype(np.int64, copy=False), counts.reshape(-1))
        return counts

    def _keep(self, batch: PlacedRows) -> None:
        self._batches.append((self._file.tell(), batch.rows))
        for axis, kind in enumerate(self._types):
            self._write(batch.along(axis).astype(kind).tobytes())

    def _write(self, column: bytes) -> None:
        try:
            self._file.write(column)
            self._file.flush()
        except OSError:
            raise CapacityError(
                "there is not enough temporary disk space to keep the rows of so wide a table; free some, or name a "
                "folder with more in TMPDIR"
            ) from None

    def _columns(self, needed: Sequence[int]) -> Iterator[tuple[int, dict[int, Integers]]]:
        """Read, batch by batch, how many rows there are and their cells on the needed axes."""
        before = np.cumsum([0, *(kind.itemsize for kind in self._types)]).tolist()
        descriptor = self._file.fileno()
        for start, rows in self._batches:
            cells = {}
            for axis in needed:
                # Read by its place, so that questions of several threads share the file.
                wanted = rows * self._types[axis].itemsize
                found = os.pread(descriptor, wanted, start + rows * before[axis])
                cells[axis] = np.frombuffer(found, dtype=self._types[axis]).astype(np.int64)
            yield rows, cells


def _held(box: Box, axis: int, cells: Integers) -> NDArray[np.bool_]:
    """Say of each row whether a box has its cell on one axis."""
    run = box.run(axis)
    return box.mask(axis)[cells] if run is None else (cells >= run.start) & (cells < run.stop)
