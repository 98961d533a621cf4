"""PostgreSQL's SQL, its types, and its binary copies, by which cells come as they are stored."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from veilcube.curator.pushdown.dialect import (
    BOOLEAN,
    DAY,
    DECIMAL,
    FAR_FUTURE,
    FAR_PAST,
    FLOAT,
    INSTANT,
    MOMENT,
    TEXT,
    WHOLE,
    Declared,
    Dialect,
)
from veilcube.errors import TableError
from veilcube.system import Integers

_KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), WHOLE),
    **dict.fromkeys(("float4", "float8"), FLOAT),
    **dict.fromkeys(("text", "varchar", "bpchar", "citext", "uuid"), TEXT),
    "numeric": DECIMAL,
    "bool": BOOLEAN,
    "date": DAY,
    "timestamp": MOMENT,
    "timestamptz": INSTANT,
}
_BYTES_AT_ONCE = 2**20
_HEADER, _TRAILER = 19, 2
# From here on the nearest float is infinity, and up to here it is 0.
_LARGE, _SMALL = "1.7976931348623158e308", "2.4703282292062328e-324"


class Postgres(Dialect):
    """What PostgreSQL says otherwise."""

    name: ClassVar[str] = "postgres"
    double: ClassVar[str] = "DOUBLE PRECISION"
    most_bins: ClassVar[int] = 2**16
    opening: ClassVar[tuple[str, ...]] = (
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "SET LOCAL standard_conforming_strings = on",
        "SET LOCAL datestyle = 'ISO, YMD'",
        "SET LOCAL client_encoding = 'UTF8'",
    )

    def as_double(self, expression: str, kind: str) -> str:
        """Write the nearest float; decimals have no bounds there, and those beyond all floats are infinite."""
        number = super().as_double(expression, kind)
        if kind != DECIMAL:
            return number
        infinity = f"CAST('Infinity' AS {self.double})"
        return (
            f"CASE WHEN {expression} = 'NaN' THEN CAST('NaN' AS {self.double}) "
            f"WHEN {expression} >= {_LARGE} THEN {infinity} WHEN {expression} <= -{_LARGE} THEN -{infinity} "
            f"WHEN abs({expression}) < {_SMALL} THEN CAST(0 AS {self.double}) "
            f"ELSE {number} END"
        )

    def as_text(self, expression: str) -> str:
        """Write text without the column's collation, which may take different letters for equal ones."""
        return f'CAST({expression} AS TEXT) COLLATE "C"'

    def is_nan(self, number: str) -> str:
        """Ask for NaN, which equals itself here."""
        return f"{number} = CAST('NaN' AS {self.double})"

    def trimmed(self, text: str) -> str:
        """Take blanks, tabs and line ends off both ends."""
        return f"btrim({text}, E' \\t\\n\\r\\013\\014')"

    def digest(self, text: str) -> str:
        """Write the SHA-256 of a text, whatever encoding the database keeps texts in."""
        return f"encode(sha256(convert_to({text}, 'UTF8')), 'hex') COLLATE \"C\""

    def day_of(self, expression: str, kind: str) -> str:
        """Write the day, of an instant in UTC."""
        moment = f"({expression} AT TIME ZONE 'UTC')" if kind == INSTANT else expression
        return f"CAST({moment} AS DATE)"

    def calendar_number(self, day: str, unit: str) -> str:
        """Write the number of a day; infinite dates lie far away."""
        far = f"CASE WHEN {day} > {self.epoch} THEN {FAR_FUTURE} ELSE {FAR_PAST} END"
        number = f"CASE WHEN isfinite({day}) THEN {self.number_of(day, unit)} ELSE {far} END"
        return f"CASE WHEN {day} IS NOT NULL THEN {number} END"

    def bin_of(self, number: str, edges: Sequence[float]) -> str:
        """Search the edges; the last bin is closed."""
        if len(edges) == 2:
            return "0"
        inner = ", ".join(map(repr, edges[1:-1]))
        return f"width_bucket({number}, CAST('{{{inner}}}' AS {self.double}[]))"


def columns_in_postgres(cursor: Any, relation: str) -> list[Declared]:
    """Return the columns of a relation, with types as they are declared; reads no row."""
    cursor.execute("SHOW server_encoding")
    if cursor.fetchone()[0] == "SQL_ASCII":
        raise TableError(
            "the database keeps text without an encoding (SQL_ASCII), so nobody can tell which letters it holds; make "
            "a database in UTF8 of it, or export the table"
        )
    cursor.execute(f"SELECT * FROM {relation} AS source_rows LIMIT 0")
    described = [(column.name, column.type_code) for column in cursor.description]
    cursor.execute("SELECT oid, typname, typtype FROM pg_catalog.pg_type")
    types = {oid: (name, TEXT if kind == "e" else _KINDS.get(name)) for oid, name, kind in cursor.fetchall()}
    return [Declared(name, types[code][1], types[code][0]) for name, code in described]


def copied_from_postgres(cursor: Any, statement: str, columns: int) -> Iterator[Integers]:
    """Stream the rows of a statement whose columns are whole numbers and never NULL, one array a batch."""
    fields = [("fields", ">i2")] + [pair for k in range(columns) for pair in ((f"size{k}", ">i4"), (f"key{k}", ">i8"))]
    row = np.dtype(fields)
    begun, pending = False, bytearray()
    with cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT BINARY)") as copy:
        for piece in copy:
            pending += piece
            if not begun and len(pending) >= _HEADER:
                begun = True
                del pending[:_HEADER]
            if len(pending) >= _BYTES_AT_ONCE:
                yield _read_rows(pending, row, columns)
    yield _read_rows(pending, row, columns)
    if len(pending) != _TRAILER:
        raise EOFError("the copy ended early")


def _read_rows(pending: bytearray, row: np.dtype[Any], columns: int) -> Integers:
    """Take the whole rows off the beginning of what has come."""
    rows = len(pending) // row.itemsize
    found = np.frombuffer(bytes(pending[: rows * row.itemsize]), dtype=row)
    del pending[: rows * row.itemsize]
    return np.column_stack([found[f"key{k}"].astype(np.int64) for k in range(columns)])
