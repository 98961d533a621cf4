"""Answers: an estimate that says how wrong it may be, and under which privacy promise it was made.

Some are numbers, others values of an attribute's domain: a maximum, a k-th largest value, quantiles. The confidence of
an interval is read here, as callers give it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.schema import Bins, Calendar, Ordinal
from veilcube.system import (
    as_html,
    load_extra,
    read_kind,
    read_numbers,
    read_whole,
    show_confidence,
    show_interval,
    show_number,
)


def read_confidence(confidence: float) -> float:
    """Return a confidence as a float; refuses what is none before anything is spent or computed.

    >>> read_confidence(0.95)
    0.95
    """
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise QueryError(f"confidence must lie strictly between 0 and 1, not {confidence!r}: 0.95 is usual")
    return float(confidence)


if TYPE_CHECKING:
    import pandas as pd


MOST_ROWS_SHOWN = 30


@dataclass(frozen=True)
class Answer:
    """One estimate: the true value lies between ``low`` and ``high`` with probability ``confidence`` over the noise."""

    value: float
    low: float
    high: float
    confidence: float
    stddev: float
    privacy: str = field(default="", repr=False)
    estimator: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        numbers = (self.value, self.low, self.high, self.confidence, self.stddev)
        if not all(isinstance(number, Real) for number in numbers):
            raise QueryError("the value, low, high, confidence and stddev of an answer are numbers")
        _read_words(self.privacy, self.estimator)

    def __str__(self) -> str:
        return f"{self.value:,.6g} [{self.low:,.6g}, {self.high:,.6g}]"

    def _repr_html_(self) -> str:
        ends = show_interval(round(self.low, 2), round(self.high, 2))
        head = ("estimate", f"{show_confidence(self.confidence)} interval", "stddev")
        row = (show_number(round(self.value, 2)), ends, show_number(self.stddev))
        return as_html("Answer", head, [row], self.privacy, numbers=head)

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "stddev": self.stddev,
            "privacy": self.privacy,
            "estimator": self.estimator,
        }


@dataclass(frozen=True, eq=False)
class Answers:
    """Many estimates at once: arrays of one shape, and the labels of their axes where they have any.

    Iterating and indexing give single ``Answer`` objects.
    """

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    stddev: NDArray[np.float64]
    confidence: float
    privacy: str = field(default="", repr=False)
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    estimator: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for name in ("value", "low", "high", "stddev"):
            given = getattr(self, name)
            array = given if isinstance(given, np.ndarray) else read_numbers(given, f"the {name} of answers")
            if array.shape != np.shape(self.value):
                raise QueryError("the value, low, high and stddev of answers must be arrays of one shape")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not isinstance(self.confidence, Real):
            raise QueryError("the confidence of answers is a number")
        _read_words(self.privacy, self.estimator)
        read_kind(self.axes, Mapping, "the axes of answers are a mapping from attributes to labels")
        labelled = tuple(len(labels) if isinstance(labels, Sequence) else -1 for labels in self.axes.values())
        if labelled and labelled != self.value.shape:
            raise QueryError(
                f"the axes of answers of shape {self.value.shape} need a label for each place on each axis"
            )

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: int | tuple[int, ...]) -> Answer:
        require_place(index, self.value.shape)
        return Answer(
            float(self.value[index]),
            float(self.low[index]),
            float(self.high[index]),
            self.confidence,
            float(self.stddev[index]),
            self.privacy,
            self.estimator,
        )

    def __iter__(self) -> Iterator[Answer]:
        return (self[np.unravel_index(flat, self.value.shape)] for flat in range(self.value.size))  # type: ignore[index]

    def __str__(self) -> str:
        """Return an aligned table of the first answers, with the labels of their axes."""
        columns = self.columns(MOST_ROWS_SHOWN)
        texts = [[name, *map(_cell_text, entries)] for name, entries in columns.items()]
        widths = [max(map(len, column)) for column in texts]
        lines = [
            "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
            for row in zip(*texts, strict=True)
        ]
        hidden = self.value.size - MOST_ROWS_SHOWN
        return "\n".join(lines + [f"... and {hidden:,} more"] * (hidden > 0))

    def _repr_html_(self) -> str:
        columns = self.columns(MOST_ROWS_SHOWN)
        numbers = [name for name in columns if name not in self.axes]
        rows = zip(*([_cell_text(entry) for entry in column] for column in columns.values()), strict=True)
        hidden = self.value.size - MOST_ROWS_SHOWN
        more = f"... and {hidden:,} more. " if hidden > 0 else ""
        caption = f"{self.value.size:,} answers with {show_confidence(self.confidence)} intervals"
        return as_html(caption, tuple(columns), rows, f"{more}{self.privacy}", numbers=numbers)

    def columns(self, first: int | None = None) -> dict[str, list[object]]:
        """Return all answers, or the first ones, as columns of a flat table, the labels of their axes first."""
        first = None if first is None else read_whole(first, "the number of answers to show", 0)
        flat = np.arange(self.value.size)[:first]
        table: dict[str, list[object]] = {}
        for (name, labels), position in zip(self.axes.items(), np.unravel_index(flat, self.value.shape), strict=False):
            table[name] = [labels[index] for index in position]
        for name in ("value", "low", "high", "stddev"):
            table[name] = getattr(self, name).ravel()[:first].tolist()
        return table

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON: one record per answer."""
        columns = self.columns()
        records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        facts = {"confidence": self.confidence, "privacy": self.privacy, "estimator": self.estimator}
        return {"answers": records} | facts

    def to_pandas(self) -> "pd.DataFrame":
        """Return the answers as a pandas data frame."""
        frame: pd.DataFrame = load_extra("pandas", "a data frame", "pandas").DataFrame(self.columns())
        return frame


def _cell_text(entry: object) -> str:
    return f"{entry:,.6g}" if isinstance(entry, float) else str(entry)


def _read_words(*texts: object) -> None:
    if not all(isinstance(text, str) for text in texts):
        raise QueryError("the privacy and the estimator of an answer are texts")


def require_place(index: object, shape: tuple[int, ...]) -> None:
    """Refuse an index that does not choose one of the answers."""
    if not _is_place(index, shape):
        raise QueryError(f"answers have the shape {shape}; choose one by whole numbers, from 0 on")


def _is_place(index: object, shape: tuple[int, ...]) -> bool:
    """Whether an index has a whole number for each axis and chooses one entry; negative ones count from the end."""
    numbers = index if isinstance(index, tuple) else (index,)
    return len(numbers) == len(shape) and all(
        isinstance(number, Integral) and not isinstance(number, bool) and -size <= int(number) < size
        for number, size in zip(numbers, shape, strict=True)
    )


@dataclass(frozen=True)
class RankAnswer:
    """A value drawn from a domain: the true one lies between ``low`` and ``high`` with probability ``confidence``.

    A draw tells how many *rows* it may miss by, not how far away their values lie: with the same probability at most
    ``rows`` rows separate the answer from the true value. Unless a part of epsilon was spent on ends, ``low`` and
    ``high`` are therefore those of the domain. A bin stands as its middle, a calendar unit as its first day.
    """

    value: float | date
    low: float | date
    high: float | date
    confidence: float
    rows: int
    privacy: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{_text(self.value)} [{_text(self.low)}, {_text(self.high)}], within {self.rows:,} rows"

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        ends: dict[str, object] = {name: _plain(getattr(self, name)) for name in ("value", "low", "high")}
        return ends | {"confidence": self.confidence, "rows": self.rows, "privacy": self.privacy}


@dataclass(frozen=True, eq=False)
class RankAnswers(Answers):
    """Many values of one domain; with probability ``confidence`` each misses by at most its number of ``rows``."""

    rows: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def ends_of_cells(ordinal: Ordinal, first: int, last: int) -> tuple[float | date, float | date]:
    """Return the least and the largest value that the cells from first to last may hold."""
    division = ordinal.division
    if isinstance(division, Calendar):
        return division.first_day(first), division.last_day(last)
    if isinstance(division, Bins):
        return float(division.edges[first]), float(division.edges[last + 1])
    return division.centre(first), division.centre(last)


def value_of_cell(ordinal: Ordinal, cell: int) -> float | date:
    """Return what stands for one cell."""
    division = ordinal.division
    return division.first_day(cell) if isinstance(division, Calendar) else division.centre(cell)


def _text(value: float | date) -> str:
    return str(value) if isinstance(value, date) else f"{value:,.6g}"


def _plain(value: float | date) -> float | str:
    return value.isoformat() if isinstance(value, date) else value
