"""Epsilon as an exact fraction: ten charges of 0.1 spend a budget of 1 and not a hair more or less."""

from fractions import Fraction
from numbers import Rational, Real
from typing import TypeAlias

from veilcube.errors import PrivacyError

LARGEST_EPSILON = 10**9
SMALLEST_EPSILON = 1e-30
LONGEST_TEXT = 64
EpsilonLike: TypeAlias = int | float | str | Fraction


def read_epsilon(value: EpsilonLike) -> Fraction:
    """Return epsilon as the fraction that a person means: the float 0.1 is one tenth, ``"1/3"`` one third.

    >>> read_epsilon(0.1) * 10
    Fraction(1, 1)
    """
    wrong = PrivacyError("epsilon must be a finite number above 0, for example 1, 0.1 or '1/3'")
    epsilon = read_exact(value, SMALLEST_EPSILON, LARGEST_EPSILON, wrong)
    if epsilon <= 0:
        raise PrivacyError("epsilon must be above 0; small values such as 0.1 protect more, 1 is a common choice")
    return epsilon


def read_exact(value: object, smallest: float, largest: int, wrong: PrivacyError) -> Fraction:
    """Return the fraction that a person means by a number or a text, of at most ``largest``; raises ``wrong``.

    A text must not be closer to 0 than ``smallest``; with a ``smallest`` of 0 it may be 0. Whether the sign is right is
    for the caller to say.
    """
    if isinstance(value, bool):
        raise wrong
    try:
        if isinstance(value, Rational):
            exact = Fraction(int(value.numerator), int(value.denominator))
            if abs(exact) > largest:
                raise wrong
            return exact
        if isinstance(value, str):
            # A text such as 1e999999999 would take gigabytes to expand: no parameter needs more than a few digits.
            if len(value) > LONGEST_TEXT:
                raise wrong
            size = abs(float(Fraction(value) if "/" in value else float(value)))
            if not smallest <= size <= largest or (size == 0 and not _is_zero(value)):
                raise wrong
            return Fraction(value)
        if isinstance(value, Real) and abs(float(value)) <= largest:
            return Fraction(repr(float(value)))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise wrong from None
    raise wrong


def _is_zero(text: str) -> bool:
    """Whether a text that a float cannot tell from 0 is one: 1e-999999999 is none, and too long to expand."""
    return not any(int(digit) for digit in text.lower().partition("e")[0] if digit.isdecimal())


def write_fraction(value: Fraction) -> str:
    """Return a fraction as text that ``Fraction`` reads back exactly."""
    return f"{value.numerator}/{value.denominator}" if value.denominator != 1 else str(value.numerator)


def show_fraction(value: Fraction) -> str:
    """Return a fraction for people: a short decimal if it is one, else about six digits.

    >>> show_fraction(Fraction(1, 10)), show_fraction(Fraction(1, 3))
    ('0.1', '0.333333')
    """
    return format(float(value), ".6g")
