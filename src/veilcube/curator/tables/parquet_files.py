"""Parquet files: the footer tells names and types; only the wanted columns are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from veilcube.curator.tables.engine import Engine
from veilcube.curator.tables.paths import without_wildcards
from veilcube.curator.tables.table import Part, always, literal, part_of, require_columns, shielded

SUFFIXES = (".parquet", ".parq", ".pq")

_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Layout:
    """The columns' names and types, in order."""

    names: tuple[str, ...]
    types: tuple[str, ...]


def is_parquet(path: Path) -> bool:
    """Tell by its name or its first bytes whether a file is Parquet."""
    if path.name.lower().endswith(SUFFIXES):
        return True
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def open_parquet(engine: Engine, paths: Sequence[Path], wanted: Sequence[str]) -> tuple[list[Part], int]:
    """Open Parquet files, those with the same columns and types together; also return how many rows they hold."""
    by_layout: dict[Layout, list[Path]] = {}
    rows = 0
    for path in paths:
        layout, found = _read_footer(path)
        require_columns(layout.names, wanted, f"the file {path}")
        by_layout.setdefault(layout, []).append(path)
        rows += found
    return [_open_alike(engine, layout, alike) for layout, alike in by_layout.items()], rows


def _read_footer(path: Path) -> tuple[Layout, int]:
    def footer() -> tuple[Layout, int]:
        with pq.ParquetFile(path) as file:
            columns = file.schema_arrow
            return Layout(tuple(columns.names), tuple(str(kind) for kind in columns.types)), file.metadata.num_rows

    return shielded(footer, always(_broken(f"the file {path}")))


def _open_alike(engine: Engine, layout: Layout, paths: Sequence[Path]) -> Part:
    called = f"the file {paths[0]}" if len(paths) == 1 else f"one of the {len(paths)} Parquet files"
    files = ", ".join(literal(without_wildcards(path)) for path in paths)
    sql = f"SELECT * FROM read_parquet([{files}], hive_partitioning=false, union_by_name=false)"
    broken = always(_broken(called))

    def opened() -> Part:
        return part_of(engine.query(sql), layout.names, called, broken)

    return shielded(opened, broken)


def _broken(called: str) -> str:
    return f"{called} is not a readable Parquet file; it may be truncated or damaged: write it again"
