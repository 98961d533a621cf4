"""Counts, sums, moments, marginals and means of a protected table: whole sums, each with noise of one law.

Claim: a row gives the exact sums a vector of whole numbers, its cell's weights, of L1 norm at most D. So a row that
comes or goes changes them by at most D; a row that is exchanged by the largest distance E of two cells' weights, or by
2 D where it may leave one part of a partition and enter another; a person's rows do so once each. Discrete Laplace
noise whose scale is that sensitivity over epsilon is epsilon-differentially private
(docs/proofs/protected-tables.md, Theorem 1; for parts Theorem 3). In the same way squared L2 norms give the parameter
of Gaussian noise; where a row may leave one part and enter another, costs add up, and the squares do (Theorem 4).
"""

from dataclasses import dataclass
from typing import Final

from veilcube.curator.mechanisms.protected.base import Protection, Samplers, Sensitivity
from veilcube.laws import Noise
from veilcube.privacy import PrivacyStatement, Promise, unit_sensitivity, unit_sensitivity_l2_squared
from veilcube.record import Moment
from veilcube.system import Integers

PROOFS: Final = {
    "laplace": "docs/proofs/protected-tables.md#theorem-1",
    "gaussian": "docs/proofs/protected-tables.md#theorem-4",
}


@dataclass(frozen=True)
class SumsMechanism:
    """Publishes the sums that a question asks for with noise."""

    moment: Moment
    statement: PrivacyStatement
    noise: Noise

    @classmethod
    def claiming(cls, moment: Moment, promise: Promise, protection: Protection) -> "SumsMechanism":
        """Return the mechanism that answers a question for a promise."""
        claim = protection.claim(promise, _changes(moment, protection), PROOFS)
        return cls(moment, claim.statement, claim.noise)

    def draw(self, counts: Integers, samplers: Samplers) -> list[int]:
        """Return the exact sums over counts, each plus its noise."""
        return samplers.add_noise(self.moment.exact(counts), self.noise)


def _changes(moment: Moment, protection: Protection) -> Sensitivity:
    """Return by how much one unit changes the sums.

    Where nothing can change, as for the number of rows that "replace" makes public, noise for 1 does no harm.
    """
    exchange, squared = moment.heaviest_exchange, moment.heaviest_exchange_squared
    if protection.is_part:
        exchange, squared = 2 * moment.heaviest, max(2 * moment.heaviest_squared, squared)
    return Sensitivity(
        max(unit_sensitivity(moment.heaviest, exchange, protection.unit, protection.neighbours), 1),
        max(unit_sensitivity_l2_squared(moment.heaviest_squared, squared, protection.unit, protection.neighbours), 1),
    )
