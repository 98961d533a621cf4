"""Tables of counts as files: CSV, Parquet or a workbook, whole or not at all.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula. Labels come from a schema, which may come from
anybody: in CSV such a label gets an apostrophe in front, in a workbook it is written as the text that it is.
"""

import gzip
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from veilcube.analyst.export.tables import ESTIMATES, TABLE, WHOLE, CountTable, as_one, free_name
from veilcube.errors import QueryError
from veilcube.record import ReleaseRecord
from veilcube.schema import Schema
from veilcube.system import load_extra

FORMATS = (".csv", ".csv.gz", ".parquet", ".xlsx")
# What a sheet holds below its heading.
MOST_ROWS_OF_A_SHEET = 2**20 - 1
_LONGEST_SHEET_NAME, _LONGEST_CELL = 31, 32_767
_NOT_IN_SHEET_NAMES = str.maketrans(dict.fromkeys("[]:*?/\\'", "_"))
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?$"
# Thousandths of a row mean nothing, and long numbers hide the short ones.
_DECIMALS = 3


def table_format(path: Path) -> str:
    """Return in which of the ``FORMATS`` a file of this name is written; refuses names that promise anything else."""
    name = path.name.lower()
    if name.endswith(".pq"):
        return ".parquet"
    found = [ends for ends in FORMATS if name.endswith(ends) and name != ends]
    if not found:
        raise QueryError(
            f"'{path.name}' does not say how to write tables; end its name in {', '.join(FORMATS[:-1])} or "
            f"{FORMATS[-1]}"
        )
    return found[-1]


@dataclass(frozen=True)
class Facts:
    """What stands beside the counts: the promise, and what the numbers are."""

    words: Mapping[str, str]
    created: str

    @classmethod
    def of(cls, record: ReleaseRecord, confidence: float, estimator: str, notes: Sequence[str]) -> "Facts":
        """Return the facts of a release and of one way to ask it."""
        words = {
            "privacy": record.statement.words,
            "counted": record.statement.unit.counted or "",
            "confidence": f"{confidence:.6g}",
            "estimator": estimator,
            "made_with": record.made_with,
            "created": record.created,
            "notes": " ".join(notes),
        }
        return cls({name: text for name, text in words.items() if text}, record.created)

    def described(self, table: pa.Table, schema: Schema) -> pa.Schema:
        """Return a table's columns with what each means, and the facts."""
        meanings = {free_name(name, schema.names): said for name, said in {"whole": WHOLE, "table": TABLE}.items()}
        meanings |= ESTIMATES
        fields = [
            field.with_metadata({"description": meanings[field.name]}) if field.name in meanings else field
            for field in table.schema
        ]
        return pa.schema(fields, metadata={f"veilcube.{name}": text for name, text in self.words.items()})


def write_tables(stream: BinaryIO, kind: str, tables: Sequence[CountTable], schema: Schema, facts: Facts) -> None:
    """Write tables to an open file: in a workbook a sheet each, elsewhere one after the other in the same columns."""
    if kind == ".xlsx":
        _write_workbook(stream, tables, facts)
        return
    writer: Any = None
    with _unzipped(stream, kind) as target:
        for table in as_one(tables, schema):
            columns = table if kind == ".parquet" else _as_text(table)
            if writer is None:
                if kind == ".parquet":
                    writer = pq.ParquetWriter(target, facts.described(table, schema), compression="zstd")
                else:
                    writer = csv.CSVWriter(target, columns.schema)
            writer.write_table(columns.cast(facts.described(table, schema)) if kind == ".parquet" else columns)
        writer.close()


@contextmanager
def _unzipped(stream: BinaryIO, kind: str) -> Iterator[Any]:
    if kind != ".csv.gz":
        yield stream
        return
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as zipped:
        yield zipped


def _as_text(table: pa.Table) -> pa.Table:
    """Return a table as CSV shows it: short numbers, and no text that a spreadsheet would run."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            shown = pc.round(column, _DECIMALS)
        elif pa.types.is_dictionary(column.type):
            shown = _without_formulas(column.cast(pa.string()))
        else:
            shown = column
        columns[_without_formulas(pa.array([name]))[0].as_py()] = shown
    return pa.table(columns)


def _without_formulas(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return texts with an apostrophe before those that begin like a formula, unless they are plain numbers."""
    is_formula = pc.and_(pc.match_substring_regex(texts, _FORMULA), pc.invert(pc.match_substring_regex(texts, _NUMBER)))
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", texts, ""), texts)


def require_workbook(rows: int) -> ModuleType:
    """Return the writer of workbooks; refuses more rows than a sheet has, and says how to install what is missing."""
    if rows > MOST_ROWS_OF_A_SHEET:
        raise QueryError(
            f"{rows:,} rows are more than the {MOST_ROWS_OF_A_SHEET:,} that a workbook holds; write .csv or .parquet, "
            "or export fewer attributes (by=)"
        )
    found: ModuleType = load_extra("xlsxwriter", "an .xlsx file", "xlsx", "XlsxWriter")
    return found


def _write_workbook(stream: BinaryIO, tables: Sequence[CountTable], facts: Facts) -> None:
    writer = require_workbook(sum(table.rows for table in tables))
    book = writer.Workbook(stream, {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    book.set_properties({"title": "Differentially private counts", "created": datetime.fromisoformat(facts.created)})
    names = _sheet_names(["About", *(table.title for table in tables)])
    _write_about(book, names[0], facts, dict(zip(names[1:], tables, strict=True)))
    for name, table in zip(names[1:], tables, strict=True):
        _write_sheet(book, name, table)
    book.close()


def _sheet_names(titles: Sequence[str]) -> list[str]:
    """Return a name for each sheet that spreadsheets take: short, without special characters, no two alike."""
    found: list[str] = []
    for title in titles:
        plain = title.translate(_NOT_IN_SHEET_NAMES)
        name, number = plain[:_LONGEST_SHEET_NAME], 2
        while name.lower() in {"history", *(one.lower() for one in found)}:
            name = f"{plain[: _LONGEST_SHEET_NAME - len(str(number)) - 1]}~{number}"
            number += 1
        found.append(name)
    return found


def _write_about(book: Any, name: str, facts: Facts, sheets: Mapping[str, CountTable]) -> None:
    sheet, heading = book.add_worksheet(name), book.add_format({"bold": True})
    folded = book.add_format({"text_wrap": True, "valign": "top"})
    sheet.set_column(0, 0, 24, heading)
    sheet.set_column(1, 1, 100, folded)
    has_whole = any(table.whole is not None for table in sheets.values())
    meanings = {**ESTIMATES, **({"whole": WHOLE} if has_whole else {})}
    rows = [*facts.words.items(), ("", ""), *meanings.items(), ("", ""), *((own, t.title) for own, t in sheets.items())]
    for row, (left, right) in enumerate(rows):
        sheet.write_string(row, 0, left, heading)
        sheet.write_string(row, 1, _cut(right), folded)


def _write_sheet(book: Any, name: str, table: CountTable) -> None:
    sheet, heading = book.add_worksheet(name), book.add_format({"bold": True, "bottom": 1})
    number, columns = book.add_format({"num_format": "#,##0.###"}), table.to_arrow()
    sheet.freeze_panes(1, len(table.names))
    sheet.autofilter(0, 0, columns.num_rows, columns.num_columns - 1)
    for place, title in enumerate(columns.column_names):
        sheet.set_column(place, place, max(12, min(len(title) + 4, 40)), None if place < len(table.names) else number)
        sheet.write_string(0, place, _cut(title), heading)
    for batch in columns.to_batches(max_chunksize=2**16):
        lists = [column.to_pylist() for column in batch.columns]
        start = sheet.dim_rowmax + 1
        for offset, cells in enumerate(zip(*lists, strict=True)):
            for place, cell in enumerate(cells):
                if isinstance(cell, str):
                    sheet.write_string(start + offset, place, _cut(cell))
                elif cell is not None:
                    sheet.write_number(start + offset, place, round(cell, _DECIMALS))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 3]}..."
