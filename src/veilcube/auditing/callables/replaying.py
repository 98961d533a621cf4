"""Replay: what a mechanism publishes about one table, it is made to publish about a neighbour as well.

All that it added noise to comes out as it did for the first table, so everything that follows from that must be the
same: what it asks for next, with which noise, what it returns, raises, prints, logs and warns of. What was hidden by
the noise may differ, by no more than the sensitivity that was declared; and these differences tell exactly what the
outputs cost in privacy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isfinite, log
from typing import Any

import numpy as np

from veilcube.auditing.callables.domain import Pair, SmallTables
from veilcube.auditing.callables.noise import LiveNoise, choice_weights, each, read_law, read_parameter
from veilcube.auditing.callables.running import call, watched
from veilcube.auditing.report import AuditFinding, Witness
from veilcube.auditing.statistics import show_epsilon, taken_apart
from veilcube.privacy import EpsilonLike, Promise, epsilon_for

MOST_PAIRS, RUNS_EACH = 1_500, 3
ROUNDING = 1e-9


@dataclass(frozen=True)
class Asked:
    """One thing that a mechanism asked of its noise: how, what for, and what came out."""

    kind: str
    terms: tuple[object, ...]
    exact: tuple[Any, ...]
    published: Any
    declared: Fraction | None = None


class RecordedNoise:
    """Live noise that remembers everything."""

    def __init__(self, live: LiveNoise) -> None:
        self._live = live
        self.asked: list[Asked] = []

    def laplace(self, scale: EpsilonLike, size: int | None = None) -> Any:
        """Draw and remember."""
        return self._kept(Asked("laplace", (read_parameter(scale), size), (), self._live.laplace(scale, size)))

    def gaussian(self, variance: EpsilonLike, size: int | None = None) -> Any:
        """Draw and remember."""
        return self._kept(Asked("gaussian", (read_parameter(variance), size), (), self._live.gaussian(variance, size)))

    def add(
        self,
        values: Any,
        scale: EpsilonLike | None = None,
        variance: EpsilonLike | None = None,
        sensitivity: EpsilonLike | None = None,
    ) -> Any:
        """Add noise and remember to what."""
        published = self._live.add(values, scale, variance)
        return self._kept(_asked_to_add(values, scale, variance, sensitivity, published))

    def choose(self, scores: Sequence[float], epsilon: EpsilonLike, sensitivity: EpsilonLike = 1) -> int:
        """Choose and remember from what."""
        place = self._live.choose(scores, epsilon, sensitivity)
        return int(self._kept(_asked_to_choose(scores, epsilon, sensitivity, place)))

    def coin(self, probability: float) -> bool:
        """Throw a coin and remember its probability."""
        side = self._live.coin(probability)
        return bool(self._kept(Asked("coin", (), (1 - float(probability), float(probability)), int(side))))

    def _kept(self, asked: Asked) -> Any:
        self.asked.append(asked)
        return asked.published


def _asked_to_add(values: Any, scale: object, variance: object, sensitivity: object, published: Any) -> Asked:
    family, parameter = read_law(scale, variance)  # type: ignore[arg-type]
    exact = tuple(np.ravel(np.asarray(each(values, lambda value: value), dtype=object)).tolist())
    declared = None if sensitivity is None else read_parameter(sensitivity)
    return Asked("add", (family, parameter, len(exact)), exact, published, declared)


def _asked_to_choose(scores: Sequence[float], epsilon: object, sensitivity: object, place: int) -> Asked:
    weights = tuple(choice_weights(scores, epsilon, sensitivity))  # type: ignore[arg-type]
    return Asked("choose", (len(weights),), weights, place)


class Different(Exception):  # noqa: N818 - a signal between replay and check, never an error that leaves them
    """A neighbour asks for something else after the same outputs."""


@dataclass
class ReplayedNoise:
    """What was published about another table, given out again to whoever asks for the same."""

    left: list[Asked]
    losses: list[tuple[str, float]] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)

    def laplace(self, scale: EpsilonLike, size: int | None = None) -> Any:
        """Return the noise that the other table got."""
        return self._next("laplace", (read_parameter(scale), size)).published

    def gaussian(self, variance: EpsilonLike, size: int | None = None) -> Any:
        """Return the noise that the other table got."""
        return self._next("gaussian", (read_parameter(variance), size)).published

    def add(
        self,
        values: Any,
        scale: EpsilonLike | None = None,
        variance: EpsilonLike | None = None,
        sensitivity: EpsilonLike | None = None,
    ) -> Any:
        """Return what was published, and note how far the exact values are apart."""
        asked = _asked_to_add(values, scale, variance, sensitivity, None)
        before = self._next("add", asked.terms)
        family, parameter = str(asked.terms[0]), float(asked.terms[1])  # type: ignore[arg-type]
        changes = [_distance(one, two) for one, two in zip(before.exact, asked.exact, strict=True)]
        size = sum(changes) if family == "laplace" else sum(change**2 for change in changes) ** 0.5
        cost = size if family == "laplace" else size**2 / 2
        self.losses.append((family, cost / parameter if parameter else inf if cost else 0.0))
        if asked.declared is not None and size > float(asked.declared) * (1 + ROUNDING):
            changed = f"changes by {size:.6g}, and {float(asked.declared):.6g} is declared"
            self.beyond.append(f"what noise is added to {changed}")
        return before.published

    def choose(self, scores: Sequence[float], epsilon: EpsilonLike, sensitivity: EpsilonLike = 1) -> int:
        """Return the place that was chosen, and note how much likelier any was."""
        asked = _asked_to_choose(scores, epsilon, sensitivity, 0)
        return int(self._chances("choose", asked).published)

    def coin(self, probability: float) -> bool:
        """Return the side that was thrown, and note how much likelier either was."""
        asked = Asked("coin", (), (1 - float(probability), float(probability)), 0)
        return bool(self._chances("coin", asked).published)

    def _chances(self, kind: str, asked: Asked) -> Asked:
        before = self._next(kind, asked.terms)
        ratios = [abs(_log(one) - _log(two)) for one, two in zip(before.exact, asked.exact, strict=True) if one or two]
        self.losses.append(("laplace", max(ratios, default=0.0)))
        return before

    def _next(self, kind: str, terms: tuple[object, ...]) -> Asked:
        if not self.left:
            raise Different(f"asks for more noise ({kind}) after the same outputs")
        asked = self.left.pop(0)
        if (asked.kind, asked.terms) != (kind, terms):
            ours, theirs = (" ".join(map(str, one)) for one in ((asked.kind, *asked.terms), (kind, *terms)))
            raise Different(f"asks for other noise after the same outputs: {ours}, against {theirs}")
        return asked


def _log(chance: float) -> float:
    return log(chance) if chance > 0 else -inf


def _distance(one: Any, two: Any) -> float:
    """Return how far two exact values are apart; one that is no number is infinitely far from everything."""
    try:
        found = abs(float(one - two))
    except (TypeError, ValueError, OverflowError):
        return inf
    return found if isfinite(found) else inf


@dataclass(frozen=True)
class Replay:
    """What one replay showed: the privacy loss, and what differs though it must not."""

    pair: Pair
    pure: float
    rho: float
    problems: tuple[str, ...]
    is_whole: bool


def replay_pair(mechanism: Callable[..., Any], tables: SmallTables, pair: Pair, live: LiveNoise) -> Replay:
    """Run a mechanism on a table and replay it on a neighbour."""
    recorder = RecordedNoise(live)
    ours, said = watched(lambda: call(mechanism, tables.rows_of(pair.left), recorder))
    replayed = ReplayedNoise(list(recorder.asked))
    is_whole = not any(asked.kind in ("laplace", "gaussian") for asked in recorder.asked)
    problems: list[str] = []
    try:
        theirs, replied = watched(lambda: _replayed(mechanism, tables.rows_of(pair.right), replayed))
    except Different as difference:
        # Noise that was drawn on its own hides what it was added to: what follows from it may differ.
        before = recorder.asked[: len(recorder.asked) - len(replayed.left)]
        if all(asked.kind not in ("laplace", "gaussian") for asked in before[:-1]):
            problems.append(str(difference))
    else:
        if is_whole:
            if replayed.left:
                problems.append(f"asks for less noise after the same outputs: {len(replayed.left)} less")
            problems += _differences(ours, theirs, said, replied)
    problems += replayed.beyond
    pure = sum(loss for family, loss in replayed.losses if family == "laplace")
    rho = sum(loss for family, loss in replayed.losses if family == "gaussian")
    return Replay(pair, pure, rho, tuple(problems), is_whole)


def _replayed(mechanism: Callable[..., Any], records: list[object], noise: ReplayedNoise) -> object:
    difference: list[Different] = []

    def guarded(rows: list[object], noise: Any) -> object:
        try:
            return mechanism(rows, noise=noise)
        except Different as found:
            difference.append(found)
            raise

    output = call(guarded, records, noise)
    if difference:
        raise difference[0]
    return output


def _differences(ours: object, theirs: object, said: object, replied: object) -> list[str]:
    found = []
    if taken_apart(ours) != taken_apart(theirs):
        found.append(f"returns something else after the same noisy values: {_short(ours)} against {_short(theirs)}")
    for name in ("printed", "complained", "logged", "warned"):
        one, two = getattr(said, name), getattr(replied, name)
        if one != two:
            found += [f"what is {name} depends on the table: {_short(one)} against {_short(two)}"]
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def check_replay(mechanism: Callable[..., Any], tables: SmallTables, promise: Promise) -> AuditFinding:
    """Replay a mechanism on pairs of neighbours, in both directions."""
    pairs, live = tables.some_pairs(MOST_PAIRS), LiveNoise()
    replays = [
        replay_pair(mechanism, tables, one, live)
        for pair in pairs
        for one in (pair, pair.reversed)
        for _ in range(RUNS_EACH if len(pairs) < MOST_PAIRS // 4 else 1)
    ]
    worst = max(replays, key=lambda one: (bool(one.problems), epsilon_spent(one, promise)))
    spent = epsilon_spent(worst, promise)
    is_kept = not worst.problems and not exceeds(worst, promise)
    raw = sum(not one.is_whole for one in replays)
    note = f" In {raw:,} noise was drawn on its own, which hides what it is added to: use noise.add." if raw else ""
    event = worst.problems[0] if worst.problems else f"the noisy values cost epsilon {show_epsilon(spent)}"
    told = worst.problems[0] if worst.problems else f"the largest loss is epsilon {show_epsilon(spent)}"
    found = {True: spent if not raw else None, False: inf if worst.problems else spent}[is_kept]
    return AuditFinding(
        "replay",
        is_kept,
        f"{len(replays):,} replays: {told}.{note}",
        found,
        Witness(tuple(tables.rows_of(worst.pair.left)), tuple(tables.rows_of(worst.pair.right)), event),
        {"replays": len(replays), "pure epsilon": worst.pure, "rho": worst.rho},
    )


def exceeds(replay: Replay, promise: Promise) -> bool:
    """Whether what a replay cost is more than was promised."""
    if promise.rho is not None:
        return replay.rho + replay.pure**2 / 2 > float(promise.rho) * (1 + ROUNDING) and (
            replay.rho > 0 or replay.pure > float(promise.pure_epsilon) * (1 + ROUNDING)
        )
    return replay.rho > 0 or replay.pure > float(promise.epsilon) * (1 + ROUNDING)


def epsilon_spent(replay: Replay, promise: Promise) -> float:
    """Return the epsilon that a replay cost, at the promised delta."""
    if inf in (replay.pure, replay.rho) or (replay.rho > 0 and not promise.delta):
        return inf
    if replay.rho == 0:
        return replay.pure
    return replay.pure + float(epsilon_for(Fraction(replay.rho).limit_denominator(10**12), promise.delta))
