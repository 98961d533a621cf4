"""Whether a release keeps what its plan promised: half-widths before and after, over the same questions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from veilcube.errors import PlanError
from veilcube.planner.design import AnswerNoise, Design, root_mean_square
from veilcube.query import Answers, Workload
from veilcube.record import ReleaseRecord
from veilcube.system import Floats, show_confidence, show_number

# Rounding of floats, and the choice among equally good bounds on an interval.
ALLOWED = 1.001
# The model of grouped tables takes long to fit for a comparison that nobody asked for.
MOST_QUESTIONS_OF_MODELS = 1000


class Released(Protocol):
    """What of a release tells how wrong its answers may be."""

    @property
    def record(self) -> ReleaseRecord:
        """What was measured, with which noise."""

    @property
    def plan(self) -> Mapping[str, object]:
        """The plan it was made from, as plain data."""

    def answer(self, workload: Workload, *, estimator: str = "best", confidence: float = 0.95) -> Answers:
        """Answer every question."""


class Promising(Protocol):
    """What of a plan is compared."""

    @property
    def workload(self) -> Workload:
        """The questions that it was made for."""

    @property
    def design(self) -> Design:
        """What is measured, at once or in steps."""

    @property
    def expected_error(self) -> float:
        """The error that is promised."""

    def half_width(self, workload: Workload | None = None, confidence: float = 0.95) -> float:
        """Return half the width of an interval."""

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain data."""


@dataclass(frozen=True)
class Comparison:
    """What a plan promised and what was released: half-widths and standard deviations, as root mean squares.

    Each question counts with its weight. ``foreseen`` says what the plan assumed; where it is empty the promise is
    exact, whatever the data are. What was released is None where it was not looked at.
    """

    questions: str
    confidence: float
    promised: float
    promised_error: float
    released: float | None
    released_error: float | None
    foreseen: str = ""

    @property
    def is_kept(self) -> bool | None:
        """Whether the release is no worse than promised; None if nobody looked."""
        return None if self.released is None else self.released <= ALLOWED * self.promised

    def __str__(self) -> str:
        found = "not looked at" if self.released is None else f"+-{show_number(self.released)}"
        assumed = f" ({self.foreseen})" if self.foreseen else ""
        worse = ", which is more" if self.is_kept is False else ""
        return (
            f"Promised +-{show_number(self.promised)} for {self.questions}{assumed}; released {found}{worse} "
            f"({show_confidence(self.confidence)}, root mean square)."
        )

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as plain data."""
        return {
            "questions": self.questions,
            "confidence": self.confidence,
            "promised": {"half_width": self.promised, "stddev": self.promised_error},
            "released": None if self.released is None else {"half_width": self.released, "stddev": self.released_error},
            "foreseen": self.foreseen,
            "is_kept": self.is_kept,
        }


def compare_with(made: Promising, release: Released, confidence: float, *, may_fit: bool = True) -> Comparison:
    """Compare a plan with a release of it, by the noise of what was measured.

    Where that tells the noise of an answer by itself, nothing is estimated; else the answers' own intervals are taken.
    ``may_fit`` allows a model to be fitted for them, which may take minutes.
    """
    said = {name: value for name, value in release.plan.items() if name in ("strategy", "epsilon", "scale", "noise")}
    own = made.to_dict()
    if said != {name: own[name] for name in said}:
        raise PlanError("the release was made from another plan; compare it with the plan that it was made from")
    widths, stddevs = _released(made, release, confidence, may_fit=may_fit)
    asked = made.workload
    return Comparison(
        asked.words,
        confidence,
        made.half_width(asked, confidence),
        made.expected_error,
        None if widths is None else root_mean_square(asked, widths),
        None if stddevs is None else root_mean_square(asked, stddevs),
        made.design.foreseen,
    )


def _released(
    made: Promising, release: Released, confidence: float, *, may_fit: bool
) -> tuple[Floats | None, Floats | None]:
    asked, (first, *others) = made.workload, release.record.telling.measurements
    if not others and first.operator.answers is not None:
        noise = AnswerNoise.of(first.operator, asked)
        return noise.half_widths(first.noise, confidence), noise.stddevs(first.noise)
    if first.grouped is not None and not (may_fit and len(asked) <= MOST_QUESTIONS_OF_MODELS):
        return None, None
    # What is planned is least squares; where more is learned step by step, the best answers are meant.
    estimator = "best" if made.design.gain > 1 else "least_squares"
    found = release.answer(asked, estimator=estimator, confidence=confidence)
    return (np.asarray(found.high, dtype=np.float64) - found.low) / 2, np.asarray(found.stddev, dtype=np.float64)
