"""Planning: from public facts to a choice of measurements with its expected error. Never sees data."""

from veilcube.planner.adaptive_strategy import Adaptive, KdTree
from veilcube.planner.marginals_strategy import Marginals
from veilcube.planner.plan import Candidate, Plan, choose, plan
from veilcube.planner.strategy import Identity, OpenStrategy, Strategy
from veilcube.planner.tree_strategy import Tree
from veilcube.planner.wavelet_strategy import Wavelet

__all__ = [
    "Adaptive",
    "Candidate",
    "Identity",
    "KdTree",
    "Marginals",
    "OpenStrategy",
    "Plan",
    "Strategy",
    "Tree",
    "Wavelet",
    "choose",
    "plan",
]
