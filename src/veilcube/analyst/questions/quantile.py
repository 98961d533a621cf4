"""Questions whose answers are read off counts: quantiles in the attribute's own values, and distributive queries.

A distributive query whose merge is linear is a weighted sum of released counts, at no cost.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.query import Answer, Answers, DistributiveQuery, cell_numbers, require_place
from veilcube.schema import Attribute, Bins, Calendar, Ordinal


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


@dataclass(frozen=True, eq=False)
class DateAnswers(Answers):
    """Many estimated dates, arrays of ``datetime64``; where nobody can be there is none (``NaT``)."""

    def __getitem__(self, index: int | tuple[int, ...]) -> DateAnswer:  # type: ignore[override]
        require_place(index, self.value.shape)
        days = [getattr(self, name)[index].tolist() for name in ("value", "low", "high")]
        if None in days:
            raise QueryError("nobody can be in that group, so it has no date")
        return DateAnswer(days[0], days[1], days[2], self.confidence, self.privacy)

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON: one record per answer."""
        facts = super().to_dict()
        records = facts["answers"]
        if not isinstance(records, list):
            raise TypeError("answers are a list of records")
        written = [{name: _written(entry) for name, entry in record.items()} for record in records]
        return facts | {"answers": written}


def _written(entry: object) -> object:
    return entry.isoformat() if isinstance(entry, date) else entry


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


if TYPE_CHECKING:
    from veilcube.analyst.estimate import GroupedCounts


def answer_distributive(
    query: DistributiveQuery,
    attribute: Attribute,
    read_groups: Callable[[], "GroupedCounts"],
    confidence: float,
    privacy: str,
) -> Answer:
    """Return a linear distributive query of one attribute: each cell weighs what one row in it would give."""
    if not isinstance(query, DistributiveQuery):
        raise QueryError("distributive takes a veilcube.DistributiveQuery; build one from a part and a merge")
    if query.is_finite or not query.is_linear:
        raise QueryError(
            "a release answers distributive queries whose parts add up, such as counts and sums; ask a protected table"
        )
    cells = cell_numbers(attribute)
    fitted = query.fitted(cells)
    fitted.require_distributive(cells.numbers)
    weights, *ends = (_weights(fitted, numbers) for numbers in (cells.numbers, cells.low, cells.high))
    least, largest = np.minimum(weights, np.min(ends, axis=0)), np.maximum(weights, np.max(ends, axis=0))
    groups = read_groups()
    value, stddev = float(weights @ groups.counts), float(np.sqrt(groups.variance_of(weights)))
    # Values may lie anywhere in their bins; whole numbers are all that their cells hold.
    low = float(least @ groups.counts) - groups.half_width_of(least, confidence)
    high = float(largest @ groups.counts) + groups.half_width_of(largest, confidence)
    return Answer(value, min(low, value), max(high, value), confidence, stddev, privacy)


def _weights(query: DistributiveQuery, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what one row at each number would give."""
    one = np.ones(1, dtype=np.int64)
    given = [query.value_of(numbers[cell : cell + 1], one) for cell in range(numbers.size)]
    return np.array(given, dtype=np.float64) / query.parts_of_one
