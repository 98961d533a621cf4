"""What was spent in all, kept beside each charge: exactly, or between two bounds once its fraction would grow long.

The sum of fractions with unlike denominators needs as many digits as all of those together, so that every charge would
be slower than the one before it. A sum of more than ``LONGEST_BITS`` is kept as two bounds of that many bits instead.
Amounts have at most 1,100 bits, so the bounds decide every charge but one of all that is left, to the last bit; that
one, and a question what exactly is left, is answered from the exact sum of all rows (``exact_sum``).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from veilcube.privacy import write_fraction

LONGEST_BITS = 4096
_BETWEEN = ".."
_FINEST = 1 << LONGEST_BITS


@dataclass(frozen=True)
class Balance:
    """A sum that lies between two bounds, which are one and the same where it is known exactly.

    >>> Balance.zero().plus(Fraction(1, 3)).plus(Fraction(1, 6)).text
    '1/2'
    """

    low: Fraction
    high: Fraction

    @classmethod
    def zero(cls) -> "Balance":
        """Return the balance before anything was spent."""
        return cls(Fraction(0), Fraction(0))

    @classmethod
    def read(cls, text: str) -> "Balance":
        """Return the balance that a row holds."""
        low, _, high = text.partition(_BETWEEN)
        found = cls(Fraction(low), Fraction(high or low))
        if not 0 <= found.low <= found.high:
            raise ValueError("a balance lies between bounds of at least 0")
        return found

    @property
    def text(self) -> str:
        """The text that a row holds."""
        low = write_fraction(self.low)
        return low if self.is_exact else f"{low}{_BETWEEN}{write_fraction(self.high)}"

    @property
    def is_exact(self) -> bool:
        """Whether the sum is known to the last bit."""
        return self.low == self.high

    def plus(self, amount: Fraction) -> "Balance":
        """Return the balance after something more was spent."""
        low = self.low + amount
        if self.is_exact and low.denominator <= _FINEST:
            return Balance(low, low)
        high = self.high + amount
        return Balance(Fraction(low * _FINEST // 1, _FINEST), Fraction(-(-high * _FINEST // 1), _FINEST))

    def largest(self, other: "Balance") -> "Balance":
        """Return the larger of two sums, between bounds."""
        return Balance(max(self.low, other.low), max(self.high, other.high))

    def fits(self, amount: Fraction, total: Fraction) -> bool | None:
        """Whether an amount fits into what a total leaves; None where the bounds do not tell."""
        if self.high + amount <= total:
            return True
        return False if self.low + amount > total else None


def exact_sum(amounts: Iterable[Fraction]) -> Fraction:
    """Return a sum of many fractions, halves first: few of its additions are of long ones."""
    terms = list(amounts)
    while len(terms) > 1:
        terms = [sum(terms[start : start + 2], Fraction(0)) for start in range(0, len(terms), 2)]
    return terms[0] if terms else Fraction(0)
