"""The linear mechanism: every measurement of a strategy with independent discrete Laplace noise of one scale.

Claim: the strategy's matrix A has whole entries, so A x is a vector of integers, and one unit changes it by at most the
operator's sensitivity d in L1: the largest column norm when a row comes or goes, the largest distance of two columns
when it is exchanged, r or 2r times the norm for a person with at most r rows. Discrete Laplace noise of scale s is
(d / s)-differentially private: docs/proofs/linear.md, Theorem 1. It carries out every strategy that measures once.
"""

from veilcube.curator.mechanisms.base import claim_for
from veilcube.curator.mechanisms.identity import IdentityMechanism
from veilcube.planner import Plan
from veilcube.privacy import PrivacyStatement

PROOF = "docs/proofs/linear.md#theorem-1"


class LinearMechanism(IdentityMechanism):
    """Publishes every measurement of the plan's operator with noise, as the identity does every cell."""

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's epsilon, by one Laplace event on all measurements at once."""
        return claim_for(plan, PROOF)
