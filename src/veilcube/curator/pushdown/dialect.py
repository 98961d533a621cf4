"""How SQL is written: standard SQL as the counting engine reads it; each database says what it writes otherwise.

Every expression here must mean the same in every dialect, to the bit: texts are compared by their characters, whatever
collation a column has, digests are of UTF-8, and nothing depends on the session's settings, which ``opening`` fixes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

# Whatever the column, it becomes one of these; a type that is none of them is refused, whatever its values are.
WHOLE, DECIMAL, FLOAT, BOOLEAN, TEXT, DAY, MOMENT, INSTANT = (
    "whole number",
    "decimal",
    "float",
    "boolean",
    "text",
    "date",
    "timestamp",
    "timestamp with time zone",
)
DAYS_BEFORE_1970 = 719_163  # of the day 1970-01-01 in the calendar that begins with day 1 in the year 1
FAR_FUTURE, FAR_PAST = 2**40, -(2**40)
_BLANKS = " \t\n\r\v\f"


@dataclass(frozen=True)
class Declared:
    """A column of a table in a database: its name, its kind, None if nothing here can count it, and its type there."""

    name: str
    kind: str | None
    type_name: str


class Dialect:
    """The counting engine's own SQL, and what the databases share with it."""

    name: ClassVar[str] = "duckdb"
    whole: ClassVar[str] = "BIGINT"
    double: ClassVar[str] = "DOUBLE"
    end_of_text: ClassVar[str] = "$"
    has_grouping_sets: ClassVar[bool] = True
    opening: ClassVar[tuple[str, ...]] = ()
    most_bins: ClassVar[int] = 4096

    def quoted(self, identifier: str) -> str:
        """Write an identifier."""
        return '"' + identifier.replace('"', '""') + '"'

    def literal(self, text: str) -> str:
        """Write a text that is compared by its characters."""
        return "'" + text.replace("'", "''") + "'"

    def pattern(self, text: str) -> str:
        """Write a regular expression."""
        return self.literal(text.replace("$", self.end_of_text))

    def number(self, value: float) -> str:
        """Write a finite floating-point number, exactly."""
        return f"CAST('{value!r}' AS {self.double})"

    def as_whole(self, expression: str) -> str:
        """Write a whole number of 64 bits."""
        return f"CAST({expression} AS {self.whole})"

    def as_double(self, expression: str, kind: str) -> str:
        """Write a column's numbers as floating-point numbers, the nearest ones."""
        del kind
        return f"CAST({expression} AS {self.double})"

    def as_text(self, expression: str) -> str:
        """Write a value as text that is compared by its characters."""
        return f"CAST({expression} AS VARCHAR)"

    def is_nan(self, number: str) -> str:
        """Ask whether a floating-point number is none."""
        return f"isnan({number})"

    def trimmed(self, text: str) -> str:
        """Take blanks, tabs and line ends off both ends."""
        codes = " || ".join(f"chr({ord(blank)})" for blank in _BLANKS)
        return f"trim({text}, {codes})"

    def replaced(self, text: str, pattern: str, replacement: str) -> str:
        """Replace what matches, which is at most one piece, by texts and groups such as ``\\1``."""
        return f"regexp_replace({text}, {self.pattern(pattern)}, {self.literal(replacement)})"

    def holds(self, text: str, part: str) -> str:
        """Ask whether a text holds another one."""
        return f"strpos({text}, {self.literal(part)}) > 0"

    def joined(self, texts: Sequence[str]) -> str:
        """Write texts one after the other, divided by the character 31; NULL if one is NULL."""
        return " || chr(31) || ".join(texts)

    def digest(self, text: str) -> str:
        """Write the SHA-256 of a text in UTF-8 as lower-case hexadecimal digits, ordered by their characters."""
        return f"sha256({text})"

    def day_of(self, expression: str, kind: str) -> str:
        """Write the day of a date, a timestamp or an instant, which is its day in UTC."""
        del kind
        return f"CAST({expression} AS DATE)"

    def number_of_day(self, day: str) -> str:
        """Write how many days there were since the year 1, that day included."""
        return f"{self.as_whole(f'{day} - {self.epoch}')} + {DAYS_BEFORE_1970}"

    @property
    def epoch(self) -> str:
        """The day from which days are counted."""
        return "DATE '1970-01-01'"

    def number_of(self, day: str, unit: str) -> str:
        """Write ``Calendar.number_of``; dates outside the calendar lie far away, and NULL stays NULL."""
        if unit == "day":
            return self.number_of_day(day)
        year, month = (self.as_whole(f"EXTRACT({part} FROM {day})") for part in ("YEAR", "MONTH"))
        return year if unit == "year" else f"{year} * 12 + {month} - 1"

    def calendar_number(self, day: str, unit: str) -> str:
        """Write ``number_of``, and for what has no place in a calendar a number far away."""
        return self.number_of(day, unit)

    def iso_day(self, day: str) -> str:
        """Write a day of the years 1 to 9999 as text; for others any text that is none of those."""
        return self.as_text(day)

    def listing(self, codes: Mapping[str, int], name: str) -> str:
        """Write a table of ``entry`` and ``code``, called ``name``."""
        rows = ", ".join(f"({entry}, {code})" for entry, code in codes.items())
        return f"(VALUES {rows}) AS {name}(entry, code)"

    def bin_of(self, number: str, edges: Sequence[float]) -> str:
        """Write the half-open bin of a number inside the edges; the last bin is closed. Halves the edges."""
        if len(edges) == 2:
            return "0"
        inner = [self.number(edge) for edge in edges[1:-1]]

        def between(first: int, last: int) -> str:
            if first == last:
                return str(first)
            middle = (first + last + 1) // 2
            return (
                f"CASE WHEN {number} < {inner[middle - 1]} THEN {between(first, middle - 1)} "
                f"ELSE {between(middle, last)} END"
            )

        return between(0, len(edges) - 2)
