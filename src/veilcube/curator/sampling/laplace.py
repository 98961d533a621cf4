"""Exact discrete Laplace noise with rational scales: the caller's side of the compiled sampler.

Scales are read as exact fractions, and those that 64-bit integers cannot hold are refused.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Rational
from operator import index
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from veilcube.curator.sampling.loops import LARGEST_TERM, fill_laplace
from veilcube.curator.sampling.source import RandomWords, SystemWords, Words
from veilcube.errors import PrivacyError
from veilcube.system import Integers, require_memory

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


# 256 KiB: large enough that drawing a key costs little beside it, small enough to stay in the processor's cache.
WORDS_PER_REFILL = 1 << 15
# A sample uses 6 to 7 words on average; asking for a little more saves small draws a second refill.
WORDS_PER_SAMPLE = 8
SPARE_WORDS = 64
THREADS = 2
SAMPLES_WORTH_A_THREAD = 1 << 15
# Fewer fit everywhere, and asking how much memory there is takes longer than drawing a few.
SAMPLES_WORTH_A_CHECK = 1 << 20


def discrete_laplace(
    scale: ScaleLike, size: int | tuple[int, ...] | None = None, *, source: RandomWords | None = None
) -> Integers:
    """Draw integers with P(x) = (1 - q)/(1 + q)·q^|x|, q = exp(-1/scale), exactly (Canonne, Kamath, Steinke 2020).

    ``scale`` is one int, Fraction, text such as "7/2" or float (taken by its shortest decimal text, so .1 is 1/10),
    or a sequence or array of them with one scale per entry; ``size`` is then its length or shape, or left out. In
    lowest terms, numerator and denominator are at most 2^57. A sample outside 64-bit integers (probability below
    2^-91) raises OverflowError, never wraps. Random words come from the operating system through ``SystemWords``.

    >>> noise = discrete_laplace("7/2", (2, 3))
    >>> noise.shape, noise.dtype
    ((2, 3), dtype('int64'))
    """
    scales = read_scales(scale)
    if source is not None and not isinstance(source, RandomWords):
        raise PrivacyError("A source of random words has a method words(count); leave it out for the system's.")
    shape = _shape_of(size, scales)
    count = math.prod(shape)
    if count > SAMPLES_WORTH_A_CHECK:
        require_memory(8 * count, f"drawing {count:,} samples of noise", "draw fewer at a time")
    samples = np.empty(count, dtype=np.int64)
    if source is not None or samples.size < THREADS * SAMPLES_WORTH_A_THREAD:
        _fill(samples, scales, SystemWords() if source is None else source)
    else:
        fill_in_threads(_fill, _split(samples, scales))
    return samples.reshape(shape)


def fill_in_threads(
    fill: Callable[[Integers, Scales, RandomWords], None], parts: Iterable[tuple[Integers, Scales]]
) -> None:
    """Fill each part in a thread with random words of its own; the parts share no memory that is written."""
    with ThreadPoolExecutor(THREADS) as pool:
        tasks = [pool.submit(fill, *part, SystemWords()) for part in parts]
    for task in tasks:
        task.result()  # raises what the thread raised


def _shape_of(size: int | tuple[int, ...] | None, scales: Scales) -> tuple[int, ...]:
    if size is None:
        return scales.shape or ()
    try:
        shape = tuple(index(length) for length in size) if isinstance(size, tuple) else (index(size),)
    except TypeError:
        raise PrivacyError("The size of the noise must be a whole number or a tuple of whole numbers.") from None
    if min(shape, default=0) < 0:
        raise PrivacyError("The size of the noise is negative: pass how many samples to draw, 0 or more.")
    if scales.shape is not None and shape != scales.shape:
        raise PrivacyError(
            f"The size of the noise is {shape} but there are scales for {scales.shape}: pass one scale for each "
            "entry, or leave the size out."
        )
    return shape


def _split(samples: Integers, scales: Scales) -> Iterator[tuple[Integers, Scales]]:
    """Cut the work into one part for each thread."""
    cuts = [samples.size * part // THREADS for part in range(THREADS + 1)]
    for start, stop in pairwise(cuts):
        yield samples[start:stop], scales.between(start, stop)


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


def append_words(tape: Words, used: int, fresh: Words, count: int) -> Words:
    """Return the unused rest of the tape with fresh words behind it, and wipe both arrays that held them."""
    if fresh.dtype != np.uint64 or fresh.shape != (count,):
        raise PrivacyError("A source of random words must return as many 64-bit unsigned words as it was asked for.")
    longer = np.concatenate((tape[used:], fresh))
    tape.fill(0)
    fresh.fill(0)
    return longer
