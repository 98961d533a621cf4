"""Half-widths and tails of summed noise against brute-force convolution and the closed forms of the continuous law."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaincc, i0e

from veilcube.errors import PrivacyError
from veilcube.laws import summed_noise
from veilcube.laws.noise import DiscreteLaplace
from veilcube.laws.noise_inversion import lattice_tail
from veilcube.laws.summed_noise import half_widths, tail, two_weight_half_widths, weighted_half_width

CONFIDENCES = [0.01, 0.5, 0.9, 0.95, 0.99, 0.999999]
HUGE = 10**9  # a scale at which the discrete law is the continuous one to nine digits


def noise_of(scale: int | str) -> DiscreteLaplace:
    return DiscreteLaplace(Fraction(scale))


@functools.cache
def convolved(scale: str, terms: int) -> np.ndarray:
    """P(S = x) for x = -r..r by repeated convolution of one term's probabilities, cut where they fall below 1e-19."""
    reach = math.ceil(44 * Fraction(scale)) + 2
    one = noise_of(scale).pmf(np.arange(-reach, reach + 1))
    return one if terms == 1 else np.convolve(convolved(scale, terms - 1), one)


def points(probability: np.ndarray) -> np.ndarray:
    return np.arange(probability.size) - probability.size // 2


def brute_half_width(scale: str, terms: int, confidence: float) -> int:
    probability = convolved(scale, terms)
    size = np.abs(points(probability))
    # Sums of the far ends alone, so that 1 - confidence = 1e-6 is met to many digits.
    return next(w for w in range(size.max() + 1) if probability[size > w].sum() <= 1 - confidence)


def continuous_tail(terms: int, w: float) -> float:
    """P(S > w) for the sum of Laplace(1): a mixture of gamma tails, with exact coefficients."""
    return sum(math.comb(terms - 1 + k, k) * 2.0 ** -(terms + k) * float(gammaincc(terms - k, w)) for k in range(terms))


def covers(noise: DiscreteLaplace, terms: int, width: float) -> float:
    """P(|S| <= width), from the exact tail."""
    return 1 - 2 * float(tail(noise, terms, width + 1))


class TestTail:
    @pytest.mark.parametrize("scale", ["1/4", "1", "7/2"])
    @pytest.mark.parametrize("terms", [1, 2, 3, 8, 20])
    def test_equals_the_convolved_probabilities(self, scale: str, terms: int) -> None:
        probability = convolved(scale, terms)
        x = points(probability)
        middle = slice(x.size // 2 - 40, x.size // 2 + 41)
        expected = np.cumsum(probability[::-1])[::-1][middle]
        np.testing.assert_allclose(tail(noise_of(scale), terms, x[middle]), expected, atol=1e-14, rtol=1e-9)

    @pytest.mark.parametrize("scale", ["1/4", "1", "10", "1000000"])
    @pytest.mark.parametrize("terms", [100, 300, 512])
    def test_finite_sum_and_contour_integral_agree(self, scale: str, terms: int) -> None:
        noise = noise_of(scale)
        x = np.ceil(noise.stddev * math.sqrt(terms) * np.array([0.001, 0.3, 1, 2, 5, 8, 12, 15]))
        contour = lattice_tail(noise, np.full(x.shape, float(terms)), x)
        np.testing.assert_allclose(tail(noise, terms, x), contour, rtol=1e-11)

    @pytest.mark.parametrize(("terms", "w", "expected"), [(2, 1, 0.724090419121), (4, 3, 0.867753099648)])
    def test_has_the_golden_values_of_the_continuous_law(self, terms: int, w: int, expected: float) -> None:
        # Both are P(S <= w) for Laplace(1), from the closed form with exact coefficients.
        assert 1 - tail(noise_of(HUGE), terms, w * HUGE) == pytest.approx(expected, abs=2e-9)

    @pytest.mark.parametrize(
        ("terms", "z", "scale", "density"),
        [
            (2, 7.5, 20, 0.0118127844792),
            (3, 7.5, 20, 0.00916161978076),
            (5, 10, 4, 0.0225536683434),
            (10, 30, 20, 0.00434110284839),
        ],
    )
    def test_differences_have_the_golden_densities(self, terms: int, z: float, scale: int, density: float) -> None:
        fine = 10_000
        upper = tail(noise_of(scale * fine), terms, [z * fine, z * fine + 1])
        assert (upper[0] - upper[1]) * fine == pytest.approx(density, rel=1e-5)

    @pytest.mark.parametrize("terms", [1, 2, 7, 30])
    def test_approaches_the_continuous_law(self, terms: int) -> None:
        w = np.array([0.1, 1.0, 5.0, 20.0])
        expected = [continuous_tail(terms, float(x)) for x in w]
        np.testing.assert_allclose(tail(noise_of(HUGE), terms, w * HUGE), expected, rtol=1e-7)

    def test_is_symmetric_and_rounds_thresholds_up(self) -> None:
        noise = noise_of(3)
        x = np.arange(-20, 21)
        np.testing.assert_allclose(tail(noise, 4, x) + tail(noise, 4, 1 - x), 1, rtol=1e-15)
        assert tail(noise, 4, 2.2) == tail(noise, 4, 3)

    @pytest.mark.parametrize("terms", [5, 10**6])
    def test_is_zero_or_one_at_infinity(self, terms: int) -> None:
        assert tail(noise_of(10), terms, [math.inf, -math.inf]).tolist() == [0, 1]

    def test_of_no_terms_is_a_step(self) -> None:
        assert tail(noise_of(10), 0, [-1, 0, 1]).tolist() == [1, 1, 0]

    def test_keeps_the_shape_of_its_thresholds(self) -> None:
        assert tail(noise_of(10), 2, np.zeros((2, 3))).shape == (2, 3)
        assert tail(noise_of(10), 2, 1).shape == ()


class TestHalfWidths:
    @pytest.mark.parametrize("scale", ["1/4", "1/2", "3/4", "1", "7/2"])
    @pytest.mark.parametrize("confidence", CONFIDENCES)
    def test_are_the_smallest_that_brute_force_finds(self, scale: str, confidence: float) -> None:
        terms = [1, 2, 3, 5, 12, 20]
        expected = [brute_half_width(scale, m, confidence) for m in terms]
        assert half_widths(noise_of(scale), terms, confidence).tolist() == expected

    def test_approach_the_golden_points_of_the_continuous_law(self) -> None:
        # 97.5% points of one to four Laplace(1), from the closed form with exact coefficients.
        widths = half_widths(noise_of(HUGE), [1, 2, 3, 4], 0.95) / HUGE
        np.testing.assert_allclose(widths, [2.99573227, 4.11300328, 4.96859600, 5.69257130], atol=1e-8)

    @pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999, 1 - 1e-12])
    @pytest.mark.parametrize("terms", [1, 6, 60])
    def test_invert_the_continuous_law_at_a_huge_scale(self, terms: int, confidence: float) -> None:
        expected = brentq(lambda w: math.log(2 * continuous_tail(terms, w) / (1 - confidence)), 1e-9, 300)
        assert half_widths(noise_of(2**40), [terms], confidence)[0] / 2**40 == pytest.approx(expected, rel=1e-9)

    def test_zero_suffices_for_one_term_of_a_quarter_scale(self) -> None:
        noise = noise_of("1/4")
        assert half_widths(noise, [1, 2], 0.95).tolist() == [0, 1]
        assert noise.pmf(0) > 0.95 > noise.pmf(0) ** 2

    @pytest.mark.parametrize("scale", ["1/200", "1/1000", str(Fraction(1, 2**64))])
    def test_noise_that_never_happens_needs_no_width(self, scale: str) -> None:
        assert half_widths(noise_of(scale), [1, 10**8, 2**62], 0.999999).tolist() == [0, 0, 0]

    def test_rare_noise_needs_a_width_once_there_are_enough_terms(self) -> None:
        # To a relative 1e-8 these are Poisson numbers of +1 and -1, so P(S = 0) = exp(-r) I0(r) with r = 2m exp(-20).
        rate = brentq(lambda r: float(i0e(r)) - 0.95, 0, 1)
        terms = rate / (2 * math.exp(-20)) * np.array([1 - 1e-6, 1 + 1e-6])
        assert half_widths(noise_of("1/20"), terms.astype(np.int64), 0.95).tolist() == [0, 1]

    def test_no_terms_need_no_width(self) -> None:
        assert half_widths(noise_of(10), [0, 0], 0.95).tolist() == [0, 0]

    def test_keep_the_shape_of_their_terms(self) -> None:
        assert half_widths(noise_of(10), np.ones((2, 3), dtype=np.int32), 0.95).shape == (2, 3)
        assert half_widths(noise_of(10), np.zeros(0, dtype=np.int64), 0.95).shape == (0,)
        assert half_widths(noise_of(10), 5, 0.95).shape == ()

    @pytest.mark.parametrize("scale", ["1/4", "1", "10", "1000", str(2**40)])
    @pytest.mark.parametrize("confidence", CONFIDENCES)
    def test_grow_with_the_number_of_terms(self, scale: str, confidence: float) -> None:
        widths = half_widths(noise_of(scale), np.arange(3000), confidence)
        assert np.all(np.diff(widths) >= 0)
        assert np.array_equal(widths, np.round(widths))

    @pytest.mark.parametrize("scale", ["1/4", "1", "10", str(2**40)])
    def test_grow_with_the_confidence(self, scale: str) -> None:
        terms = np.array([1, 2, 5, 100, 130, 2000, 10**8])
        widths = [half_widths(noise_of(scale), terms, c) for c in (*CONFIDENCES, 1 - 1e-9, 1 - 1e-12)]
        assert np.all(np.diff(widths, axis=0) >= 0)

    def test_many_terms_are_normal(self) -> None:
        noise = noise_of(10)
        width = half_widths(noise, [10**8], 0.95)[0]
        assert width / (noise.stddev * 1e4) == pytest.approx(1.959963985, rel=1e-5)

    @pytest.mark.parametrize("scale", ["1/20", "1/4", "1/2", "1", "10", "1000000"])
    @pytest.mark.parametrize("confidence", [0.1, 0.5, 0.9, 0.95, 0.99, 0.999999, 1 - 1e-9, 1 - 1e-12])
    def test_are_right_on_both_sides_of_the_crossover(self, scale: str, confidence: float) -> None:
        """The smallest w up to 1e-6 in coverage, and up to 0.5% of 1 - confidence (5% at 1 - 1e-12)."""
        noise = noise_of(scale)
        error_rate = 1 - confidence
        slack = min(1e-6, (0.05 if error_rate < 1e-7 else 0.005) * error_rate)
        last = summed_noise._exact_rule(noise, error_rate).last_exact
        terms = np.unique(np.geomspace(last - 20, 100 * last, 300).astype(np.int64))
        width = half_widths(noise, terms, confidence)
        assert np.all(2 * lattice_tail(noise, terms.astype(float), width + 1) <= error_rate + slack)
        some = width > 0
        assert np.all(2 * lattice_tail(noise, terms[some].astype(float), width[some]) > error_rate - slack)

    def test_expansion_is_not_good_enough_for_few_terms(self) -> None:
        """Shows that the check of the crossover can fail: with four terms the expansion misses by far more."""
        noise = noise_of(1000)
        width = summed_noise._many_term_widths(noise, np.array([4]), 0.05)[0]
        assert abs(covers(noise, 4, width) - 0.95) > 1e-4

    def test_accept_many_shapes_of_query_at_once(self) -> None:
        noise = noise_of(10)
        terms = np.random.default_rng(1).integers(0, 10**8, 50_000)
        terms[::3] %= 200
        some = np.arange(0, terms.size, 997)
        one_by_one = [half_widths(noise, [int(m)], 0.95)[0] for m in terms[some]]
        assert half_widths(noise, terms, 0.95)[some].tolist() == one_by_one

    @pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5, math.nan, math.inf, True, "0.95"])
    def test_confidence_outside_zero_and_one_is_refused(self, confidence: float) -> None:
        with pytest.raises(PrivacyError, match="confidence must lie strictly between 0 and 1"):
            half_widths(noise_of(10), [1], confidence)

    @pytest.mark.parametrize("terms", [[-1], [1.5], ["2"], [2**62 + 1]])
    def test_terms_that_are_not_counts_are_refused(self, terms: list[object]) -> None:
        with pytest.raises(PrivacyError, match="integers from 0 to"):
            half_widths(noise_of(10), terms, 0.95)  # type: ignore[arg-type]


def enumerated(scale: str, weights: list[float], counts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """All values of |Σ w_j S_{n_j}| in ascending order with P(|S| > value), by enumeration; equal values are joined."""
    value, probability = np.zeros(1), np.ones(1)
    for weight, count in zip(weights, counts, strict=True):
        more = convolved(scale, count)
        seen = more > 1e-13
        value = np.add.outer(value, weight * points(more)[seen]).ravel()
        probability = np.multiply.outer(probability, more[seen]).ravel()
    size, place = np.unique(np.round(np.abs(value), 9), return_inverse=True)
    mass = np.bincount(place.ravel(), weights=probability)
    return size, np.append(np.cumsum(mass[::-1])[::-1][1:], 0)


PAIRS = [
    ([0.9, -0.1], [1, 1]),
    ([0.75, 0.25], [1, 3]),
    ([1.0, 0.99], [1, 1]),
    ([0.7071, 0.31], [2, 2]),
    ([0.66, -0.44], [1, 12]),
]
WEIGHTED = [(scale, *pair) for scale in ("1/4", "1", "5/2") for pair in PAIRS]
WEIGHTED += [(scale, [3.0, 2.0, -0.5], [1, 1, 2]) for scale in ("1/4", "1")]


class TestWeightedHalfWidth:
    @pytest.mark.parametrize(("scale", "weights", "counts"), WEIGHTED)
    @pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
    def test_covers_as_stated_and_is_at_most_one_weight_too_wide(
        self, scale: str, weights: list[float], counts: list[int], confidence: float
    ) -> None:
        size, beyond = enumerated(scale, weights, counts)
        width = weighted_half_width(noise_of(scale), weights, counts, confidence)
        assert np.append(1.0, beyond)[np.searchsorted(size, width + 1e-9, side="right")] <= 1 - confidence + 1e-9
        smallest = size[np.argmax(beyond <= 1 - confidence)]
        assert width <= smallest + 0.3 * max(np.abs(weights))

    @pytest.mark.parametrize("scale", [10, 50])
    @pytest.mark.parametrize(
        ("weights", "counts"), [([0.9, 0.1], [1, 1]), ([0.66, 0.44], [1, 9]), ([1, 0.001], [2, 40])]
    )
    def test_covers_as_stated_where_the_blur_is_uniform(
        self, scale: int, weights: list[float], counts: list[int]
    ) -> None:
        noise = noise_of(scale)
        width = weighted_half_width(noise, weights, counts, 0.95)
        first = np.arange(-60 * scale, 60 * scale + 1)
        share = -np.diff(tail(noise, counts[0], np.append(first, first[-1] + 1)))
        low = np.ceil((-width - weights[0] * first) / weights[1] - 1e-9)
        high = np.floor((width - weights[0] * first) / weights[1] + 1e-9)
        coverage = float(share @ (tail(noise, counts[1], low) - tail(noise, counts[1], high + 1)))
        assert 0.95 - 1e-9 <= coverage <= 0.95 + 0.03 / scale

    @pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
    def test_inverts_the_mixed_continuous_law(self, confidence: float) -> None:
        """Two Laplace(20) and one Laplace(10): the tails obey G_m = (b1² f_m - b2² G_{m-1})/(b1² - b2²)."""

        def mixed_tail(z: float) -> float:
            result = math.exp(-z / 10) / 2
            for m in (1, 2):
                result = (400 * continuous_tail(m, z / 20) - 100 * result) / 300
            return result

        expected = brentq(lambda z: math.log(2 * mixed_tail(z) / (1 - confidence)), 1e-6, 1500)
        width = weighted_half_width(noise_of(20 * 10**6), [1, 0.5], [2, 1], confidence)
        assert width / 10**6 == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("scale", ["1/4", "1", "10"])
    def test_of_one_distinct_weight_is_the_smallest(self, scale: str) -> None:
        noise = noise_of(scale)
        expected = 2.5 * half_widths(noise, [7], 0.95)[0]
        assert weighted_half_width(noise, [2.5, -2.5, 0, 9], [3, 4, 8, 0], 0.95) == expected

    def test_of_weights_equal_up_to_rounding_is_the_smallest(self) -> None:
        noise = noise_of("1/4")
        assert weighted_half_width(noise, [0.3, 0.1 + 0.2], [1, 1], 0.5) == 0

    @pytest.mark.parametrize("scale", ["1", "10", "1000000"])
    @pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
    def test_expansion_and_inversion_agree_at_the_crossover(self, scale: str, confidence: float) -> None:
        noise = noise_of(scale)
        relative, counts = np.array([1.0, 0.25]), np.array([[128, 100], [160, 2000]])
        expansion = summed_noise._many_weight_widths(noise, relative, counts, 1 - confidence)
        inversion = summed_noise.blurred_half_widths(noise, relative, counts.astype(float), 1 - confidence)
        # A relative error d of the width is one of z²·d in 1 - confidence: 0.3% at the most, with z = 4.9.
        np.testing.assert_allclose(expansion, inversion, rtol=1e-4 if confidence == 0.999999 else 2e-5)

    def test_of_nothing_is_zero(self) -> None:
        assert weighted_half_width(noise_of(10), [], [], 0.95) == 0
        assert weighted_half_width(noise_of(10), [0.0, 2.0], [5, 0], 0.95) == 0

    def test_of_noise_that_never_happens_is_zero(self) -> None:
        assert weighted_half_width(noise_of("1/1000"), [1, 2], [5, 5], 0.95) == 0

    @pytest.mark.parametrize(("weights", "counts"), [([1.0], [1, 2]), ([math.nan], [1]), ([[1.0]], [[1]])])
    def test_malformed_weights_are_refused(self, weights: list[float], counts: list[int]) -> None:
        with pytest.raises(PrivacyError, match="two lists of equal length"):
            weighted_half_width(noise_of(10), weights, counts, 0.95)


class TestTwoWeightHalfWidths:
    @pytest.mark.parametrize("scale", ["1/4", "2", "30", str(2**40)])
    def test_equal_the_weighted_half_width_one_by_one(self, scale: str) -> None:
        noise = noise_of(scale)
        a = np.array([0, 3, 0, 1, 2, 40, 500, 1, 10**7])
        b = np.array([0, 0, 4, 1, 9, 10, 700, 10**6, 10**8])
        together = two_weight_half_widths(noise, 0.9, a, -0.1, b, 0.95)
        alone = [weighted_half_width(noise, [0.9, 0.1], [int(m), int(n)], 0.95) for m, n in zip(a, b, strict=True)]
        np.testing.assert_allclose(together, alone, rtol=1e-7)

    def test_do_not_depend_on_signs_or_order(self) -> None:
        noise, a, b = noise_of(10), np.array([1, 50, 3000]), np.array([7, 2, 10])
        expected = two_weight_half_widths(noise, 0.8, a, -0.2, b, 0.95)
        np.testing.assert_allclose(two_weight_half_widths(noise, 0.2, b, 0.8, a, 0.95), expected, rtol=1e-7)

    @pytest.mark.parametrize("weight_b", [0.5, -0.5])
    def test_of_equal_sizes_are_the_smallest(self, weight_b: float) -> None:
        noise, a, b = noise_of(3), np.array([1, 5, 400]), np.array([2, 0, 800])
        expected = 0.5 * half_widths(noise, a + b, 0.95)
        assert two_weight_half_widths(noise, 0.5, a, weight_b, b, 0.95).tolist() == expected.tolist()

    def test_with_a_zero_weight_ignore_its_terms(self) -> None:
        noise, a, b = noise_of(3), np.array([1, 5, 0]), np.array([2, 0, 800])
        assert two_weight_half_widths(noise, 1, a, 0, b, 0.95).tolist() == half_widths(noise, a, 0.95).tolist()
        assert two_weight_half_widths(noise, 0, a, 1, b, 0.95).tolist() == half_widths(noise, b, 0.95).tolist()
        assert two_weight_half_widths(noise, 0, a, 0, b, 0.95).tolist() == [0, 0, 0]

    def test_broadcast_one_count_against_many(self) -> None:
        assert two_weight_half_widths(noise_of(3), 1, 2, 0.5, np.arange(6).reshape(2, 3), 0.95).shape == (2, 3)

    def test_weights_that_are_not_finite_are_refused(self) -> None:
        with pytest.raises(PrivacyError, match="finite"):
            two_weight_half_widths(noise_of(3), math.inf, [1], 0.5, [1], 0.95)
