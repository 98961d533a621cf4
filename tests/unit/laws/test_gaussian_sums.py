"""Sums of discrete Gaussian noise, alone and with Laplace noise, against brute-force convolution of exact masses."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from veilcube.laws import (
    DiscreteGaussian,
    DiscreteLaplace,
    Noise,
    NoiseCumulants,
    answer_half_widths,
    half_widths,
    tail,
    two_weight_half_widths,
    weighted_half_width,
)
from veilcube.laws.summed_noise import LARGEST_KURTOSIS
from veilcube.system import Floats

PARAMETERS = ["1/16", "1/4", "1/2", "1", "2", "5", "100"]
TERMS = [1, 2, 3, 7, 50]
CONFIDENCES = [0.5, 0.9, 0.95, 0.999]


def gaussian(parameter: str) -> DiscreteGaussian:
    return DiscreteGaussian(Fraction(parameter))


def masses(noise: Noise, weight: int = 1) -> Floats:
    """P(weight·X = x) for x = -r..r, cut where masses fall below 1e-19, normalised; from the definition of the law."""
    if noise.family == "gaussian":
        reach = math.ceil(9.4 * math.sqrt(noise.parameter))
        size = np.arange(-reach, reach + 1, dtype=np.float64) ** 2 / (2 * float(noise.parameter))
    else:
        reach = math.ceil(44 * noise.parameter)
        size = np.abs(np.arange(-reach, reach + 1)) / float(noise.parameter)
    spread = np.zeros(2 * reach * weight + 1)
    spread[::weight] = np.exp(-size)
    return np.asarray(spread / spread.sum())


def added(*parts: tuple[Noise, int, int]) -> Floats:
    """The law of a sum of parts: a noise, how many of it, and their weight."""
    law = np.ones(1)
    for noise, terms, weight in parts:
        one = masses(noise, weight)
        for _ in range(terms):
            law = np.convolve(law, one)
    return law


@functools.cache
def summed(parameter: Fraction, terms: int) -> Floats:
    return added((DiscreteGaussian(parameter), terms, 1))


def beyond(law: Floats, width: float) -> float:
    """P(|S| > width), from the far ends alone."""
    size = np.abs(np.arange(law.size) - law.size // 2)
    return float(law[size > width + 1e-9].sum())


def smallest_width(law: Floats, confidence: float) -> int:
    return next(w for w in range(law.size) if beyond(law, w) <= 1 - confidence)


class TestTail:
    @pytest.mark.parametrize("parameter", [*PARAMETERS, "2/5", "15", "17"])
    @pytest.mark.parametrize("terms", TERMS)
    def test_equals_the_convolved_masses(self, parameter: str, terms: int) -> None:
        law = summed(Fraction(parameter), terms)
        middle = law.size // 2
        x = np.arange(1, min(middle, math.ceil(7 * math.sqrt(terms * Fraction(parameter)))) + 1)
        expected = np.array([law[middle + k :].sum() for k in x])
        np.testing.assert_allclose(tail(gaussian(parameter), terms, x), expected, rtol=1e-9, atol=1e-19)
        np.testing.assert_allclose(tail(gaussian(parameter), terms, 1 - x), 1 - expected, rtol=1e-12)

    @pytest.mark.parametrize("parameter", ["1/16", "1/4", "1/2", "1", "20", "1000000", str(2**80)])
    def test_of_one_term_is_that_of_its_law(self, parameter: str) -> None:
        noise = gaussian(parameter)
        x = np.unique(np.ceil(math.sqrt(Fraction(parameter)) * np.array([0.001, 0.3, 1, 3, 8, 15])))
        expected = [noise.tail(int(k)) for k in x]
        np.testing.assert_allclose(tail(noise, 1, x), expected, rtol=1e-9)

    @pytest.mark.parametrize("parameter", ["2", "9/2", "70"])
    @pytest.mark.parametrize("terms", [2, 5, 1000, 10**9])
    def test_of_a_sum_is_nearly_that_of_the_sum_of_parameters(self, parameter: str, terms: int) -> None:
        whole = DiscreteGaussian(terms * Fraction(parameter))
        x = np.ceil(math.sqrt(whole.sigma_squared) * np.array([0.5, 1, 2, 3]))
        np.testing.assert_allclose(tail(gaussian(parameter), terms, x), [whole.tail(int(k)) for k in x], rtol=1e-6)

    @pytest.mark.parametrize("noise", [gaussian("1/16"), gaussian("5"), DiscreteLaplace(Fraction(1, 2))], ids=str)
    def test_keeps_its_precision_for_very_many_terms(self, noise: Noise) -> None:
        # The sum of 2^60 terms is normal to 1e-9, whatever one term is.
        sigma = noise.stddev * 2.0**30
        x = np.ceil(sigma * np.array([0.1, 1, 2, 5]))
        np.testing.assert_allclose(tail(noise, 2**60, x), ndtr(-(x - 0.5) / sigma), rtol=1e-9)

    def test_is_zero_or_one_at_infinity_and_a_step_without_terms(self) -> None:
        assert tail(gaussian("5"), 5, [math.inf, -math.inf]).tolist() == [0, 1]
        assert tail(gaussian("5"), 0, [-1, 0, 1]).tolist() == [1, 1, 0]


class TestHalfWidths:
    @pytest.mark.parametrize("parameter", PARAMETERS)
    @pytest.mark.parametrize("confidence", [0.01, *CONFIDENCES, 1 - 1e-9])
    def test_are_the_smallest_that_brute_force_finds(self, parameter: str, confidence: float) -> None:
        expected = [smallest_width(summed(Fraction(parameter), m), confidence) for m in TERMS]
        assert half_widths(gaussian(parameter), TERMS, confidence).tolist() == expected

    @pytest.mark.parametrize("factor", [Fraction(97, 100), Fraction(103, 100)])
    def test_of_a_law_3_percent_off_are_others(self, factor: Fraction) -> None:
        def differences(factor: Fraction) -> int:
            return sum(
                half_widths(gaussian(parameter), [m], confidence)[0]
                != smallest_width(summed(factor * Fraction(parameter), m), confidence)
                for parameter in PARAMETERS[1:]
                for m in TERMS
                for confidence in CONFIDENCES
            )

        assert differences(Fraction(1)) == 0
        assert differences(factor) >= 10

    @pytest.mark.parametrize("parameter", ["1/16", "1/10", "1/4", "1/2", "1", "5", "43", "100000"])
    @pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999, 1 - 1e-9])
    def test_beyond_the_border_are_still_the_smallest(self, parameter: str, confidence: float) -> None:
        noise = gaussian(parameter)
        border = int(noise.most_kurtosis / LARGEST_KURTOSIS) + 1
        terms = np.unique(np.geomspace(border, 100 * border, 25).astype(np.int64))
        for m, width in zip(terms, half_widths(noise, terms, confidence), strict=True):
            within, without = tail(noise, int(m), [width + 1, width])
            assert 2 * within <= (1 - confidence) * (1 + 1e-4)
            assert 2 * without >= (1 - confidence) * (1 - 1e-4)

    @pytest.mark.parametrize("parameter", ["1/16", "1/5", "1/2", "1", "7", "60"])
    @pytest.mark.parametrize("confidence", [0.3, 0.95, 0.999999])
    def test_never_shrink_with_another_term_across_the_border(self, parameter: str, confidence: float) -> None:
        noise = gaussian(parameter)
        border = int(noise.most_kurtosis / LARGEST_KURTOSIS)
        terms = np.unique(np.concatenate([np.arange(300), np.arange(max(border - 200, 0), border + 200)]))
        widths = half_widths(noise, terms, confidence)
        assert widths[0] == 0
        assert (np.diff(widths) >= 0).all()
        assert widths[-1] > 0

    def test_of_wide_noise_are_those_of_the_normal_law(self) -> None:
        sigma = 2.0**40
        widths = half_widths(gaussian(str(2**80)), [1, 4, 10**12], 0.95) / sigma
        np.testing.assert_allclose(widths, ndtri(0.975) * np.array([1, 2, 1e6]), rtol=1e-11)

    def test_are_narrower_than_those_of_laplace_noise_with_the_same_variance(self) -> None:
        laplace = DiscreteLaplace(Fraction(10))
        same = DiscreteGaussian(Fraction(laplace.variance))
        assert half_widths(same, [1], 0.999)[0] < 0.7 * half_widths(laplace, [1], 0.999)[0]


WEIGHTS = [(1, 3, 1, 1), (2, 3, 5, 10), (9, 1, 1, 3), (9, 1, 3, 1), (3, 4, 20, 3)]


class TestWeightedSums:
    @pytest.mark.parametrize("parameter", ["1/16", "1/4", "1/2", "1", "5", "40"])
    @pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999, 0.999999])
    @pytest.mark.parametrize(("first", "second", "terms", "more"), WEIGHTS)
    def test_cover_and_are_at_most_one_weight_too_wide(
        self, parameter: str, confidence: float, first: int, second: int, terms: int, more: int
    ) -> None:
        noise = gaussian(parameter)
        law = added((noise, terms, first), (noise, more, second))
        width = weighted_half_width(noise, [first, -second], [terms, more], confidence)
        assert beyond(law, width) <= (1 - confidence) * (1 + 1e-4)
        assert width <= smallest_width(law, confidence) + max(first, second)
        (many,) = two_weight_half_widths(noise, first, [terms], second, [more], confidence)
        assert many == pytest.approx(width, rel=1e-9)

    def test_of_wide_noise_are_those_of_the_normal_law(self) -> None:
        noise = gaussian(str(10**12))
        width = weighted_half_width(noise, [0.3, 0.4], [1, 1], 0.95)
        assert width == pytest.approx(ndtri(0.975) * 0.5e6, rel=1e-5)
        assert weighted_half_width(noise, [0.5, -0.5], [3, 1], 0.95) == pytest.approx(ndtri(0.975) * 1e6, rel=1e-5)


def cumulants(noise: Noise, terms: int, weight: float = 1.0) -> NoiseCumulants:
    return NoiseCumulants.of(noise, *(np.array(terms * weight**power) for power in (2, 4, 6)))


class TestCumulants:
    @pytest.mark.parametrize("parameter", [*PARAMETERS, "1/6", "1/3"])
    @pytest.mark.parametrize("confidence", [*CONFIDENCES, 0.99999])
    def test_widths_from_them_cover_and_are_at_most_two_and_a_half_too_wide(
        self, parameter: str, confidence: float
    ) -> None:
        noise = gaussian(parameter)
        for m in TERMS:
            law = summed(Fraction(parameter), m)
            width = float(cumulants(noise, m).half_widths(confidence))
            assert beyond(law, width) <= 1 - confidence
            assert width <= 1.003 * smallest_width(law, confidence) + 2.5

    @pytest.mark.parametrize(("bounded", "expected"), [(False, 1.959964), (True, 1.959964)])
    def test_wide_noise_has_exactly_the_normal_quantile(self, bounded: bool, expected: float) -> None:
        powers = np.array([1.0, 7.0]), np.array([1.0, 2.0]), np.array([1.0, 1.0])
        widths = answer_half_widths(gaussian(str(10**16)), *powers, 0.95, bounded=bounded)
        np.testing.assert_allclose(widths / 1e8, expected * np.sqrt(powers[0]), rtol=1e-6)

    def test_a_fourth_cumulant_slightly_below_zero_is_none(self) -> None:
        below, none = (
            NoiseCumulants(np.array(100.0), np.array(fourth), np.array(sixth), np.array(0.0))
            for fourth, sixth in ((-1e-9, -1e-9), (0.0, 0.0))
        )
        assert float(below.half_widths(0.95)) == float(none.half_widths(0.95)) == pytest.approx(19.59964, rel=1e-6)

    @pytest.mark.parametrize("parameter", ["1/16", "1/4", "1", "5", "100"])
    @pytest.mark.parametrize("scale", ["1/3", "1", "3", "10"])
    @pytest.mark.parametrize("confidence", CONFIDENCES)
    def test_mixtures_with_laplace_noise_cover_and_are_not_much_too_wide(
        self, parameter: str, scale: str, confidence: float
    ) -> None:
        ours, theirs = gaussian(parameter), DiscreteLaplace(Fraction(scale))
        for terms, more, weight in ((1, 1, 1), (3, 1, 2), (1, 3, 1), (10, 2, 3)):
            law = added((ours, terms, 1), (theirs, more, weight))
            width = float((cumulants(ours, terms) + cumulants(theirs, more, weight)).half_widths(confidence))
            assert beyond(law, width) <= 1 - confidence + 0.003
            assert width <= 1.02 * smallest_width(law, confidence) + 1.5 * weight + 1
            if weight == 1:
                assert beyond(law, width) <= 1 - confidence
