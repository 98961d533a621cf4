"""Ranges read off coefficients and nodes: what the least-squares cells add up to, without these."""

import numpy as np
import pytest

from veilcube.operators import AxisOperator
from veilcube.operators.tree import axis as tree_module
from veilcube.operators.tree.axis import TreeAxis, tree_axis
from veilcube.operators.wavelet import HaarAxis, haar as haar_module


def axes(size: int) -> list[AxisOperator]:
    trees = [tree_axis(size, branching) for branching in (2, 3, 16)]
    virtual = [TreeAxis.balanced(size, (1, 5, 2), (3, 1, 2, 7)), TreeAxis.balanced(size, (4, 2), (3, 1, 2))]
    return [HaarAxis(size), *trees, *virtual]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 100, 129, 1000])
def test_a_range_is_the_sum_of_its_least_squares_cells(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "_LONG", 0)
    monkeypatch.setattr(haar_module, "_LONG", 0)
    random = np.random.default_rng(size)
    low = random.integers(0, size, 200)
    high = np.minimum(low + random.integers(0, size, 200), size - 1)
    low[0], high[0], high[1] = 0, size - 1, low[1] - 1  # everything, and nothing
    for axis in axes(size):
        measured = random.integers(-50, 50, axis.rows)
        reader = axis.range_reader(measured)
        assert reader is not None
        upto = np.concatenate([[0], np.cumsum(axis.solve(measured))])
        np.testing.assert_allclose(reader(low, high), upto[high + 1] - upto[low], rtol=1e-9, atol=1e-9)


def test_short_axes_are_written_out() -> None:
    assert all(axis.range_reader(np.zeros(axis.rows, dtype=np.int64)) is None for axis in axes(100))
