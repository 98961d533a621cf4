"""Exact output laws of a mechanism that takes its noise from the audit: all courses of its draws, with probabilities.

The mechanism is run once for each course. Laplace and Gaussian noise is cut off where less than a stated tail is left;
that probability is added to the other table's, so that what is found is so whatever the tail holds.
"""

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from math import ceil, exp, inf, log, prod
from typing import Any

import numpy as np

from veilcube.auditing.callables.domain import Pair, SmallTables, Table
from veilcube.auditing.callables.noise import choice_weights, each, read_law, read_parameter
from veilcube.auditing.callables.running import call
from veilcube.auditing.report import AuditFinding, Witness
from veilcube.auditing.statistics import Claim, show_epsilon, taken_apart
from veilcube.laws import DiscreteGaussian, DiscreteLaplace
from veilcube.privacy import EpsilonLike

MOST_PAIRS, MOST_COURSES, MOST_COMPARED = 2_000, 60_000, 1_000_000
# Tried in turn: probability left out of each draw.
TAILS = (1e-10, 1e-6, 1e-4)
HAIR = 1e-9

Law = dict[Hashable, float]
Branches = tuple[tuple[Any, ...], tuple[float, ...]]


class TooManyCoursesError(Exception):
    """The draws of a mechanism take more courses than can be enumerated."""


class ScriptedNoise:
    """Noise that follows a script of branches; where it has ended, the first branch is taken and noted."""

    def __init__(self, script: Sequence[int], tail: float, known: dict[object, Branches]) -> None:
        self._script, self._tail, self._known = script, tail, known
        self.taken: list[tuple[int, int]] = []
        self.chance = 1.0

    def _branch(self, branches: Branches) -> Any:
        values, chances = branches
        place = self._script[len(self.taken)] if len(self.taken) < len(self._script) else 0
        self.taken.append((place, len(values)))
        self.chance *= chances[place]
        return values[place]

    def _noise(self, family: str, parameter: Fraction) -> Any:
        if not parameter:
            return 0
        key = family, parameter, self._tail
        if key not in self._known:
            law = DiscreteLaplace(parameter) if family == "laplace" else DiscreteGaussian(parameter)
            spread = float(parameter) if family == "laplace" else float(parameter) ** 0.5
            times = -log(self._tail) if family == "laplace" else (-2 * log(self._tail)) ** 0.5
            reach = ceil(spread * times) + 1
            outputs = np.arange(-reach, reach + 1)
            self._known[key] = tuple(outputs.tolist()), tuple(np.exp(law.log_pmf(outputs)).tolist())
        return self._branch(self._known[key])

    def laplace(self, scale: EpsilonLike, size: int | None = None) -> Any:
        """Return the noise of this course."""
        parameter = read_parameter(scale)
        drawn = [self._noise("laplace", parameter) for _ in range(1 if size is None else size)]
        return drawn[0] if size is None else drawn

    def gaussian(self, variance: EpsilonLike, size: int | None = None) -> Any:
        """Return the noise of this course."""
        parameter = read_parameter(variance)
        drawn = [self._noise("gaussian", parameter) for _ in range(1 if size is None else size)]
        return drawn[0] if size is None else drawn

    def add(
        self,
        values: Any,
        scale: EpsilonLike | None = None,
        variance: EpsilonLike | None = None,
        sensitivity: EpsilonLike | None = None,
    ) -> Any:
        """Return values, each plus the noise of this course."""
        family, parameter = read_law(scale, variance)
        return each(values, lambda value: value + self._noise(family, parameter))

    def choose(self, scores: Sequence[float], epsilon: EpsilonLike, sensitivity: EpsilonLike = 1) -> int:
        """Return the place of this course."""
        return int(self._branch((tuple(range(len(scores))), tuple(choice_weights(scores, epsilon, sensitivity)))))

    def coin(self, probability: float) -> bool:
        """Return the side of this course."""
        return bool(self._branch(((False, True), (1 - float(probability), float(probability)))))


def law_of(mechanism: Callable[..., Any], records: Sequence[object], tail: float, most: int) -> tuple[Law, int]:
    """Return the probability of each output, and how many courses it took."""
    found: Law = {}
    script: list[int] | None = []
    known: dict[object, Branches] = {}
    courses = 0
    while script is not None:
        if courses >= most:
            raise TooManyCoursesError
        noise = ScriptedNoise(script, tail, known)
        key = taken_apart(call(mechanism, list(records), noise)).key
        if not courses and prod(branches for _, branches in noise.taken) > MOST_COURSES // 5:
            raise TooManyCoursesError
        found[key] = found.get(key, 0.0) + noise.chance
        script, courses = _next_script(noise.taken), courses + 1
    return found, courses


def _next_script(taken: list[tuple[int, int]]) -> list[int] | None:
    """Return the script after this one, as an odometer counts; None after the last."""
    places = list(taken)
    while places and places[-1][0] + 1 == places[-1][1]:
        places.pop()
    return [*(place for place, _ in places[:-1]), places[-1][0] + 1] if places else None


def loss_of(ours: Law, theirs: Law, claim: Claim) -> tuple[float, float, list[Hashable]]:
    """Return the largest certain epsilon, by how much a claim is exceeded, and the outputs that show the first.

    What is left out of the second law is added to it.
    """
    missing = max(1 - sum(theirs.values()), 0.0)
    keys = sorted(ours, key=lambda key: -ours[key] / max(theirs.get(key, 0.0), 1e-300))
    first, second, best, best_size, excess = 0.0, missing, -inf, 0, -exp(claim.epsilon) * missing - claim.delta
    for size, key in enumerate(keys, start=1):
        one, two = ours[key], theirs.get(key, 0.0)
        first, second = first + one, second + two
        excess += max(one - exp(claim.epsilon) * two, 0.0)
        if first > claim.delta:
            found = log((first - claim.delta) / second) if second > 0 else inf
            if found > best + 1e-12:
                best, best_size = found, size
        if not claim.delta and one > 0:
            alone = log(one / (two + missing)) if two + missing > 0 else inf
            if alone > best + 1e-12:
                best, best_size, keys = alone, 1, [key, *(other for other in keys if other != key)]
    return max(best, 0.0), excess, keys[:best_size]


def check_exactly(mechanism: Callable[..., Any], tables: SmallTables, claims: Sequence[Claim]) -> AuditFinding:
    """Enumerate the output laws of pairs of neighbours, and compare them."""
    pairs = sorted(tables.some_pairs(MOST_PAIRS), key=lambda pair: pair.rows)
    for tail in TAILS:
        laws, compared = _laws(mechanism, tables, pairs, tail)
        if compared:
            return _judged(laws, compared, tables, claims, tail)
    return AuditFinding(
        "exact",
        None,
        f"The draws of this mechanism take more than {MOST_COURSES:,} courses, which is too many to list.",
    )


def _laws(
    mechanism: Callable[..., Any], tables: SmallTables, pairs: Sequence[Pair], tail: float
) -> tuple[dict[Table, Law], list[Pair]]:
    """Return the laws of as many pairs as can be listed, the smallest first."""
    laws: dict[Table, Law] = {}
    compared: list[Pair] = []
    left, outputs = MOST_COURSES, 0
    for pair in pairs:
        try:
            for table in (pair.left, pair.right):
                if table not in laws:
                    laws[table], courses = law_of(mechanism, tables.rows_of(table), tail, left)
                    left -= courses
        except TooManyCoursesError:
            break
        compared.append(pair)
        outputs += len(laws[pair.left]) + len(laws[pair.right])
        if outputs > MOST_COMPARED:
            break
    return laws, compared


def _judged(
    laws: dict[Table, Law], compared: Sequence[Pair], tables: SmallTables, claims: Sequence[Claim], tail: float
) -> AuditFinding:
    worst: tuple[bool, float, Pair, list[Hashable], Claim] | None = None
    for pair in compared:
        for one in (pair, pair.reversed):
            for claim in claims:
                epsilon, excess, keys = loss_of(laws[one.left], laws[one.right], claim)
                is_broken = excess > HAIR or epsilon > claim.epsilon * (1 + HAIR) + HAIR
                if worst is None or (is_broken, epsilon) > worst[:2]:
                    worst = is_broken, epsilon, one, keys, claim
    assert worst is not None
    is_broken, epsilon, pair, keys, claim = worst
    outputs = ", ".join(repr(key) for key in keys[:3]) + (", ..." if len(keys) > 3 else "")
    at = f" at delta {claim.delta:.4g}" if claim.delta else ""
    return AuditFinding(
        "exact",
        not is_broken,
        f"The output laws of {len(compared):,} pairs of neighbours, listed up to a tail of {tail:g} for each draw, "
        f"differ by epsilon {show_epsilon(epsilon)}{at} at most.",
        epsilon,
        Witness(tuple(tables.rows_of(pair.left)), tuple(tables.rows_of(pair.right)), f"outputs {outputs}"),
        {"pairs": len(compared), "tail of each draw": tail},
    )
