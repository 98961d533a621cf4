"""Draws of the joint posterior: their means, variances and covariances, and their independence of everything else."""

import numpy as np

from support.dense_posterior import DensePosterior
from support.posterior_draws import draw_cells
from veilcube.operators import HalvingTree
from veilcube.operators.staged.halving import AxisCodes
from veilcube.polya_tree import MeasuredTree, NodeValues, SplitLaw, propagate
from veilcube.polya_tree.split_law import COMPONENTS

TREE = HalvingTree((AxisCodes(4, 2),))
PARTS = [
    NodeValues(2, np.array([0]), np.array([17]), 1.4),
    NodeValues(0, np.arange(4), np.array([3, -1, 5, 9]), 1.2),
    NodeValues(1, np.array([1]), np.array([11]), 1.5),
]


def belief_and_dense(seed: int) -> tuple:
    measured = MeasuredTree.of(TREE, PARTS)
    law = SplitLaw.of(np.random.default_rng(seed).dirichlet(np.ones(COMPONENTS), size=TREE.classes))
    return propagate(measured, law), DensePosterior(measured, law.weights, 1.0, 26)


def test_the_same_release_gives_the_same_draws_and_more_draws_begin_with_fewer() -> None:
    belief, _ = belief_and_dense(1)
    np.testing.assert_array_equal(draw_cells(belief, 50), draw_cells(belief, 50))
    np.testing.assert_array_equal(draw_cells(belief, 50)[:20], draw_cells(belief, 20))
