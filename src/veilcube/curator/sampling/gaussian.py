"""Exact discrete Gaussian noise with rational variances: the caller's side of the compiled sampler.

Variances are read as exact fractions of any length. What the compiled loop needs of each is computed once, in
unbounded integers; so is the rare sample whose coin the loop's 48 bits leave open (docs/proofs/discrete-gaussian.md).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from veilcube.curator.sampling.gaussian_loops import exponent, fill_gaussian, split_exponent
from veilcube.curator.sampling.loops import bernoulli_exp_one, laplace
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

PARAMETER = "variance"
# Below, nearly all noise is zero; above, proposals and their exponents would leave 64 bits.
SMALLEST_VARIANCE, LARGEST_VARIANCE = Fraction(1, 16), Fraction(2**80)
WORDS_PER_REFILL = 1 << 15
# A sample uses 9 to 15 words on average; asking for a little more saves small draws a second refill.
WORDS_PER_SAMPLE = 16
SPARE_WORDS = 64
# Magnitudes are below 64·t; shifted, they stay below 2^64. Points have 54 bits behind the point.
MAGNITUDE_BITS = 58
POINT_BITS = 54
WORD_BITS = 64


@dataclass(frozen=True)
class Variances:
    """Variances: one for all entries (``shape`` is None, a single row) or one per entry.

    ``exact`` and ``table`` hold each distinct variance once; ``rows`` tells which of them an entry has.
    """

    exact: tuple[Fraction, ...]
    table: Words
    rows: npt.NDArray[np.intp]
    shape: tuple[int, ...] | None

    @classmethod
    def of(cls, exact: Iterable[Fraction], rows: npt.NDArray[np.intp], shape: tuple[int, ...] | None) -> "Variances":
        """Compute the table of the compiled loop for distinct variances."""
        distinct = tuple(exact)
        table = np.array([_table_row(variance) for variance in distinct], dtype=np.uint64)
        return cls(distinct, table.reshape(-1, 4), rows, shape)

    def between(self, start: int, stop: int) -> "Variances":
        """Return the variances of the entries from ``start`` up to ``stop``, counted in C order."""
        if self.shape is None:
            return self
        return Variances(self.exact, self.table, self.rows[start:stop], (stop - start,))

    def of_entry(self, place: int) -> tuple[Fraction, Words]:
        """Return the exact variance of an entry and its row of the table."""
        row = self.rows[0 if self.rows.size == 1 else place]
        return self.exact[row], self.table[row]


def _table_row(variance: Fraction) -> tuple[int, int, int, int]:
    """Return t = floor(sigma) + 1, the shift of magnitudes, and 1/sqrt(2·variance), sqrt(variance/2)/t rounded down."""
    numerator, denominator = variance.numerator, variance.denominator
    t = math.isqrt(numerator // denominator) + 1
    shift = (2**MAGNITUDE_BITS // t).bit_length() - 1
    # A shifted magnitude times the reciprocal has 64 bits more behind the point than a point has.
    reciprocal = math.isqrt((denominator << 2 * (POINT_BITS + WORD_BITS - shift)) // (2 * numerator))
    centre = math.isqrt((numerator << 2 * POINT_BITS) // (2 * denominator * t * t))
    return t, shift, reciprocal, centre


def read_variances(variance: NumberLike) -> Variances:
    """Read one variance, or a sequence or array of variances."""
    entries = entries_of(variance)
    if entries is not None:
        distinct, rows = distinct_entries(entries)
        return Variances.of((read_variance(entry) for entry in distinct), rows, entries.shape)
    exact = read_variance(variance[()] if isinstance(variance, np.ndarray) else variance)
    return Variances.of([exact], np.zeros(1, dtype=np.intp), None)


def read_variance(variance: object) -> Fraction:
    """Read one variance exactly; a float counts as its shortest decimal text, so that .1 is 1/10."""
    exact = positive_number(variance, PARAMETER)
    if not SMALLEST_VARIANCE <= exact <= LARGEST_VARIANCE:
        raise PrivacyError(
            "The variance of the noise is outside 1/16 to 2^80, which exact 64-bit sampling cannot hold: choose "
            "another one."
        )
    return exact


def discrete_gaussian(variance: NumberLike, size: Size = None, *, source: RandomWords | None = None) -> Integers:
    """Draw integers with P(x) proportional to exp(-x²/(2·variance)), exactly (Canonne, Kamath, Steinke 2020).

    ``variance`` is the parameter sigma² from 1/16 to 2^80, of which the variance of the noise falls short where it is
    small: one int, Fraction, text such as "7/2" or float (taken by its shortest decimal text, so .1 is 1/10), or a
    sequence or array of them with one per entry; ``size`` is then its length or shape, or left out. A proposal outside
    64-bit integers (probability below 2^-89 for a sample) raises OverflowError, never wraps. Random words come from the
    operating system through ``SystemWords``.

    >>> noise = discrete_gaussian("7/2", (2, 3))
    >>> noise.shape, noise.dtype
    ((2, 3), dtype('int64'))
    """
    return draw_vector(read_variances(variance), size, PARAMETER, source, _fill)


def _fill(samples: Integers, variances: Variances, source: RandomWords) -> None:
    """Fill the samples, appending words to the tape whenever it ends inside a sample, as for Laplace noise.

    A sample with an open coin is drawn again from its first word with unbounded integers, which take the same
    decisions and that one besides.
    """
    filled = used = 0
    tape: Words = np.empty(0, dtype=np.uint64)
    while filled < samples.size:
        count = min(WORDS_PER_REFILL, WORDS_PER_SAMPLE * (samples.size - filled) + SPARE_WORDS)
        tape = append_words(tape, used, source.words(count), count)
        filled, used, is_open = fill_gaussian(samples, filled, variances.table, variances.rows, tape, 0)
        while is_open:
            sample, after = exact_gaussian(tape, used, *variances.of_entry(filled))
            if after > tape.size:
                break
            samples[filled] = sample
            filled, used, is_open = fill_gaussian(samples, filled + 1, variances.table, variances.rows, tape, after)
    tape.fill(0)


def exact_gaussian(words: Words, at: int, variance: Fraction, row: Words) -> tuple[int, int]:
    """Draw the sample that the compiled ``gaussian`` draws, deciding every coin with unbounded integers."""
    t, one = row[0], np.uint64(1)
    while at <= words.size:
        proposal, at = laplace(words, at, t, one)
        if at > words.size:
            break
        magnitude = abs(int(proposal))
        estimate = np.uint64(exponent(np.uint64(magnitude), *row[1:]))
        whole, coins, _ = (int(part) for part in split_exponent(estimate))
        accepted, thrown = True, 0
        while accepted and thrown < whole:
            accepted, at = bernoulli_exp_one(words, at)
            thrown += 1
        rest = ((magnitude - variance / int(t)) ** 2 / (2 * variance) - whole) / coins
        thrown = 0
        while accepted and thrown < coins:
            accepted, at = _exact_coin(words, at, rest)
            thrown += 1
        if accepted:
            return int(proposal), at
    return 0, at


def _exact_coin(words: Words, at: int, rest: Fraction) -> tuple[bool, int]:
    """Succeed with probability exp(-rest): the first trial K that does not find K·W < rest is odd."""
    trial, is_below = 0, True
    while is_below and at <= words.size:
        trial += 1
        is_below, at = _is_below(words, at, rest / trial)
    return trial % 2 == 1, at


def _is_below(words: Words, at: int, threshold: Fraction) -> tuple[bool, int]:
    """Decide W < threshold from as many words of W as it takes, but at least one, which is what the loop reads."""
    low, width = Fraction(0), Fraction(1)
    while at < words.size:
        width /= 2**WORD_BITS
        low += int(words[at]) * width
        at += 1
        if low >= threshold:
            return False, at
        if low + width <= threshold:
            return True, at
    return False, words.size + 1
