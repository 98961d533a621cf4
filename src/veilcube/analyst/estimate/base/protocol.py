"""What an estimator is: settings in a frozen object, a public record in, an estimate that answers questions out.

An estimator reads only what was published, so nothing it does can cost privacy. Each registers in
``estimate/__init__.py`` and in ``tests/conformance/members.py``, which checks its intervals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from veilcube.record import ReleaseRecord
from veilcube.schema import Region


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimated counts with their standard deviations and intervals, arrays of one shape.

    ``estimator`` names who found them, where that is not whoever was asked.
    """

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    stddev: NDArray[np.float64]
    estimator: str = ""


@dataclass(frozen=True)
class Finding:
    """How one kind of question agrees with what was measured: ``disagreement`` is about 1 or less if all is well.

    It is a mean over ``questions`` independent ones, in units of what noise explains. ``corrected`` is the part of the
    disagreement that was taken for bias and out of the answers; ``is_widened`` says that the rest, what a model of the
    whole table leaves unexplained, made the intervals wider.
    """

    kind: str
    questions: int
    disagreement: float
    corrected: float
    is_widened: bool = False

    @property
    def is_good(self) -> bool:
        """Whether noise explains it, up to three standard errors for noise with long tails."""
        return self.disagreement <= 1.0 + 6.0 / sqrt(max(self.questions, 1))

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "kind": self.kind,
            "questions": self.questions,
            "disagreement": self.disagreement,
            "corrected": self.corrected,
            "is_good": self.is_good,
        }


@runtime_checkable
class CheckedEstimate(Protocol):
    """An estimate that rests on more than the noise, and tells how well that suits the release."""

    def findings(self, names: Sequence[str]) -> tuple[Finding, ...]:
        """Return what its checks found; ``names`` are those of the attributes."""


class GroupedCounts(Protocol):
    """Estimated counts of the cells of some attributes, others summed out, as linear statistics of the noise."""

    @property
    def counts(self) -> NDArray[np.float64]:
        """The estimated count of each group."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many cells of the cube each group holds; 0 for groups outside the region."""

    def first(self, size: int) -> "GroupedCounts":
        """Return the first groups of a single axis only."""

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""

    def variance_of(self, weights: NDArray[np.float64]) -> float:
        """Return the noise variance of a weighted sum of the groups."""

    def half_width_of(self, weights: NDArray[np.float64], confidence: float) -> float:
        """Return w such that the noise of a weighted sum of the groups stays within ±w with ``confidence``."""

    def prefix_variances(self, inside: float, outside: float) -> NDArray[np.float64]:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> NDArray[np.float64]:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""


class Estimate(Protocol):
    """The answers that one estimator gives about one release."""

    def cells(self) -> NDArray[np.float64]:
        """Return the estimated count of every cell."""

    def rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64], confidence: float) -> Estimates:
        """Estimate the count of each block, inclusive cell indices (queries, attributes)."""

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region; arrays of shape ()."""

    def grouped(self, region: Region, axes: Sequence[int]) -> GroupedCounts:
        """Estimate the counts inside a region for every combination of cells of the given axes."""


class Estimator(Protocol):
    """A way to read a release."""

    @property
    def name(self) -> str:
        """The word that users call it by."""

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether it knows how to read this release."""

    def fit(self, record: ReleaseRecord) -> Estimate:
        """Return its answers about this release."""


# Fits an estimator to one release; whoever asks often remembers what it returned.
Fit: TypeAlias = Callable[[Estimator], Estimate]
