"""Tables of half-widths: what is stored is what would be made, and the splines are those of scipy."""

import numpy as np
import pytest
from scipy.interpolate import RectBivariateSpline
from scipy.special import ndtri

from veilcube.laws.standard_widths import STORED_CONFIDENCE, WidthTable, make_table, standard_widths


def test_the_stored_table_is_what_would_be_made() -> None:
    stored, made = standard_widths(STORED_CONFIDENCE).coefficients, make_table(STORED_CONFIDENCE).coefficients
    np.testing.assert_allclose(stored, made, rtol=1e-12)


def test_splines_are_scipys() -> None:
    chance, points = np.random.default_rng(4), np.linspace(0, 1, 41)
    spline = RectBivariateSpline(points, points, chance.normal(size=(41, 41)))
    table = WidthTable(spline.get_coeffs().reshape(41, 41))
    across, down = np.concatenate([chance.random((2, 5_000)), [[0, 1, 0, 1, 0.025], [0, 0, 1, 1, 0.5]]], axis=1)
    np.testing.assert_allclose(table.at(across, down), spline.ev(across, down), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_very_many_terms_or_nothing_but_a_normal_share_are_normal_and_one_term_is_laplace(confidence: float) -> None:
    normal, laplace = -ndtri((1 - confidence) / 2), -np.log(1 - confidence) / np.sqrt(2)
    found = standard_widths(confidence).at(np.array([0.0, 0.3, 1.0]), np.array([0.4, 1.0, 0.0]))
    np.testing.assert_allclose(found, [normal, normal, laplace], rtol=1e-6)
