"""Axis operators written out as dense matrices, and what the textbook formulas say about them."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import AxisOperator
from veilcube.operators.base import largest_squared_exchange

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DenseAxis:
    """A as a matrix, with the inverse of A'A and the least-squares map."""

    matrix: Floats
    inverse: Floats
    least_squares: Floats

    @classmethod
    def of(cls, axis: AxisOperator) -> "DenseAxis":
        matrix = axis.apply(np.eye(axis.size, dtype=np.int64)).T.astype(np.float64)
        inverse = np.linalg.inv(matrix.T @ matrix)
        return cls(matrix, inverse, inverse @ matrix.T)

    def least_shared(self) -> int:
        columns = self.matrix.T
        return int(min(np.minimum(left, right).sum() for left, right in combinations(columns, 2)))


def all_ranges(size: int) -> tuple[Integers, Integers, Floats]:
    """Return the ends of every range of an axis, and the ranges as rows of zeros and ones."""
    low, high = np.array([(i, j) for i in range(size) for j in range(i, size)]).T
    cells = np.arange(size)
    return low, high, ((cells >= low[:, None]) & (cells <= high[:, None])).astype(np.float64)


def check_axis(axis: AxisOperator, seed: int) -> None:
    """Compare every method of an axis with dense linear algebra."""
    rng = np.random.default_rng(seed)
    dense = DenseAxis.of(axis)
    assert dense.matrix.shape == (axis.rows, axis.size)
    measured = rng.normal(size=(2, 3, axis.rows))
    close = {"rtol": 1e-8, "atol": 1e-10}
    np.testing.assert_allclose(axis.solve(measured), measured @ dense.least_squares.T, **close)
    np.testing.assert_allclose(axis.solve(measured[0, 0]), measured[0, 0] @ dense.least_squares.T, **close)
    np.testing.assert_allclose(axis.adjoint(measured), measured @ dense.matrix, **close)
    query = rng.normal(size=(4, axis.size))
    np.testing.assert_allclose(axis.noise_weights(query), query @ dense.least_squares, **close)
    np.testing.assert_array_equal(axis.column_sums(), np.abs(dense.matrix).sum(axis=0))
    if (dense.matrix >= 0).all():
        assert axis.least_shared() == (dense.least_shared() if axis.size > 1 else dense.matrix.sum())
    check_squares(axis, dense)
    low, high, ranges = all_ranges(axis.size)
    weights = ranges @ dense.least_squares
    np.testing.assert_allclose(axis.variance_of_ranges(low, high), (weights**2).sum(axis=1), **close)
    np.testing.assert_allclose(axis.fourth_powers_of_ranges(low, high), (weights**4).sum(axis=1), **close)
    chosen = rng.random(axis.size) < 0.5
    weights = chosen.astype(np.float64) @ dense.least_squares
    np.testing.assert_allclose(axis.variance_of_cells(chosen), (weights**2).sum(), **close)
    np.testing.assert_allclose(axis.fourth_powers_of_cells(chosen), (weights**4).sum(), **close)
    check_steps(axis, dense, rng)


def check_squares(axis: AxisOperator, dense: DenseAxis) -> None:
    """Compare squared L2 norms of columns, and of the differences of two."""
    products = dense.matrix.T @ dense.matrix
    norms = np.diagonal(products)
    assert axis.largest_square == norms.max()
    distances = norms[:, None] + norms[None, :] - 2 * products
    assert largest_squared_exchange([axis.column_products()]) == distances.max()


def check_steps(axis: AxisOperator, dense: DenseAxis, rng: np.random.Generator) -> None:
    """Compare the moments of step functions, with cuts that coincide or lie on the ends among them."""
    cuts = np.sort(rng.integers(0, axis.size + 1, size=(30, 4)), axis=1)
    values = rng.normal(size=(30, 5))
    step = (np.arange(axis.size)[None, :, None] >= cuts[:, None, :]).sum(axis=2)
    weights = np.take_along_axis(values, step, axis=1) @ dense.least_squares
    found = axis.moments_of_steps(cuts, values)
    for power, moment in ((2, found.second), (4, found.fourth), (6, found.sixth)):
        np.testing.assert_allclose(moment, (weights**power).sum(axis=1), rtol=1e-8)
