"""Exponentials and logarithms of fractions from their series, in fixed point: nothing that the package computes with.

Numbers are whole multiples of 2^-BITS, so both have an absolute error of a few hundred of them at most.
"""

from fractions import Fraction
from functools import cache

BITS = 1600
_ONE = 1 << BITS


def exp(value: Fraction) -> Fraction:
    """Return exp of a value of at most 5000 in size: the series of value / 2^40, squared forty times."""
    halvings, bits = 40, BITS + 200
    reduced = (value.numerator << bits) // (value.denominator << halvings)
    total, term, number = 1 << bits, 1 << bits, 1
    while term:
        term = (term * reduced >> bits) // number
        total += term
        number += 1
        if abs(term) <= 1:
            break
    for _ in range(halvings):
        total = total * total >> bits
    return Fraction(total, 1 << bits)


def log(value: Fraction) -> Fraction:
    """Return log of a value above 0: a power of two, and 2 artanh((m - 1) / (m + 1)) of what is left, near 1."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    rest = value / Fraction(2) ** exponent
    return exponent * _log_of_two() + 2 * _artanh((rest - 1) / (rest + 1))


@cache
def _log_of_two() -> Fraction:
    return 2 * _artanh(Fraction(1, 3))


def _artanh(value: Fraction) -> Fraction:
    power = (value.numerator << BITS) // value.denominator
    square, total, number = power * power >> BITS, 0, 1
    while abs(power) > 1:
        total += power // number
        power = power * square >> BITS
        number += 2
    return Fraction(total, _ONE)
