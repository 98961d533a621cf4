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
from veilcube.laws import DiscreteGaussian, DiscreteLaplace, read_noise

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


@pytest.mark.parametrize("s", SMALL, ids=str)
def test_cumulants_are_those_of_the_brute_force_moments(s: Fraction) -> None:
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(s.numerator) / Decimal(s.denominator)
        weights = [(x, (-x * x / (2 * exact)).exp()) for x in range(-int(17 * math.sqrt(s)) - 17, int(17 * s) + 34)]
        total = sum(weight for _, weight in weights)
        moment2, moment4, moment6 = (sum(x**k * weight for x, weight in weights) / total for k in (2, 4, 6))
        fourth, sixth = moment4 - 3 * moment2**2, moment6 - 15 * moment4 * moment2 + 30 * moment2**3
    found = DiscreteGaussian(s).cumulants()
    assert found[0] == DiscreteGaussian(s).variance == close_to(float(moment2), rel=1e-14)
    # 60 digits of moments of s = 20 leave cumulants of 1e-160 nothing.
    assert found[1] == pytest.approx(float(fourth), rel=1e-11, abs=1e-40)
    assert found[2] == pytest.approx(float(sixth), rel=1e-11, abs=1e-40)


@pytest.mark.parametrize("s", [Fraction(2), Fraction(5, 2), Fraction(4), Fraction(2**80)], ids=str)
def test_higher_cumulants_vanish_as_the_parameter_grows(s: Fraction) -> None:
    second, fourth, sixth = DiscreteGaussian(s).cumulants()
    assert second == close_to(float(s), rel=1e-14)
    assert 0 <= fourth < 4e-13
    assert -6e-11 < sixth <= 0


@pytest.mark.parametrize("s", SMALL, ids=str)
def test_the_characteristic_function_is_the_mean_cosine(s: Fraction) -> None:
    x, probability = brute_force(s)
    theta = np.linspace(-9, 9, 41)
    expected = (probability * np.cos(np.outer(theta, x))).sum(axis=1)
    noise = DiscreteGaussian(s)
    np.testing.assert_allclose(noise.characteristic(theta), expected, atol=1e-13)
    np.testing.assert_allclose(np.exp(-noise.decay(theta)), expected, atol=1e-13)
    assert np.abs(DiscreteGaussian(s * Fraction(103, 100)).characteristic(theta) - expected).max() > 1e-4


def test_the_characteristic_function_keeps_its_precision_near_zero_and_does_not_underflow() -> None:
    for s in (Fraction(1, 16), Fraction(1, 2), Fraction(2**80)):
        noise = DiscreteGaussian(s)
        theta = np.array([1e-7 / noise.stddev])
        assert noise.decay(theta)[0] == close_to(theta[0] ** 2 * noise.variance / 2, rel=1e-9)
    assert DiscreteGaussian(Fraction(10**6)).decay(np.array([math.pi]))[0] == close_to(5e5 * math.pi**2, rel=1e-12)


@pytest.mark.parametrize("s", [*SMALL[:8], Fraction(17)], ids=str)
@pytest.mark.parametrize("c", [-0.7, 0.1, 1.0, 2.5])
def test_the_tilted_law_has_these_moments_and_this_transform(s: Fraction, c: float) -> None:
    x, probability = brute_force(s)
    weight = probability * np.exp(c * x)
    total = weight.sum()
    mean = (weight * x).sum() / total
    noise = DiscreteGaussian(s)
    assert noise.log_transform(np.array([c]))[0] == close_to(math.log(total), rel=1e-9)
    found_mean, found_variance = noise.tilted(np.array([c]))
    assert found_mean[0] == close_to(mean, rel=1e-9)
    assert found_variance[0] == close_to((weight * (x - mean) ** 2).sum() / total, rel=1e-9)
    # Theorem 3: how fast its characteristic function falls, on one period and beyond.
    theta = np.linspace(0, 8, 60)
    z = c + 1j * theta
    size = np.abs((probability * np.exp(np.outer(z, x))).sum(axis=1)) / total
    np.testing.assert_allclose(np.exp(noise.log_transform(z).real) / total, size, rtol=1e-7, atol=1e-12)
    assert (size <= np.exp(-noise.tilted_step(np.array([c])) * (1 - np.cos(theta))) + 1e-12).all()


def test_the_tilt_at_a_whole_mean_has_its_exponent_exactly() -> None:
    for s in (Fraction(1, 16), Fraction(1, 3), Fraction(3), Fraction(50)):
        noise = DiscreteGaussian(s)
        for exponent in (0.5, 3.0, 27.0):
            c = np.array([noise.farthest_tilt(exponent)])
            reached = (c * noise.tilted(c)[0] - noise.log_transform(c))[0]
            assert reached == close_to(round(float(s) * c[0]) ** 2 / (2 * float(s)), rel=1e-9)
            assert reached >= exponent * (1 - 1e-9)


@pytest.mark.parametrize("s", [*SMALL, *LARGE], ids=str)
def test_it_says_what_every_law_says_of_itself(s: Fraction) -> None:
    noise = DiscreteGaussian(s)
    assert (noise.family, noise.is_joint, noise.before) == ("gaussian", False, None)
    assert noise.parameter == noise.charged == s
    assert noise.size == close_to(math.sqrt(s), rel=1e-15)
    fourth, second = noise.cumulants()[1], noise.variance
    assert fourth / second**2 <= noise.most_kurtosis


@pytest.mark.parametrize("s", SMALL, ids=str)
def test_its_size_is_at_least_the_mean_absolute_noise(s: Fraction) -> None:
    x, probability = brute_force(s)
    assert (np.abs(x) * probability).sum() <= DiscreteGaussian(s).size


@pytest.mark.parametrize("s", [*SMALL, *LARGE], ids=str)
def test_json_round_trip_is_exact(s: Fraction) -> None:
    assert read_noise(DiscreteGaussian(s).to_json()) == DiscreteGaussian(s)
    assert DiscreteGaussian(Fraction(7, 2)).to_json() == {"kind": "discrete-gaussian", "sigma_squared": "7/2"}


@pytest.mark.parametrize(
    "text", ["", "-1/2", "1/0", "1.5", "1e999999999", " 1", "1/2/3", "٣", "9" * 101, 3, None], ids=str
)
def test_json_with_a_malformed_parameter_is_refused(text: object) -> None:
    with pytest.raises(PrivacyError, match='exact ratio in text such as "7/2"'):
        read_noise({"kind": "discrete-gaussian", "sigma_squared": text})


@pytest.mark.parametrize("text", ["0", "1/17", "9" * 100])
def test_json_with_a_parameter_outside_its_range_is_refused(text: str) -> None:
    with pytest.raises(PrivacyError, match=r"from 1/16 to 2\^80"):
        read_noise({"kind": "discrete-gaussian", "sigma_squared": text})


def test_gaussian_json_is_not_taken_for_laplace_noise() -> None:
    with pytest.raises(PrivacyError, match="kind of noise is not known"):
        DiscreteLaplace.from_json(DiscreteGaussian(Fraction(1)).to_json())
