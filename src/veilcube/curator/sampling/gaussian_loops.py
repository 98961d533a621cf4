"""The compiled discrete Gaussian sampler of Canonne, Kamath and Steinke (2020, Algorithm 3), in 64-bit integers only.

A proposal is discrete Laplace noise y of the whole scale t = floor(sigma) + 1; it is kept with probability
exp(-g), g = (|y| - sigma²/t)²/(2·sigma²). As a fraction g may have hundreds of digits. It is never needed whole: a coin
compares it with a uniform real number W, and the first 48 bits of both decide all but about one coin in 2^43. So g is
computed in fixed point within a proven margin (``exponent``), and a coin that the margin leaves open makes the loop
stop: ``gaussian.py`` draws that one sample again from the same words, with unbounded integers. No rounded probability
is ever used; docs/proofs/discrete-gaussian.md proves the law. Tape and positions are as in ``loops``.
"""

import numpy as np
import numpy.typing as npt

from veilcube.curator.sampling.loops import (
    LARGEST_TRIAL,
    ONE,
    TWO,
    ZERO,
    Words,
    bernoulli_exp_one,
    compiled,
    high_word,
    laplace,
)
from veilcube.system import Integers

EXPONENT_BITS = 48
# How far the fixed-point exponent may be off, in units of 2^-48: the proof needs 13.
MARGIN = np.uint64(16)
BITS = np.uint64(EXPONENT_BITS)
UNIT = np.uint64(2**EXPONENT_BITS)
UNUSED_BITS = np.uint64(64 - EXPONENT_BITS)
# What is known of one variance before any draw, in the columns of a row of the table that ``fill_gaussian`` reads:
# t, the shift of magnitudes, 1/sqrt(2·sigma²) and sqrt(sigma²/2)/t, the last two in fixed point.
SCALE, SHIFT, RECIPROCAL, CENTRE = 0, 1, 2, 3


@compiled
def exponent(magnitude: np.uint64, shift: np.uint64, reciprocal: np.uint64, centre: np.uint64) -> np.uint64:
    """Return g in units of 2^-48, off by less than 13: g is the square of |y|/sqrt(2·sigma²) - sqrt(sigma²/2)/t."""
    point = high_word(magnitude << shift, reciprocal)
    distance = point - centre if point >= centre else centre - point
    return high_word(distance << TWO, distance << TWO)


@compiled
def split_exponent(estimate: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Split an exponent into coins: how many of exp(-1), how many of exp(-rest), and the estimate of that rest.

    Whatever the margin hides, the rest is from 0 to 1: where the exponent may lie on either side of a whole number,
    one unit less is taken off, and the rest of about 1 is halved.
    """
    whole = (estimate - MARGIN) >> BITS if estimate >= MARGIN else ZERO
    rest = estimate - (whole << BITS)
    if rest + MARGIN <= UNIT:
        return whole, ONE, rest
    return whole, TWO, rest >> ONE


@compiled
def coin(words: Words, at: int, rest: np.uint64) -> tuple[bool, int]:
    """Succeed with probability exp(-r), r from 0 to 1 and within the margin of ``rest``, as ``bernoulli_exp`` does.

    Trial K asks whether K·W < r. The position ``words.size + 2`` says that the first 48 bits of W left it open.
    """
    trial = ONE
    while at < words.size:
        bits = words[at] >> UNUSED_BITS
        at += 1
        if trial * bits >= rest + MARGIN:
            return trial & ONE == ONE, at
        if trial * (bits + ONE) + MARGIN > rest or trial == LARGEST_TRIAL:
            return False, words.size + 2
        trial += ONE
    return False, words.size + 1


@compiled
def stays_gaussian(words: Words, at: int, estimate: np.uint64) -> tuple[bool, int]:
    """Succeed with probability exp(-g): all of its coins must succeed."""
    whole, coins, rest = split_exponent(estimate)
    while whole > ZERO:
        success, at = bernoulli_exp_one(words, at)
        if not success:
            return False, at
        whole -= ONE
    while coins > ZERO:
        success, at = coin(words, at, rest)
        if not success:
            return False, at
        coins -= ONE
    return True, at


@compiled
def gaussian(
    words: Words, at: int, t: np.uint64, shift: np.uint64, reciprocal: np.uint64, centre: np.uint64
) -> tuple[np.int64, int]:
    """Draw one integer with probability proportional to exp(-x²/(2·sigma²))."""
    while at <= words.size:
        proposal, at = laplace(words, at, t, ONE)
        if at <= words.size:
            estimate = exponent(np.uint64(abs(proposal)), shift, reciprocal, centre)
            accepted, at = stays_gaussian(words, at, estimate)
            if accepted:
                return proposal, at
    return np.int64(0), at


@compiled
def fill_gaussian(
    samples: Integers, start: int, table: Words, rows: npt.NDArray[np.intp], words: Words, at: int
) -> tuple[int, int, bool]:
    """Fill ``samples[start:]`` from position ``at`` of the tape.

    Return how far it came, the position there, and whether it stopped because a coin was left open; otherwise the tape
    ended or all is filled. ``rows`` holds the row of the table for each entry, or a single one for all.
    """
    step = 0 if rows.size == 1 else 1
    for i in range(start, samples.size):
        row = table[rows[i * step]]
        sample, after = gaussian(words, at, row[SCALE], row[SHIFT], row[RECIPROCAL], row[CENTRE])
        if after > words.size:
            return i, at, after == words.size + 2
        samples[i] = sample
        at = after
    return samples.size, at, False
