"""What all mechanisms of protected tables share: the promise that they make about the rows, and where noise comes from.

A mechanism is made from public facts alone, states its claim as a ``statement``, and is given exact values only in
``draw``, which the desk calls once the claim is charged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from veilcube.curator.mechanisms.base import NoiseSampler
from veilcube.curator.sampling import discrete_gaussian, discrete_laplace
from veilcube.errors import PrivacyError
from veilcube.laws import Noise
from veilcube.planner import GaussianSpending, LaplaceSpending, Spending
from veilcube.privacy import Event, Neighbours, NoiseEvent, PrivacyStatement, PrivacyUnit, Promise


@dataclass(frozen=True)
class Samplers:
    """Draws noise for a protected table. Tests pass recorders in its place; no code but a mechanism may call it."""

    draw_noise: NoiseSampler = field(default=discrete_laplace, repr=False)
    draw_gaussian_noise: NoiseSampler = field(default=discrete_gaussian, repr=False)

    def add_noise(self, exact: Sequence[int], noise: Noise) -> list[int]:
        """Return exact values, each plus independent noise of a law."""
        draw = self.draw_gaussian_noise if noise.family == "gaussian" else self.draw_noise
        drawn = draw(noise.parameter, (len(exact),)).tolist()
        return [value + error for value, error in zip(exact, drawn, strict=True)]


@dataclass(frozen=True)
class Sensitivity:
    """By how much one unit changes all measured values together: summed by size, and summed in squares."""

    by_size: int
    squared: int


@dataclass(frozen=True)
class NoisyClaim:
    """The noise that keeps a promise, and the statement that says so."""

    noise: Noise
    statement: PrivacyStatement


@dataclass(frozen=True)
class Protection:
    """Whose presence an answer hides, and which tables it must not tell apart.

    ``is_part`` tells that the rows in view are a part of a partition, whose dearest part pays for all: a row that is
    exchanged may then leave one part and enter another (docs/proofs/protected-tables.md, Theorem 3).
    """

    unit: PrivacyUnit
    neighbours: Neighbours
    is_part: bool

    def statement(self, epsilon: Fraction, event: Event, proof: str) -> PrivacyStatement:
        """Return the promise about the rows in view."""
        return PrivacyStatement(epsilon, self.neighbours, self.unit, event, proof)

    def claim(self, promise: Promise, changes: Sensitivity, proofs: Mapping[str, str]) -> NoisyClaim:
        """Return the noise of the smaller variance that keeps a promise, proved by a page for each family."""
        noise, event = _quietest(promise, changes)
        statement = PrivacyStatement.keeping(promise, self.neighbours, self.unit, event, proofs[noise.family])
        return NoisyClaim(noise, statement)

    @property
    def changed_rows(self) -> int:
        """How many rows may come, go or be exchanged when one unit changes, over all parts of a partition."""
        crosses = self.is_part and self.neighbours is Neighbours.REPLACE
        return self.unit.max_rows * (2 if crosses else 1)

    @property
    def moved_rows(self) -> int:
        """How many rows come or go: an exchanged one leaves a place and enters another, in one part or in two."""
        return self.unit.max_rows * (2 if self.neighbours is Neighbours.REPLACE else 1)


def _quietest(promise: Promise, changes: Sensitivity) -> tuple[Noise, NoiseEvent]:
    """Return the noise of the smallest variance among the families that keep a promise, and what drawing it does."""
    ways: list[Spending] = [LaplaceSpending(promise.pure_epsilon, changes.by_size)]
    if promise.rho is not None:
        ways.append(GaussianSpending(promise.rho, changes.squared))
    found: list[tuple[Noise, NoiseEvent]] = []
    refusal = None
    for way in ways:
        try:
            found.append((way.law(), way.event()))
        except PrivacyError as problem:
            refusal = problem
    if not found and refusal is not None:
        raise refusal
    return min(found, key=lambda pair: pair[0].variance)
