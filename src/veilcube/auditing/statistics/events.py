"""Events by which two tables may be told apart: a score of an output, and a threshold for it.

Scores are fitted to a first share of the runs, thresholds chosen on a second, and what was chosen is tested on runs
that nobody has looked at (``testing.py``). So any score is allowed: a bad one finds less, and never what is not so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf

import numpy as np

from veilcube.auditing.statistics.bounds import epsilon_bound
from veilcube.auditing.statistics.encoding import Sample, Vocabulary
from veilcube.system import Floats, Integers

# Thresholds tried for each score, and bins of the numbers that the likelihood ratio is fitted with.
MOST_THRESHOLDS, BINS = 96, 24
# The error that bounds are compared at while events are chosen.
ERROR_WHILE_CHOOSING = 0.02


@dataclass(frozen=True, eq=False)
class Score:
    """A number for every output: what it is called, and how it is computed."""

    name: str
    of: Callable[[Sample], Floats] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Event:
    """That a score is at least, or is below, a threshold. It is likelier on the left table, or on the right one."""

    score: Score
    threshold: float
    is_below: bool
    is_left: bool
    bound: float

    def hits(self, sample: Sample) -> int:
        """Return how often it happened."""
        reached = int((self.score.of(sample) >= self.threshold).sum())
        return len(sample) - reached if self.is_below else reached

    @property
    def words(self) -> str:
        """The event in words."""
        return f"{self.score.name} {'below' if self.is_below else 'at least'} {self.threshold:.6g}"


def scores_of(left: Sample, right: Sample, vocabulary: Vocabulary) -> Iterator[Score]:
    """Yield scores fitted to outputs of two tables."""
    yield Score("likelihood ratio of the whole output", _code_ratio(left.keys, right.keys, "keys"))
    if len(vocabulary.structures) > 1:
        ratio = _code_ratio(left.structures, right.structures, "structures")
        yield Score("likelihood ratio of its kind, shape and words", ratio)
    if left.numbers.shape[1] or right.numbers.shape[1]:
        yield Score("likelihood ratio of its numbers, each on its own", _number_ratio(left, right))
    for name in dict.fromkeys([*left.features, *right.features]):
        yield Score(name, lambda sample, name=name: _feature(sample, name))  # type: ignore[misc]


def _feature(sample: Sample, name: str) -> Floats:
    return sample.features.get(name, np.full(len(sample), np.nan))


def _code_ratio(left: Integers, right: Integers, name: str) -> Callable[[Sample], Floats]:
    size = int(max(left.max(initial=0), right.max(initial=0))) + 1
    ours, theirs = (np.bincount(codes, minlength=size) + 0.5 for codes in (left, right))
    ratios = np.append(np.log(ours / theirs), 0.0)

    def of(sample: Sample) -> Floats:
        return np.asarray(ratios[np.minimum(getattr(sample, name), size)], dtype=np.float64)

    return of


def _number_ratio(left: Sample, right: Sample) -> Callable[[Sample], Floats]:
    fitted: list[tuple[Floats, Floats]] = []
    for place in range(min(left.numbers.shape[1], right.numbers.shape[1])):
        ours, theirs = left.numbers[:, place], right.numbers[:, place]
        pooled = np.concatenate([ours, theirs])
        known = pooled[np.isfinite(pooled)]
        edges = np.unique(np.quantile(known, np.arange(1, BINS) / BINS)) if known.size else np.zeros(1)
        counts = [np.bincount(_bins(edges, column), minlength=edges.size + 2) + 0.5 for column in (ours, theirs)]
        fitted.append((edges, np.log(counts[0] / counts[1])))

    def of(sample: Sample) -> Floats:
        total = np.zeros(len(sample))
        for place, (edges, ratios) in enumerate(fitted[: sample.numbers.shape[1]]):
            total += ratios[_bins(edges, sample.numbers[:, place])]
        return total

    return of


def _bins(edges: Floats, column: Floats) -> Integers:
    """Return the bin of each number, the last one for what is none."""
    return np.where(np.isnan(column), edges.size + 1, np.searchsorted(edges, column, side="right")).astype(np.int64)


def best_events(left: Sample, right: Sample, score: Score, delta: float) -> Iterator[Event]:
    """Yield the best thresholds of a score: with the table on which it is high likelier, and low."""
    ours, theirs = score.of(left), score.of(right)
    thresholds = _thresholds(ours, theirs)
    if not thresholds.size:
        return
    trials = min(ours.size, theirs.size)
    reached = [_reaching(column[:trials], thresholds) for column in (ours, theirs)]
    for is_left in (True, False):
        for is_below in (False, True):
            hits = [trials - counts if is_below else counts for counts in reached]
            first, second = hits if is_left else hits[::-1]
            bounds = epsilon_bound(first, second, trials, delta, ERROR_WHILE_CHOOSING)
            best = int(np.argmax(bounds))
            if bounds[best] > -inf:
                yield Event(score, float(thresholds[best]), is_below, is_left, float(bounds[best]))


def _thresholds(ours: Floats, theirs: Floats) -> Floats:
    known = np.unique(np.concatenate([ours, theirs]))
    known = known[~np.isnan(known)]
    if known.size <= MOST_THRESHOLDS:
        return np.asarray(known, dtype=np.float64)
    pooled = np.concatenate([ours, theirs])
    pooled = pooled[~np.isnan(pooled)]
    inner = np.quantile(pooled, np.linspace(0, 1, MOST_THRESHOLDS - 16), method="nearest")
    return np.asarray(np.unique(np.concatenate([inner, known[:8], known[-8:]])), dtype=np.float64)


def _reaching(column: Floats, thresholds: Floats) -> Integers:
    """Return how many reach each threshold; what is no number reaches none."""
    known = np.sort(column[~np.isnan(column)])
    return np.asarray(known.size - np.searchsorted(known, thresholds, side="left"), dtype=np.int64)
