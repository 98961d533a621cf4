"""How an ordinal attribute divides its line into cells: whole numbers, bins between edges, or calendar units.

A division knows, for any value a person may write, where the line is cut: ``boundary_before(v)`` is the number of
cells that lie wholly below ``v``, ``boundary_after(v)`` the number that lie at or below it. A value inside a cell cuts
it, and no count of whole cells can answer that, so both refuse it instead of guessing.
"""

import math
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Real
from typing import Literal, Protocol, TypeAlias

from veilcube.errors import QueryError, SchemaError

CalendarUnit: TypeAlias = Literal["day", "month", "year"]
Bound: TypeAlias = int | float | str | date
BoundaryRule: TypeAlias = Callable[[Bound], int]

_PARTIAL_DATE = re.compile(r"^(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?$")


class Division(Protocol):
    """What every division of a line into cells offers; cells are numbered from 0 upwards."""

    @property
    def size(self) -> int:
        """How many cells there are."""

    def boundary_before(self, value: Bound) -> int:
        """Return how many cells lie wholly below ``value``."""

    def boundary_after(self, value: Bound) -> int:
        """Return how many cells lie wholly at or below ``value``."""

    def range_end(self, value: Bound) -> int:
        """Return how many cells lie at or below ``value`` when it is written as the upper end of a range."""

    def label(self, cell: int) -> str:
        """Return what to print for a cell."""

    def centre(self, cell: int) -> float:
        """Return the number that stands for a cell in sums and means."""

    def span(self, cell: int) -> tuple[float, float]:
        """Return the least and the largest number that a cell may hold."""

    def domain(self) -> str:
        """Return the whole line in words, for messages."""

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""


def _number(value: object, domain: str) -> int | float:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value):
        return float(value)
    raise QueryError(f"a value of the wrong type was compared with the numbers {domain}; write a number")


@dataclass(frozen=True)
class WholeNumbers:
    """One cell for each whole number from ``low`` to ``high``, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is above high {self.high}; swap them")
        # 2**53 itself is no bound either: 2**53 + 1 becomes it in columns of floats and would lie inside.
        if max(abs(self.low), abs(self.high)) >= 2**53:
            raise SchemaError("bounds of 2**53 and more cannot be told apart exactly; use edges=[...] for bins")

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.high - self.low + 1

    def boundary_before(self, value: Bound) -> int:
        """Return how many cells lie wholly below ``value``."""
        number = _number(value, self.domain())
        if number in (-math.inf, math.inf):
            return self.size if number > 0 else 0
        return min(max(math.ceil(number) - self.low, 0), self.size)

    def boundary_after(self, value: Bound) -> int:
        """Return how many cells lie wholly at or below ``value``."""
        number = _number(value, self.domain())
        if number in (-math.inf, math.inf):
            return self.size if number > 0 else 0
        return min(max(math.floor(number) + 1 - self.low, 0), self.size)

    def range_end(self, value: Bound) -> int:
        """Return how many cells lie at or below ``value`` when it is written as the upper end of a range."""
        return self.boundary_after(value)

    def label(self, cell: int) -> str:
        """Return what to print for a cell."""
        return str(self.low + cell)

    def centre(self, cell: int) -> float:
        """Return the number that stands for a cell in sums and means."""
        return float(self.low + cell)

    def span(self, cell: int) -> tuple[float, float]:
        """Return the cell's number twice: it holds no other."""
        return self.centre(cell), self.centre(cell)

    def domain(self) -> str:
        """Return the whole line in words, for messages."""
        return f"{self.low}..{self.high}"

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"low": self.low, "high": self.high}


@dataclass(frozen=True)
class Bins:
    """Half-open bins [e0, e1), [e1, e2), ... between increasing edges; the last bin also holds its upper edge."""

    edges: tuple[int | float, ...]

    def __post_init__(self) -> None:
        for edge in self.edges:
            if not abs(edge) <= sys.float_info.max:
                raise SchemaError("every edge must be a finite number")
        if len(self.edges) < 2:
            raise SchemaError("edges needs at least two numbers, the ends of one bin")
        if any(low >= high for low, high in pairwise(self.edges)):
            raise SchemaError("edges must increase strictly; sort them and remove repeats")

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.edges) - 1

    def boundary_before(self, value: Bound) -> int:
        """Return how many cells lie wholly below ``value``; only an edge, or a value beyond the ends, cuts no bin."""
        number = _number(value, self.domain())
        if number <= self.edges[0]:
            return 0
        if number > self.edges[-1]:
            return self.size
        index = bisect_right(self.edges, number) - 1
        if self.edges[index] == number and index < self.size:
            return index
        raise self._cut(value, min(index, self.size - 1))

    def boundary_after(self, value: Bound) -> int:
        """Return how many cells lie at or below ``value``; with whole-number edges, 9999 ends the bin before 10000."""
        number = _number(value, self.domain())
        if number < self.edges[0]:
            return 0
        if number >= self.edges[-1]:
            return self.size
        following = bisect_left(self.edges, number + 1)
        # Not before the last edge: the last bin holds that edge too, so 49999 cuts [20000, 50000].
        if self._whole and number == int(number) and following < self.size and self.edges[following] == number + 1:
            return following
        raise self._cut(value, bisect_right(self.edges, number) - 1)

    def range_end(self, value: Bound) -> int:
        """Return the bins below ``value``, an edge standing for the end of the bin that it closes."""
        number = _number(value, self.domain())
        return self.edges.index(number) if number in self.edges else self.boundary_after(value)

    @cached_property
    def _whole(self) -> bool:
        return all(float(edge).is_integer() for edge in self.edges)

    def _cut(self, value: Bound, index: int) -> QueryError:
        low, high = self.edges[index], self.edges[index + 1]
        below, above = ("<=", ">") if index == self.size - 1 else ("<", ">=")
        return QueryError(
            f"{value} cuts through the bin {self.label(index)}; "
            f"compare with its edges: '< {low}' or '>= {low}', '{below} {high}' or '{above} {high}'"
        )

    def label(self, cell: int) -> str:
        """Return what to print for a cell."""
        closing = "]" if cell == self.size - 1 else ")"
        return f"[{self.edges[cell]}, {self.edges[cell + 1]}{closing}"

    def centre(self, cell: int) -> float:
        """Return the middle of the bin, which stands for it in sums and means."""
        return (self.edges[cell] + self.edges[cell + 1]) / 2

    def span(self, cell: int) -> tuple[float, float]:
        """Return the edges of the bin."""
        return float(self.edges[cell]), float(self.edges[cell + 1])

    def domain(self) -> str:
        """Return the whole line in words, for messages."""
        return f"{self.edges[0]}..{self.edges[-1]}"

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"edges": list(self.edges)}


def read_date(text: object) -> tuple[date, date]:
    """Return the first and last day that a date or an ISO text (``2024``, ``2024-03``, ``2024-03-15``) means."""
    if isinstance(text, date) and not text == text:  # noqa: PLR0124 - the missing date of pandas equals nothing
        raise QueryError("a missing date has no place in the order; write the date, or None for missing ones")
    if isinstance(text, datetime):
        if text.time() != time.min:
            raise QueryError("a time of day cuts through a day; the smallest cell is a whole day, so write the date")
        return text.date(), text.date()
    if isinstance(text, date):
        return text, text
    found = _PARTIAL_DATE.match(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise QueryError("a date must be written as text in quotes, in the form '2024-03-15', '2024-03' or '2024'")
    year, month, day = found.groups()
    try:
        first = date(int(year), int(month or 1), int(day or 1))
    except ValueError as problem:
        raise QueryError(f"'{text}' is not a day of the calendar") from problem
    if day:
        return first, first
    return first, _last_day(first, "month" if month else "year")


def _last_day(first: date, unit: CalendarUnit) -> date:
    if unit == "day":
        return first
    if unit == "year" or first.month == 12:
        return date(first.year, 12, 31)
    return date(first.year, first.month + 1, 1) - timedelta(days=1)


@dataclass(frozen=True)
class Calendar:
    """One cell for each day, month or year from the one that holds ``low`` to the one that holds ``high``."""

    low: date
    high: date
    unit: CalendarUnit

    def __post_init__(self) -> None:
        if self.unit not in ("day", "month", "year"):
            raise SchemaError(f"unit '{self.unit}' is not known; use 'day', 'month' or 'year'")
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is after high {self.high}; swap them")
        # Cells are whole units, so the domain is too; else a query could stop inside the first or last one unseen.
        object.__setattr__(self, "low", self._first_day_of(self.number_of(self.low)))
        object.__setattr__(self, "high", _last_day(self._first_day_of(self.number_of(self.high)), self.unit))

    @classmethod
    def between(cls, low: object, high: object, unit: CalendarUnit) -> "Calendar":
        """Build from dates or ISO texts; a text such as ``2024`` means its first day as low and its last as high."""
        try:
            return cls(read_date(low)[0], read_date(high)[1], unit)
        except QueryError as problem:
            raise SchemaError(str(problem)) from problem

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.number_of(self.high) - self.first_number + 1

    @property
    def first_number(self) -> int:
        """The number, counted in units from the calendar's beginning, of the first cell."""
        return self.number_of(self.low)

    def number_of(self, day: date) -> int:
        """Count the units from the calendar's beginning to the one that holds ``day``."""
        if self.unit == "day":
            return day.toordinal()
        return day.year if self.unit == "year" else day.year * 12 + day.month - 1

    def _first_day_of(self, number: int) -> date:
        if self.unit == "day":
            return date.fromordinal(number)
        return date(number, 1, 1) if self.unit == "year" else date(number // 12, number % 12 + 1, 1)

    def first_day(self, cell: int) -> date:
        """Return the first day of a cell."""
        return self._first_day_of(self.first_number + cell)

    def last_day(self, cell: int) -> date:
        """Return the last day of a cell."""
        return _last_day(self.first_day(cell), self.unit)

    def boundary_before(self, value: Bound) -> int:
        """Return how many cells lie wholly before the first day that ``value`` means."""
        first, _ = read_date(value)
        number = self.number_of(first)
        if 0 <= number - self.first_number < self.size and self._first_day_of(number) != first:
            raise self._cut(value)
        return min(max(number - self.first_number, 0), self.size)

    def boundary_after(self, value: Bound) -> int:
        """Return how many cells lie wholly at or before the last day that ``value`` means."""
        _, last = read_date(value)
        number = self.number_of(last)
        if 0 <= number - self.first_number < self.size and _last_day(self._first_day_of(number), self.unit) != last:
            raise self._cut(value)
        return min(max(number + 1 - self.first_number, 0), self.size)

    def range_end(self, value: Bound) -> int:
        """Return how many cells lie at or before ``value`` when it is written as the upper end of a range."""
        return self.boundary_after(value)

    def _cut(self, value: Bound) -> QueryError:
        return QueryError(
            f"{value} cuts through a {self.unit}; the cells are whole {self.unit}s, so use their first or last day"
        )

    def label(self, cell: int) -> str:
        """Return what to print for a cell."""
        text = self._first_day_of(self.first_number + cell).isoformat()
        return {"day": text, "month": text[:7], "year": text[:4]}[self.unit]

    def centre(self, cell: int) -> float:
        """Refuse: sums of dates mean nothing."""
        raise QueryError("dates have no sum or mean; ask for a quantile or a count instead")

    def span(self, cell: int) -> tuple[float, float]:
        """Refuse: sums of dates mean nothing."""
        return self.centre(cell), self.centre(cell)

    def domain(self) -> str:
        """Return the whole line in words, for messages."""
        return f"{self.low.isoformat()}..{self.high.isoformat()}"

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"low": self.low.isoformat(), "high": self.high.isoformat(), "unit": self.unit}


def _edge(edge: object) -> int | float:
    if isinstance(edge, Real) and not isinstance(edge, bool):
        number = int(edge) if isinstance(edge, Integral) else float(edge)
        if abs(number) <= sys.float_info.max:
            # One spelling per number, so that equal schemas have equal files and digests: 10, never 10.0.
            return int(number) if abs(number) <= 2**53 and number == int(number) else float(number)
    raise SchemaError("every edge must be a finite number")


def read_division(low: object, high: object, edges: Sequence[float] | None, unit: CalendarUnit | None) -> Division:
    """Choose the division that the arguments of ``Ordinal`` describe."""
    if edges is not None:
        if low is not None or high is not None or unit is not None:
            raise SchemaError("give either low and high, or edges, not both")
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise SchemaError("edges must be a list of numbers")
        try:
            return Bins(tuple(_edge(edge) for edge in edges))
        except TypeError:
            raise SchemaError("edges must be a list of numbers") from None
    if low is None or high is None:
        raise SchemaError(
            "an ordinal attribute needs low and high, or edges; take them from public knowledge, not the table"
        )
    if unit is not None or isinstance(low, str | date):
        return Calendar.between(low, high, "day" if unit is None else unit)
    if isinstance(low, Integral) and isinstance(high, Integral) and not {bool} & {type(low), type(high)}:
        return WholeNumbers(int(low), int(high))
    raise SchemaError("low and high must be whole numbers or dates; use edges=[...] for bins of real numbers")
