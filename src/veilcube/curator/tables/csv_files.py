"""CSV files, plain or compressed with gzip: every field is read as text, and only the header decides how.

Nothing is guessed from the rows. The delimiter is the one that finds the wanted columns in the header, which is public.
A file whose first line holds none of the wanted columns may have no header at all, so that line may be a private row
and is never shown.

Rows follow RFC 4180 strictly. A quote may stand at the beginning of a field only, and after the closing one come a
delimiter, a line end or the end of the file. Readers that take a quote anywhere let one row swallow thousands, up to
the next quote; here each record of a well-formed file is one row, whatever other records hold, so one row more changes
one count by one. Lines end as the header does: with LF or CR LF, or with CR alone. Blank lines are no rows, unless the
file has one column only: there they are rows without a value.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veilcube.curator.tables.engine import Engine
from veilcube.curator.tables.loops import compiled
from veilcube.curator.tables.table import Part, always, part_of, require_columns, shielded
from veilcube.errors import TableError
from veilcube.system import Integers

Bytes: TypeAlias = NDArray[np.uint8]
Offsets: TypeAlias = NDArray[np.int32]

QUOTE, LINE_FEED, CARRIAGE_RETURN = 34, 10, 13
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BYTES_PER_CHUNK = 2**21
LONGEST_RECORD = 2**24

_WELL_FORMED, _UNCLOSED, _STRAY_QUOTE, _AFTER_QUOTE, _STRAY_LINE_END, _FIELDS, _TOO_LONG = range(7)
_FAULTS = {
    _UNCLOSED: "has a quote that is never closed; close it, or write quotes inside a quoted field twice",
    _STRAY_QUOTE: "has a quote inside a field that does not begin with one; put the whole field in quotes and write "
    "those inside it twice",
    _AFTER_QUOTE: "has text after the closing quote of a field; write quotes inside a quoted field twice",
    _STRAY_LINE_END: "has a line end unlike the header's; put a field that holds one in quotes, or convert all of them",
    _FIELDS: "has more or fewer fields than the header; correct that row",
    _TOO_LONG: f"begins a row of more than {LONGEST_RECORD // 2**20} MiB; shorten it, or close its quotes",
}


@dataclass(frozen=True)
class Layout:
    """What the header tells: how fields are separated, the columns' names, how lines end, and if gzip packed it all."""

    delimiter: str
    names: tuple[str, ...]
    line_end: int
    gzipped: bool


class CsvRows:
    """The wanted columns of files of one layout, as batches of text; ``refusal`` says why the reading ended early."""

    def __init__(self, layout: Layout, paths: Sequence[Path], wanted: Sequence[str]) -> None:
        self._layout, self._paths, self._wanted = layout, tuple(paths), len(wanted)
        self._line_end = bytes([layout.line_end])
        # Which row of the texts takes each field; what nobody wants goes to one more, to be written over.
        places = {name: place for place, name in enumerate(wanted)}
        self._places = np.array([places.get(name, self._wanted) for name in layout.names], dtype=np.int64)
        self.refusal: str | None = None

    def stream(self) -> pa.RecordBatchReader:
        """Return the batches, read while the engine asks for them."""
        layout = pa.schema([(f"column{place}", pa.string()) for place in range(self._wanted)])
        return pa.RecordBatchReader.from_batches(layout, self._batches(layout))

    def _batches(self, layout: pa.Schema) -> Iterator[pa.RecordBatch]:
        for path in self._paths:
            try:
                for texts in self._texts_of(path):
                    yield pa.RecordBatch.from_arrays(texts, schema=layout)
            except TableError as refusal:
                self.refusal = str(refusal)  # the engine does not hand on an exception as it was
                raise
            except (OSError, EOFError, zlib.error):
                self.refusal = f"the file {path} cannot be read to its end; check that it is complete and undamaged"
                raise

    def _texts_of(self, path: Path) -> Iterator[list[pa.Array]]:
        lines, header, is_last = 1, 1, False
        with opened_bytes(path, self._layout.gzipped) as file:
            rest = file.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
            while not is_last:
                chunk = file.read(BYTES_PER_CHUNK)
                is_last = not chunk
                content = rest + chunk
                if is_last and content and not content.endswith(self._line_end):
                    content += self._line_end
                data = np.frombuffer(content, dtype=np.uint8)
                fault, place, rows, begin, texts = self._split(data, header)
                if fault == _WELL_FORMED and begin < data.size:
                    fault = _UNCLOSED if is_last else _TOO_LONG if data.size - begin > LONGEST_RECORD else fault
                if fault != _WELL_FORMED:
                    lines += int(np.count_nonzero(data[:place] == self._layout.line_end))
                    raise TableError(f"line {lines:,} of the file {path} {_FAULTS[fault]}")
                _require_utf8(texts, path)
                yield texts
                lines += int(np.count_nonzero(data[:begin] == self._layout.line_end))
                rest, header = content[begin:], max(header - rows, 0)

    def _split(self, data: Bytes, header: int) -> tuple[int, int, int, int, list[pa.Array]]:
        """Split the complete records; see ``split_records``, and with it the texts of all but ``header`` records."""
        texts = np.empty((self._wanted + 1, data.size), dtype=np.uint8)
        ends = np.zeros((self._wanted, data.size + 1), dtype=np.int32)
        fault, place, rows, begin = split_records(
            data, ord(self._layout.delimiter), self._layout.line_end, self._places, texts, ends
        )
        first = min(header, rows)
        arrays = [
            pa.StringArray.from_buffers(rows - first, pa.py_buffer(end[first : rows + 1]), pa.py_buffer(text))
            for end, text in zip(ends, texts, strict=False)
        ]
        return fault, place, rows, begin, arrays


def _require_utf8(texts: Iterable[pa.Array], path: Path) -> None:
    try:
        for text in texts:
            text.validate(full=True)
    except pa.ArrowInvalid:
        raise TableError(f"the file {path} is not UTF-8 text; convert it to UTF-8") from None


def opened_bytes(path: Path, gzipped: bool) -> IO[bytes]:
    """Open a file for its bytes, unpacked if gzip packed them."""
    return cast(IO[bytes], gzip.open(path, "rb") if gzipped else path.open("rb"))


@compiled
def split_records(
    data: Bytes, delimiter: int, line_end: int, places: Integers, texts: Bytes, ends: Offsets
) -> tuple[int, int, int, int]:
    """Split records into fields; return what is wrong, where, how many records are complete, where the next begins.

    ``places`` tells, for each field, which row of ``texts`` its text is appended to; ``ends`` gets where it then ends.
    """
    filled = np.zeros(texts.shape[0], dtype=np.int64)
    rows = begin = position = field = 0
    while position < data.size:
        row, is_quoted = places[min(field, places.size - 1)], data[position] == QUOTE
        if is_quoted:
            stop, fill = _copy_quoted(data, position, texts[row], filled[row])
        else:
            stop, fill = _copy_plain(data, position, delimiter, texts[row], filled[row])
        if stop == data.size:
            return _WELL_FORMED, position, rows, begin
        if not _ends_field(data[stop], delimiter):
            return _AFTER_QUOTE if is_quoted else _STRAY_QUOTE, stop, rows, begin
        filled[row] = fill if row < ends.shape[0] else 0
        field += 1
        position = stop + 1
        if data[stop] == delimiter:
            continue
        position = _line_after(data, stop, line_end)
        if position < 0:
            return _STRAY_LINE_END, stop, rows, begin
        if position > data.size:
            return _WELL_FORMED, stop, rows, begin
        if field == places.size:
            rows += 1
            for column in range(ends.shape[0]):
                ends[column, rows] = filled[column]
        elif field > 1 or stop > begin:  # else the line is blank
            return _FIELDS, begin, rows, begin
        begin, field = position, 0
    return _WELL_FORMED, position, rows, begin


@compiled
def _line_after(data: Bytes, stop: int, line_end: int) -> int:
    """Return where the line after a line end begins: -1 if it is stray, beyond the data if a CR may yet get its LF."""
    if data[stop] == line_end:
        return stop + 1
    if data[stop] == CARRIAGE_RETURN and (stop + 1 == data.size or data[stop + 1] == LINE_FEED):
        return stop + 2
    return -1


@compiled
def _ends_field(byte: int, delimiter: int) -> bool:
    return byte in (delimiter, LINE_FEED, CARRIAGE_RETURN)


@compiled
def _copy_quoted(data: Bytes, position: int, text: Bytes, fill: int) -> tuple[int, int]:
    """Copy a quoted field; return the place after its closing quote, or the end of the data if there is none yet."""
    position += 1
    while position < data.size:
        if data[position] == QUOTE:
            position += 1
            if position == data.size or data[position] != QUOTE:
                return position, fill
        text[fill] = data[position]
        fill += 1
        position += 1
    return position, fill


@compiled
def _copy_plain(data: Bytes, position: int, delimiter: int, text: Bytes, fill: int) -> tuple[int, int]:
    """Copy a field without quotes; return the place of what ends it, which may be a quote that must not be there."""
    while position < data.size:
        byte = data[position]
        if _ends_field(byte, delimiter) or byte == QUOTE:
            break
        text[fill] = byte
        fill += 1
        position += 1
    return position, fill


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
