"""Exact sharper noise in place of noise that was published: the caller's side of the compiled sampler."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from veilcube.curator.noise.kernel import fill_sharpened
from veilcube.curator.noise.laplace import append_words
from veilcube.curator.noise.scale import read_scales
from veilcube.curator.noise.source import RandomWords, SystemWords, Words

Integers = npt.NDArray[np.int64]

WORDS_PER_REFILL = 1 << 13


def sharpened_laplace(
    noise: Integers, scales: Sequence[Fraction], added: Fraction, *, source: RandomWords | None = None
) -> Integers:
    """Draw the noise that takes the place of some noise when 1/``added`` more is spent.

    ``noise`` is discrete Laplace with the rate 1/t = the sum of 1/s over ``scales``; the result has the rate
    1/t + 1/added, and the old noise is the new one plus noise that is independent of it. Both laws are exact
    (docs/proofs/sharpened-noise.md).

    >>> sharpened_laplace(np.array([40, -3]), [Fraction(10)], Fraction(5)).shape
    (2,)
    """
    before, more = read_scales(list(scales)), read_scales(added)
    sharper = np.array(noise, dtype=np.int64)
    if sharper.size and sharper.min() == np.iinfo(np.int64).min:
        raise OverflowError("noise that is to be sharpened has no opposite in 64-bit integers")
    words = SystemWords() if source is None else source
    filled = used = 0
    tape: Words = np.empty(0, dtype=np.uint64)
    while filled < sharper.size:
        tape = append_words(tape, used, words.words(WORDS_PER_REFILL), WORDS_PER_REFILL)
        filled, used = fill_sharpened(
            sharper, filled, before.numerators, before.denominators, more.numerators[0], more.denominators[0], tape
        )
    tape.fill(0)
    return sharper
