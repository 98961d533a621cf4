"""The discrete Gaussian law (Canonne, Kamath and Steinke 2020): mass, variance, tails and quantiles; no sampling.

Notation: s is the parameter sigma², Z the sum of exp(-x²/(2s)) over all integers x, V the variance of the law. By
Poisson's summation formula

    Z = sqrt(2·pi·s) · T,       T = sum over all integers k of exp(-2·pi²·s·k²),

and V = 2s²·(log Z)' in both forms. The first form is summed where s is small, the second elsewhere: each then needs a
few terms only, all of them positive, so that Z and V are right to rounding from s = 1/16 to 2^80.

For sums of such noise, K(z) = log E exp(z·X) is that of independent variables with two values each (Jacobi's triple
product, docs/proofs/discrete-gaussian.md, Theorem 3): with the odds u = exp(-(2n-1)/(2s)) and v_n = u/(1+u)²

    K(z) = K_s(z) = sum over n >= 1 of log(1 + 4·v_n·sinh²(z/2)) = s·z²/2 + K_r(2·pi·i·s·z),      r = 1/(4·pi²·s),

and again the first form serves where s is small and the second elsewhere.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import PrivacyError
from veilcube.system import Floats

Complexes: TypeAlias = NDArray[np.complex128]
RealOrComplex = TypeVar("RealOrComplex", Floats, Complexes)

# The range of the sampler.
SMALLEST_PARAMETER, LARGEST_PARAMETER = Fraction(1, 16), Fraction(2**80)
# At s = 1/2 either series has 17 digits by its fourth term.
_SERIES_MEET_AT = 0.5
_TERMS = np.arange(1, 8, dtype=np.float64)
# Tails are summed term by term up to this sigma; above, the Euler-Maclaurin formula is right to rounding.
_LARGEST_SUMMED_SIGMA = 512.0
# So many sigmas out, every probability is below the smallest double.
_SIGMAS_OUT = 39
# From here on the waves of K are below exp(-16·pi²/2), and of the cumulants below 1e-120.
_SMALLEST_WITHOUT_WAVES = 16.0
# Odds below exp(-40) are left out of K.
_DEPTH = 40.0


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
    family: ClassVar[Literal["gaussian"]] = "gaussian"
    is_joint: ClassVar[bool] = False
    in_block: ClassVar[bool] = False
    # The strip in which K is finite is the whole plane; for Laplace noise it ends at 1/scale.
    rate: ClassVar[float] = math.inf

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

    @property
    def before(self) -> Fraction | None:
        """The parameter of the noise whose place it takes: it takes the place of none."""
        return None

    @property
    def parameter(self) -> Fraction:
        """The exact number that tells the law among those of its family: sigma²."""
        return self.sigma_squared

    @property
    def charged(self) -> Fraction:
        """The parameter that a privacy event states for this noise: 1/(2·sigma²) is what it adds to a row's rho."""
        return self.sigma_squared

    @property
    def size(self) -> float:
        """What the noise is on average at most, regardless of its sign: sigma, since E|X| <= sqrt(V) <= sigma."""
        return math.sqrt(self._s)

    @property
    def laplace_scale(self) -> float:
        """The scale of continuous Laplace noise of variance sigma², by which noise of both families can be compared."""
        return math.sqrt(self._s / 2)

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

    @property
    def most_kurtosis(self) -> float:
        """1/V, which the excess kurtosis never exceeds: it is nearly zero where s is 1 or more.

        A sum of m terms whose bound is below 3/128 has a variance of 42 or more, so that its lattice does not show.
        """
        return 1 / self.variance

    def cumulants(self) -> tuple[float, float, float]:
        """The second, fourth and sixth cumulant (the odd ones are zero), right to rounding.

        The fourth and sixth vanish as s grows: for s >= 1/2 they are 2·(2·pi·s)⁴·exp(-2·pi²·s) and
        -2·(2·pi·s)⁶·exp(-2·pi²·s) to within 1%, so below 4e-13 and 6e-11 in size for s >= 2.
        """
        s = self._s
        if s < _SERIES_MEET_AT:
            return self.variance, *_higher_cumulants_of_pairs(s)
        if s >= _SMALLEST_WITHOUT_WAVES:
            return self.variance, 0.0, 0.0
        fourth, sixth = _higher_cumulants_of_pairs(_dual(s))
        return self.variance, (2 * math.pi * s) ** 4 * fourth, -((2 * math.pi * s) ** 6) * sixth

    def log_transform(self, z: RealOrComplex) -> RealOrComplex:
        """K(z), the logarithm of E exp(z·X), up to multiples of 2·pi·i."""
        s = self._s
        if s < _SERIES_MEET_AT:
            return _log_transform_of_pairs(s, np.sinh(z / 2) ** 2, float(np.abs(z.real).max(initial=0.0)))
        if np.iscomplexobj(z):
            # The period nearest to zero, in which the waves stay small.
            z = z - 2j * math.pi * np.round(z.imag / (2 * math.pi))
        smooth = s / 2 * z * z
        if s >= _SMALLEST_WITHOUT_WAVES:
            return smooth
        return smooth + _log_transform_of_pairs(_dual(s), -(np.sin(math.pi * s * z) ** 2), 2 * math.pi**2 * s)

    def decay(self, theta: Floats) -> Floats:
        """-log of the characteristic function, which does not underflow."""
        return np.asarray(-self.log_transform(np.asarray(1j * theta, dtype=np.complex128)).real)

    def characteristic(self, theta: ArrayLike) -> NDArray[np.float64]:
        """The characteristic function: real, positive and 2·pi-periodic."""
        return np.asarray(np.exp(-self.decay(np.asarray(theta, dtype=np.float64))))

    def tilted(self, c: Floats) -> tuple[Floats, Floats]:
        """Mean and variance K'(c), K''(c) of the law that is weighted by exp(c·x), for real c."""
        s = self._s
        if s < _SERIES_MEET_AT:
            mean, variance = _tilted_pairs(s, np.asarray(c, dtype=np.complex128))
            return mean.real, variance.real
        if s >= _SMALLEST_WITHOUT_WAVES:
            return np.asarray(s * c), np.full(np.shape(c), s)
        turn = 2j * math.pi * s
        mean, variance = _tilted_pairs(_dual(s), np.asarray(turn * c, dtype=np.complex128))
        return s * c + (turn * mean).real, s + (turn * turn * variance).real

    def tilted_step(self, c: Floats) -> Floats:
        """A number b for which that law's characteristic function is at most exp(-b(1 - cos theta)) in size: K''(c)."""
        return self.tilted(c)[1]

    def farthest_tilt(self, exponent: float) -> float:
        """A c by which c·K'(c) - K(c) has reached ``exponent``: where s·c is whole it is (s·c)²/(2s) exactly."""
        return math.ceil(math.sqrt(2 * self._s * exponent)) / self._s

    def to_json(self) -> dict[str, str]:
        """The law as plain data, the parameter as an exact ratio: its kind and its ``sigma_squared``."""
        return {"kind": self.kind, "sigma_squared": str(self.sigma_squared)}

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


@dataclass(frozen=True)
class BlockGaussian(DiscreteGaussian):
    """Noise of one level of nodes that was measured at once with all levels below it, which no decision looked at.

    All noise of such a block is independent: the name tells which measurements belong together.
    """

    kind: ClassVar[str] = "discrete-gaussian-in-a-block"
    in_block: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"{super().__str__()}, at once with the levels below it"


def log_of_one_plus(x: RealOrComplex) -> RealOrComplex:
    """log(1 + x) to the last digits of x near zero, which numpy's log1p loses where x is complex."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    square = x.real * (2 + x.real) + x.imag**2
    # Near zero of 1 + x its square has no digits left, but its size has.
    with np.errstate(divide="ignore"):
        size = np.where(square > -0.75, np.log1p(np.maximum(square, -0.75)) / 2, np.log(np.abs(1 + x)))
    return np.asarray(size + 1j * np.arctan2(x.imag, 1 + x.real))


def _dual(s: float) -> float:
    """The parameter of the waves."""
    return 1 / (4 * math.pi**2 * s)


def _pairs(s: float, reach: float) -> Floats:
    """Return v_n, the variance of each of two variables with the odds u_n, while u_n·exp(reach) is above exp(-40)."""
    n = np.arange(1, math.ceil(s * (_DEPTH + reach) + 0.5) + 1)
    odds = np.exp(-(2 * n - 1) / (2 * s))
    return np.asarray(odds / (1 + odds) ** 2)


def _higher_cumulants_of_pairs(s: float) -> tuple[float, float]:
    v = 2 * _pairs(s, 0.0)
    return float((v * (1 - 3 * v)).sum()), float((v * (1 - 15 * v + 30 * v * v)).sum())


def _log_transform_of_pairs(s: float, squared_sine: RealOrComplex, reach: float) -> RealOrComplex:
    """K_s(z) from sinh²(z/2), where the real part of z is at most ``reach``."""
    total = np.zeros_like(squared_sine)
    for v in _pairs(s, reach):
        total += log_of_one_plus(4 * v * squared_sine)
    return total


def _tilted_pairs(s: float, z: Complexes) -> tuple[Complexes, Complexes]:
    v = _pairs(s, float(np.abs(z.real).max(initial=0.0)))
    room = 1 + 4 * v * np.sinh(z / 2)[..., np.newaxis] ** 2
    means = 2 * v * np.sinh(z)[..., np.newaxis] / room
    variances = 2 * v * np.cosh(z)[..., np.newaxis] / room - means**2
    return means.sum(axis=-1), variances.sum(axis=-1)
