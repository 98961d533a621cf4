from .belief import Belief as Belief, learn as learn, propagate as propagate
from .least_squares import TreeLeastSquares as TreeLeastSquares
from .measured_tree import (
    MeasuredTree as MeasuredTree,
    NodeValues as NodeValues,
    is_normal as is_normal,
    node_values as node_values,
)
from .reconciled import WIDENING as WIDENING, Heaps as Heaps, Reconciled as Reconciled
from .split_law import SplitLaw as SplitLaw
