"""The discrete Laplace law against its definition: exact sums, high-precision decimals and brute-force moments."""

import dataclasses
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from veilcube.errors import PrivacyError
from veilcube.laws import BlockGaussian, DiscreteGaussian, Noise
from veilcube.laws.noise import DiscreteLaplace, JointLaplace, SharpenedLaplace, read_noise

SMALL_SCALES = [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(7, 2), Fraction(20)]
ALL_SCALES = [
    Fraction(1, 100),
    *SMALL_SCALES,
    Fraction(1000, 7),
    Fraction(2**40),
    Fraction(2**40 + 1, 3),
    Fraction(2**100),
]


def brute_force(scale: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """The integers that carry all but 1e-26 of the probability, and the normalised exp(-|x|/scale)."""
    x = np.arange(-int(60 * scale) - 60, int(60 * scale) + 61)
    weight = np.exp(-np.abs(x) / float(scale))
    return x, weight / weight.sum()


def variance_in_decimals(scale: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 120
        p = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        return 2 * p / (1 - p) ** 2


@pytest.mark.parametrize("scale", SMALL_SCALES, ids=str)
def test_probabilities_are_the_normalised_exponentials(scale: Fraction) -> None:
    x, expected = brute_force(scale)
    noise = DiscreteLaplace(scale)
    np.testing.assert_allclose(noise.pmf(x), expected, rtol=1e-12)
    np.testing.assert_allclose(noise.log_pmf(x), np.log(expected), rtol=1e-12, atol=1e-12)


def test_log_probability_does_not_underflow() -> None:
    assert DiscreteLaplace(Fraction(1, 4)).log_pmf(10**6) == pytest.approx(-4e6, rel=1e-6)


def test_probability_at_zero_is_stable_at_a_huge_scale() -> None:
    assert DiscreteLaplace(Fraction(2**60)).pmf(0) == pytest.approx(2.0**-61, rel=1e-14)


@pytest.mark.parametrize("scale", ALL_SCALES, ids=str)
def test_variance_has_full_precision_at_every_scale(scale: Fraction) -> None:
    noise = DiscreteLaplace(scale)
    assert noise.variance == pytest.approx(float(variance_in_decimals(scale)), rel=1e-13)
    assert noise.stddev == pytest.approx(math.sqrt(noise.variance), rel=1e-15)


@pytest.mark.parametrize("scale", SMALL_SCALES, ids=str)
def test_cumulants_equal_those_of_the_brute_force_moments(scale: Fraction) -> None:
    x, probability = brute_force(scale)
    moment2, moment4, moment6 = (float((probability * x.astype(float) ** k).sum()) for k in (2, 4, 6))
    expected = (moment2, moment4 - 3 * moment2**2, moment6 - 15 * moment4 * moment2 + 30 * moment2**3)
    assert DiscreteLaplace(scale).cumulants() == pytest.approx(expected, rel=1e-9)


def test_cumulants_approach_those_of_the_continuous_law() -> None:
    noise = DiscreteLaplace(Fraction(2**40))
    continuous = tuple(2 * math.factorial(k - 1) * 2.0 ** (40 * k) for k in (2, 4, 6))
    assert noise.cumulants() == pytest.approx(continuous, rel=1e-12)


def test_cumulants_all_approach_the_variance_when_noise_is_rare() -> None:
    noise = DiscreteLaplace(Fraction(1, 50))
    assert noise.cumulants() == pytest.approx((2 * math.exp(-50),) * 3, rel=1e-12)


@pytest.mark.parametrize("scale", SMALL_SCALES, ids=str)
def test_characteristic_function_is_the_mean_cosine(scale: Fraction) -> None:
    x, probability = brute_force(scale)
    theta = np.linspace(-7, 7, 41)
    expected = (probability * np.cos(np.outer(theta, x))).sum(axis=1)
    np.testing.assert_allclose(DiscreteLaplace(scale).characteristic(theta), expected, atol=1e-12)


def test_characteristic_function_keeps_its_precision_near_zero() -> None:
    noise = DiscreteLaplace(Fraction(2**40))
    theta = 1e-3 / noise.stddev
    assert 1 / noise.characteristic(theta) - 1 == pytest.approx(theta**2 * noise.variance / 2, rel=1e-9)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1, 2), 0, Fraction(1, 2**65), Fraction(2**128 + 1)], ids=str)
def test_scale_outside_its_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(PrivacyError, match=r"must be positive, from 2\^-64 to 2\^128"):
        DiscreteLaplace(scale)


@pytest.mark.parametrize("scale", [1.5, "3", None, True, math.nan], ids=str)
def test_scale_that_is_not_exact_is_refused(scale: object) -> None:
    with pytest.raises(PrivacyError, match="give a Fraction or an int"):
        DiscreteLaplace(scale)  # type: ignore[arg-type]


def test_integer_scale_becomes_a_fraction() -> None:
    assert DiscreteLaplace(3) == DiscreteLaplace(Fraction(3))  # type: ignore[arg-type]
    assert isinstance(DiscreteLaplace(3).scale, Fraction)  # type: ignore[arg-type]


def test_law_is_immutable_and_hashable() -> None:
    noise = DiscreteLaplace(Fraction(7, 2))
    assert hash(noise) == hash(DiscreteLaplace(Fraction(14, 4)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        noise.scale = Fraction(1)  # type: ignore[misc]


def test_json_holds_the_exact_ratio() -> None:
    assert DiscreteLaplace(Fraction(7, 2)).to_json() == {"kind": "discrete-laplace", "scale": "7/2"}


@pytest.mark.parametrize("scale", ALL_SCALES, ids=str)
def test_json_round_trip_is_exact(scale: Fraction) -> None:
    assert DiscreteLaplace.from_json(DiscreteLaplace(scale).to_json()) == DiscreteLaplace(scale)


@pytest.mark.parametrize(
    "scale", ["", "-1/2", "1/0", "1/00", "1.5", "1e999999999", " 1", "1/2/3", "٣", "9" * 101, 3, None], ids=str
)
def test_json_with_a_malformed_scale_is_refused(scale: object) -> None:
    with pytest.raises(PrivacyError, match='exact ratio in text such as "7/2"'):
        DiscreteLaplace.from_json({"kind": "discrete-laplace", "scale": scale})


@pytest.mark.parametrize("document", [{}, {"kind": "gaussian", "scale": "1"}, {"scale": "1"}], ids=str)
def test_json_of_another_kind_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(PrivacyError, match="kind of noise is not known"):
        DiscreteLaplace.from_json(document)


def test_text_names_the_law_and_its_exact_scale() -> None:
    assert str(DiscreteLaplace(Fraction(7, 2))) == "discrete Laplace noise of scale 7/2"


@pytest.mark.parametrize("kind", [DiscreteLaplace, JointLaplace, DiscreteGaussian, BlockGaussian])
def test_noise_of_any_kind_is_read_back(kind: type[Noise]) -> None:
    assert read_noise(kind(Fraction(7, 2)).to_json()) == kind(Fraction(7, 2))
    sharpened = SharpenedLaplace.of(Fraction(3), Fraction(5))
    assert read_noise(sharpened.to_json()) == sharpened


@pytest.mark.parametrize("document", [{}, {"kind": "gaussian", "scale": "1"}, {"kind": ["discrete-laplace"]}], ids=str)
def test_noise_of_an_unknown_kind_is_not_read(document: dict[str, object]) -> None:
    with pytest.raises(
        PrivacyError, match=r'not known here: only "discrete-laplace", .* "discrete-gaussian", .* can be'
    ):
        read_noise(document)


@pytest.mark.parametrize("scale", SMALL_SCALES, ids=str)
def test_it_says_what_every_law_says_of_itself(scale: Fraction) -> None:
    noise = DiscreteLaplace(scale)
    assert (noise.family, noise.parameter, noise.size) == ("laplace", scale, float(scale))
    x, probability = brute_force(scale)
    assert (np.abs(x) * probability).sum() <= noise.size
    second, fourth, _ = noise.cumulants()
    assert noise.most_kurtosis == pytest.approx(fourth / second**2, rel=1e-12)


@pytest.mark.parametrize("scale", SMALL_SCALES, ids=str)
@pytest.mark.parametrize("share", [-0.4, 0.1, 0.5])
def test_the_tilted_law_has_these_moments_and_this_transform(scale: Fraction, share: float) -> None:
    x, probability = brute_force(scale)
    noise = DiscreteLaplace(scale)
    c = share * noise.rate
    weight = probability * np.exp(c * x)
    mean = (weight * x).sum() / weight.sum()
    assert noise.log_transform(np.array([c]))[0] == pytest.approx(math.log(weight.sum()), rel=1e-9)
    found_mean, found_variance = noise.tilted(np.array([c]))
    assert found_mean[0] == pytest.approx(mean, rel=1e-9)
    assert found_variance[0] == pytest.approx((weight * (x - mean) ** 2).sum() / weight.sum(), rel=1e-9)
    z = c + 1j * np.linspace(0, 8, 30)
    exact = (probability * np.exp(np.outer(z, x))).sum(axis=1)
    np.testing.assert_allclose(np.exp(noise.log_transform(z)), exact, rtol=1e-9)
