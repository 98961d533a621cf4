"""Planning: from public facts to a choice of measurements with its expected error. Never sees data."""

from veilcube.planner.plan import Candidate, Plan, plan
from veilcube.planner.strategy import Identity, Strategy

__all__ = ["Candidate", "Identity", "Plan", "Strategy", "plan"]
