"""Answers that are values of an attribute's domain: a maximum, a k-th largest value, quantiles."""

from dataclasses import dataclass, field
from datetime import date

import numpy as np
from numpy.typing import NDArray

from veilcube.query.answer import Answers
from veilcube.schema import Bins, Calendar, Ordinal


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
