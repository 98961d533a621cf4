"""Distributive queries on the parts of a protected table: noise on every part's value, or a draw from its scores.

Claim: one row lies in one part, also where the asked attribute itself cuts the table. So adding or removing it changes
one part's value, or scores, by at most the declared sensitivity s; an exchanged row changes two parts, or one of them
twice. Noise of scale (that change)/epsilon on every part, or a draw by permute-and-flip from the scores, is
epsilon-differentially private for all parts together (docs/proofs/rank.md, Theorem 3), and Gaussian noise for the
square of that change keeps a rho (docs/proofs/protected-tables.md, Theorem 4). The promise rests on the
declared sensitivity; that of a ready-made sum over bins is in the parts of one that their middles are counted in, and
so is its noise. The query's functions run on exact counts: they are the curator's code and must do nothing but compute.
They run after the charge, and whatever goes wrong in them is told by one sentence that is always the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, TypeVar

from veilcube.curator.mechanisms.protected.base import Protection, Samplers, Sensitivity
from veilcube.curator.sampling import ROUNDING_GRID, draw_cheapest
from veilcube.errors import PrivacyError, QueryError
from veilcube.laws import Noise
from veilcube.privacy import ChoiceEvent, PrivacyStatement, Promise, RankCosts, unit_sensitivity
from veilcube.query import DistributiveQuery
from veilcube.system import Integers

Result = TypeVar("Result")
# The numbers of the cells of one part after another, and the exact rows at each of them. PRIVATE.
ExactParts: TypeAlias = Iterable[tuple[Integers, Integers]]

PROOF = "docs/proofs/rank.md#theorem-3"
NOISE_PROOFS: Final = {"laplace": PROOF, "gaussian": "docs/proofs/protected-tables.md#theorem-4"}


@dataclass(frozen=True)
class NoisyPartsMechanism:
    """Publishes the value of every part with noise."""

    query: DistributiveQuery
    statement: PrivacyStatement
    noise: Noise

    @classmethod
    def claiming(cls, query: DistributiveQuery, promise: Promise, protection: Protection) -> "NoisyPartsMechanism":
        """Return the mechanism that answers a query without a finite output for a promise."""
        change = _change(query, protection)
        # The squares of changes add up to most where they all fall on one part.
        claim = protection.claim(promise, Sensitivity(change, change**2), NOISE_PROOFS)
        return cls(query, claim.statement, claim.noise)

    def draw(self, parts: ExactParts, samplers: Samplers) -> list[int]:
        """Return the exact value of every part, each plus its noise."""
        return samplers.add_noise(_of_each_part(self.query.value_of, parts), self.noise)


@dataclass(frozen=True)
class ChosenPartsMechanism:
    """Draws a place in the finite output for every part, by the scores of its values."""

    query: DistributiveQuery
    statement: PrivacyStatement
    rate: Fraction

    @classmethod
    def claiming(cls, query: DistributiveQuery, epsilon: Fraction, protection: Protection) -> "ChosenPartsMechanism":
        """Return the mechanism that answers a query with a finite output; refuses an epsilon too small to draw with."""
        rate = epsilon / (2 * _change(query, protection))
        if rate < Fraction(1, ROUNDING_GRID):
            raise PrivacyError("epsilon is too small to draw with; use at least 2**-55 times what one unit may change")
        return cls(query, protection.statement(epsilon, ChoiceEvent(epsilon), PROOF), rate)

    def draw(self, parts: ExactParts) -> list[int]:
        """Draw a place for every part by permute-and-flip."""
        scores = _of_each_part(self.query.scores_of, parts)
        return [draw_cheapest(RankCosts(score.max() - score, self.rate)) for score in scores]


def _change(query: DistributiveQuery, protection: Protection) -> int:
    """Return by how much all parts change together when one unit changes."""
    return unit_sensitivity(query.sensitivity, 2 * query.sensitivity, protection.unit, protection.neighbours)


def _of_each_part(function: Callable[[Integers, Integers], Result], parts: ExactParts) -> list[Result]:
    """Run a query's function on the exact rows of every part; what it raises could carry counts and goes no further."""
    try:
        return [function(numbers, rows) for numbers, rows in parts]
    except KeyboardInterrupt:
        is_stopped = True
    except BaseException:
        is_stopped = False
    # Raised out here, where the exception of the function is no longer the context of the new one.
    if is_stopped:
        raise KeyboardInterrupt
    raise QueryError(
        "the part of the distributive query failed on the table, or gave something else than whole numbers within its "
        "bounds, and was paid for; correct the function on made-up rows, which it must accept with any counts"
    )
