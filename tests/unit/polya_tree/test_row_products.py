"""Products with long rows against numpy's."""

import numpy as np
import pytest

from veilcube.polya_tree.split_law import BLOCK, matched, mixed


@pytest.mark.parametrize("columns", [1, BLOCK - 1, BLOCK, 3 * BLOCK + 17])
def test_products_are_those_of_matrices(columns: int) -> None:
    rng = np.random.default_rng(columns)
    weights, rows, mixtures = rng.random((5, 7)), rng.random((7, columns)), rng.random((5, columns))
    mixtures[2] = 0.0
    np.testing.assert_allclose(mixed(weights, rows), weights @ rows, rtol=1e-12)
    np.testing.assert_allclose(matched(mixtures, rows), mixtures @ rows.T, rtol=1e-12)


def test_a_part_of_the_columns_of_weights_may_be_given() -> None:
    rng = np.random.default_rng(1)
    weights, rows = rng.random((4, 9)), rng.random((6, 50))
    np.testing.assert_allclose(mixed(weights[:, :6], rows), weights[:, :6] @ rows, rtol=1e-12)
