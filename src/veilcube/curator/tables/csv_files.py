"""CSV files, plain or compressed with gzip: every field is read as text, and only the header decides how.

Nothing is guessed from the rows. The delimiter is the one that finds the wanted columns in the header, which is public;
quotes follow RFC 4180. A file whose first line holds none of the wanted columns may have no header at all, so that line
may be a private row and is never shown.
"""

import csv
import gzip
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from veilcube.curator.tables.engine import Engine
from veilcube.curator.tables.paths import without_wildcards
from veilcube.curator.tables.table import Part, always, literal, part_of, require_columns, shielded
from veilcube.errors import TableError

SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".data", ".dat")

_DELIMITERS = (",", ";", "\t", "|")
_GZIP_MAGIC = b"\x1f\x8b"
_NUMBER_OR_DATE = re.compile(r"^[-+.,:/\d\s]*$")
_HEADER_CHARACTERS = 2**20


@dataclass(frozen=True)
class Layout:
    """What the header tells: how fields are separated, the columns' names, and whether the file is compressed."""

    delimiter: str
    names: tuple[str, ...]
    gzipped: bool


def is_csv(path: Path) -> bool:
    """Tell by its name whether a file is CSV."""
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(SUFFIXES)


def open_csv(engine: Engine, paths: Sequence[Path], wanted: Sequence[str]) -> list[Part]:
    """Open CSV files, those with the same layout together."""
    by_layout: dict[Layout, list[Path]] = {}
    for path in paths:
        layout = read_layout(path, wanted)
        _require_header(layout, wanted, f"the file {path}")
        by_layout.setdefault(layout, []).append(path)
    return [_open_alike(engine, layout, alike) for layout, alike in by_layout.items()]


def read_layout(path: Path, wanted: Sequence[str] = ()) -> Layout:
    """Read a file's header, cut by the delimiter that finds the most wanted columns and, of those, the most columns."""
    unreadable = f"cannot read the file {path} as CSV; check that it is UTF-8 text, or gzip of it, with a header line"
    text, gzipped = shielded(lambda: _beginning(path), always(unreadable))
    if not text.strip():
        raise TableError(f"the file {path} is empty; a CSV file needs a header line with the column names")
    if not text.splitlines()[0].strip():
        raise TableError(f"the first line of {path} is blank; begin the file with the column names")

    def layout(delimiter: str) -> Layout:
        first = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
        return Layout(delimiter, tuple(name.strip() for name in first), gzipped)

    candidates = shielded(lambda: [layout(delimiter) for delimiter in _DELIMITERS], always(unreadable))
    return max(candidates, key=lambda found: (len(set(wanted) & set(found.names)), len(found.names)))


def open_csv_with_types(engine: Engine, path: Path) -> Part:
    """Open one CSV file with the types that its first rows suggest, to describe its columns and not to count it."""
    layout = read_layout(path)
    called = f"the file {path}"
    if any(_NUMBER_OR_DATE.match(name) for name in layout.names):
        raise TableError(
            f"the first line of {path} holds numbers or blanks and does not look like column names; add a header line"
        )
    require_columns(layout.names, layout.names, called)
    malformed = always(f"{called} is not well-formed CSV; check its quotes, its line ends and the fields of each row")
    sql = f"SELECT * FROM {_csv_source(layout, [path], 'auto_detect=true')}"
    return shielded(lambda: part_of(engine.query(sql), layout.names, called, malformed), malformed)


def _csv_source(layout: Layout, paths: Sequence[Path], columns: str) -> str:
    """Write the table function that reads files of one layout, with ``columns`` saying how types are found."""
    files = ", ".join(literal(without_wildcards(path)) for path in paths)
    return (
        f"read_csv([{files}], delim={literal(layout.delimiter)}, quote='\"', escape='\"', header=true, skip=0, "
        f"compression='{'gzip' if layout.gzipped else 'none'}', hive_partitioning=false, {columns})"
    )


def _open_alike(engine: Engine, layout: Layout, paths: Sequence[Path]) -> Part:
    called = f"the file {paths[0]}" if len(paths) == 1 else f"one of the {len(paths)} CSV files"
    # Positions serve as names, so that names which differ in case only stay apart.
    texts = ", ".join(f"'column{position}': 'VARCHAR'" for position in range(len(layout.names)))
    sql = f"SELECT * FROM {_csv_source(layout, paths, f'auto_detect=false, columns={{{texts}}}')}"

    def explain(problem: Exception) -> str:
        text = str(problem)
        if "Expected Number of Columns" in text:
            return f"{called} has a row with more or fewer fields than its header; correct that row"
        if "unicode" in text or "utf-8" in text:
            return f"{called} is not UTF-8 text; convert it to UTF-8"
        return f"{called} is not well-formed CSV; check its quotes, its line ends and that it is complete"

    def opened() -> Part:
        return part_of(engine.query(sql), layout.names, called, explain)

    return shielded(opened, explain)


def _require_header(layout: Layout, wanted: Sequence[str], called: str) -> None:
    if wanted and not set(wanted) & set(layout.names):
        raise TableError(
            f"the first line of {called.removeprefix('the file ')} has none of the columns {', '.join(wanted)}; "
            "add a header line, or correct the names in the schema"
        )
    require_columns(layout.names, wanted, called)


def _beginning(path: Path) -> tuple[str, bool]:
    with path.open("rb") as raw:
        gzipped = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        raw.seek(0)
        content = cast(IO[bytes], gzip.GzipFile(fileobj=raw) if gzipped else raw)
        with io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as text:
            return text.read(_HEADER_CHARACTERS), gzipped
