"""Read noise scales as exact fractions, and refuse those that 64-bit integers cannot hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from veilcube.curator.noise.kernel import LARGEST_TERM
from veilcube.errors import PrivacyError

Scale: TypeAlias = int | float | str | Fraction | Decimal
ScaleLike: TypeAlias = Scale | Sequence[Scale] | npt.NDArray[Any]

# Bounded digits and exponent, so that no text can ask for a number with millions of digits.
NUMBER_TEXT = re.compile(r"\s*[+-]?\d{1,400}(\.\d{0,400})?(/\d{1,400}|[eE][+-]?\d{1,3})?\s*")
HOW_TO_PASS = 'pass an int, a Fraction, a text such as "7/2" or a float'


@dataclass(frozen=True)
class Scales:
    """Scales t/s in lowest terms: one for all entries (``shape`` is None, arrays of length 1) or one per entry."""

    numerators: npt.NDArray[np.uint64]
    denominators: npt.NDArray[np.uint64]
    shape: tuple[int, ...] | None

    def between(self, start: int, stop: int) -> "Scales":
        """Return the scales of the entries from ``start`` up to ``stop``, counted in C order."""
        if self.shape is None:
            return self
        return Scales(self.numerators[start:stop], self.denominators[start:stop], (stop - start,))


def read_scales(scale: ScaleLike) -> Scales:
    """Read one scale, or a sequence or array of scales."""
    if isinstance(scale, np.ndarray) and scale.ndim > 0:
        return _read_array(scale)
    if isinstance(scale, Sequence) and not isinstance(scale, str | bytes):
        return _read_array(np.array(scale, dtype=object))
    exact = read_scale(scale[()] if isinstance(scale, np.ndarray) else scale)
    return _pack([exact], np.zeros(1, dtype=np.intp), shape=None)


def read_scale(scale: object) -> Fraction:
    """Read one scale exactly; a float counts as its shortest decimal text, so that .1 is 1/10."""
    exact = _exact_value(scale)
    if exact <= 0:
        raise PrivacyError(f"The scale of the noise is not above zero, but it must be: {HOW_TO_PASS} above 0.")
    if max(exact.numerator, exact.denominator) > LARGEST_TERM:
        raise PrivacyError(
            "The scale of the noise, as a fraction in lowest terms, has a numerator or denominator above 2^57, which "
            "exact 64-bit sampling cannot hold: round it up to a simpler fraction such as Fraction(1000, 3)."
        )
    return exact


def _exact_value(scale: object) -> Fraction:
    if isinstance(scale, Rational) and not isinstance(scale, bool):
        return Fraction(int(scale.numerator), int(scale.denominator))
    if isinstance(scale, str | float | np.floating | Decimal) and NUMBER_TEXT.fullmatch(str(scale)):
        try:
            return Fraction(str(scale))
        except (ValueError, ZeroDivisionError):
            pass  # such as "1.5/2" or "1/0": refused below with everything else that is not a number
    raise PrivacyError(f"The scale of the noise is not a finite number, but it must be one: {HOW_TO_PASS} above 0.")


def _read_array(entries: npt.NDArray[Any]) -> Scales:
    if entries.dtype.kind in "iu":
        if entries.size and not (entries.min() > 0 and entries.max() <= LARGEST_TERM):
            raise PrivacyError("Some scale of the noise is outside 1 to 2^57, which integer scales must not be.")
        numerators = entries.astype(np.uint64).ravel()
        return Scales(numerators, np.ones_like(numerators), entries.shape)
    if entries.dtype.kind == "f":
        distinct, which = np.unique(entries, return_inverse=True)
        return _pack([read_scale(entry) for entry in distinct], which.ravel(), entries.shape)
    # Long vectors repeat a few objects, which are told apart by identity: 0.1 means 1/10 but equals another fraction.
    objects = entries.ravel().tolist()
    positions: dict[int, int] = {}
    exact: list[Fraction] = []
    which = np.empty(len(objects), dtype=np.intp)
    for place, entry in enumerate(objects):
        if id(entry) not in positions:
            positions[id(entry)] = len(exact)
            exact.append(read_scale(entry))
        which[place] = positions[id(entry)]
    return _pack(exact, which, entries.shape)


def _pack(exact: list[Fraction], which: npt.NDArray[np.intp], shape: tuple[int, ...] | None) -> Scales:
    numerators = np.array([fraction.numerator for fraction in exact], dtype=np.uint64)
    denominators = np.array([fraction.denominator for fraction in exact], dtype=np.uint64)
    return Scales(numerators[which], denominators[which], shape)
