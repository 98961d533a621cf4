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

LONGEST_BITS = 2560
_BETWEEN = ".."


@dataclass(frozen=True)
class Balance:
    """A sum: exactly, or where ``exact`` is None between two bounds, whole multiples of 2^-2560.

    >>> Balance.zero().plus(Fraction(1, 3)).plus(Fraction(1, 6)).text
    '1/2'
    """

    exact: Fraction | None
    least: int = 0
    most: int = 0

    @classmethod
    def zero(cls) -> "Balance":
        """Return the balance before anything was spent."""
        return cls(Fraction(0))

    @classmethod
    def read(cls, text: str) -> "Balance":
        """Return the balance that a row holds."""
        low, between, high = text.partition(_BETWEEN)
        found = cls(None, int(low), int(high)) if between else cls(Fraction(low))
        if not 0 <= found.least <= found.most or (found.exact is not None and found.exact < 0):
            raise ValueError("a balance lies between bounds of at least 0")
        return found

    @property
    def text(self) -> str:
        """The text that a row holds."""
        return f"{self.least}{_BETWEEN}{self.most}" if self.exact is None else write_fraction(self.exact)

    @property
    def low(self) -> Fraction:
        """No more than was spent."""
        return Fraction(self.least, 1 << LONGEST_BITS) if self.exact is None else self.exact

    @property
    def high(self) -> Fraction:
        """No less than was spent."""
        return Fraction(self.most, 1 << LONGEST_BITS) if self.exact is None else self.exact

    def plus(self, amount: Fraction) -> "Balance":
        """Return the balance after something more was spent."""
        if self.exact is not None:
            exact = self.exact + amount
            if exact.denominator.bit_length() <= LONGEST_BITS:
                return Balance(exact)
            return Balance(None, _below(exact), _above(exact))
        return Balance(None, self.least + _below(amount), self.most + _above(amount))

    def largest(self, other: "Balance") -> "Balance":
        """Return the larger of two sums, between bounds unless both are exact."""
        if self.exact is not None and other.exact is not None:
            return Balance(max(self.exact, other.exact))
        return Balance(
            None,
            max(_below(self.low), _below(other.low)),
            max(_above(self.high), _above(other.high)),
        )

    def fits(self, amount: Fraction, total: Fraction) -> bool | None:
        """Whether an amount fits into what a total leaves; None where the bounds do not tell."""
        room = total - amount
        if self.exact is not None:
            return self.exact <= room
        if self.most <= _below(room):
            return True
        return False if self.least > _above(room) else None


def _below(value: Fraction) -> int:
    return (value.numerator << LONGEST_BITS) // value.denominator


def _above(value: Fraction) -> int:
    return -((-value.numerator << LONGEST_BITS) // value.denominator)


def exact_sum(amounts: Iterable[Fraction]) -> Fraction:
    """Return a sum of many fractions, halves first: few of its additions are of long ones."""
    terms = list(amounts)
    while len(terms) > 1:
        terms = [sum(terms[start : start + 2], Fraction(0)) for start in range(0, len(terms), 2)]
    return terms[0] if terms else Fraction(0)
