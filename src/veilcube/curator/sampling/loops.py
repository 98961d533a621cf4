"""The compiled discrete Laplace sampler of Canonne, Kamath and Steinke (2020, Algorithm 2), in 64-bit integers only.

Every function reads a tape of uniform words from position ``at`` and returns its result with the position after the
last word it used. When the tape is too short it returns the position ``words.size + 1``: the result is then void, no
further trial succeeds, so that every loop ends, and ``fill_laplace`` reports where the unfinished sample began. Its
caller reads *the same words again* with more words behind them. The samples are therefore one fixed function of one
infinite tape, however it is cut; docs/proofs/discrete-laplace.md proves that this function has the promised law.

All constants are ``uint64``: where signed and unsigned integers meet, numba turns to signed or even to floating-point
numbers.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from veilcube.system import Integers, compile_loop

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Words = npt.NDArray[np.uint64]

# With a numerator t of at most 2^57: t·K fits in 64 bits for K <= 127, and t·(V + 1) in 63 bits for V <= 63.
LARGEST_TERM = 2**57
LARGEST_TRIAL = np.uint64(127)
LARGEST_TURNS = np.uint64(63)
LARGEST_EXPONENT = np.uint64(2**63)

ZERO, ONE, TWO, THREE, THIRTEEN = (np.uint64(value) for value in (0, 1, 2, 3, 13))
HALF_BITS = np.uint64(32)
HALF_MASK = np.uint64(2**32 - 1)
# Twelve trials in one draw: the next draw is needed once in 12! times, and a word is rejected once in 2^35.
FACTORIAL_12 = np.uint64(479_001_600)
FACTORIAL_12_OVER_2 = np.uint64(479_001_600 // 2)
FACTORIAL_12_OVER_6 = np.uint64(479_001_600 // 6)


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile for machine integers, kept on disk for the next process, and free of the interpreter lock."""
    return compile_loop(function, forceinline=True)


@compiled
def high_word(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return floor(a·b / 2^64) from four half-word products, none of whose sums can reach 2^64."""
    a_low, a_high = a & HALF_MASK, a >> HALF_BITS
    b_low, b_high = b & HALF_MASK, b >> HALF_BITS
    upper_cross = a_high * b_low + ((a_low * b_low) >> HALF_BITS)
    lower_cross = a_low * b_high + (upper_cross & HALF_MASK)
    return a_high * b_high + (upper_cross >> HALF_BITS) + (lower_cross >> HALF_BITS)


@compiled
def uniform(words: Words, at: int, bound: np.uint64) -> tuple[np.uint64, int]:
    """Draw from {0, ..., bound - 1}: the high word of w·bound, rejecting the surplus words (Lemire 2019).

    The words w that share one high word and have a low word of at least 2^64 mod bound number floor(2^64 / bound),
    the same for every high word. That residue is below ``bound``, so the division is needed only when low < bound.
    """
    while at < words.size:
        word = words[at]
        at += 1
        low = word * bound
        if low >= bound or low >= (ZERO - bound) % bound:
            return high_word(word, bound), at
    return ZERO, words.size + 1


@compiled
def bernoulli(words: Words, at: int, numerator: np.uint64, denominator: np.uint64) -> tuple[bool, int]:
    """Decide W < numerator/denominator for a real W that is uniform on [0, 1) and revealed 64 bits at a time.

    After one word, W·denominator lies in [h + l/2^64, h + (l + denominator)/2^64), with h and l the high and low words
    of the product. If the numerator is not inside, the answer is known; otherwise h = numerator - 1, and the unread
    rest R of W, again uniform, must satisfy R < (2^64 - l)/denominator: the same question about the next word.
    """
    while at < words.size:
        word = words[at]
        at += 1
        high = high_word(word, denominator)
        if high >= numerator:
            return False, at
        low = word * denominator
        if high + ONE < numerator or low <= ZERO - denominator:
            return True, at
        numerator = ZERO - low
    return False, words.size + 1


@compiled
def first_failure(words: Words, at: int, u: np.uint64, t: np.uint64, trial: np.uint64) -> tuple[np.uint64, int]:
    """Return the first K, from ``trial`` on, at which a trial that succeeds with probability u/(t·K) fails."""
    success, at = bernoulli(words, at, u, t * trial)
    while success:
        trial += ONE
        if trial > LARGEST_TRIAL:  # probability at most 1/127!
            raise OverflowError("a trial of the discrete Laplace sampler left the range of 64-bit integers")
        success, at = bernoulli(words, at, u, t * trial)
    return trial, at


@compiled
def bernoulli_exp(words: Words, at: int, u: np.uint64, t: np.uint64) -> tuple[bool, int]:
    """Succeed with probability exp(-u/t), for 0 <= u < t (Algorithm 1): the first failure comes at an odd trial.

    Trials 1 to K all succeed with probability (u/t)^K/K!; the alternating sum of these is the exponential series.
    """
    failure, at = first_failure(words, at, u, t, ONE)
    return failure & ONE == ONE, at


@compiled
def bernoulli_exp_one(words: Words, at: int) -> tuple[bool, int]:
    """Succeed with probability exp(-1): Algorithm 1 at u = t, its first twelve trials read off a single draw.

    For x uniform below 12!, the nested events x < 12!/K! have the probabilities 1/K! of "trials 1 to K all succeed".
    """
    x, at = uniform(words, at, FACTORIAL_12)
    if x >= FACTORIAL_12_OVER_6:  # five times in six: the first failure is trial 2 or 3
        return bool(x < FACTORIAL_12_OVER_2), at
    failure = THREE
    threshold = FACTORIAL_12_OVER_6
    while x < threshold:
        failure += ONE
        threshold //= failure
    if threshold == ZERO:  # x = 0: all twelve succeeded, the later trials are still to be drawn
        failure, at = first_failure(words, at, ONE, ONE, THIRTEEN)
        if at > words.size:
            return False, at
    return failure & ONE == ONE, at


@compiled
def whole_turns(words: Words, at: int) -> tuple[np.uint64, int]:
    """Return how many trials of probability exp(-1) succeed before the first that fails."""
    turns = ZERO
    again, at = bernoulli_exp_one(words, at)
    while again:
        turns += ONE
        if turns > LARGEST_TURNS:  # probability exp(-64), below 2^-92
            raise OverflowError("a discrete Laplace sample left the range of 64-bit integers")
        again, at = bernoulli_exp_one(words, at)
    return turns, at


@compiled
def geometric(words: Words, at: int, t: np.uint64, s: np.uint64) -> tuple[np.int64, int]:
    """Draw one integer from 0 on with probability proportional to exp(-x·s/t)."""
    while at <= words.size:
        u, at = uniform(words, at, t)
        accepted, at = bernoulli_exp(words, at, u, t)
        if accepted:
            turns, at = whole_turns(words, at)
            return np.int64((u + t * turns) // s), at
    return np.int64(0), at


@compiled
def earliest(words: Words, at: int, numerators: Words, denominators: Words) -> tuple[np.int64, int]:
    """Draw the least of geometric variables, one for each scale: it is geometric, and their rates add up."""
    least, at = geometric(words, at, numerators[0], denominators[0])
    for i in range(1, numerators.size):
        other, at = geometric(words, at, numerators[i], denominators[i])
        least = min(least, other)
    return least, at


@compiled
def laplace(words: Words, at: int, t: np.uint64, s: np.uint64) -> tuple[np.int64, int]:
    """Draw one integer with probability proportional to exp(-|x|·s/t)."""
    while at <= words.size:
        signed, at = uniform(words, at, TWO * t)
        u, negative = signed >> ONE, np.int64(signed & ONE)
        accepted, at = bernoulli_exp(words, at, u, t)
        if not accepted:
            continue
        turns, at = whole_turns(words, at)
        magnitude = u + t * turns
        if s != ONE:
            magnitude //= s
        # Zero would otherwise come up twice, once with each sign.
        if magnitude != ZERO or negative == 0:
            # Negation without a branch, which the processor would guess wrongly half of the time.
            return (np.int64(magnitude) ^ -negative) + negative, at
    return np.int64(0), at


@compiled
def fill_laplace(
    samples: Integers, start: int, numerators: Words, denominators: Words, words: Words
) -> tuple[int, int]:
    """Fill ``samples[start:]`` from the tape; return how far it came and how many words the finished samples used.

    Numerators and denominators hold one scale for each entry, or a single one for all.
    """
    step = 0 if numerators.size == 1 else 1
    at = 0
    for i in range(start, samples.size):
        sample, after = laplace(words, at, numerators[i * step], denominators[i * step])
        if after > words.size:
            return i, at
        samples[i] = sample
        at = after
    return samples.size, at


@compiled
def stays(words: Words, at: int, size: np.uint64, t: np.uint64, s: np.uint64) -> tuple[bool, int]:
    """Succeed with probability exp(-size·s/t): whole units of the exponent are trials of exp(-1), as in ``laplace``."""
    is_far = size > LARGEST_EXPONENT // s  # the exponent is then above 64
    turns = LARGEST_TURNS + ONE if is_far else size * s // t
    while turns > ZERO:
        success, at = bernoulli_exp_one(words, at)
        if not success:
            return False, at
        turns -= ONE
    if is_far:  # probability exp(-64), below 2^-92
        raise OverflowError("a trial of joint noise left the range of 64-bit integers")
    return bernoulli_exp(words, at, size * s % t, t)


@compiled
def fill_jointly(
    leaves: Integers, upto: Integers, row: int, leaf: int, numerators: Words, denominators: Words, words: Words
) -> tuple[int, int, int]:
    """Fill the rows of ``leaves`` with one joint draw each, from a leaf of a row on; return how far it came as well.

    The third number returned is how many words were used up to there. ``upto`` holds sums of the row's first leaves.
    Scales are by height, the leaves' first. Leaves come from left to right. Whenever the last one of a node is there,
    the node stays with probability exp(-|sum|/scale); else its leaves are drawn anew (docs/proofs/joint-noise.md).
    """
    width, at = leaves.shape[1], 0
    while row < leaves.shape[0]:
        sample, after = laplace(words, at, numerators[0], denominators[0])
        leaves[row, leaf] = sample
        upto[leaf + 1] = upto[leaf] + sample
        drawn, size, height = leaf + 1, 2, 1
        while drawn % size == 0 and size <= width:
            total = np.uint64(abs(upto[drawn] - upto[drawn - size]))
            is_kept, after = stays(words, after, total, numerators[height], denominators[height])
            if not is_kept:
                drawn -= size
                break
            size, height = 2 * size, height + 1
        if after > words.size:
            return row, leaf, at
        leaf, at = drawn, after
        if leaf == width:
            row, leaf = row + 1, 0
    return row, leaf, at


@compiled
def earlier_clock(ahead: np.int64, common: np.int64, fresh: np.int64) -> np.int64:
    """Return min(max(ahead, 0) + common, fresh), none of its steps leaving 64 bits."""
    ahead = max(ahead, np.int64(0))
    return fresh if ahead >= fresh else ahead + min(common, fresh - ahead)


@compiled
def fill_sharpened(
    noise: Integers,
    start: int,
    numerators: Words,
    denominators: Words,
    added_numerator: np.uint64,
    added_denominator: np.uint64,
    words: Words,
) -> tuple[int, int]:
    """Sharpen ``noise[start:]`` in place; return how far it came and how many words the finished ones used.

    Noise x is the difference of two geometric variables: what both have in common is drawn, it is independent of x.
    Each then stays or gives way to a fresh one that comes earlier (docs/proofs/sharpened-noise.md).
    """
    at = 0
    for i in range(start, noise.size):
        one, after = earliest(words, at, numerators, denominators)
        other, after = earliest(words, after, numerators, denominators)
        rise, after = geometric(words, after, added_numerator, added_denominator)
        fall, after = geometric(words, after, added_numerator, added_denominator)
        if after > words.size:
            return i, at
        common = min(one, other)
        noise[i] = earlier_clock(noise[i], common, rise) - earlier_clock(-noise[i], common, fall)
        at = after
    return noise.size, at
