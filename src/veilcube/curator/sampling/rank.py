"""Exact draws of a k-th largest value over a limited domain, in integer arithmetic from the operating system's entropy.

Symbols as in ``veilcube.privacy.rank_mechanisms``: a value of the domain that costs g more than the cheapest one is
accepted with probability exp(-g·rate), for a rank with rate epsilon/2. That exponent is a fraction, split into its
whole part, which is as many coins of probability exp(-1), and the rest, one coin of ``kernel.bernoulli_exp``: all of
them exact, and no floating-point number takes part. Proposals come from the whole domain (exponential mechanism: the
accepted one has probability proportional to its weight) or from the values not yet refused (permute-and-flip, by its
definition).

Claim: one draw is epsilon-differentially private for one row added, removed or exchanged (the utility has sensitivity
1; for a person with at most m rows pass epsilon/m). The time a draw takes depends on the table, as in any rejection
sampler, and is not covered by the claim.
"""

from dataclasses import dataclass
from fractions import Fraction
from operator import index

import numpy as np
import numpy.typing as npt

from veilcube.curator.sampling.loops import (
    LARGEST_TERM,
    ONE,
    ZERO,
    Words,
    bernoulli_exp,
    bernoulli_exp_one,
    compiled,
    uniform as uniform_below,
)
from veilcube.curator.sampling.source import RandomWords, SystemWords
from veilcube.errors import PrivacyError
from veilcube.privacy import EpsilonLike, Private, RankCosts, RankMethod, rank_costs
from veilcube.system import Integers

WORDS_PER_REFILL = 1 << 15
WORDS_FOR_A_SHORT_DRAW = 1 << 8
# Coins are thrown until one fails, so nobody will ever see whether there were 2^62 of them or more.
MOST_COINS = 2**62
ROUNDING_GRID = 2**56


def draw_rank(
    counts: npt.ArrayLike,
    epsilon: EpsilonLike,
    rank: int = 1,
    method: str = RankMethod.PERMUTE_AND_FLIP,
    *,
    source: RandomWords | None = None,
) -> int:
    """Draw the place in the domain of the ``rank``-th largest value, with exactly ``rank_distribution``'s law.

    ``counts`` holds the number of rows at each value of the domain, ascending; reverse it for the ``rank``-th smallest.
    An epsilon whose half is no fraction of 64-bit integers is rounded down: less is spent, never more.

    >>> draw_rank([0, 3, 40], "1000")
    2
    """
    return int(draw_ranks(counts, epsilon, 1, rank, method, source=source)[0])


def draw_ranks(
    counts: npt.ArrayLike,
    epsilon: EpsilonLike,
    size: int,
    rank: int = 1,
    method: str = RankMethod.PERMUTE_AND_FLIP,
    *,
    source: RandomWords | None = None,
) -> Integers:
    """Draw ``size`` independent answers, for studies of the sampler: publishing them costs ``size`` times epsilon."""
    chosen = RankMethod.read(method)
    costs = rank_costs(counts, epsilon, rank, chosen)
    coins = _Coins.of(costs)
    places = np.empty(_checked_size(size), dtype=np.int64)
    _fill(places, coins, chosen is RankMethod.EXPONENTIAL, SystemWords() if source is None else source)
    return places


def draw_cheapest(costs: RankCosts, *, source: RandomWords | None = None) -> int:
    """Draw one place by permute-and-flip, the coin of each place with its own exponent: what a split node needs."""
    places = np.empty(1, dtype=np.int64)
    _fill(places, _Coins.of(costs), False, SystemWords() if source is None else source)
    return int(places[0])


@dataclass(frozen=True, repr=False, eq=False)
class _Coins(Private):
    """Exponents as whole + remainder/denominator, one for each value of the domain. PRIVATE."""

    wholes: Words
    remainders: Words
    denominator: np.uint64

    @classmethod
    def of(cls, costs: RankCosts) -> "_Coins":
        """Split amount·rate for every amount, in 64-bit integers where they hold it and else in Python's."""
        rate = drawable(costs.rate)
        numerator, denominator = rate.numerator, rate.denominator
        amounts = costs.amounts
        # Which way is taken may depend on the table; what comes out is the same either way, and neither can fail.
        if max(int(amounts.max(initial=0)), 1) * numerator <= np.iinfo(np.int64).max:
            wholes, remainders = np.divmod(amounts * np.int64(numerator), np.int64(denominator))
        else:
            distinct, places = np.unique(amounts, return_inverse=True)
            split = [divmod(amount * numerator, denominator) for amount in distinct.tolist()]
            wholes = np.array([min(whole, MOST_COINS) for whole, _ in split], dtype=np.uint64)[places.ravel()]
            remainders = np.array([remainder for _, remainder in split], dtype=np.uint64)[places.ravel()]
        return cls(wholes.astype(np.uint64), remainders.astype(np.uint64), np.uint64(denominator))


def drawable(rate: Fraction) -> Fraction:
    """Return the rate, rounded down to a fraction whose denominator the 64-bit coins can hold."""
    if rate.denominator <= LARGEST_TERM:
        return rate
    rounded = Fraction(int(rate * ROUNDING_GRID), ROUNDING_GRID)
    if rounded == 0:
        raise PrivacyError("epsilon is too small to draw a rank with; use at least 2**-55")
    return rounded


def _checked_size(size: int) -> int:
    try:
        length = index(size)
    except TypeError:
        length = -1
    if length < 0:
        raise PrivacyError("the number of draws must be a whole number, 0 or more; correct the size")
    return length


def _fill(places: Integers, coins: _Coins, with_replacement: bool, source: RandomWords) -> None:
    """Fill the draws, appending words behind those of a proposal that the end of the tape cut short.

    These words are read again, so what is drawn is a function of the whole tape and not of how it was cut.
    """
    order = np.arange(coins.wholes.size, dtype=np.int64)
    tape: Words = np.empty(0, dtype=np.uint64)
    filled = refused = used = 0
    refill = WORDS_FOR_A_SHORT_DRAW
    while filled < places.size:
        fresh = source.words(refill)
        if fresh.dtype != np.uint64 or fresh.shape != (refill,):
            raise PrivacyError(
                "a source of random words must return as many 64-bit unsigned words as asked for; use SystemWords"
            )
        longer = np.concatenate((tape[used:], fresh))
        tape.fill(0)
        fresh.fill(0)
        tape = longer
        filled, refused, used = _fill_ranks(
            places, filled, refused, order, coins.wholes, coins.remainders, coins.denominator, with_replacement, tape
        )
        refill = min(2 * refill, WORDS_PER_REFILL)
    tape.fill(0)


@compiled
def _accepted(
    words: Words, at: int, whole: np.uint64, remainder: np.uint64, denominator: np.uint64
) -> tuple[bool, int]:
    """Succeed with probability exp(-(whole + remainder/denominator)): the fraction's coin, then one for each unit."""
    heads, at = bernoulli_exp(words, at, remainder, denominator)
    thrown = ZERO
    while heads and thrown < whole:
        heads, at = bernoulli_exp_one(words, at)
        thrown += ONE
    return heads, at


@compiled
def _fill_ranks(
    places: Integers,
    filled: int,
    refused: int,
    order: Integers,
    wholes: Words,
    remainders: Words,
    denominator: np.uint64,
    with_replacement: bool,
    words: Words,
) -> tuple[int, int, int]:
    """Propose until every draw is accepted; ``order[:refused]`` are the values that this draw has refused.

    Returns the draws filled, the values refused in the unfinished one, and the words that finished proposals used. A
    new draw starts from whatever order the last one left: swapping in a uniform choice makes it random afresh.
    """
    at = 0
    while filled < places.size:
        choice, after = uniform_below(words, at, np.uint64(order.size - refused))
        proposed = refused + np.int64(choice)
        value = order[proposed]
        accepted, after = _accepted(words, after, wholes[value], remainders[value], denominator)
        if after > words.size:
            return filled, refused, at
        at = after
        if accepted:
            places[filled] = value
            filled += 1
            refused = 0
        elif not with_replacement:
            order[proposed] = order[refused]
            order[refused] = value
            refused += 1
    return filled, refused, at
