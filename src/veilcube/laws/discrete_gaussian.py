"""The discrete Gaussian law (Canonne, Kamath and Steinke 2020): mass, variance, tails and quantiles; no sampling.

Notation: s is the parameter sigma², Z the sum of exp(-x²/(2s)) over all integers x, V the variance of the law. By
Poisson's summation formula

    Z = sqrt(2·pi·s) · T,       T = sum over all integers k of exp(-2·pi²·s·k²),

and V = 2s²·(log Z)' in both forms. The first form is summed where s is small, the second elsewhere: each then needs a
few terms only, all of them positive, so that Z and V are right to rounding from s = 1/16 to 2^80.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import PrivacyError

# The range of the sampler.
SMALLEST_PARAMETER, LARGEST_PARAMETER = Fraction(1, 16), Fraction(2**80)
# At s = 1/2 either series has 17 digits by its fourth term.
_SERIES_MEET_AT = 0.5
_TERMS = np.arange(1, 8, dtype=np.float64)
# Tails are summed term by term up to this sigma; above, the Euler-Maclaurin formula is right to rounding.
_LARGEST_SUMMED_SIGMA = 512.0
# So many sigmas out, every probability is below the smallest double.
_SIGMAS_OUT = 39


@dataclass(frozen=True)
class DiscreteGaussian:
    """The law P(x) = exp(-x²/(2s))/Z on the integers, with the exact rational parameter s = sigma².

    Independent noise of this law on integer values with L2 sensitivity d is d²/(2s)-zero-concentrated differentially
    private (docs/proofs/discrete-gaussian.md, Theorem 1). Its variance is at most s (Theorem 2), and far below where s
    is below 1/4.

    >>> noise = DiscreteGaussian(Fraction(100))
    >>> noise.variance, noise.tail(20), noise.quantile(0.975)
    (100.0, 0.0255..., 20)
    >>> print(noise)
    discrete Gaussian noise of parameter 100
    """

    sigma_squared: Fraction
    kind: ClassVar[str] = "discrete-gaussian"

    def __post_init__(self) -> None:
        if isinstance(self.sigma_squared, bool) or not isinstance(self.sigma_squared, int | Fraction):
            raise PrivacyError(
                f"the parameter of Gaussian noise must be an exact number, not {type(self.sigma_squared).__name__}: "
                "give a Fraction or an int"
            )
        if not SMALLEST_PARAMETER <= self.sigma_squared <= LARGEST_PARAMETER:
            raise PrivacyError(
                "the parameter of Gaussian noise must be from 1/16 to 2^80: choose another rho or sensitivity"
            )
        object.__setattr__(self, "sigma_squared", Fraction(self.sigma_squared))

    def __str__(self) -> str:
        return f"discrete Gaussian noise of parameter {self.sigma_squared}"

    @cached_property
    def _s(self) -> float:
        return float(self.sigma_squared)

    @cached_property
    def log_normaliser(self) -> float:
        """The logarithm of Z, the sum of exp(-x²/(2s)) over all integers."""
        s = self._s
        if s < _SERIES_MEET_AT:
            return math.log1p(2 * float(np.exp(-_TERMS * _TERMS / (2 * s)).sum()))
        waves = float(np.exp(-2 * math.pi**2 * s * _TERMS * _TERMS).sum())
        return math.log(2 * math.pi * s) / 2 + math.log1p(2 * waves)

    @cached_property
    def variance(self) -> float:
        """V, the exact variance: below s, by a factor of 0.011 at s = 1/16 and by 2e-7 of it at s = 1."""
        s, squares = self._s, _TERMS * _TERMS
        if s < _SERIES_MEET_AT:
            weights = np.exp(-squares / (2 * s))
            return float(2 * (squares * weights).sum() / (1 + 2 * weights.sum()))
        waves = np.exp(-2 * math.pi**2 * s * squares)
        return float(s * (1 - 8 * math.pi**2 * s * (squares * waves).sum() / (1 + 2 * waves.sum())))

    @property
    def stddev(self) -> float:
        """The square root of the variance."""
        return math.sqrt(self.variance)

    def log_pmf(self, x: ArrayLike) -> NDArray[np.float64]:
        """The natural logarithm of the probability of each integer of ``x``; it never underflows."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(-x * x / (2 * self._s) - self.log_normaliser)

    def pmf(self, x: ArrayLike) -> NDArray[np.float64]:
        """The probability of each integer of ``x``."""
        return np.asarray(np.exp(self.log_pmf(x)))

    def tail(self, k: int) -> float:
        """P(X >= k), right to about 12 digits however small it is, down to the smallest double."""
        if k <= 0:
            return 1 - self.tail(1 - k)
        sigma = math.sqrt(self._s)
        if k > _SIGMAS_OUT * (sigma + 1):
            return 0.0
        if sigma <= _LARGEST_SUMMED_SIGMA:
            terms = self.pmf(np.arange(k, int(_SIGMAS_OUT * (sigma + 1)) + 1))
            return float(terms[::-1].sum())
        return self._smooth_tail(k, sigma)

    def _smooth_tail(self, k: int, sigma: float) -> float:
        """Sum the masses from k on as an integral from a = k - 1/2 on, with its corrections f'(a)/24 - 7·f'''(a)/5760.

        That is the Euler-Maclaurin formula of midpoints; f', f''' are in units of the mass f(a), and z is a/sigma.
        """
        z = (k - 0.5) / sigma
        density = math.exp(-z * z / 2 - self.log_normaliser)
        first, third = -z / sigma, (3 * z - z**3) / sigma**3
        integral = sigma * math.sqrt(2 * math.pi) * float(scipy.special.ndtr(-z)) * math.exp(-self.log_normaliser)
        return integral + density * (first / 24 - 7 * third / 5760)

    def quantile(self, level: float) -> int:
        """The smallest integer k with P(X <= k) >= level, for a level above 0 and below 1."""
        if not 0 < level < 1:
            raise PrivacyError("the level of a quantile must be above 0 and below 1: correct it")
        farthest = int(_SIGMAS_OUT * (math.sqrt(self._s) + 1)) + 1
        low, high = -farthest - 1, farthest
        while high - low > 1:
            middle = (low + high) // 2
            # The tail on the side of the level, which is the small one and has all its digits.
            is_reached = self.tail(-middle) >= level if level <= 1 / 2 else self.tail(middle + 1) <= 1 - level
            low, high = (low, middle) if is_reached else (middle, high)
        return high
