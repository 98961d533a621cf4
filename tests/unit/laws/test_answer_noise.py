"""Half-widths from three moments, against exact inversions of the characteristic function.

What is proved in docs/proofs/intervals.md is tested here.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import fftconvolve

from veilcube.analyst.estimate.base.groups import half_widths_of_moments
from veilcube.laws.answer_noise import NoiseCumulants
from veilcube.laws.noise import DiscreteLaplace
from veilcube.laws.summed_noise import half_widths, weighted_half_width
from veilcube.operators import FlatAxis, ProductOperator
from veilcube.operators.base.moments import Moments
from veilcube.operators.tree.axis import tree_axis

OPERATORS = [
    ProductOperator((tree_axis(1000, 10),), ("x",)),
    ProductOperator((tree_axis(64, 2, (20, 1, 1, 1, 1, 1, 5)),), ("x",)),
    ProductOperator((tree_axis(37, 3, (3, 2, 1, 1, 1)), tree_axis(20, 5, (2, 1, 1))), ("x", "y")),
    ProductOperator((tree_axis(30, 4), FlatAxis(6)), ("x", "y")),
    ProductOperator((tree_axis(6, 2), tree_axis(5, 2), FlatAxis(2)), ("x", "y", "z")),
]


def random_weights(operator: ProductOperator, rng: np.random.Generator) -> tuple[Moments, np.ndarray]:
    """Return the moments of a random block, and its noise weights written out."""
    ends = np.array([np.sort(rng.integers(0, size, 2)) for size in operator.cell_shape])
    low, high = ends[:, 0], ends[:, 1] if rng.random() < 0.7 else ends[:, 0]
    query = np.zeros(operator.cell_shape)
    query[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] = 1
    weights = operator.noise_weights(query).ravel()
    return operator.moments_of_rectangles(low[None], high[None]), weights[np.abs(weights) > 1e-12]


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: str(operator.cell_shape))
@pytest.mark.parametrize(
    ("confidence", "most_above"), [(0.5, 0.006), (0.8, 0.005), (0.85, 0.005), (0.95, 0.005), (0.999, 0.005)]
)
def test_half_widths_are_within_half_a_percent_of_the_exact_ones_and_not_below_them(
    operator: ProductOperator, confidence: float, most_above: float
) -> None:
    rng = np.random.default_rng(3)
    noise = DiscreteLaplace(Fraction(200))
    for _ in range(12):
        moments, weights = random_weights(operator, rng)
        exact = weighted_half_width(noise, weights, np.ones(weights.size, dtype=np.int64), confidence)
        assert -0.0005 <= half_widths_of_moments(noise, moments, confidence)[0] / exact - 1 <= most_above


@pytest.mark.parametrize("confidence", [0.9999, 0.999999])
def test_half_widths_at_extreme_confidence_are_never_below_and_at_most_one_and_a_half_percent_above(
    confidence: float,
) -> None:
    rng = np.random.default_rng(4)
    noise = DiscreteLaplace(Fraction(200))
    for operator in OPERATORS:
        for _ in range(5):
            moments, weights = random_weights(operator, rng)
            exact = weighted_half_width(noise, weights, np.ones(weights.size, dtype=np.int64), confidence)
            assert -0.001 <= half_widths_of_moments(noise, moments, confidence)[0] / exact - 1 <= 0.015


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(3), Fraction(10)])
def test_half_widths_of_a_coarse_lattice_are_not_too_small_and_at_most_one_weight_too_large(scale: Fraction) -> None:
    noise, terms = DiscreteLaplace(scale), np.array([1, 2, 3, 5, 10, 30])
    moments = Moments(*np.array([terms, terms, terms], dtype=np.float64))
    for confidence in (0.8, 0.95, 0.99):
        exact = half_widths(noise, terms, confidence)
        found = half_widths_of_moments(noise, moments, confidence)
        assert (found >= exact * 0.9995).all()
        assert (found <= exact * 1.003 + 1.5).all()


def test_equal_laplace_terms_have_their_known_quantiles() -> None:
    # 97.5% points of sums of 1 to 4 Laplace variables, from their finite sums (ERRATA: Formulas).
    known = np.array([2.99573227, 4.11300328, 4.96859600, 5.69257130])
    terms = np.arange(1.0, 5.0)
    scale = 10**7
    widths = half_widths_of_moments(DiscreteLaplace(Fraction(scale)), Moments(terms, terms, terms), 0.95)
    np.testing.assert_allclose(widths / scale, known, rtol=0.0026)  # 0.0025 is the margin


def test_very_many_weights_give_the_normal_quantile_and_none_give_zero() -> None:
    noise = DiscreteLaplace(Fraction(1000))
    count = 1e12
    widths = half_widths_of_moments(noise, Moments(*np.full((3, 1), count)), 0.95)
    assert widths[0] / (noise.stddev * count**0.5) == pytest.approx(1.959964 * 1.0025, rel=1e-5)
    assert half_widths_of_moments(noise, Moments(*np.zeros((3, 2))), 0.95).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.8, 0.95, 0.999])
def test_half_widths_from_bounds_suffice_for_the_true_moments(confidence: float) -> None:
    noise, terms = DiscreteLaplace(Fraction(500)), np.array([1.0, 3.0, 40.0, 10_000.0])
    exact = half_widths_of_moments(noise, Moments(terms, terms, terms), confidence)
    # No fourth or sixth powers exceed those of a single weight with the same sum of squares.
    bounds = Moments(terms, terms**2, terms**3, bounded=True)
    assert (half_widths_of_moments(noise, bounds, confidence) >= exact * (1 - 1e-9)).all()


@pytest.mark.parametrize(("first", "second"), [("25/7", "25/63"), ("2/5", "12"), ("1/3", "1/3"), ("50", "3")])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_noises_of_two_laws_are_added_up_each_with_its_own(first: str, second: str, confidence: float) -> None:
    # Three noises of one law by weight 1, one of the other by weight 2: a law on the integers, convolved here.
    laws = [DiscreteLaplace(Fraction(first)), DiscreteLaplace(Fraction(second))]
    reach = np.arange(-1500, 1501)
    doubled = np.zeros(reach.size)
    doubled[::2] = laws[1].pmf(np.arange(-750, 751))
    law = doubled
    for _ in range(3):
        law = fftconvolve(law, laws[0].pmf(reach), mode="same")
    parts = [(laws[0], (3.0, 3.0, 3.0)), (laws[1], (4.0, 16.0, 64.0))]
    ours, theirs = (NoiseCumulants.of(noise, *(np.array(power) for power in powers)) for noise, powers in parts)
    width = float((ours + theirs).half_widths(confidence))
    held = law[np.abs(reach) <= width].sum()
    assert held >= confidence - 0.003
    # No more than the widest weight and what three cumulants leave open beyond the smallest valid width.
    smallest = next(w for w in range(1500) if law[np.abs(reach) <= w].sum() >= confidence)
    assert width <= 1.03 * smallest + 3


def test_hardly_any_noise_makes_hardly_any_width() -> None:
    noise = NoiseCumulants.of(DiscreteLaplace(Fraction(1, 100)), np.array(5.0), np.array(5.0), np.array(5.0))
    assert noise.half_widths(0.95) < 1e-9
