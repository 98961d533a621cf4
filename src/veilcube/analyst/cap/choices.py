"""What each choice of ``max_rows`` keeps: shares of rows and of persons, from a noisy histogram of rows per person.

A share r of rows solves Σ h_n (min(n, m) - r n) = 0 over the numbers h_n of persons with n rows. For every r the left
side is a sum with known noise, so the interval holds the r at which 0 is not ruled out (Fieller 1954). Of a bin of
several n the sum is bounded by its least and its largest term, which lie at the bin's ends, as m is an end too.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from veilcube.laws import laplace_sum_deviations
from veilcube.privacy import PrivacyStatement
from veilcube.query import Answer, Answers, read_confidence
from veilcube.record import MeasuredPersons
from veilcube.system import Floats, as_html, show_interval, show_number

# Shares are looked at in steps of a twentieth of a percent; intervals are widened by one.
_STEPS = 2000
# The share of rows that the recommended cap keeps.
ENOUGH_KEPT = 0.95
# An interval of a share wider than this tells little.
_WIDE = 0.1
_HEAD = ("max_rows", "rows kept", "persons kept whole")


@dataclass(frozen=True)
class CapChoice:
    """What a cap keeps: the share of all rows, and the share of persons of whom no row is left out."""

    max_rows: int
    rows: Answer
    persons: Answer

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        shares = {"rows": self.rows, "persons": self.persons}
        return {"max_rows": self.max_rows} | {
            name: {end: getattr(share, end) for end in ("value", "low", "high")} for name, share in shares.items()
        }


class MeasuredRows:
    """How many rows persons have, as far as noise lets one see, and what each choice of ``max_rows`` keeps of them."""

    def __init__(self, measured: MeasuredPersons, confidence: float = 0.95) -> None:
        self._measured, self._confidence = measured, read_confidence(confidence)
        self._values = measured.values.astype(np.float64)
        self._first = np.array(measured.bins.first, dtype=np.float64)
        self._last = np.array(measured.bins.last, dtype=np.float64)

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise, in words (``str``) and as data."""
        return self._measured.statement

    @property
    def largest(self) -> int:
        """The number of rows from which on persons are not told apart; rows beyond it are not seen."""
        return self._measured.bins.largest

    @cached_property
    def persons(self) -> Answers:
        """How many persons have how many rows, with noise."""
        noise = self._measured.noise
        half = float(laplace_sum_deviations(np.ones(1), self._confidence)[0]) * noise.stddev
        values, stddev = self._values, np.full(self._values.shape, noise.stddev)
        axes = {"rows": self._measured.bins.labels()}
        return Answers(values, values - half, values + half, stddev, self._confidence, str(self.privacy), axes)

    @cached_property
    def choices(self) -> tuple[CapChoice, ...]:
        """What each cap keeps, the smallest first."""
        return tuple(self._choice(most) for most in self._measured.bins.last[:-1])

    @property
    def recommended(self) -> int:
        """The least ``max_rows`` that is estimated to keep 95% of the rows; noise grows in proportion to it."""
        kept = [choice.max_rows for choice in self.choices if choice.rows.value >= ENOUGH_KEPT]
        return kept[0] if kept else self.choices[-1].max_rows

    @property
    def words(self) -> str:
        """The recommendation in a sentence or two."""
        most = self.recommended
        found = next(choice for choice in self.choices if choice.max_rows == most)
        rows, persons = _percent(found.rows), _percent(found.persons)
        kept = f"it keeps about {rows} of the rows, and all rows of {persons} of the persons"
        if found.rows.value < ENOUGH_KEPT:
            advice = "no smaller one keeps more; look again with a larger 'largest'"
        elif found.rows.high - found.rows.low > _WIDE:
            advice = "the noise is large: a larger epsilon tells more"
        else:
            advice = "noise grows in proportion to max_rows, so take a smaller one if you can bear to lose more"
        return (
            f"Recommended: max_rows={most}; {kept}; {advice}. Of a person with more than {self.largest:,} rows, only "
            f"{self.largest:,} are seen here."
        )

    @property
    def shown(self) -> list[tuple[str, str, str]]:
        """Each choice in words: max_rows, the share of rows that it keeps, and that of persons it keeps whole."""
        return [(str(one.max_rows), _percent(one.rows), _percent(one.persons)) for one in self.choices]

    def __repr__(self) -> str:
        return f"MeasuredRows(recommended max_rows={self.recommended}; {self.privacy.short_words})"

    def __str__(self) -> str:
        lines = [f"{most:>8}  {rows:>24}  {persons:>24}" for most, rows, persons in [_HEAD, *self.shown]]
        return "\n".join([*lines, self.words])

    def _repr_html_(self) -> str:
        return as_html("What a cap keeps", _HEAD, self.shown, f"{self.words} {self.privacy}", numbers=_HEAD)

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "recommended": self.recommended,
            "largest": self.largest,
            "choices": [choice.to_dict() for choice in self.choices],
            "persons": self.persons.to_dict()["answers"],
            "confidence": self._confidence,
            "words": self.words,
            "privacy": self.privacy.to_dict(),
        }

    def _choice(self, most: int) -> CapChoice:
        first, last = np.minimum(self._first, most), np.minimum(self._last, most)
        whole = (self._last <= most).astype(np.float64)
        ones = np.ones_like(whole)
        rows = self._share((first, last), (self._first, self._last))
        return CapChoice(most, rows, self._share((whole, whole), (ones, ones)))

    def _share(self, parts: tuple[Floats, Floats], wholes: tuple[Floats, Floats]) -> Answer:
        """Return the ratio of two sums over bins, whose terms lie between those of the two ends of each bin."""
        middle, all_of = (parts[0] + parts[1]) / 2, (wholes[0] + wholes[1]) / 2
        total = float(self._values @ all_of)
        value = min(max(float(self._values @ middle) / total, 0.0), 1.0) if total > 0 else 0.5
        shares = np.arange(_STEPS + 1)[:, np.newaxis] / _STEPS
        ends = [part - shares * whole for part, whole in zip(parts, wholes, strict=True)]
        least, largest = np.minimum(*ends), np.maximum(*ends)
        is_possible = (self._sum(least, -1.0) <= 0) & (self._sum(largest, 1.0) >= 0)
        found = np.flatnonzero(is_possible) / _STEPS if is_possible.any() else np.array([0.0, 1.0])
        low, high = max(float(found[0]) - 1 / _STEPS, 0.0), min(float(found[-1]) + 1 / _STEPS, 1.0)
        value = min(max(value, low), high)
        weights = middle - value * all_of
        stddev = self._measured.noise.stddev * sqrt(float(weights @ weights)) / total if total > 0 else 0.5
        return Answer(value, low, high, self._confidence, stddev, str(self.privacy))

    def _sum(self, weights: Floats, sign: float) -> Floats:
        """Return weighted sums of the noisy numbers, each moved by the half-width of its interval."""
        squares = (weights**2).sum(axis=1)
        fourth = (weights**4).sum(axis=1) / np.where(squares > 0, squares, 1.0) ** 2
        half = laplace_sum_deviations(fourth, self._confidence) * self._measured.noise.stddev * np.sqrt(squares)
        return np.asarray(weights @ self._values + sign * half)


def _percent(share: Answer) -> str:
    value, low, high = (round(100 * part, 1) for part in (share.value, share.low, share.high))
    return f"{show_number(value)}% ({show_interval(low, high)}%)"
