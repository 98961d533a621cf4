"""What hands a release over: tables as files, and all cells as arrays and frames."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veilcube.analyst.export.cells import (
    BYTES_PER_ROW,
    WAYS_OUT,
    cells_to_pandas,
    cells_to_parquet,
    cells_to_xarray,
    listed,
    require_writable,
)
from veilcube.analyst.export.exporting import Exporting
from veilcube.analyst.export.files import Facts, require_workbook, table_format, write_tables
from veilcube.analyst.export.inside import save_with_tables
from veilcube.analyst.export.tables import (
    CountTable,
    Manner,
    attributes_of,
    measured_tables,
    read_attributes,
    size_of,
)
from veilcube.analyst.export.whole import whole_parts, whole_table
from veilcube.errors import QueryError, ReleaseFileError
from veilcube.query import read_confidence
from veilcube.schema import Schema, read_groupings
from veilcube.system import Floats, Integers, atomic_file, read_flag, read_path, require_cells

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LARGEST_WHOLE = 2**22
# Sums of units of a row must stay within 64 bits.
MOST_ROWS_COUNTED = 2**40


class Exports:
    """Tables, arrays and frames of whatever answers as a release does."""

    def save(self: Exporting, path: str | Path, *, tables: bool | None = None) -> None:
        """Write the release to a file, whole or not at all.

        With ``tables``, R, pandas and xarray read estimates from it without knowing what was measured. Unless said, a
        release of few cells has them, where no model of all rows must be fitted for them.
        """
        save_with_tables(self, path, None if tables is None else read_flag(tables, "tables"))

    def export(
        self: Exporting,
        path: str | Path,
        by: Sequence[str] | None = None,
        whole: bool = False,
        *,
        round: int | None = None,
        suppress: int | None = None,
        preset: str | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Path:
        """Write labelled tables of counts with their intervals to a .csv, .csv.gz, .parquet or .xlsx file.

        One table over the attributes ``by``, or levels of their hierarchies ("job:Level 1"), or every table that was
        measured. ``whole`` adds a column of whole numbers
        of at least 0 that add up. ``round`` shows multiples of a number, ``suppress`` leaves counts below one empty,
        and a ``preset`` is a common choice of both by its name ("tens", "hundreds", "no-small", "publication"): all for
        the eye only, since the noise is what protects.
        """
        target = read_path(path, "the path of an export", ReleaseFileError)
        kind, manner = table_format(target), Manner.read(round, suppress, preset)
        is_whole = read_flag(whole, "whole")
        read_confidence(confidence)
        wanted = measured_tables(self.record) if by is None else [read_attributes(self.schema, by)]
        _require_size(self.schema, wanted, kind, is_whole=is_whole)
        with atomic_file(target) as stream:
            tables = [
                CountTable(self.schema, names, self.marginal(*names, estimator=estimator, confidence=confidence))
                for names in wanted
            ]
            if is_whole:
                tables = _with_whole(self, tables, estimator)
            facts = Facts.of(self.record, confidence, tables[0].answers.estimator, manner.notes)
            write_tables(stream, kind, [manner.shown(table) for table in tables], self.schema, facts)
        return target

    def to_xarray(self: Exporting, *, estimator: str = "best") -> "xr.DataArray":
        """Return the estimated count of every cell as a labelled array."""
        return cells_to_xarray(self.record, lambda: self._estimate(estimator))

    def to_pandas(self: Exporting, *, estimator: str = "best", confidence: float = 0.95) -> "pd.DataFrame":
        """Return one row per cell: its labels, estimate, interval and standard deviation."""
        return cells_to_pandas(self.record, lambda: self._estimate(estimator), read_confidence(confidence))

    def to_parquet(self: Exporting, path: str | Path, *, estimator: str = "best", confidence: float = 0.95) -> None:
        """Write one row per cell to a Parquet file, a part at a time."""
        target = read_path(path, "the path of a Parquet file", ReleaseFileError)
        cells_to_parquet(self.record, lambda: self._estimate(estimator), read_confidence(confidence), target)


def _require_size(schema: Schema, tables: Sequence[tuple[str, ...]], kind: str, *, is_whole: bool) -> None:
    """Refuse, before any work, more rows than anybody could use."""
    rows, names = size_of(schema, tables), attributes_of(schema, tables)
    require_writable(rows, names)
    require_cells(max(size_of(schema, [table]) for table in tables), BYTES_PER_ROW, "a table", WAYS_OUT)
    if kind == ".xlsx":
        require_workbook(rows)
    if is_whole and max(size_of(schema, [table]) for table in tables) > LARGEST_WHOLE:
        raise QueryError(
            f"a table over {listed(names)} has more than the {LARGEST_WHOLE:,} rows that whole numbers are found for; "
            "leave out whole, or export fewer attributes (by=)"
        )


def _with_whole(release: Exporting, tables: Sequence[CountTable], estimator: str) -> list[CountTable]:
    """Return tables with whole numbers; all have the same total, and the same counts of any one attribute."""
    schema = release.schema
    every = release.count(estimator=estimator)
    total = max(0, round(float(np.asarray(every.value))))
    if total > MOST_ROWS_COUNTED:
        raise QueryError(f"the release counts about {total:,} rows, too many for whole numbers; leave out whole")
    margins: dict[str, Integers] = {}
    for name in attributes_of(schema, [table.names for table in tables]):
        margins[name] = whole_parts(_values(release, tables, name, estimator), total)
    return [
        CountTable(
            schema,
            table.names,
            table.answers,
            whole_table(table.answers.value, [margins[name] for name in table.names], _possible(schema, table.names)),
        )
        for table in tables
    ]


def _values(release: Exporting, tables: Sequence[CountTable], name: str, estimator: str) -> Floats:
    """Return the estimated counts of one attribute, found already or asked for."""
    for table in tables:
        if table.names == (name,):
            return table.answers.value
    return release.marginal(name, estimator=estimator).value


def _possible(schema: Schema, names: Sequence[str]) -> np.ndarray | None:
    """Return which cells of a table any row may lie in; None if all."""
    groupings = read_groupings(schema, names)
    axes = [grouping.axis for grouping in groupings]
    possible = np.ones([schema.shape[axis] for axis in axes], dtype=np.bool_)
    for masks in schema.impossible_boxes:
        if all(mask.all() for axis, mask in enumerate(masks) if axis not in axes):
            possible[np.ix_(*(masks[axis] for axis in axes))] = False
    for place, grouping in enumerate(groupings):
        possible = np.logical_or.reduceat(possible, grouping.first, axis=place)
    return None if possible.all() else possible
