"""The samplers in Python's unbounded integers, on a tape that is written out: what compiled loops are compared with."""

import math
from fractions import Fraction

WORD = 2**64


class TapeEndedError(Exception):
    """The tape has no further word."""


class Reference:
    """Canonne, Kamath and Steinke's algorithms word for word, with Python's integers and a cursor on the tape."""

    def __init__(self, tape: list[int]) -> None:
        self.tape = tape
        self.at = 0
        # Where a coin of the Gaussian sampler read a word: position, number of the trial, and the coin's exponent.
        self.coins: list[tuple[int, int, Fraction]] = []

    def word(self) -> int:
        if self.at == len(self.tape):
            raise TapeEndedError
        self.at += 1
        return self.tape[self.at - 1]

    def uniform(self, bound: int) -> int:
        while True:
            value, low = divmod(self.word() * bound, WORD)
            if low >= WORD % bound:
                return value

    def bernoulli(self, probability: Fraction) -> bool:
        """Read bits of W until the interval that W lies in is on one side of the probability."""
        start, width = Fraction(0), Fraction(1)
        while start < probability < start + width:
            width /= WORD
            start += self.word() * width
        return start < probability

    def bernoulli_exp(self, u: int, t: int) -> bool:
        trial = 1
        while self.decides(u, t * trial):
            trial += 1
        return trial % 2 == 1

    def decides(self, u: int, denominator: int) -> bool:
        # The kernel always reads one word, even when the probability is 0 and none is needed.
        if u == 0:
            self.word()
            return False
        return self.bernoulli(Fraction(u, denominator))

    def bernoulli_exp_one(self) -> bool:
        x = self.uniform(math.factorial(12))
        trial = 2
        while trial <= 12 and x < math.factorial(12) // math.factorial(trial):
            trial += 1
        if trial > 12:
            while self.bernoulli(Fraction(1, trial)):
                trial += 1
        return trial % 2 == 1

    def laplace(self, t: int, s: int) -> int:
        while True:
            u, negative = divmod(self.uniform(2 * t), 2)
            if not self.bernoulli_exp(u, t):
                continue
            turns = 0
            while self.bernoulli_exp_one():
                turns += 1
            magnitude = (u + t * turns) // s
            if magnitude or not negative:
                return -magnitude if negative else magnitude

    def gaussian(self, variance: Fraction) -> int:
        t = math.isqrt(variance.numerator // variance.denominator) + 1
        while True:
            proposal = self.laplace(t, 1)
            if self.stays((abs(proposal) - variance / t) ** 2 / (2 * variance)):
                return proposal

    def stays(self, exponent: Fraction) -> bool:
        """Throw the kernel's coins: exp(-1) for each whole unit, and the rest; two halves of a rest of about 1."""
        nearest = round(exponent)
        distance = abs(exponent - nearest) * 2**48
        assert not 3 <= distance <= 29, "only the kernel's own margin tells which coins it throws here"
        is_near = nearest >= 1 and distance < 3
        whole, coins = (nearest - 1, 2) if is_near else (math.floor(exponent), 1)
        rest = (exponent - whole) / coins
        return all(self.bernoulli_exp_one() for _ in range(whole)) and all(self.coin(rest) for _ in range(coins))

    def coin(self, rest: Fraction) -> bool:
        trial = 1
        self.coins.append((self.at, trial, rest))
        while self.decides(rest.numerator, rest.denominator * trial):
            trial += 1
            self.coins.append((self.at, trial, rest))
        return trial % 2 == 1
