"""Exact discrete Laplace noise with rational scales: the caller's side of the compiled sampler.

Scales are read as exact fractions, and those that 64-bit integers cannot hold are refused.

Proved in docs/proofs/discrete-laplace.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from veilcube.curator.sampling.loops import LARGEST_TERM, fill_laplace
from veilcube.curator.sampling.source import RandomWords, Words
from veilcube.curator.sampling.vectors import (
    NumberLike,
    Size,
    append_words,
    distinct_entries,
    draw_vector,
    entries_of,
    positive_number,
)
from veilcube.errors import PrivacyError
from veilcube.system import Integers

PARAMETER = "scale"
# 256 KiB: large enough that drawing a key costs little beside it, small enough to stay in the processor's cache.
WORDS_PER_REFILL = 1 << 15
# A sample uses 6 to 7 words on average; asking for a little more saves small draws a second refill.
WORDS_PER_SAMPLE = 8
SPARE_WORDS = 64


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


def read_scales(scale: NumberLike) -> Scales:
    """Read one scale, or a sequence or array of scales."""
    entries = entries_of(scale)
    if entries is not None:
        return _read_array(entries)
    exact = read_scale(scale[()] if isinstance(scale, np.ndarray) else scale)
    return _pack([exact], np.zeros(1, dtype=np.intp), shape=None)


def read_scale(scale: object) -> Fraction:
    """Read one scale exactly; a float counts as its shortest decimal text, so that .1 is 1/10."""
    exact = positive_number(scale, PARAMETER)
    if max(exact.numerator, exact.denominator) > LARGEST_TERM:
        raise PrivacyError(
            "The scale of the noise, as a fraction in lowest terms, has a numerator or denominator above 2^57, which "
            "exact 64-bit sampling cannot hold: round it up to a simpler fraction such as Fraction(1000, 3)."
        )
    return exact


def _read_array(entries: npt.NDArray[Any]) -> Scales:
    if entries.dtype.kind in "iu":
        if entries.size and not (entries.min() > 0 and entries.max() <= LARGEST_TERM):
            raise PrivacyError("Some scale of the noise is outside 1 to 2^57, which integer scales must not be.")
        numerators = entries.astype(np.uint64).ravel()
        return Scales(numerators, np.ones_like(numerators), entries.shape)
    distinct, which = distinct_entries(entries)
    return _pack([read_scale(entry) for entry in distinct], which, entries.shape)


def _pack(exact: list[Fraction], which: npt.NDArray[np.intp], shape: tuple[int, ...] | None) -> Scales:
    numerators = np.array([fraction.numerator for fraction in exact], dtype=np.uint64)
    denominators = np.array([fraction.denominator for fraction in exact], dtype=np.uint64)
    return Scales(numerators[which], denominators[which], shape)


def discrete_laplace(scale: NumberLike, size: Size = None, *, source: RandomWords | None = None) -> Integers:
    """Draw integers with P(x) = (1 - q)/(1 + q)·q^|x|, q = exp(-1/scale), exactly (Canonne, Kamath, Steinke 2020).

    ``scale`` is one int, Fraction, text such as "7/2" or float (taken by its shortest decimal text, so .1 is 1/10),
    or a sequence or array of them with one scale per entry; ``size`` is then its length or shape, or left out. In
    lowest terms, numerator and denominator are at most 2^57. A sample outside 64-bit integers (probability below
    2^-91) raises OverflowError, never wraps. Random words come from the operating system through ``SystemWords``.

    >>> noise = discrete_laplace("7/2", (2, 3))
    >>> noise.shape, noise.dtype
    ((2, 3), dtype('int64'))
    """
    return draw_vector(read_scales(scale), size, PARAMETER, source, _fill)


def _fill(samples: Integers, scales: Scales, source: RandomWords) -> None:
    """Fill the samples, appending words to the tape whenever it ends inside a sample.

    The words that the unfinished sample has read stay in front of the new ones and are read again: what is drawn is
    a function of the whole tape alone, not of how it was cut, so cutting it biases nothing.
    """
    filled = used = 0
    tape: Words = np.empty(0, dtype=np.uint64)
    while filled < samples.size:
        count = min(WORDS_PER_REFILL, WORDS_PER_SAMPLE * (samples.size - filled) + SPARE_WORDS)
        tape = append_words(tape, used, source.words(count), count)
        filled, used = fill_laplace(samples, filled, scales.numerators, scales.denominators, tape)
    tape.fill(0)
