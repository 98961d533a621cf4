"""Exact joint noise of all nodes of binary trees, and exact sharper noise in place of noise that was published.

This is the callers' side of the compiled samplers.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from veilcube.curator.sampling.laplace import Scales, read_scales
from veilcube.curator.sampling.loops import fill_jointly, fill_sharpened
from veilcube.curator.sampling.source import RandomWords, SystemWords, Words
from veilcube.curator.sampling.vectors import THREADS, append_words, fill_in_threads
from veilcube.errors import PrivacyError
from veilcube.system import Integers

WORDS_PER_REFILL = 1 << 13
# Every height about doubles the trials of a leaf.
TALLEST = 12


def joint_laplace(scales: Sequence[Fraction], trees: int, *, source: RandomWords | None = None) -> Integers:
    """Draw the leaves' noise of binary trees: P(z) ∝ exp(-Σ_v |z_v| / t_v), z_v the sum of the leaves below node v.

    ``scales`` are the t_v by height, the leaves' first, the root's last. Row by row, the result holds 2^height leaves
    of each tree; the noise of a node above them is their sum. The law is exact (docs/proofs/joint-noise.md).

    >>> joint_laplace([Fraction(10), Fraction(20), Fraction(15)], 3).shape
    (3, 4)
    """
    if not 1 <= len(scales) <= TALLEST + 1:
        raise PrivacyError(f"Joint noise is drawn for trees of height 0 to {TALLEST}: pass one scale for each height.")
    read = read_scales(list(scales))
    leaves = np.empty((trees, 2 ** (len(scales) - 1)), dtype=np.int64)
    if source is not None or trees < THREADS:
        _fill(leaves, read, SystemWords() if source is None else source)
    else:
        fill_in_threads(_fill, ((part, read) for part in np.array_split(leaves, THREADS)))
    return leaves


def _fill(leaves: Integers, scales: Scales, source: RandomWords) -> None:
    """Fill the trees, appending words to the tape whenever it ends inside a leaf: as for single samples."""
    row = leaf = used = 0
    tape: Words = np.empty(0, dtype=np.uint64)
    upto = np.zeros(leaves.shape[1] + 1, dtype=np.int64)
    while row < leaves.shape[0]:
        tape = append_words(tape, used, source.words(WORDS_PER_REFILL), WORDS_PER_REFILL)
        row, leaf, used = fill_jointly(leaves, upto, row, leaf, scales.numerators, scales.denominators, tape)
    tape.fill(0)


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
