"""Least squares on a measured tree, against dense algebra."""

from fractions import Fraction

import numpy as np
import pytest

from veilcube.laws.joint_variance import joint_variances
from veilcube.laws.noise import DiscreteLaplace, JointLaplace, SharpenedLaplace
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.operators.staged.halving import AxisCodes
from veilcube.polya_tree import MeasuredTree, NodeValues, TreeLeastSquares, node_values
from veilcube.polya_tree.measured_tree import DOUBT_OF_WHAT_DECIDED, LEAST_VARIANCE, NONE
from veilcube.record import NoisyMeasurement

TREE = HalvingTree((AxisCodes(7, 3),))
PARTS = [
    NodeValues(3, np.array([0]), np.array([52]), 3.0),
    NodeValues(1, np.array([0, 2]), np.array([11, 19]), 2.0),
    NodeValues(2, np.array([1]), np.array([25]), 1.5),
    NodeValues(0, np.arange(7), np.array([3, 9, -1, 6, 8, 10, 7]), 1.2),
    NodeValues(0, np.array([4]), np.array([7]), 4.0),
]


def dense(measured: MeasuredTree) -> tuple[np.ndarray, np.ndarray]:
    """Return every node's estimate and the covariance of all errors, by weighted normal equations over leaves."""
    starts, ends = measured.spans()
    leaves = measured.leaves
    holds = (starts[:, None] <= starts[leaves]) & (ends[leaves] <= ends[:, None])
    owner = np.repeat(np.arange(measured.left.size), np.diff(measured.first))
    rows, weights = holds[owner].astype(float), 1 / measured.variances
    covariance = np.linalg.inv(rows.T @ (weights[:, None] * rows))
    found = covariance @ rows.T @ (weights * measured.values)
    return holds @ found, holds @ covariance @ holds.T


def test_estimates_and_variances_are_those_of_weighted_least_squares() -> None:
    measured = MeasuredTree.of(TREE, PARTS)
    counts, covariance = dense(measured)
    fitted = TreeLeastSquares.of(measured)
    np.testing.assert_allclose(fitted.counts, counts, rtol=1e-10)
    assert fitted.variances[0] == pytest.approx(covariance[0, 0])


def test_draws_of_the_errors_have_their_covariance() -> None:
    measured = MeasuredTree.of(TREE, PARTS)
    _, covariance = dense(measured)
    # Errors are linear in the numbers they are drawn from, so that unit vectors show the covariance exactly.
    errors = TreeLeastSquares.of(measured).draw_errors(np.eye(measured.left.size))
    np.testing.assert_allclose(errors.T @ errors, covariance, rtol=1e-9, atol=1e-9)


def test_where_only_some_nodes_go_on_leaves_are_estimated_too() -> None:
    parts = [
        NodeValues(1, np.arange(4), np.array([5, 9, 14, 3]), 2.0),
        NodeValues(0, np.array([2, 3]), np.array([6, 6]), 1.0),
    ]
    measured = MeasuredTree.of(TREE, parts)
    counts, _ = dense(measured)
    np.testing.assert_allclose(TreeLeastSquares.of(measured).counts, counts, rtol=1e-10)


def test_values_that_decided_are_doubted_where_nodes_went_on() -> None:
    parts = [
        NodeValues(1, np.arange(4), np.array([5, 9, 14, 3]), 2.0, decided=True),
        NodeValues(0, np.array([2, 3]), np.array([6, 6]), 1.0, decided=True),
    ]
    measured = MeasuredTree.of(TREE, parts)
    owner = np.repeat(np.arange(measured.left.size), np.diff(measured.first))
    plain = DiscreteLaplace(Fraction(2)).variance
    went_on = (measured.left[owner] != NONE) & (measured.scales == 2.0)
    np.testing.assert_allclose(measured.variances[went_on], DOUBT_OF_WHAT_DECIDED * plain)
    np.testing.assert_allclose(measured.variances[~went_on & (measured.scales == 2.0)], plain)


def measurement(level: int, nodes: list[int], noise: DiscreteLaplace) -> NoisyMeasurement:
    operator = NodeCounts(TREE_OF_8, level, len(nodes), np.array(nodes))
    return NoisyMeasurement(operator, np.zeros(len(nodes), dtype=np.int64), noise)


TREE_OF_8 = HalvingTree((AxisCodes(8, 3),))


def test_joint_noise_has_its_exact_covariance() -> None:
    scales = (Fraction(30), Fraction(90), Fraction(40), Fraction(35))
    parts = [measurement(level, list(range(8 >> level)), JointLaplace(scales[level])) for level in (3, 2, 1, 0)]
    measured = MeasuredTree.of(TREE_OF_8, node_values(parts, with_variances=True))
    errors = TreeLeastSquares.of(measured).draw_errors(np.eye(measured.left.size))
    cells = errors[:, measured.node_at(0)]
    exact = joint_variances(tuple(map(float, scales)))
    for chosen in ([0], [0, 1], [1, 2], [2, 3, 4, 5, 6], list(range(8))):
        is_in = np.isin(np.arange(8), chosen)
        found = np.square(cells[:, is_in].sum(axis=1)).sum()
        assert found == pytest.approx(exact.of_sums(is_in[None, None])[0], rel=1e-6)


def test_only_independent_values_are_taken_to_have_decided() -> None:
    first = measurement(3, [0], DiscreteLaplace(Fraction(4)))
    sharper = measurement(3, [0], SharpenedLaplace.of(Fraction(4), Fraction(4)))
    block = [measurement(level, list(range(8 >> level)), JointLaplace(Fraction(9))) for level in (2, 1, 0)]
    assert [part.decided for part in node_values([first, sharper, *block])] == [True, False, False, False]


def test_values_without_noise_have_a_least_variance() -> None:
    assert NodeValues(0, np.array([0]), np.array([1]), 1e-3).noise_variance == LEAST_VARIANCE
    assert NodeValues(0, np.array([0]), np.array([1]), 10.0).noise_variance == pytest.approx(199.833417)
