"""Counts, sums, moments, marginals and means of a protected table: whole sums, each with noise of one scale.

Claim: a row gives the exact sums a vector of whole numbers, its cell's weights, of L1 norm at most D. So a row that
comes or goes changes them by at most D; a row that is exchanged by the largest distance E of two cells' weights, or by
2 D where it may leave one part of a partition and enter another; a person's rows do so once each. Discrete Laplace
noise whose scale is that sensitivity over epsilon is epsilon-differentially private
(docs/proofs/protected-tables.md, Theorem 1; for parts Theorem 3).
"""

from dataclasses import dataclass
from fractions import Fraction

from veilcube.curator.mechanisms.protected.base import Protection, Samplers
from veilcube.privacy import LaplaceEvent, PrivacyStatement, scale_for, unit_sensitivity
from veilcube.record import Moment
from veilcube.system import Integers

PROOF = "docs/proofs/protected-tables.md#theorem-1"


@dataclass(frozen=True)
class SumsMechanism:
    """Publishes the sums that a question asks for with noise."""

    moment: Moment
    statement: PrivacyStatement
    scale: Fraction

    @classmethod
    def claiming(cls, moment: Moment, epsilon: Fraction, protection: Protection) -> "SumsMechanism":
        """Return the mechanism that answers a question for an epsilon."""
        exchange = 2 * moment.heaviest if protection.is_part else moment.heaviest_exchange
        # Where nothing can change, as for the number of rows that "replace" makes public, noise for 1 does no harm.
        changes = unit_sensitivity(moment.heaviest, exchange, protection.unit, protection.neighbours)
        event = LaplaceEvent(max(changes, 1), scale_for(epsilon, max(changes, 1)))
        return cls(moment, protection.statement(epsilon, event, PROOF), event.scale)

    def draw(self, counts: Integers, samplers: Samplers) -> list[int]:
        """Return the exact sums over counts, each plus its noise."""
        exact = self.moment.exact(counts)
        noise = samplers.draw_noise(self.scale, (len(exact),)).tolist()
        return [value + error for value, error in zip(exact, noise, strict=True)]
