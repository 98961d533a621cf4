"""Open any supported source as a table of the counting engine."""

import os
from collections.abc import Sequence

from veilcube.curator.tables.csv_files import is_csv, open_csv
from veilcube.curator.tables.databases import is_url, open_database
from veilcube.curator.tables.engine import Engine
from veilcube.curator.tables.frames import is_frame, open_frame
from veilcube.curator.tables.parquet_files import is_parquet, open_parquet
from veilcube.curator.tables.paths import find_files
from veilcube.curator.tables.table import Table
from veilcube.errors import TableError

SUPPORTED = (
    "a CSV or Parquet path or glob, a list of paths, a pandas or polars frame, Arrow data, a DuckDB relation, "
    "or a database URL (duckdb:///, postgresql://) with table="
)


def open_table(engine: Engine, source: object, wanted: Sequence[str] | None, table: str | None = None) -> Table:
    """Open a source for reading the ``wanted`` columns, or all columns if that is None."""
    if is_url(source):
        return Table((open_database(engine, str(source), table, wanted),))
    if table is not None:
        raise TableError("table= goes with a database URL such as duckdb:///file.db; leave it out for other sources")
    if isinstance(source, str | os.PathLike | list | tuple):
        return _open_files(engine, source, wanted or ())
    if type(source).__module__.startswith("pyspark"):
        raise TableError("Spark frames are not supported yet; write the frame to Parquet and count those files")
    if is_frame(source):
        return Table((open_frame(engine, source, wanted),))
    raise TableError(f"a {type(source).__name__} cannot be counted; give {SUPPORTED}")


def _open_files(
    engine: Engine, source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], wanted: Sequence[str]
) -> Table:
    files = find_files(source)
    parquet = [path for path in files if is_parquet(path)]
    rest = [path for path in files if path not in set(parquet)]
    for path in rest:
        if not is_csv(path):
            raise TableError(
                f"the file {path} is neither CSV nor Parquet by its name; rename it to .csv, .csv.gz or .parquet, "
                f"or, if it is a DuckDB database, write duckdb:///{path} and table="
            )
    parts, rows = open_parquet(engine, parquet, wanted)
    return Table((*parts, *open_csv(engine, rest, wanted)), rows=None if rest else rows)
