"""A lower confidence bound on epsilon from many runs, and the tables and the event that prove it.

Runs are used once for each purpose. A small share searches pairs of tables; on the best few, scores are fitted and
thresholds chosen; the events that look best are tested on fresh runs of one pair, each with its share of the error (a
Bonferroni correction). So whatever was searched, a mechanism that keeps its promise fails with at most ``ERROR``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from veilcube.auditing.statistics.bounds import detectable, epsilon_bound
from veilcube.auditing.statistics.encoding import Sample, Vocabulary
from veilcube.auditing.statistics.events import Event, best_events, scores_of

ERROR = 0.001
# Pairs of tables looked at, those that go on to the second round, and to the third.
MOST_PAIRS, SECOND_ROUND, THIRD_ROUND = 240, 12, 3
# Shares of the trials: for the whole first round, and on each table for the others.
FIRST_SHARE, SECOND_SHARE, THIRD_SHARE = 0.5, 0.03, 0.25
# Events that are tested in the end, for each claim.
TESTED = 8
LEAST_RUNS, SCORES_IN_A_SEARCH = 24, 12

Runner = Callable[[tuple[int, ...], int], Sequence[object]]
Told = Callable[[float], None]


@dataclass(frozen=True)
class Claim:
    """That P(event) <= exp(epsilon) Q(event) + delta for all neighbours and all events."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Found:
    """The best bound of a test, for one claim: how often its event happened, and on which tables."""

    claim: Claim
    epsilon: float
    left: tuple[int, ...]
    right: tuple[int, ...]
    event: str
    hits: tuple[int, int]
    trials: int
    runs: int
    power: float

    @property
    def is_broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon > self.claim.epsilon


class _Runs:
    """All runs so far, of every table."""

    def __init__(self, run: Runner) -> None:
        self._run, self.vocabulary, self.number = run, Vocabulary(), 0

    def of(self, table: tuple[int, ...], times: int) -> Sample:
        self.number += times
        return self.vocabulary.encode(self._run(table, times))


Pairs = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]


def search_and_test(run: Runner, pairs: Pairs, claims: Sequence[Claim], trials: int, told: Told) -> list[Found]:
    """Search pairs and events, and test the best of them for every claim."""
    runs = _Runs(run)
    each = max(LEAST_RUNS, int(FIRST_SHARE * trials / max(len({table for pair in pairs for table in pair}), 1)))
    pairs = _best(runs, pairs, each, claims, SECOND_ROUND)
    told(0.15)
    pairs = _best(runs, pairs, max(LEAST_RUNS, int(SECOND_SHARE * trials)), claims, THIRD_ROUND)
    told(0.3)
    chosen = [(pair, event) for pair in pairs for event in _events(runs, pair, int(THIRD_SHARE * trials), claims)]
    told(0.55)
    return _tested(runs, chosen, claims, trials)


def _best(runs: _Runs, pairs: Pairs, times: int, claims: Sequence[Claim], most: int) -> Pairs:
    """Return the pairs whose outputs are easiest to tell apart, by so many runs of each table."""
    if len(pairs) <= 1:
        return pairs
    halves = {
        table: _halves(runs.of(table, times)) for table in dict.fromkeys(table for pair in pairs for table in pair)
    }
    found = []
    for left, right in pairs:
        events = _fitted(runs, halves[left], halves[right], claims[:1], few=True)
        found.append(max((event.bound for event in events), default=-inf))
    best = np.argsort(-np.array(found), kind="stable")[:most]
    return [pairs[place] for place in best]


def _halves(sample: Sample) -> tuple[Sample, Sample]:
    """Return the runs that scores are fitted to, and those that thresholds are chosen on."""
    half = len(sample) // 2
    return sample.part(0, half), sample.part(half, len(sample))


Halves = tuple[Sample, Sample]


def _fitted(runs: _Runs, left: Halves, right: Halves, claims: Sequence[Claim], *, few: bool = False) -> list[Event]:
    found: list[Event] = []
    for number, score in enumerate(scores_of(left[0], right[0], runs.vocabulary)):
        if few and number > SCORES_IN_A_SEARCH:
            break
        for claim in claims:
            found += best_events(left[1], right[1], score, claim.delta)
    return found


def _events(
    runs: _Runs, pair: tuple[tuple[int, ...], tuple[int, ...]], times: int, claims: Sequence[Claim]
) -> list[Event]:
    left, right = (_halves(runs.of(table, max(times, LEAST_RUNS))) for table in pair)
    return _fitted(runs, left, right, claims)


def _tested(
    runs: _Runs,
    chosen: Sequence[tuple[tuple[tuple[int, ...], tuple[int, ...]], Event]],
    claims: Sequence[Claim],
    trials: int,
) -> list[Found]:
    """Test the best events of the best pair on fresh runs."""
    if not chosen:
        return []
    pair = max(chosen, key=lambda one: one[1].bound)[0]
    events = sorted((event for at, event in chosen if at == pair), key=lambda event: -event.bound)
    events = list(_distinct(events))[:TESTED]
    left, right = (runs.of(table, trials) for table in pair)
    hits = [(event.hits(left), event.hits(right)) for event in events]
    error = ERROR / (len(claims) * len(events))
    found = []
    for claim in claims:
        bounds = []
        for event, (ours, theirs) in zip(events, hits, strict=True):
            first, second = (ours, theirs) if event.is_left else (theirs, ours)
            bounds.append(float(epsilon_bound(first, second, trials, claim.delta, error)))
        best = int(np.argmax(bounds))
        event, (ours, theirs) = events[best], hits[best]
        tables = pair if event.is_left else pair[::-1]
        times = (ours, theirs) if event.is_left else (theirs, ours)
        power = detectable(claim.epsilon, claim.delta, trials, error)
        found.append(Found(claim, max(bounds[best], 0.0), *tables, event.words, times, trials, runs.number, power))
    return found


def _distinct(events: Iterable[Event]) -> Iterable[Event]:
    """Leave out events of the same score on the same side: the others say almost the same."""
    seen = set()
    for event in events:
        key = (event.score.name, event.is_below, event.is_left)
        if key not in seen:
            seen.add(key)
            yield event
