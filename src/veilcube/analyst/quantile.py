"""Where a quantile lies, said in the attribute's own values."""

from dataclasses import dataclass, field
from datetime import date
from numbers import Real

from veilcube.errors import QueryError
from veilcube.query import Answer
from veilcube.schema import Bins, Calendar, Ordinal


@dataclass(frozen=True)
class DateAnswer:
    """An estimated date: the true one lies from ``low`` to ``high`` with probability ``confidence`` over the noise."""

    value: date
    low: date
    high: date
    confidence: float
    privacy: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not all(isinstance(day, date) for day in (self.value, self.low, self.high)):
            raise QueryError("the value, low and high of a date's answer are datetime.date")
        if not isinstance(self.confidence, Real) or not isinstance(self.privacy, str):
            raise QueryError("the confidence of a date's answer is a number, and its privacy a text")

    def __str__(self) -> str:
        return f"{self.value} [{self.low}, {self.high}]"

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        dates = {"value": self.value.isoformat(), "low": self.low.isoformat(), "high": self.high.isoformat()}
        return dates | {"confidence": self.confidence, "privacy": self.privacy}


def locate_quantile(
    ordinal: Ordinal, cells: tuple[int, int, int], confidence: float, privacy: str
) -> Answer | DateAnswer:
    """Turn the estimated cell and the first and last one that may hold the quantile into values.

    A whole number is itself. A bin is its middle, and the interval reaches to the bins' outer edges. A calendar cell is
    its first day, and the interval reaches from the first to the last day.
    """
    best, first, last = cells
    division = ordinal.division
    if isinstance(division, Calendar):
        return DateAnswer(
            division.first_day(best), division.first_day(first), division.last_day(last), confidence, privacy
        )
    if isinstance(division, Bins):
        low, high = float(division.edges[first]), float(division.edges[last + 1])
    else:
        low, high = division.centre(first), division.centre(last)
    return Answer(division.centre(best), low, high, confidence, float("nan"), privacy)
