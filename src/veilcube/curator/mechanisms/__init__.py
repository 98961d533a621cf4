"""Mechanisms: the only code that turns exact counts into something that may be published."""

from collections.abc import Mapping

from veilcube.curator.mechanisms.base import Mechanism, NoiseSampler
from veilcube.curator.mechanisms.identity import IdentityMechanism
from veilcube.planner import Plan

_MECHANISMS: Mapping[str, Mechanism] = {"identity": IdentityMechanism()}


def mechanism_for(plan: Plan) -> Mechanism:
    """Return the mechanism that carries out a plan."""
    return _MECHANISMS[plan.strategy.name]


__all__ = ["IdentityMechanism", "Mechanism", "NoiseSampler", "mechanism_for"]
