"""What a mechanism is: four facts stated as a claim, and a formula that turns exact counts into noisy measurements.

To write the next mechanism, copy ``linear.py``, change the claim and the formula, and register it in
``registry.py`` and in ``tests/conformance/members.py``: the conformance suite then checks the claim on every
small table. A strategy that measures once needs no mechanism, only its name in ``registry.py``.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.sampling import discrete_gaussian, discrete_laplace
from veilcube.errors import PlanError, PrivacyError
from veilcube.planner import Plan
from veilcube.privacy import PrivacyStatement
from veilcube.record import NoisyMeasurement

# Draws independent noise of one parameter (a scale, or sigma²) in a given shape. Production code uses those of
# ``curator.sampling``, which mechanisms alone may import; the conformance suite passes recorders in their place.
NoiseSampler: TypeAlias = Callable[[Fraction, tuple[int, ...]], NDArray[np.int64]]
# By the family of a plan's noise.
SAMPLERS: Mapping[str, NoiseSampler] = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}


DesignT = TypeVar("DesignT")


class Mechanism(Protocol):
    """Measures a cube under a privacy claim."""

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return what is promised for this plan: unit, neighbours, epsilon, event and the page that proves it."""

    def words_to_measure(self, plan: Plan) -> int:
        """Return how many 64-bit words ``measure`` holds at most beside the counts: asked before the charge."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler | None = None
    ) -> tuple[NoisyMeasurement, ...]:
        """Redeem the receipt of a committed charge, then draw noise and return what may be published.

        Only checks of a mechanism pass ``draw_noise``: no code outside this package holds a sampler.
        """


class MechanismFor(Generic[DesignT]):
    """A mechanism for the plans of one kind of design: ``planned_by`` tells users which strategy gives it."""

    design: type[DesignT]
    planned_by: str

    def design_of(self, plan: Plan) -> DesignT:
        """Return a plan's design as the kind that this mechanism carries out; refuses a plan of another kind."""
        if not isinstance(plan.design, self.design):
            raise PlanError(f"the plan is not for this mechanism; plan with {self.planned_by}")
        return plan.design


def claim_for(plan: Plan, proofs: Mapping[str, str]) -> PrivacyStatement:
    """Return what the plan promises, by the plan's event, which a page proves for the family of its noise."""
    return PrivacyStatement.keeping(plan.promise, plan.neighbours, plan.unit, plan.event, proofs[plan.family])


def redeem_for(receipt: Receipt, claim: PrivacyStatement) -> None:
    """Use up a receipt that pays for exactly this claim; a receipt for anything else is refused and stays unused."""
    paid = receipt.statement
    if (paid.event, paid.unit, paid.neighbours) != (claim.event, claim.unit, claim.neighbours):
        raise PrivacyError("the receipt pays for another measurement than this one; charge for this plan")
    receipt.redeem()
