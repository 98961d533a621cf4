"""Half-widths of 95% cover seeded sums of noise as often as they say, and not when the noise is 10% too large.

What is proved in docs/proofs/intervals.md is tested here.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from veilcube.laws.noise import DiscreteLaplace
from veilcube.laws.summed_noise import half_widths, two_weight_half_widths

TERMS = [1, 2, 5, 50, 5000]
SCALES = [10, 20]


def draw_sums(scale: float, terms: int, size: int, seed: int) -> np.ndarray:
    """Sums of discrete Laplace noise: a sum of differences of geometric variables is one of negative binomials."""
    generator = np.random.default_rng([seed, terms])
    success = -math.expm1(-1 / scale)
    return generator.negative_binomial(terms, success, size) - generator.negative_binomial(terms, success, size)


def coverage(declared: int, actual: float, terms: int, draws: int) -> float:
    width = half_widths(DiscreteLaplace(Fraction(declared)), [terms], 0.95)[0]
    return float(np.mean(np.abs(draw_sums(actual, terms, draws, seed=declared)) <= width))


def is_nominal(share: float) -> bool:
    return 0.94 <= share <= 0.965


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("terms", TERMS)
def test_coverage_is_nominal(scale: int, terms: int) -> None:
    assert is_nominal(coverage(scale, scale, terms, draws=10_000))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("terms", TERMS)
def test_coverage_check_fails_for_noise_ten_percent_larger_than_declared(scale: int, terms: int) -> None:
    # Ten times the draws: one term at scale 10 covers 93.8% then, too near the limit for 10,000 draws to tell for sure.
    assert not is_nominal(coverage(scale, 1.1 * scale, terms, draws=100_000))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("terms_a", "terms_b"), [(1, 1), (2, 5), (40, 10), (500, 4500)])
def test_coverage_of_two_weights_is_nominal_and_fails_for_larger_noise(scale: int, terms_a: int, terms_b: int) -> None:
    width = two_weight_half_widths(DiscreteLaplace(Fraction(scale)), 0.7, terms_a, -0.3, terms_b, 0.95)

    def share(actual: float) -> float:
        a, b = draw_sums(actual, terms_a, 100_000, seed=1), draw_sums(actual, terms_b, 100_000, seed=2)
        return float(np.mean(np.abs(0.7 * a - 0.3 * b) <= width))

    assert is_nominal(share(scale))
    assert not is_nominal(share(1.1 * scale))
