"""The linear mechanism: every measurement of a strategy with independent discrete Laplace noise of one scale.

Claim: the strategy's matrix A has whole entries, so A x is a vector of integers, and one unit changes it by at most the
operator's sensitivity d in L1: the largest column norm when a row comes or goes, the largest distance of two columns
when it is exchanged, r or 2r times the norm for a person with at most r rows. Discrete Laplace noise of scale s is
(d / s)-differentially private: docs/proofs/linear.md, Theorem 1. It carries out every strategy that measures once.
"""

from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import NoiseSampler, redeem_for
from veilcube.planner import Plan
from veilcube.privacy import PrivacyStatement
from veilcube.release import NoisyMeasurement

PROOF = "docs/proofs/linear.md#theorem-1"


class LinearMechanism:
    """Publishes every measurement of the plan's operator with noise."""

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's epsilon, by one Laplace event on all measurements at once."""
        return PrivacyStatement(plan.epsilon, plan.neighbours, plan.unit, plan.event, PROOF)

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        """Return exact integers plus exact integer noise; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim(plan))
        values = draw_noise(plan.noise.scale, plan.operator.measurement_shape)
        values += plan.operator.apply(cube.exact_counts)
        return (NoisyMeasurement(plan.operator, values, plan.noise),)
