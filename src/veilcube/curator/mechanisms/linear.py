"""The linear mechanism: every measurement of a strategy with independent noise of one law.

Claim: the strategy's matrix A has whole entries, so A x is a vector of integers, and one unit changes it by at most the
operator's sensitivity d in L1: the largest column norm when a row comes or goes, the largest distance of two columns
when it is exchanged, r or 2r times the norm for a person with at most r rows. Discrete Laplace noise of scale s is
(d / s)-differentially private: docs/proofs/linear.md, Theorem 1. Discrete Gaussian noise of parameter σ² is
(D / 2σ²)-zCDP, with D the squared L2 change: Theorem 2. It carries out every strategy that measures once.

The identity is the simplest of them. Claim: one row lies in one cell, so adding or removing it changes the vector of
counts by 1 in L1 (exchanging it, by 2; a person with at most r rows, by r or 2r): docs/proofs/identity.md, Theorem 1.
"""

from math import prod

from veilcube.curator.cube import Cube, Tally
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import SAMPLERS, NoiseSampler, claim_for, redeem_for
from veilcube.planner import Plan
from veilcube.privacy import PrivacyStatement
from veilcube.record import NoisyMeasurement

PROOFS = {"laplace": "docs/proofs/linear.md#theorem-1", "gaussian": "docs/proofs/linear.md#theorem-2"}
PROOFS_OF_IDENTITY = {"laplace": "docs/proofs/identity.md#theorem-1", "gaussian": "docs/proofs/identity.md#theorem-2"}


class LinearMechanism:
    """Publishes every measurement of the plan's operator with noise."""

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's, by one event on all measurements at once."""
        return claim_for(plan, PROOFS)

    def words_to_measure(self, plan: Plan) -> int:
        """Return the size of the noise and of the exact measurements that it is added to."""
        return prod(plan.operator.measurement_shape) + plan.operator.words_to_apply

    def measure(
        self, cube: Cube | Tally, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler | None = None
    ) -> tuple[NoisyMeasurement, ...]:
        """Return exact integers plus exact integer noise; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim(plan))
        draw = draw_noise or SAMPLERS[plan.family]
        values = draw(plan.noise.parameter, plan.operator.measurement_shape)
        values += cube.measured_by(plan.operator)
        return (NoisyMeasurement(plan.operator, values, plan.noise),)


class IdentityMechanism(LinearMechanism):
    """Publishes every cell of the cube with noise: its claim needs no more than that one row lies in one cell."""

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's, by one event on all cells at once."""
        return claim_for(plan, PROOFS_OF_IDENTITY)
