"""The discrete Gaussian law against its definition: sums of decimals with 60 digits, and brute force."""

import dataclasses
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
import scipy

from veilcube.errors import PrivacyError
from veilcube.laws import DiscreteGaussian

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
SMALL = [Fraction(1, 16), Fraction(1, 10), Fraction(1, 4), Fraction(49, 100), Fraction(1, 2), Fraction(51, 100)]
SMALL += [Fraction(1), Fraction(7, 2), Fraction(20), Fraction(1000, 3)]
LARGE = [Fraction(10**6), Fraction(2**40 + 1, 3), Fraction(2**80)]
OFF_BY_3_PERCENT = [Fraction(97, 100), Fraction(103, 100)]


def close_to(expected: object, rel: float) -> object:
    """Compare by digits alone: tails are far smaller than what approx takes for zero."""
    return pytest.approx(expected, rel=rel, abs=0)


def sums_over_integers(s: Fraction) -> tuple[Decimal, Decimal]:
    """The sums of exp(-x²/(2s)) and of x² times it, over all integers: term by term."""
    with localcontext() as context:
        context.prec = 60
        reach = int(15 * math.sqrt(s)) + 15
        rate = Decimal(s.denominator) / Decimal(2 * s.numerator)
        weights = [(x, (-rate * x * x).exp()) for x in range(1, reach)]
        return 1 + 2 * sum(weight for _, weight in weights), 2 * sum(x * x * weight for x, weight in weights)


def sums_over_waves(s: Fraction) -> tuple[Decimal, Decimal]:
    """The same two sums by Poisson's formula, for large s."""
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(s.numerator) / Decimal(s.denominator)
        waves = [(k, (-2 * PI * PI * exact * k * k).exp()) for k in range(1, 8)]
        total = 1 + 2 * sum(wave for _, wave in waves)
        second = 2 * sum(k * k * wave for k, wave in waves)
        root = (2 * PI * exact).sqrt()
        return root * total, root * (exact * total - 4 * PI * PI * exact * exact * second)


def brute_force(s: Fraction) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The integers whose probability is above 1e-300, and the normalised exp(-x²/(2s))."""
    reach = max(int(36 * math.sqrt(s)), 1)
    x = np.arange(-reach, reach + 1)
    weight = np.exp(-(x.astype(float) ** 2) / (2 * float(s)))
    return x, weight / weight.sum()


@pytest.mark.parametrize("s", SMALL, ids=str)
def test_normaliser_and_variance_have_full_precision_where_all_terms_can_be_summed(s: Fraction) -> None:
    total, second = sums_over_integers(s)
    noise = DiscreteGaussian(s)
    assert math.exp(noise.log_normaliser) == close_to(float(total), rel=1e-14)
    assert noise.log_normaliser == close_to(float(total.ln()), rel=1e-13)
    assert noise.variance == close_to(float(second / total), rel=1e-14)
    assert noise.stddev == close_to(math.sqrt(noise.variance), rel=1e-15)


@pytest.mark.parametrize("s", SMALL[4:], ids=str)
def test_both_series_are_the_same_number(s: Fraction) -> None:
    assert [float(total) for total in sums_over_waves(s)] == close_to(
        [float(total) for total in sums_over_integers(s)], rel=1e-14
    )


@pytest.mark.parametrize("s", LARGE, ids=str)
def test_normaliser_and_variance_have_full_precision_where_they_cannot(s: Fraction) -> None:
    total, second = sums_over_waves(s)
    noise = DiscreteGaussian(s)
    assert noise.log_normaliser == close_to(float(total.ln()), rel=1e-14)
    assert noise.variance == close_to(float(second / total), rel=1e-14)


def test_the_variance_is_below_its_parameter_and_by_how_much() -> None:
    shares = [DiscreteGaussian(s).variance / float(s) for s in SMALL]
    assert shares == sorted(shares)
    assert all(share < 1 for share in shares[:7])
    assert shares[0] == close_to(32 * math.exp(-8), rel=1e-3)


@pytest.mark.parametrize("s", SMALL, ids=str)
def test_probabilities_are_the_normalised_exponentials(s: Fraction) -> None:
    x, expected = brute_force(s)
    noise = DiscreteGaussian(s)
    np.testing.assert_allclose(noise.pmf(x), expected, rtol=1e-11)
    np.testing.assert_allclose(noise.log_pmf(x), np.log(expected), rtol=1e-12, atol=1e-12)
    for factor in OFF_BY_3_PERCENT:
        if s * factor >= Fraction(1, 16):
            assert np.abs(DiscreteGaussian(s * factor).pmf(x) - expected).sum() > 5e-5


def test_log_probability_does_not_underflow() -> None:
    assert DiscreteGaussian(Fraction(1, 4)).log_pmf(10**6) == close_to(-2e12, rel=1e-9)


@pytest.mark.parametrize("s", [*SMALL, Fraction(511**2), Fraction(513**2)], ids=str)
def test_tails_are_sums_of_probabilities(s: Fraction) -> None:
    x, expected = brute_force(s)
    noise = DiscreteGaussian(s)
    for sigmas in (0, 0.3, 1, 3, 8, 20, 30):
        k = math.ceil(sigmas * math.sqrt(s))
        exact = math.fsum(expected[x >= k])
        assert noise.tail(k) == close_to(exact, rel=1e-11)
        assert noise.tail(1 - k) == close_to(1 - exact, rel=1e-12)


@pytest.mark.parametrize("s", [Fraction(10**6), Fraction(2**40), Fraction(2**80)], ids=str)
@pytest.mark.parametrize("sigmas", [-8, -1, 0.001, 0.5, 2, 6, 25, 37])
def test_tails_of_wide_noise_are_those_of_the_normal_law(s: Fraction, sigmas: float) -> None:
    sigma = math.isqrt(int(s))
    k = round(sigmas * sigma)
    normal = float(scipy.special.ndtr(-(k - 0.5) / math.sqrt(s)))
    # What is left is a derivative over 24: less than (1 + z²)/sigma² of the tail.
    assert DiscreteGaussian(s).tail(k) == close_to(normal, rel=1e-12 + (1 + sigmas**2) / sigma**2)


@pytest.mark.parametrize("s", [Fraction(10**6), Fraction(2**40), Fraction(2**80)], ids=str)
@pytest.mark.parametrize("sigmas", [0.5, 2, 6, 25, 36])
def test_tails_3_percent_off_are_not_those_of_the_normal_law(s: Fraction, sigmas: float) -> None:
    normal = float(scipy.special.ndtr(-sigmas))
    assert DiscreteGaussian(s * Fraction(97, 100)).tail(round(sigmas * math.sqrt(s))) < 0.993 * normal


@pytest.mark.parametrize("s", [*SMALL, *LARGE], ids=str)
def test_tails_obey_the_bound_of_the_normal_law(s: Fraction) -> None:
    for sigmas in (0.5, 1, 2, 5, 10, 30):
        k = math.ceil(sigmas * math.sqrt(s))
        assert DiscreteGaussian(s).tail(k) <= math.exp(-(k**2) / (2 * float(s)))


def renyi_divergence(s: Fraction, shift: int, order: float) -> float:
    """The divergence of the given order between the law and the law moved by ``shift``."""
    reach = int(30 * order * (math.sqrt(s) + shift)) + 1
    x = np.arange(-reach, reach + 1)
    noise = DiscreteGaussian(s)
    exponents = order * noise.log_pmf(x) + (1 - order) * noise.log_pmf(x - shift)
    return float(scipy.special.logsumexp(exponents)) / (order - 1)


@pytest.mark.parametrize(
    "s", [Fraction(1, 16), Fraction(1, 4), Fraction(1), Fraction(7, 2), Fraction(1000, 3)], ids=str
)
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("order", [1.001, 1.5, 2, 3, 7.25, 20])
def test_divergences_of_shifted_laws_are_within_the_promise(s: Fraction, shift: int, order: float) -> None:
    promised = order * shift**2 / (2 * float(s))
    divergence = renyi_divergence(s, shift, order)
    assert divergence <= promised * (1 + 1e-9)
    if order == int(order):
        assert divergence == close_to(promised, rel=1e-9)
        if s > Fraction(1, 15):
            assert renyi_divergence(s * Fraction(95, 100), shift, order) > promised * 1.05


def test_beyond_all_doubles_the_tail_is_zero_or_one() -> None:
    assert DiscreteGaussian(Fraction(4)).tail(10**9) == 0
    assert DiscreteGaussian(Fraction(4)).tail(-(10**9)) == 1


@pytest.mark.parametrize("s", [*SMALL, Fraction(600**2)], ids=str)
@pytest.mark.parametrize("level", [1e-12, 0.001, 0.025, 0.3, 0.5, 0.51, 0.975, 0.999, 1 - 2**-40])
def test_a_quantile_is_the_first_integer_that_reaches_its_level(s: Fraction, level: float) -> None:
    noise = DiscreteGaussian(s)
    k = noise.quantile(level)
    x, probability = brute_force(s)
    below, upto = math.fsum(probability[x < k]), math.fsum(probability[x <= k])
    assert below < level * (1 + 1e-12)
    assert upto >= level * (1 - 1e-12)


def test_quantiles_of_wide_noise_are_those_of_the_normal_law() -> None:
    noise, sigma = DiscreteGaussian(Fraction(2**80)), 2.0**40
    for level in (1e-15, 0.025, 0.7, 0.975):
        assert noise.quantile(level) == close_to(sigma * float(scipy.special.ndtri(level)), rel=1e-10)
    assert noise.quantile(0.975) != close_to(sigma * 1.03**0.5 * float(scipy.special.ndtri(0.975)), rel=1e-2)


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, math.nan])
def test_a_level_that_is_no_probability_is_refused(level: float) -> None:
    with pytest.raises(PrivacyError, match="above 0 and below 1"):
        DiscreteGaussian(Fraction(1)).quantile(level)


@pytest.mark.parametrize("s", [Fraction(0), Fraction(-1, 2), 0, Fraction(1, 17), Fraction(2**80 + 1)], ids=str)
def test_a_parameter_outside_its_range_is_refused(s: Fraction) -> None:
    with pytest.raises(PrivacyError, match=r"from 1/16 to 2\^80"):
        DiscreteGaussian(s)


@pytest.mark.parametrize("s", [1.5, "3", None, True, math.nan], ids=str)
def test_a_parameter_that_is_not_exact_is_refused(s: object) -> None:
    with pytest.raises(PrivacyError, match="give a Fraction or an int"):
        DiscreteGaussian(s)  # type: ignore[arg-type]


def test_the_law_is_immutable_hashable_and_named() -> None:
    noise = DiscreteGaussian(Fraction(7, 2))
    assert hash(noise) == hash(DiscreteGaussian(Fraction(14, 4)))
    assert isinstance(DiscreteGaussian(3).sigma_squared, Fraction)  # type: ignore[arg-type]
    assert str(noise) == "discrete Gaussian noise of parameter 7/2"
    with pytest.raises(dataclasses.FrozenInstanceError):
        noise.sigma_squared = Fraction(1)  # type: ignore[misc]
