"""CSV files, plain or compressed with gzip: every field is read as text, and only the header decides how.

Nothing is guessed from the rows. The delimiter is the one that finds the wanted columns in the header, which is public;
quotes and line ends follow RFC 4180 (``csv_rows``). A file whose first line holds none of the wanted columns may have
no header at all, so that line may be a private row and is never shown.
"""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from veilcube.curator.tables.csv_rows import CARRIAGE_RETURN, LINE_FEED, CsvRows, Layout, opened_bytes
from veilcube.curator.tables.engine import Engine
from veilcube.curator.tables.table import Part, always, part_of, require_columns, shielded
from veilcube.errors import TableError

SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".data", ".dat")

_DELIMITERS = (",", ";", "\t", "|")
_GZIP_MAGIC = b"\x1f\x8b"
_NUMBER_OR_DATE = re.compile(r"^[-+.,:/\d\s]*$")
_HEADER_CHARACTERS = 2**20
_FIRST_RECORD = re.compile(r'(?:"[^"]*"|[^"\r\n])*')


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
    return [_open_alike(engine, layout, alike, wanted) for layout, alike in by_layout.items()]


def read_layout(path: Path, wanted: Sequence[str] = ()) -> Layout:
    """Read a file's header, cut by the delimiter that finds the most wanted columns and, of those, the most columns."""
    unreadable = f"cannot read the file {path} as CSV; check that it is UTF-8 text, or gzip of it, with a header line"
    text, gzipped = shielded(lambda: _beginning(path), always(unreadable))
    if not text.strip():
        raise TableError(f"the file {path} is empty; a CSV file needs a header line with the column names")
    if not text.splitlines()[0].strip():
        raise TableError(f"the first line of {path} is blank; begin the file with the column names")

    ended = text[cast(re.Match[str], _FIRST_RECORD.match(text)).end() :][:2]
    line_end = CARRIAGE_RETURN if ended.startswith("\r") and ended != "\r\n" else LINE_FEED

    def layout(delimiter: str) -> Layout:
        first = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
        return Layout(delimiter, tuple(name.strip() for name in first), line_end, gzipped)

    candidates = shielded(lambda: [layout(delimiter) for delimiter in _DELIMITERS], always(unreadable))
    return max(candidates, key=lambda found: (len(set(wanted) & set(found.names)), len(found.names)))


def draft_names(path: Path) -> tuple[str, ...]:
    """Return the column names of a file that nobody has described yet; reads no row."""
    names = read_layout(path).names
    if any(_NUMBER_OR_DATE.match(name) for name in names):
        raise TableError(
            f"the first line of {path} holds numbers or blanks and does not look like column names; add a header line"
        )
    require_columns(names, names, f"the file {path}")
    return names


def _open_alike(engine: Engine, layout: Layout, paths: Sequence[Path], wanted: Sequence[str]) -> Part:
    rows = CsvRows(layout, paths, wanted)
    called = f"the file {paths[0]}" if len(paths) == 1 else f"one of the {len(paths)} CSV files"

    def explain(_: Exception) -> str:
        return rows.refusal or f"{called} cannot be read; check that nobody writes it"

    return shielded(lambda: part_of(engine.stream(rows.stream()), wanted, called, explain), explain)


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
    with opened_bytes(path, gzipped) as content, io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as text:
        return text.read(_HEADER_CHARACTERS), gzipped
