"""Mechanisms: the only code that turns exact counts into something that may be published."""

from collections.abc import Mapping

from veilcube.curator.mechanisms.base import Mechanism
from veilcube.curator.mechanisms.grouped import GroupedTablesMechanism
from veilcube.curator.mechanisms.linear import IdentityMechanism, LinearMechanism
from veilcube.curator.mechanisms.partition import AdaptiveMechanism
from veilcube.curator.mechanisms.staged import StagedTreeMechanism
from veilcube.errors import PlanError
from veilcube.planner import Plan

# Every strategy that measures once is carried out by the linear mechanism; the identity is the readable example.
_MECHANISMS: Mapping[str, Mechanism] = {
    "identity": IdentityMechanism(),
    "tree": LinearMechanism(),
    "marginals": LinearMechanism(),
    "matched": LinearMechanism(),
    "wavelet": LinearMechanism(),
    "staged tree": StagedTreeMechanism(),
    "adaptive": AdaptiveMechanism(),
    "grouped tables": GroupedTablesMechanism(),
}


def mechanism_for(plan: Plan) -> Mechanism:
    """Return the mechanism that carries out a plan."""
    name = plan.strategy.name
    if name not in _MECHANISMS:
        raise PlanError(
            f"no mechanism carries out the strategy '{name}'; use one of {', '.join(_MECHANISMS)}, or register it in "
            "curator/mechanisms/registry.py"
        )
    return _MECHANISMS[name]
