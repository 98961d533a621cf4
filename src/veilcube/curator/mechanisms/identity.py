"""The identity mechanism: every cell's count with independent discrete Laplace noise.

Claim: one row lies in one cell, so adding or removing it changes the vector of counts by 1 in L1 (exchanging it, by
2; a person with at most r rows, by r or 2r). Discrete Laplace noise of scale s on a vector of L1 sensitivity d is
(d / s)-differentially private: docs/proofs/identity.md, Theorem 1.
"""

from math import prod

from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import NoiseSampler, claim_for, redeem_for
from veilcube.curator.tally import Tally
from veilcube.planner import Plan
from veilcube.privacy import PrivacyStatement
from veilcube.release import NoisyMeasurement

PROOF = "docs/proofs/identity.md#theorem-1"


class IdentityMechanism:
    """Publishes every cell of the cube with noise."""

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's epsilon, by one Laplace event on all cells at once."""
        return claim_for(plan, PROOF)

    def words_to_measure(self, plan: Plan) -> int:
        """Return the size of the noise and of the exact measurements that it is added to."""
        return prod(plan.operator.measurement_shape) + plan.operator.words_to_apply

    def measure(
        self, cube: Cube | Tally, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        """Return exact integers plus exact integer noise; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim(plan))
        values = draw_noise(plan.noise.scale, plan.operator.measurement_shape)
        values += cube.measured_by(plan.operator)
        return (NoisyMeasurement(plan.operator, values, plan.noise),)
