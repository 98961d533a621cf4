"""Answers: an estimate that says how wrong it may be, and under which privacy promise it was made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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

    def __str__(self) -> str:
        return f"{self.value:,.6g} [{self.low:,.6g}, {self.high:,.6g}]"

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
        for array in (self.value, self.low, self.high, self.stddev):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: int | tuple[int, ...]) -> Answer:
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

    def columns(self, first: int | None = None) -> dict[str, list[object]]:
        """Return all answers, or the first ones, as columns of a flat table, the labels of their axes first."""
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
        import pandas as pd  # noqa: PLC0415 - pandas is an extra, needed only by who asks for a frame

        return pd.DataFrame(self.columns())


def _cell_text(entry: object) -> str:
    return f"{entry:,.6g}" if isinstance(entry, float) else str(entry)
