"""Zero-concentrated differential privacy: what a rho promises as (epsilon, delta) pairs, and which rho a pair allows.

For every order alpha > 1 a rho-zCDP mechanism is (epsilon, delta)-differentially private with

    log delta = (alpha - 1) (alpha rho - epsilon + log(1 - 1/alpha)) - log alpha

(Canonne, Kamath and Steinke 2020, Proposition 12; docs/proofs/zcdp.md). So ANY order gives true statements: which one
is best is searched for with rounded numbers, and only then the formula is evaluated. There all is exact fractions but
logarithms and one exponential, which ``decimal`` rounds correctly and which are moved one unit in the last place to
the safe side: delta and epsilon are never told too small, rho never too large.
"""

from collections.abc import Callable
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction
from functools import lru_cache

from veilcube.errors import PrivacyError
from veilcube.privacy.budget import LARGEST_EPSILON, EpsilonLike, read_exact

LARGEST_RHO = 10**9
SMALLEST_RHO = Fraction(1, 10**80)
# Smaller deltas are told as this one; nobody's promise depends on them.
SMALLEST_DELTA = Fraction(1, 10**300)


def _context(digits: int, rounding: str) -> Context:
    """Return a way of rounding that takes nothing over from the program's own."""
    traps = [InvalidOperation, DivisionByZero, Overflow]
    return Context(prec=digits, rounding=rounding, Emin=-999_999, Emax=999_999, clamp=0, traps=traps)


_DIGITS = 120
_NEAREST, _UP, _DOWN = (_context(_DIGITS, rounding) for rounding in (ROUND_HALF_EVEN, ROUND_CEILING, ROUND_FLOOR))
# Results have few digits, so that ledgers stay short. A rho has fewer than what is told of it, and gives a hair more
# away: then delta_of and epsilon_for of it stay within the pair that it was made for.
_DIGITS_TOLD, _DIGITS_OF_RHO, _HAIR = 24, 18, Fraction(1, 10**20)
# The order less one lies between these, or its best value is beyond what any of the limits above asks for.
_LEAST_STEP, _LARGEST_STEP = Decimal("1e-500"), Decimal("1e100")
_CLOSE = Decimal("1.00000000000000000000000001")
_DIGITS_OF_ORDER = 30


def read_delta(value: EpsilonLike) -> Fraction:
    """Return delta as the fraction that a person means; refuses what is no probability above 0 and below 1.

    >>> read_delta("1e-9") == Fraction(1, 10**9)
    True
    """
    wrong = PrivacyError("delta must be a number from 1e-300 to below 1, for example 1e-9 or '1/1000000'")
    delta = read_exact(value, 0.0, LARGEST_EPSILON, wrong)
    if delta == 0:
        raise PrivacyError("delta=0 is pure differential privacy, which epsilon alone asks for: leave delta out")
    if delta >= 1:
        raise PrivacyError("delta must be below 1, for a delta of 1 allows everything; 1e-9 is a common choice")
    if delta < SMALLEST_DELTA:
        raise wrong
    return delta


def read_rho(value: EpsilonLike) -> Fraction:
    """Return rho as the fraction that a person means: the float 0.1 is one tenth."""
    wrong = PrivacyError("rho must be a finite number above 0, from 1e-80 to 1e9, for example 0.1 or '1/8'")
    rho = read_exact(value, float(SMALLEST_RHO), LARGEST_RHO, wrong)
    if rho < SMALLEST_RHO:
        raise wrong
    return rho


def pure_rho(epsilon: EpsilonLike) -> Fraction:
    """Return the rho that an epsilon-differentially private mechanism costs: epsilon²/2, exactly.

    >>> pure_rho("1/2")
    Fraction(1, 8)
    """
    return _read_epsilon(epsilon) ** 2 / 2


def pure_epsilon_within(rho: EpsilonLike) -> Fraction:
    """Return the largest epsilon of 18 digits whose pure promise costs no more than rho: sqrt(2 rho), rounded down.

    >>> pure_epsilon_within("1/8")
    Fraction(1, 2)
    """
    cost = read_rho(rho)
    root = Fraction(_NEAREST.sqrt(_decimal(2 * cost)))
    nearest = _rounded(root, ROUND_HALF_EVEN, _DIGITS_OF_RHO)
    return nearest if nearest**2 <= 2 * cost else _rounded(root * (1 - _HAIR), ROUND_FLOOR, _DIGITS_OF_RHO)


def delta_of(rho: EpsilonLike, epsilon: EpsilonLike) -> Fraction:
    """Return the least delta for which every rho-zCDP mechanism is known to be (epsilon, delta)-private, rounded up."""
    cost, bound = read_rho(rho), _read_epsilon(epsilon)
    price, limit = _decimal(cost), _decimal(bound)
    step = _best_step(lambda t: (1 + 2 * t) * price - limit + _log(t / (1 + t)))
    return _delta_at(step, cost, bound)


def epsilon_for(rho: EpsilonLike, delta: EpsilonLike) -> Fraction:
    """Return the least epsilon for which every rho-zCDP mechanism is known to be (epsilon, delta)-private, rounded up.

    >>> round(float(epsilon_for("0.1", "1e-9")), 4)
    2.7155
    """
    return _epsilon_for(read_rho(rho), read_delta(delta))


@lru_cache(maxsize=1024)
def _epsilon_for(cost: Fraction, chance: Fraction) -> Fraction:
    price, log_delta = _decimal(cost), _log(_decimal(chance))
    step = _best_step(lambda t: t * t * price + _log(1 + t) + log_delta)
    alpha = 1 + step
    found = alpha * cost + _log_up(step / alpha) - (_log_down(alpha) + _log_down(chance)) / step
    return _rounded(max(found, Fraction(0)), ROUND_CEILING, _DIGITS_TOLD)


def rho_for(epsilon: EpsilonLike, delta: EpsilonLike) -> Fraction:
    """Return the largest rho whose mechanisms are all known to be (epsilon, delta)-private, rounded down."""
    return _rho_for(_read_epsilon(epsilon), read_delta(delta))


@lru_cache(maxsize=1024)
def _rho_for(bound: Fraction, chance: Fraction) -> Fraction:
    limit, log_delta = _decimal(bound), _log(_decimal(chance))
    step = _best_step(lambda t: t * t * (limit - _log(t / (1 + t))) + (1 + 2 * t) * (_log(1 + t) + log_delta))
    alpha = 1 + step
    found = (bound - _log_up(step / alpha) + (_log_down(alpha) + _log_down(chance)) / step) / alpha
    if found * (1 - _HAIR) <= SMALLEST_RHO:
        raise PrivacyError("epsilon and delta are so small that no rho of at least 1e-80 stays within them; raise one")
    return _rounded(min(found * (1 - _HAIR), Fraction(LARGEST_RHO)), ROUND_FLOOR, _DIGITS_OF_RHO)


def _read_epsilon(value: EpsilonLike) -> Fraction:
    """Return epsilon, which may be 0 here: then delta bounds every change of a probability."""
    wrong = PrivacyError("epsilon must be a finite number of at least 0, for example 1, 0.1 or '1/3'")
    epsilon = read_exact(value, 0.0, LARGEST_EPSILON, wrong)
    if epsilon < 0:
        raise wrong
    return epsilon


def _best_step(slope: Callable[[Decimal], Decimal]) -> Fraction:
    """Return alpha - 1 where ``slope``, which is below 0 on its left and above 0 on its right, changes its sign."""
    low, high = _LEAST_STEP, _LARGEST_STEP
    with localcontext(_NEAREST):
        while high > low * _CLOSE:
            middle = (low * high).sqrt()
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return Fraction(_context(_DIGITS_OF_ORDER, ROUND_HALF_EVEN).plus(low))


def _delta_at(step: Fraction, rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return the delta that the order 1 + step gives, rounded up."""
    alpha = 1 + step
    exponent = step * (alpha * rho - epsilon + _log_up(step / alpha)) - _log_down(alpha)
    if exponent >= 0:
        return Fraction(1)
    if exponent <= _log_down(SMALLEST_DELTA):
        return SMALLEST_DELTA
    found = _NEAREST.exp(_UP.divide(exponent.numerator, exponent.denominator))
    return min(_rounded(Fraction(_UP.next_plus(found)), ROUND_CEILING, _DIGITS_TOLD), Fraction(1))


def _decimal(value: Fraction) -> Decimal:
    return _NEAREST.divide(value.numerator, value.denominator)


def _log(value: Decimal) -> Decimal:
    return _NEAREST.ln(value)


def _log_up(value: Fraction) -> Fraction:
    """Return a fraction that is no smaller than the logarithm; that of 1 is exact."""
    found = _NEAREST.ln(_UP.divide(value.numerator, value.denominator))
    return Fraction(_UP.next_plus(found)) if found else Fraction(0)


def _log_down(value: Fraction) -> Fraction:
    """Return a fraction that is no larger than the logarithm; that of 1 is exact."""
    found = _NEAREST.ln(_DOWN.divide(value.numerator, value.denominator))
    return Fraction(_DOWN.next_minus(found)) if found else Fraction(0)


def _rounded(value: Fraction, way: str, digits: int) -> Fraction:
    """Return the nearest fraction of so many decimal digits above or below a value."""
    return Fraction(_context(digits, way).divide(value.numerator, value.denominator))
