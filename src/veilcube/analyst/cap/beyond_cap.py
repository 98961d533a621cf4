"""What lies beyond a release's cap, as far as was measured: rows, their share, and persons above the public bound."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from veilcube.analyst.cap.noise import reach
from veilcube.analyst.estimate import Estimates
from veilcube.laws import half_widths
from veilcube.query import Answer
from veilcube.record import MeasuredCap
from veilcube.system import show_number

# A number of persons this improbable by noise alone is taken for persons.
_BY_NOISE = 0.001


@dataclass(frozen=True)
class BeyondCap:
    """How many rows of persons with more than ``max_rows`` rows were not counted, with intervals.

    ``share`` is of all rows, ``persons_above`` the number of persons with more than ``most_rows`` rows: there should be
    none, and rows beyond that bound are in no answer.
    """

    max_rows: int
    most_rows: int
    rows: Answer
    share: Answer
    persons_above: Answer
    is_bound_broken: bool

    @classmethod
    def of(cls, measured: MeasuredCap, total: Estimates, confidence: float, privacy: str) -> "BeyondCap":
        """Read what was measured, beside an estimate of all kept rows with intervals at half the chance of a miss."""
        rows = _rows(measured, 1 - confidence, confidence, privacy)
        narrow = _rows(measured, (1 - confidence) / 2, confidence, privacy)
        kept = (max(float(total.value), 0.0), max(float(total.low), 0.0), max(float(total.high), 0.0))
        value, low, high = (
            _ratio(part, whole)
            for part, whole in ((rows.value, kept[0]), (narrow.low, kept[2]), (narrow.high, kept[1]))
        )
        in_all = max(kept[0] + rows.value, 1.0)
        stddev = sqrt((kept[0] * rows.stddev) ** 2 + (rows.value * float(total.stddev)) ** 2) / in_all**2
        share = Answer(min(max(value, low), high), low, high, confidence, stddev, privacy)
        above, noise = float(measured.values[-1]), measured.noises[-1]
        half = float(half_widths(noise, [1], confidence)[0])
        persons = Answer(
            max(above, 0.0), max(above - half, 0.0), max(above + half, 0.0), confidence, noise.stddev, privacy
        )
        is_broken = above > float(half_widths(noise, [1], 1 - 2 * _BY_NOISE)[0])
        return cls(measured.bins.max_rows, measured.bins.most_rows, rows, share, persons, is_broken)

    @property
    def words(self) -> str:
        """What is beyond the cap, in a sentence or two."""
        share, low, high = (_percent(number) for number in (self.share.value, self.share.low, self.share.high))
        found = f"About {share} ({low} to {high}) of rows are beyond the cap of {self.max_rows:,} per person. "
        if self.is_bound_broken:
            return (
                f"{found}About {show_number(round(self.persons_above.value))} persons seem to have more than "
                f"{self.most_rows:,} rows: what is told of all rows leaves out some of theirs, so take a larger "
                "most_rows."
            )
        return f"{found}Nobody is taken to have more than {self.most_rows:,} rows."

    def __str__(self) -> str:
        return self.words

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        answers = {"rows": self.rows, "share": self.share, "persons_above": self.persons_above}
        ends = ("value", "low", "high")
        return {
            "max_rows": self.max_rows,
            "most_rows": self.most_rows,
            **{name: {end: getattr(found, end) for end in ends} for name, found in answers.items()},
            "is_bound_broken": self.is_bound_broken,
            "confidence": self.rows.confidence,
            "words": self.words,
        }


def _rows(measured: MeasuredCap, missing: float, confidence: float, privacy: str) -> Answer:
    values = measured.values[:-1].astype(np.float64)
    scales = np.array([float(noise.scale) for noise in measured.noises[:-1]])
    half, value = reach(np.ones_like(scales), scales, missing / 2), float(values.sum())
    stddev = sqrt(sum(noise.variance for noise in measured.noises[:-1]))
    return Answer(max(value, 0.0), max(value - half, 0.0), max(value + half, 0.0), confidence, stddev, privacy)


def _ratio(part: float, rest: float) -> float:
    return part / (part + rest) if part > 0 else 0.0


def _percent(share: float) -> str:
    return f"{show_number(round(100 * share, 1))}%"
