"""What all mechanisms of protected tables share: the promise that they make about the rows, and where noise comes from.

A mechanism is made from public facts alone, states its claim as a ``statement``, and is given exact values only in
``draw``, which the desk calls once the claim is charged.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from veilcube.curator.mechanisms.base import NoiseSampler
from veilcube.curator.sampling import discrete_laplace
from veilcube.privacy import Event, Neighbours, PrivacyStatement, PrivacyUnit


@dataclass(frozen=True)
class Samplers:
    """Draws noise for a protected table. Tests pass recorders in its place; no code but a mechanism may call it."""

    draw_noise: NoiseSampler = field(default=discrete_laplace, repr=False)


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

    @property
    def changed_rows(self) -> int:
        """How many rows may come, go or be exchanged when one unit changes, over all parts of a partition."""
        crosses = self.is_part and self.neighbours is Neighbours.REPLACE
        return self.unit.max_rows * (2 if crosses else 1)

    @property
    def moved_rows(self) -> int:
        """How many rows come or go: an exchanged one leaves a place and enters another, in one part or in two."""
        return self.unit.max_rows * (2 if self.neighbours is Neighbours.REPLACE else 1)
