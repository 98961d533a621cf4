"""The law of a sum of independent Laplace noises of several scales: its density, and on the integers its probabilities.

Symbols: S = Σ_j (n_j noises of scale b_j), z the distance from zero, w = z/b. There are three ways to the density, each
used where it is accurate to 1e-12:

* one scale, few terms: f_n(z) = exp(-w)/b · Σ_k (n-1+k)! / ((n-1)! k! (n-1-k)! 2^(n+k)) · w^(n-1-k), a finite sum of
  positive numbers;
* m noises of scale b1 and one of scale b2, the scales apart and m small: G_m = (b1² f_m - b2² G_{m-1})/(b1² - b2²) from
  partial fractions, with G_0 the density of one noise of scale b2 (on the integers with variances for squared scales);
* everything else: the integral of the moment generating function along a contour (``laws/contour_integral.py``).

Everything is kept as the *excess*, the logarithm of the density plus z/b for the largest scale b. It grows only like
log z, so nothing underflows and the huge exponents of distant points can be cancelled exactly by who adds them up.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral, Real
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from veilcube.errors import PrivacyError
from veilcube.laws.contour_integral import excess_of_lattice_sum, excess_of_sum
from veilcube.laws.noise import LARGEST_SCALE, SMALLEST_SCALE
from veilcube.system import Floats

# Below this scale one noise differs from zero with a probability below 1e-27.
SMALLEST_LATTICE_SCALE = 1 / 64
MOST_TERMS = 2**53
_MOST_TERMS_IN_CLOSED_FORM = 32
_MOST_TERMS_IN_RECURSION = 12
# The recursion multiplies rounding by at most 2^m when one squared scale is at least twice the other, and its powers of
# w stay in the range of a double up to this distance.
_LEAST_RATIO_OF_SQUARES = 2.0
_FARTHEST_IN_RECURSION = 1e20


class NoiseSum(Protocol):
    """What an estimator needs of a sum of noises."""

    @property
    def largest_scale(self) -> float:
        """The scale of the tail exp(-z/b)."""

    @property
    def variance(self) -> float:
        """The variance of the sum."""

    def log_excess(self, distances: Floats) -> Floats:
        """Log density plus z/b at each distance z >= 0."""


@dataclass(frozen=True)
class _NoiseSum(ABC):
    """terms[j] independent noises of scale scales[j]: the choice of method, the same on the line and on the integers.

    The moment generating function is Π_j (1 - q_j y)^-n_j, with q = b² and y = s² on the line, and with q the variance
    and y = cosh s - 1 on the integers; the partial fractions of both are the same.
    """

    scales: tuple[float, ...]
    terms: tuple[int, ...]

    @cached_property
    def largest_scale(self) -> float:
        """The scale of the tail."""
        return max(self.scales)

    def log_excess(self, distances: Floats) -> Floats:
        """Log density (or probability) plus z/b at each distance z >= 0, for the largest scale b."""
        if len(self.scales) == 1 and self.terms[0] <= _MOST_TERMS_IN_CLOSED_FORM:
            return self._one_scale_excess(self.scales[0], self.terms[0], distances)
        if self._is_recursion_stable(distances):
            return self._recursion_excess(distances)
        return self._integrated_excess(distances)

    def _log_law(self, z: ArrayLike) -> Floats:
        distances = np.abs(np.asarray(z, dtype=np.float64))
        return np.asarray(self.log_excess(distances) - distances / self.largest_scale)

    def _is_recursion_stable(self, distances: Floats) -> bool:
        if len(self.scales) != 2 or 1 not in self.terms or max(self.terms) > _MOST_TERMS_IN_RECURSION:
            return False
        smaller, larger = sorted(map(self._q, self.scales))
        near = _FARTHEST_IN_RECURSION * min(self.scales)
        return larger >= _LEAST_RATIO_OF_SQUARES * smaller and bool(np.all(distances <= near))

    def _recursion_excess(self, distances: Floats) -> Floats:
        """Log of exp(z/b)·G_m for m noises of scale b1 and a single one of scale b2, b the larger."""
        single = self.terms.index(1)
        b2, b1, count = self.scales[single], self.scales[1 - single], self.terms[1 - single]
        q1, q2 = self._q(b1), self._q(b2)

        def equal_scales(scale: float, m: int) -> Floats:
            steeper = max(0.0, 1 / scale - 1 / self.largest_scale)
            return np.asarray(np.exp(self._one_scale_excess(scale, m, distances) - steeper * distances))

        density = equal_scales(b2, 1)
        for m in range(1, count + 1):
            density = (q1 * equal_scales(b1, m) - q2 * density) / (q1 - q2)
        return np.asarray(np.log(density))

    @staticmethod
    @abstractmethod
    def _q(scale: float) -> float:
        """What one noise puts into the moment generating function."""

    @staticmethod
    @abstractmethod
    def _one_scale_excess(scale: float, count: int, distances: Floats) -> Floats:
        """The excess of ``count`` noises of one scale, by the closed form."""

    @abstractmethod
    def _integrated_excess(self, distances: Floats) -> Floats:
        """The excess by the contour integral, which is right for all scales and terms."""


@dataclass(frozen=True)
class LaplaceSum(_NoiseSum):
    """The sum of terms[j] independent Laplace noises of scale scales[j]; ``laplace_sum`` makes one from a mapping.

    >>> round(float(laplace_sum({20: 2}).density(7.5)), 10)
    0.0118127845
    """

    @cached_property
    def variance(self) -> float:
        """Σ_j 2 n_j b_j²."""
        return math.fsum(2 * n * b * b for b, n in zip(self.scales, self.terms, strict=True))

    def log_density(self, z: ArrayLike) -> Floats:
        """The natural logarithm of the density at each z; it never underflows."""
        return self._log_law(z)

    def density(self, z: ArrayLike) -> Floats:
        """The density at each z."""
        return np.asarray(np.exp(self._log_law(z)))

    @staticmethod
    def _q(scale: float) -> float:
        return scale * scale

    @staticmethod
    def _one_scale_excess(scale: float, count: int, distances: Floats) -> Floats:
        """log(Σ_k c_k w^(n-1-k)), as (1+w)^(n-1) Σ_k c_k t^(n-1-k) (1-t)^k with t = w/(1+w): no power leaves [0, 1]."""
        if count == 1:
            return np.full(distances.shape, -math.log(2 * scale))
        w = distances / scale
        away, near = w / (1 + w), 1 / (1 + w)
        power = np.ones(w.shape)
        total = np.zeros(w.shape)
        for coefficient in _coefficients(count):
            total = total * away + coefficient * power
            power = power * near
        return np.asarray((count - 1) * np.log1p(w) + np.log(total / scale))

    def _integrated_excess(self, distances: Floats) -> Floats:
        return excess_of_sum(np.array(self.scales), np.array(self.terms, dtype=np.float64), distances)


@dataclass(frozen=True)
class LatticeLaplaceSum(_NoiseSum):
    """The sum of terms[j] independent discrete Laplace noises of scale scales[j], a law on the integers."""

    @cached_property
    def variance(self) -> float:
        """Σ_j n_j / (2 sinh²(1/(2 b_j)))."""
        return math.fsum(n * self._q(b) for b, n in zip(self.scales, self.terms, strict=True))

    def log_pmf(self, k: ArrayLike) -> Floats:
        """The natural logarithm of the probability of each integer of ``k``; it never underflows."""
        return self._log_law(k)

    def pmf(self, k: ArrayLike) -> Floats:
        """The probability of each integer of ``k``."""
        return np.asarray(np.exp(self._log_law(k)))

    @staticmethod
    def _q(scale: float) -> float:
        return 1 / (2 * math.sinh(0.5 / scale) ** 2)

    @staticmethod
    def _one_scale_excess(scale: float, count: int, distances: Floats) -> Floats:
        """log(tanh(1/2b)^n Σ_i C(n-1+i, i) C(k+n-1, n-1-i) ρ^i), ρ = p²/(1-p²), p = exp(-1/b): all terms positive.

        The sum is Euler's and Pfaff's transformation of the convolution of two negative binomial laws; it is divided by
        (k + n + ρ)^(n-1) so that no factor leaves [0, 1].
        """
        rho = 1 / math.expm1(2 / scale)
        size = distances + count + rho
        choose = np.ones(distances.shape)
        total = np.zeros(distances.shape)
        for chosen in range(count):
            i = count - 1 - chosen
            total += math.comb(count - 1 + i, i) * choose * (rho / size) ** i
            choose = choose * ((distances + i) / (chosen + 1) / size)
        return np.asarray(count * math.log(math.tanh(0.5 / scale)) + (count - 1) * np.log(size) + np.log(total))

    def _integrated_excess(self, distances: Floats) -> Floats:
        return excess_of_lattice_sum(1 / np.array(self.scales), np.array(self.terms, dtype=np.float64), distances)


def laplace_sum(noises: Mapping[float, int]) -> LaplaceSum:
    """Return the law of a sum of Laplace noises, given as ``{scale: how many, ...}``."""
    return LaplaceSum(*_read(noises, float(SMALLEST_SCALE)))


def lattice_laplace_sum(noises: Mapping[float, int]) -> LatticeLaplaceSum:
    """Return the law of a sum of discrete Laplace noises, given as ``{scale: how many, ...}``."""
    return LatticeLaplaceSum(*_read(noises, SMALLEST_LATTICE_SCALE))


def _read(noises: Mapping[float, int], smallest: float) -> tuple[tuple[float, ...], tuple[int, ...]]:
    if not isinstance(noises, Mapping) or not noises:
        raise PrivacyError("the noises of a sum must be a mapping such as {20: 2}, from scale to how many: name one")
    merged: dict[float, int] = {}
    for scale, count in noises.items():
        if isinstance(scale, bool) or not isinstance(scale, Real) or not smallest <= scale <= LARGEST_SCALE:
            raise PrivacyError(
                f"a noise scale must be a number from {smallest:.3g} to 2^128, unlike one of these: correct it"
            )
        if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count <= MOST_TERMS:
            raise PrivacyError(
                "a number of noises must be a whole number from 1 to 2^53, unlike one of these: correct it"
            )
        merged[float(scale)] = merged.get(float(scale), 0) + int(count)
    scales = tuple(sorted(merged))
    return scales, tuple(merged[scale] for scale in scales)


@lru_cache(maxsize=_MOST_TERMS_IN_CLOSED_FORM)
def _coefficients(count: int) -> tuple[float, ...]:
    """c_k = (n-1+k)! / ((n-1)! k! (n-1-k)! 2^(n+k)) for k = 0..n-1."""
    return tuple(math.comb(count - 1 + k, k) / math.factorial(count - 1 - k) / 2.0 ** (count + k) for k in range(count))
