"""Smoothing by the paper's mask: golden values, and identities that any number of passes and axes must keep."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from veilcube.errors import QueryError
from veilcube.partitions import smooth, smoothed_difference_stddev

CELLS = np.array([[12, 25, 34, 7], [18, 2, -3, 5], [51, -4, 1, 3]])


def brute_pass(cells: np.ndarray) -> np.ndarray:
    """One pass by the full mask of the definition, g(x) ∝ exp(-|x|²/(2·0.5²)), edges replicated."""
    padded = np.pad(cells.astype(float), 1, mode="edge")
    result, weight = np.zeros(cells.shape), 0.0
    for step in itertools.product((-1, 0, 1), repeat=cells.ndim):
        share = math.exp(-sum(each * each for each in step) / (2 * 0.5**2))
        shifted = tuple(slice(1 + each, 1 + each + size) for each, size in zip(step, cells.shape, strict=True))
        result, weight = result + share * padded[shifted], weight + share
    return result / weight


def test_the_worked_cell_of_the_errata() -> None:
    assert smooth(CELLS, 1)[0, 0] == pytest.approx(13.69466424, abs=5e-9)


def test_the_centre_of_the_mask_in_two_dimensions() -> None:
    spike = np.zeros((5, 5))
    spike[2, 2] = 1
    smoothed = smooth(spike, 1)
    assert smoothed[2, 2] == pytest.approx(0.619347, abs=5e-7)
    assert smoothed[1, 2] == pytest.approx(0.0838, abs=5e-5)
    assert smoothed[1, 1] == pytest.approx(0.0113, abs=5e-5)


@pytest.mark.parametrize("shape", [(7,), (1, 5), (4, 6), (3, 4, 5), (2, 2, 2, 3)])
@pytest.mark.parametrize("passes", [0, 1, 3])
def test_equals_repeated_brute_force_passes(shape: tuple[int, ...], passes: int) -> None:
    cells = np.random.default_rng(3).normal(size=shape)
    expected = cells
    for _ in range(passes):
        expected = brute_pass(expected)
    np.testing.assert_allclose(smooth(cells, passes), expected, rtol=0, atol=1e-13)


def test_equal_cells_stay_as_they_are_and_a_single_cell_too() -> None:
    np.testing.assert_allclose(smooth(np.full((4, 5), 7), 6), 7.0, rtol=1e-14)
    assert smooth([5], 3).tolist() == [5.0]


EXTREMES = st.sampled_from([0.0, 1.0, -5e-324, 1e300, 1e308, -1e308, 1.7976931348623157e308, -1.7976931348623157e308])


@given(arrays(np.float64, array_shapes(max_dims=3, max_side=5), elements=EXTREMES), st.integers(0, 4))
def test_smoothed_cells_lie_between_the_least_and_the_largest_whatever_their_size(
    cells: np.ndarray, passes: int
) -> None:
    smoothed = smooth(cells, passes)
    room = 1e-12 * np.abs(cells).max() / 16
    assert np.isfinite(smoothed).all()
    assert cells.min() / 16 - room <= smoothed.min() / 16
    assert smoothed.max() / 16 <= cells.max() / 16 + room
    np.testing.assert_allclose(smoothed / 16, smooth(cells / 16, passes), rtol=1e-12, atol=room)


def test_the_largest_numbers_are_smoothed_without_overflow() -> None:
    assert smooth([1e308, 1e308], 1).tolist() == [1e308, 1e308]


@given(arrays(np.int64, array_shapes(max_dims=3, max_side=5), elements=st.integers(-9, 9)), st.data())
def test_cells_that_are_not_in_order_are_smoothed_along_other_axes_only(cells: np.ndarray, data: st.DataObject) -> None:
    ordered = [data.draw(st.integers(0, size)) for size in cells.shape]
    smoothed, expected = smooth(cells, 2, ordered=ordered), cells.astype(float)
    for axis, end in enumerate(ordered):
        lines = np.moveaxis(expected, axis, -1)
        for line in np.ndindex(lines.shape[:-1]):
            if end > 1:
                lines[line][:end] = smooth(lines[line][:end].copy(), 2)
    np.testing.assert_allclose(smoothed, expected, atol=1e-12)


def test_the_input_is_not_written_to() -> None:
    cells = np.arange(12.0).reshape(3, 4)
    before = cells.copy()
    smooth(cells, 0)[0, 0] = 99
    smooth(cells, 2)
    np.testing.assert_array_equal(cells, before)


class TestDifferenceStddev:
    def test_the_errata_constant_for_five_passes_in_two_dimensions(self) -> None:
        scale = 10.0
        expected = math.sqrt(2) * scale * 0.1942726
        assert smoothed_difference_stddev(5, 2, math.sqrt(2) * scale) == pytest.approx(expected, rel=5e-7)

    @pytest.mark.parametrize("dimensions", [1, 2, 5])
    def test_without_passes_it_is_that_of_two_noises(self, dimensions: int) -> None:
        assert smoothed_difference_stddev(0, dimensions, 3.0) == pytest.approx(3 * math.sqrt(2), rel=1e-14)

    @pytest.mark.parametrize(("passes", "shape"), [(1, (9,)), (3, (11, 12)), (2, (7, 8, 9))])
    def test_equals_the_exact_variance_of_the_smoothing_matrix(self, passes: int, shape: tuple[int, ...]) -> None:
        """The weight of every cell in one difference, read off by smoothing each cell's unit vector."""
        here = tuple(size // 2 for size in shape)
        for axis in range(len(shape)):
            there = tuple(place + (other == axis) for other, place in enumerate(here))
            weights = []
            for cell in np.ndindex(*shape):
                unit = np.zeros(shape)
                unit[cell] = 1
                smoothed = smooth(unit, passes)
                weights.append(smoothed[here] - smoothed[there])
            expected = smoothed_difference_stddev(passes, len(shape), 1.0)
            assert np.linalg.norm(weights) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("cells", [[], [[]], 5, "text", [["a"]], [[1, 2], [3]], [1, np.nan], [np.inf], None, [1j]])
def test_cells_that_are_no_array_of_finite_numbers_are_refused(cells: object) -> None:
    with pytest.raises(QueryError, match="cells must"):
        smooth(cells, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("passes", [-1, 1.5, True, None, "2"])
def test_passes_must_be_a_whole_number(passes: object) -> None:
    with pytest.raises(QueryError, match="passes must be a whole number from 0 to 10,000"):
        smooth([1, 2], passes)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="passes must be a whole number from 0 to 10,000"):
        smoothed_difference_stddev(passes, 2, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("stddev", [0, -1, np.nan, np.inf])
def test_a_stddev_must_be_positive_and_finite(stddev: float) -> None:
    with pytest.raises(QueryError, match="stddev must be a finite number above 0"):
        smoothed_difference_stddev(1, 2, stddev)
