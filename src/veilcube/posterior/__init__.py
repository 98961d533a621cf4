"""The posterior of a tree of counts, from published values only: for a refined tree's stops and answers alike."""

from veilcube.posterior.belief import Belief, learn, propagate
from veilcube.posterior.measured_tree import MeasuredTree, NodeValues, node_values
from veilcube.posterior.sampling import WIDENING, draw_cells
from veilcube.posterior.split_law import SplitLaw

__all__ = [
    "WIDENING",
    "Belief",
    "MeasuredTree",
    "NodeValues",
    "SplitLaw",
    "draw_cells",
    "learn",
    "node_values",
    "propagate",
]
