"""Answers for all rows, from counts of the kept ones and a noisy number of rows beyond the cap.

Which rows of a person are kept is chosen at random, so dropped rows lie, on average, where kept ones do: of a person
with m + e rows, each kept row stands for 1 + e/m. Who of all persons has which rows is unknown. So a question with a
mean of μ kept rows holds at most as many dropped rows as if the persons with most rows filled it first: the largest
sum Σ y_b with y_b <= S_b, the dropped rows of persons of bin b, and Σ y_b m/h_b <= μ, where e is at most h_b. And it
holds no fewer than all dropped rows without those that its complement may hold (docs/proofs/cap.md, Theorem 3).
"""

from dataclasses import dataclass

import numpy as np

from veilcube.analyst.cap.noise import reach, rough_reach
from veilcube.analyst.estimate import Estimates
from veilcube.errors import QueryError
from veilcube.record import MeasuredCap
from veilcube.system import Floats, read_real

# How the chance of a miss is shared out: noise on the kept rows and on all of them, which rows are kept, noise beyond.
OF_COUNT, OF_TOTAL, OF_CHOICE, OF_EXCESS = 0.5, 0.1, 0.15, 0.25


@dataclass(frozen=True, eq=False)
class DroppedRows:
    """How many rows beyond the cap any question may hold, at a chance of being wrong for all questions together."""

    estimate: float
    stddev: float
    low: float
    high: float
    slopes: Floats
    offsets: Floats
    most_capped: float
    choice: float

    @classmethod
    def of(cls, measured: MeasuredCap, missing: float) -> "DroppedRows":
        """Read what was measured; ``missing`` is the chance of being wrong, for every question and in all."""
        most, ends = measured.bins.max_rows, np.array(measured.bins.ends, dtype=np.float64)
        values = measured.values[:-1].astype(np.float64)
        scales = np.array([float(noise.scale) for noise in measured.noises[:-1]])
        # A line of slope λ bounds the largest sum from above, for each λ that a bin has. All lines but the steepest
        # have noise; so do the lower end of all dropped rows and the number of persons who dropped any.
        each = OF_EXCESS * missing / (len(ends) + 2)
        slopes, offsets = [], []
        for cut in (0.0, *ends):
            weights = np.maximum(1 - cut / ends, 0.0)
            slopes.append(cut / most)
            offsets.append(max(float(weights @ values) + reach(weights, scales, each), 0.0))
        total = float(values.sum())
        low = max(total - reach(np.ones_like(ends), scales, each), 0.0)
        starts = 1 / (np.array([0, *measured.bins.ends[:-1]]) + 1)
        capped = most * max(float(starts @ values) + rough_reach(starts, scales, each), 0.0)
        stddev = float(np.sqrt(sum(noise.variance for noise in measured.noises[:-1])))
        estimate = min(max(total, low), offsets[0])
        choice = float(-np.log(OF_CHOICE * missing / 2))
        return cls(estimate, stddev, low, offsets[0], np.array(slopes), np.array(offsets), capped, choice)

    def most(self, kept: Floats) -> Floats:
        """Return how many dropped rows questions with so many kept ones hold at most."""
        base = np.minimum(kept, self.most_capped)
        # What the choice of rows left out by chance, by Chernoff's bound for draws without replacement.
        luck = self.choice + np.sqrt(self.choice**2 + 2 * self.choice * base)
        mean = kept + luck
        lines = self.slopes * mean[..., np.newaxis] + self.offsets
        return np.asarray(np.minimum(lines.min(axis=-1) + luck, self.high))

    def least(self, kept_elsewhere: Floats) -> Floats:
        """Return how many dropped rows questions hold at least, whose complements hold at most so many kept rows."""
        return np.asarray(np.maximum(self.low - self.most(kept_elsewhere), 0.0))


class AllRows:
    """Turns estimates of kept rows into estimates of all rows, whose intervals cover the dropped ones.

    With a ``spread``, dropped rows are taken to be at most so many times as frequent, or as rare, among those of any
    question as kept rows are; that is an assumption about the table, which nothing checks.
    """

    def __init__(self, measured: MeasuredCap, confidence: float, spread: float | None = None) -> None:
        if spread is not None and read_real(spread, "spread", infinite=True) < 1:
            raise QueryError("the spread is a factor of at least 1: 2 takes dropped rows to be up to twice as frequent")
        self._missing, self._spread = 1 - confidence, spread
        self._dropped = DroppedRows.of(measured, self._missing)

    @property
    def of_kept(self) -> float:
        """The confidence at which the kept rows of a question are to be estimated."""
        return 1 - OF_COUNT * self._missing

    @property
    def of_total(self) -> float:
        """The confidence at which all kept rows are to be estimated."""
        return 1 - OF_TOTAL * self._missing

    def from_kept(self, kept: Estimates, total: Estimates, sizes: Floats, cells: float) -> Estimates:
        """Return the estimates for all rows of questions about so many of all cells."""
        is_nobody, is_everybody = sizes == 0, sizes == cells
        low, high = np.maximum(kept.low, 0.0), np.maximum(kept.high, 0.0)
        elsewhere = np.where(is_everybody, 0.0, np.maximum(total.high - low, 0.0))
        least, most = self._dropped.least(elsewhere), self._dropped.most(high)
        if self._spread is not None:
            shares = (
                low / max(float(total.high), 1.0),
                np.minimum(self._spread * high / max(float(total.low), 1.0), 1.0),
            )
            least = np.maximum(least, self._dropped.low * np.minimum(shares[0] / self._spread, 1.0))
            most = np.maximum(np.minimum(most, self._dropped.high * shares[1]), least)
        low = low + np.where(is_everybody, self._dropped.low, least)
        high = high + np.where(is_everybody, self._dropped.high, most)
        known = max(float(total.value), 1.0)
        ratio = self._dropped.estimate / known
        value = np.clip(
            np.where(is_everybody, kept.value + self._dropped.estimate, kept.value * (1 + ratio)), low, high
        )
        of_dropped = np.clip(kept.value / known, 0.0, 1.0) * self._dropped.stddev
        stddev = np.hypot((1 + ratio) * kept.stddev, of_dropped)
        value, low, high, stddev = (np.where(is_nobody, 0.0, part) for part in (value, low, high, stddev))
        return Estimates(value, low, high, stddev, kept.estimator)
