"""The transform of a cube: orthonormal for every shape, and sorted by kinds of questions."""

import numpy as np
import pytest

from veilcube.polya_tree.haar_bands import LEAST_OF_A_GROUP, HaarBands

SHAPES = [(1,), (2,), (7,), (8,), (5, 6), (1, 9), (8, 3, 4), (2, 2, 2, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_transform_is_orthonormal_and_its_inverse_undoes_it(shape: tuple[int, ...]) -> None:
    bands, cells = HaarBands(shape), int(np.prod(shape))
    matrix = bands.forward(np.eye(cells))
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(cells), atol=1e-12)
    np.testing.assert_allclose(bands.inverse(matrix), np.eye(cells), atol=1e-12)


def test_along_a_line_coefficients_are_those_of_haar() -> None:
    # Haar of [9, 3, 6, 2, 8, 4, 5, 7] is [5.5, -.5, 1, 0, 3, 2, 2, -1] by half differences of means (Privelet, 4.1).
    found = HaarBands((8,)).forward(np.array([[9.0, 3, 6, 2, 8, 4, 5, 7]]))[0]
    means = np.array([5.5, -0.5, 1, 0, 3, 2, 2, -1])
    np.testing.assert_allclose(found, means * np.sqrt([8, 8, 4, 4, 2, 2, 2, 2]), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_first_coefficient_is_the_total_and_stands_alone(shape: tuple[int, ...]) -> None:
    bands, cells = HaarBands(shape), int(np.prod(shape))
    cube = np.random.default_rng(1).normal(size=(1, cells))
    assert bands.forward(cube)[0, 0] == pytest.approx(cube.sum() / np.sqrt(cells))
    assert (bands.levels[0] == 0).all()
    assert np.count_nonzero(bands.groups == bands.groups[0]) == 1


def test_coefficients_that_sum_an_axis_are_about_the_other_ones_marginal() -> None:
    bands, cube = HaarBands((8, 16)), np.random.default_rng(2).normal(size=(8, 16))
    about_first = bands.levels[:, 1] == 0
    kept = bands.inverse(np.where(about_first, bands.forward(cube.reshape(1, -1)), 0.0)).reshape(8, 16)
    np.testing.assert_allclose(kept, np.broadcast_to(cube.mean(axis=1, keepdims=True), (8, 16)), atol=1e-12)


def test_a_ramp_is_slopes_only() -> None:
    bands = HaarBands((16, 32))
    ramp = np.add.outer(np.arange(16.0), 3 * np.arange(32.0)).reshape(1, -1)
    np.testing.assert_allclose(bands.forward(ramp)[0][~bands.is_slope], 0.0, atol=1e-9)
    assert not HaarBands((32,)).is_slope.any()


@pytest.mark.parametrize("shape", [(64,), (64, 64), (100, 30), (8, 8, 8, 8)], ids=str)
def test_groups_are_levels_where_these_have_enough_and_never_mix_numbers_of_axes(shape: tuple[int, ...]) -> None:
    bands = HaarBands(shape)
    axes = np.count_nonzero(bands.levels, axis=1)
    for group in range(int(bands.groups.max()) + 1):
        members = bands.groups == group
        assert np.unique(axes[members]).size == 1
        assert np.unique(bands.is_slope[members]).size == 1
        if np.unique(bands.levels[members], axis=0).shape[0] > 1 and not bands.is_slope[members].any():
            _, counts = np.unique(bands.levels[members], axis=0, return_counts=True)
            assert counts.max() < LEAST_OF_A_GROUP
