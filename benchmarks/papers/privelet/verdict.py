"""A figure beside what it must reach, and a claim of the paper beside what was found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Verdict:
    """A figure of ours with its bar: at least ``low`` and at most ``high``; ``note`` says what to know about it."""

    part: str
    what: str
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def is_reached(self) -> bool:
        """Whether the figure itself meets the bar; its noise is no excuse."""
        return (self.low is None or self.value >= self.low) and (self.high is None or self.value <= self.high)

    @property
    def word(self) -> str:
        """The verdict in a word; a figure without a bar has none."""
        if self.low is None and self.high is None:
            return ""
        return "reached" if self.is_reached else "MISSED"

    @property
    def bar(self) -> str:
        """The bar as it is shown."""
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        if self.high is not None:
            return f"≤ {self.high:g}"
        return "" if self.low is None else f"≥ {self.low:,g}"


@dataclass(frozen=True)
class Claim:
    """What the paper says, what was found where, and whether the one bears out the other."""

    where: str
    paper: str
    ours: str
    holds: bool

    @property
    def word(self) -> str:
        """The verdict in words."""
        return "holds" if self.holds else "does not hold"


def log_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of a straight line through the logarithms: the power of x that y grows with."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
