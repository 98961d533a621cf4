"""Densities of sums of Laplace noises against golden values, rational arithmetic, integration and convolution."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.signal import lfilter

from veilcube.errors import PrivacyError
from veilcube.laws.contour_integral import excess_of_lattice_sum, excess_of_sum
from veilcube.laws.laplace_sums import laplace_sum, lattice_laplace_sum

# Few and many terms, scales far apart and nearly equal, one and three of them.
MIXTURES: list[dict[float, int]] = [
    {1: 1},
    {1: 2},
    {3: 33},
    {20: 2, 10: 1},
    {10: 12, 20: 1},
    {14: 12, 20: 1},
    {1: 1, 0.999: 1},
    {1: 1, 0.99: 8},
    {1: 30, 0.5: 30},
    {1: 1, 0.01: 50},
    {1: 1, 1e-6: 1},
    {1: 3, 0.9: 2, 0.1: 4},
]
LATTICE_MIXTURES: list[dict[float, int]] = [
    {1: 1},
    {1: 2},
    {5: 3},
    {1: 200},
    {0.25: 1},
    {0.0625: 100},
    {0.1: 3000},
    {3: 1, 2.999: 1},
    {50: 2, 10: 1},
    {2: 3, 8: 1},
    {10: 1, 0.1: 1000},
    {0.3: 30, 3: 1, 2: 2},
]


def series_power(constant: Decimal, linear: Decimal, power: int, length: int) -> list[Decimal]:
    """The Taylor coefficients of (constant + linear·e)^-power."""
    term, coefficients = constant ** (-power), []
    for order in range(length):
        coefficients.append(term)
        term = term * -(power + order) / (order + 1) * linear / constant
    return coefficients


def series_product(one: list[Decimal], other: list[Decimal]) -> list[Decimal]:
    return [sum((one[i] * other[k - i] for i in range(k + 1)), Decimal(0)) for k in range(len(one))]


def exact_log_density(noises: dict[float, int], z: float) -> float:
    """Log f(z) by the residues of Π (1 - b²s²)^-n exp(-s z) at s = 1/b, in 90 digits, more than cancel."""
    with localcontext() as context:
        context.prec, context.Emin = 90, -(10**9)
        distance = Decimal(z)
        total = Decimal(0)
        for scale, n in noises.items():
            b = Decimal(scale)
            series = series_power(Decimal(2), b, n, n)
            for other, count in noises.items():
                if other != scale:
                    ratio = Decimal(other) / b
                    series = series_product(series, series_power(1 - ratio, -Decimal(other), count, n))
                    series = series_product(series, series_power(1 + ratio, Decimal(other), count, n))
            decay = [(-distance) ** k / math.factorial(k) if k else Decimal(1) for k in range(n)]
            residue = series_product(series, decay)[n - 1] * (-distance / b).exp()
            total -= residue / (-b) ** n
        return float(total.ln())


def convolved(noises: dict[float, int], last: int) -> np.ndarray:
    """P(S = k), k = 0..last, by running every noise through its two geometric filters; all numbers are positive."""
    reach = last + int(60 * max(noises)) + 10
    chances = np.zeros(2 * reach + 1)
    chances[reach] = 1
    for scale, count in noises.items():
        p = math.exp(-1 / scale)
        for _ in range(count):
            chances = lfilter([1 - p], [1, -p], chances)
            chances = lfilter([1 - p], [1, -p], chances[::-1])[::-1]
    return chances[reach : reach + last + 1]


class TestDensity:
    @pytest.mark.parametrize(
        ("noises", "z", "expected"),
        [
            ({20: 2}, 7.5, 0.0118127844792),
            ({20: 3}, 7.5, 0.00916161978076),
            ({4: 5}, 10, 0.0225536683434),
            ({20: 10}, 30, 0.00434110284839),
            ({20: 2, 10: 1}, 0, 0.0111111111111),
            ({20: 2, 10: 1}, 15, 0.00976845253643),
        ],
    )
    def test_golden_values_of_the_errata(self, noises: dict[float, int], z: float, expected: float) -> None:
        law = laplace_sum(noises)
        assert float(law.density(z)) == pytest.approx(expected, rel=5e-12)
        assert float(law.density(-z)) == float(law.density(z))

    @pytest.mark.parametrize("noises", MIXTURES, ids=str)
    def test_equals_exact_residues_near_and_very_far(self, noises: dict[float, int]) -> None:
        law = laplace_sum(noises)
        z = math.sqrt(law.variance) * np.array([0, 1e-3, 0.1, 1, 3, 10, 100])
        expected = [exact_log_density(noises, float(each)) for each in z]
        np.testing.assert_allclose(law.log_density(z), expected, rtol=1e-14, atol=5e-12)

    @pytest.mark.parametrize("noises", MIXTURES, ids=str)
    def test_the_integral_alone_equals_exact_residues_where_a_closed_form_is_used(
        self, noises: dict[float, int]
    ) -> None:
        scales, terms = np.array(list(noises), dtype=float), np.array(list(noises.values()), dtype=float)
        z = math.sqrt(laplace_sum(noises).variance) * np.array([0, 0.01, 1, 4, 40])
        expected = [exact_log_density(noises, float(each)) for each in z] + z / scales.max()
        np.testing.assert_allclose(excess_of_sum(scales, terms, z), expected, rtol=1e-14, atol=1e-12)

    @pytest.mark.parametrize("noises", [{2: 1, 3: 2}, {1: 4, 0.9: 3}, {5: 1, 4: 1, 3: 1}, {1: 40}], ids=str)
    def test_integrates_to_one_with_its_variance(self, noises: dict[float, int]) -> None:
        law = laplace_sum(noises)
        reach = 60 * max(noises) + 10 * math.sqrt(law.variance)
        # Half the line, because of the kink at zero, and in two parts, so that the peak is not overlooked.
        parts = [(0, math.sqrt(law.variance)), (math.sqrt(law.variance), reach)]
        mass, square = (
            2 * sum(quad(lambda z, p=power: z**p * float(law.density(z)), *part, epsabs=1e-13)[0] for part in parts)
            for power in (0, 2)
        )
        assert mass == pytest.approx(1, abs=1e-10)
        assert square == pytest.approx(law.variance, rel=1e-9)

    def test_equals_the_convolution_integral_of_two_densities(self) -> None:
        """Splitting the noises into two sums and convolving them by quadrature: no shared formula."""
        whole, one, other = laplace_sum({3: 2, 2.5: 3}), laplace_sum({3: 2}), laplace_sum({2.5: 3})
        for z in (0.0, 2.0, 11.0):
            cuts = sorted({-200.0, 0.0, z, 200.0})
            pieces = pairwise(cuts)
            value = sum(
                quad(lambda t, at=z: float(one.density(t)) * float(other.density(at - t)), *piece, epsabs=1e-13)[0]
                for piece in pieces
            )
            assert float(whole.density(z)) == pytest.approx(value, rel=1e-9)

    def test_very_many_terms_follow_the_edgeworth_expansion(self) -> None:
        law = laplace_sum({1: 10**8})
        x = np.array([0.0, 1.0, 2.5])
        kurtosis = 3 / 10**8
        expected = -(x**2) / 2 - math.log(2 * math.pi * law.variance) / 2
        expected += np.log1p(kurtosis / 24 * (x**4 - 6 * x**2 + 3))
        np.testing.assert_allclose(law.log_density(x * math.sqrt(law.variance)), expected, rtol=0, atol=2e-11)

    def test_methods_meet_without_a_step(self) -> None:
        """Just inside and just outside the region of the recursion, and of the closed form."""
        z = np.array([0.0, 5.0, 60.0])
        apart = [laplace_sum({math.sqrt(2) * (1 + step): 4, 1: 1}).log_density(z) for step in (-1e-9, 1e-9)]
        np.testing.assert_allclose(apart[0], apart[1], rtol=0, atol=1e-7)
        steps = np.diff([laplace_sum({1: n}).log_density(z) for n in (30, 31, 32, 33, 34, 35)], axis=0)
        assert np.all(np.abs(np.diff(steps, axis=0)) < 0.2)
        assert np.all(np.diff(np.abs(np.diff(steps, axis=0)), axis=0) < 1e-3)


class TestLattice:
    @pytest.mark.parametrize("noises", LATTICE_MIXTURES, ids=str)
    def test_equals_convolved_probabilities(self, noises: dict[float, int]) -> None:
        law = lattice_laplace_sum(noises)
        last = int(20 * max(noises)) + 3
        k = np.unique(np.linspace(0, last, 25).astype(int))
        np.testing.assert_allclose(law.log_pmf(k), np.log(convolved(noises, last)[k]), rtol=0, atol=5e-12)
        assert np.array_equal(law.log_pmf(-k), law.log_pmf(k))

    @pytest.mark.parametrize("noises", LATTICE_MIXTURES, ids=str)
    def test_the_integral_alone_equals_convolved_probabilities(self, noises: dict[float, int]) -> None:
        rates, terms = 1 / np.array(list(noises), dtype=float), np.array(list(noises.values()), dtype=float)
        last = int(10 * max(noises)) + 3
        k = np.unique(np.linspace(0, last, 25).astype(int)).astype(float)
        expected = np.log(convolved(noises, last)[k.astype(int)]) + k * rates.min()
        np.testing.assert_allclose(excess_of_lattice_sum(rates, terms, k), expected, rtol=0, atol=5e-12)

    @pytest.mark.parametrize("noises", [{1: 2}, {0.1: 50, 2: 1}, {3: 2, 2.9: 2}], ids=str)
    def test_sums_to_one_with_its_variance(self, noises: dict[float, int]) -> None:
        law = lattice_laplace_sum(noises)
        k = np.arange(-400, 401)
        assert law.pmf(k).sum() == pytest.approx(1, abs=1e-12)
        assert (law.pmf(k) * k**2).sum() == pytest.approx(law.variance, rel=1e-11)

    def test_at_large_scales_it_is_the_continuous_density(self) -> None:
        z = np.array([0, 30_000, 2_000_000])
        discrete = lattice_laplace_sum({100_000: 2, 30_000: 3}).log_pmf(z)
        np.testing.assert_allclose(discrete, laplace_sum({100_000: 2, 30_000: 3}).log_density(z), rtol=0, atol=1e-8)

    def test_far_out_nothing_underflows(self) -> None:
        assert lattice_laplace_sum({1: 2}).log_pmf(10**6) == pytest.approx(
            -(10**6) + math.log(10**6) + 2 * math.log(math.tanh(0.5)), rel=1e-11
        )


class TestReading:
    def test_scales_that_are_one_double_are_merged_and_their_order_does_not_matter(self) -> None:
        law = laplace_sum({20: 2, Fraction(1, 10): 1, np.float64(0.1): 2})
        assert dict(zip(law.scales, law.terms, strict=True)) == {20.0: 2, 0.1: 3}
        assert law == laplace_sum({0.1: 3, 20.0: 2})

    @pytest.mark.parametrize("make", [laplace_sum, lattice_laplace_sum])
    @pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, True, "20", None])
    def test_a_scale_must_be_a_positive_number(self, make: object, scale: object) -> None:
        with pytest.raises(PrivacyError, match="a noise scale must be a number from"):
            make({scale: 1})  # type: ignore[operator]

    @pytest.mark.parametrize("count", [0, -1, 1.5, math.nan, True, "2", 2**60])
    def test_how_many_must_be_a_positive_whole_number(self, count: object) -> None:
        with pytest.raises(PrivacyError, match="a number of noises must be a whole number"):
            laplace_sum({20: count})  # type: ignore[dict-item]

    @pytest.mark.parametrize("noises", [{}, [(20, 2)], None, 20])
    def test_the_noises_must_be_a_mapping(self, noises: object) -> None:
        with pytest.raises(PrivacyError, match="must be a mapping"):
            laplace_sum(noises)  # type: ignore[arg-type]
