"""Draws of the joint posterior: their means, variances and covariances, and the uniform numbers they come from."""

import numpy as np
import pytest

from support.dense_posterior import DensePosterior
from support.posterior_draws import draw_cells
from veilcube.operators import HalvingTree
from veilcube.operators.staged.halving import AxisCodes
from veilcube.polya_tree import MeasuredTree, NodeValues, SplitLaw, propagate
from veilcube.polya_tree.sampling import _uniform
from veilcube.polya_tree.split_law import COMPONENTS

DRAWS = 6000


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


@pytest.mark.parametrize("seed", [1, 2])
def test_draws_have_the_means_variances_and_covariances_of_the_posterior(seed: int) -> None:
    belief, dense = belief_and_dense(seed)
    drawn = draw_cells(belief, DRAWS).astype(np.float64)
    for v, cells in [(0, [0, 1, 2, 3]), (1, [0, 1]), (2, [2, 3]), (3, [0]), (4, [1]), (5, [2]), (6, [3])]:
        variance, sums = dense.variance(v), drawn[:, cells].sum(axis=1)
        assert abs(sums.mean()) < 5 * np.sqrt(variance / DRAWS) + 1e-3
        fourth = np.mean(sums**4)
        assert abs(sums.var() - variance) < 5 * np.sqrt(max(fourth - variance**2, 0.0) / DRAWS) + 1e-3


def test_draws_follow_the_whole_posterior_of_a_cell() -> None:
    belief, dense = belief_and_dense(3)
    counts = np.rint(draw_cells(belief, DRAWS)[:, 2] + belief.cells()[2]).astype(int)
    found = np.bincount(counts, minlength=dense.chances(5).size)[: dense.chances(5).size] / DRAWS
    chances = dense.chances(5)
    np.testing.assert_array_less(np.abs(found - chances), 5 * np.sqrt(chances / DRAWS) + 1e-3)


@pytest.mark.parametrize("cells", [8, 7])
def test_below_a_leaf_everything_is_in_one_cell_and_each_cell_gets_its_turn(cells: int) -> None:
    tree = HalvingTree((AxisCodes(cells, 3),))
    belief = propagate(MeasuredTree.of(tree, [NodeValues(3, np.array([0]), np.array([40]), 2.0)]), SplitLaw.even(tree))
    counts = draw_cells(belief, 2000) + belief.cells()
    assert (np.count_nonzero(counts > 0.5, axis=1) <= 1).all()
    turns = np.bincount(counts.argmax(axis=1), minlength=cells) / 2000
    expected = np.full(8, 1 / 8) if cells == 8 else np.array([1, 1, 1, 1, 1, 1, 2]) / 8
    np.testing.assert_allclose(turns, expected, atol=0.04)
    assert counts.sum(axis=1).mean() == pytest.approx(belief.means[0], abs=0.5)


def test_numbers_from_the_hash_are_uniform_and_draws_and_places_do_not_repeat_each_other() -> None:
    numbers = np.array([[_uniform(draw, place) for place in range(300)] for draw in range(128)])
    assert 0 < numbers.min() < numbers.max() < 1
    assert np.unique(numbers).size == numbers.size
    counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
    assert np.square(counts - numbers.size / 20).sum() / (numbers.size / 20) < 45  # chi-square, 19 degrees, 99.9%
    for axis in (0, 1):
        ahead, behind = np.delete(numbers, 0, axis), np.delete(numbers, -1, axis)
        assert abs(np.corrcoef(ahead.ravel(), behind.ravel())[0, 1]) < 5 / np.sqrt(numbers.size)
