"""What a privacy claim is about: which tables are neighbours, whose presence is hidden, and what noise an epsilon buys.

For integer measurements of L1 sensitivity d, discrete Laplace noise of scale s is (d / s)-differentially private and
no better (the ratio of the probabilities of neighbouring tables reaches exp(d / s)). The sampler works with 64-bit
integers, so a scale whose fraction is too long is rounded up: slightly more noise, never less.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil
from typing import Literal

from veilcube.errors import PrivacyError
from veilcube.system import read_choice, read_text, read_whole


class Neighbours(StrEnum):
    """``add-remove``: one unit (row or person) more or less. ``replace``: one unit exchanged, their number public."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    @classmethod
    def read(cls, text: str) -> "Neighbours":
        """Return the relation a user named."""
        try:
            return cls(text)
        except ValueError as problem:
            raise PrivacyError(f"neighbours='{text}' is not known; use 'add-remove' or 'replace'") from problem


MOST_ROWS = 10**9


MOST_GROUPED = 32


@dataclass(frozen=True)
class PrivacyUnit:
    """A row, or a person of whom at most ``max_rows`` rows were counted.

    ``max_groups`` says of how many values of an attribute these rows are at most. It makes nobody's change smaller, for
    all rows of a person may have one value: it is said for readers.
    """

    kind: Literal["row", "person"] = "row"
    column: str | None = None
    max_rows: int = 1
    max_groups: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        read_choice(self.kind, "the privacy unit", ("row", "person"), PrivacyError)
        object.__setattr__(self, "max_rows", read_whole(self.max_rows, "max_rows", 1, MOST_ROWS, PrivacyError))
        if self.column is not None:
            read_text(self.column, "person, the column that names the person,", PrivacyError)
        object.__setattr__(self, "max_groups", _read_groups(self.max_groups))
        if self.max_groups and self.kind == "row":
            raise PrivacyError("max_groups caps the groups of a person; name the person and max_rows too")
        if (self.kind == "person") != (self.column is not None) or (self.kind == "row" and self.max_rows != 1):
            raise PrivacyError(
                "a person unit needs the column that names the person and max_rows; a row unit has neither"
            )

    @classmethod
    def row(cls) -> "PrivacyUnit":
        """Hide the presence of any one row."""
        return cls()

    @classmethod
    def person(cls, column: str, max_rows: int) -> "PrivacyUnit":
        """Hide the presence of any one person, of whom at most ``max_rows`` rows are counted."""
        return cls("person", column, max_rows)

    @classmethod
    def whole_person(cls, column: str) -> "PrivacyUnit":
        """Hide the presence of any one person with all rows that a table can have of her."""
        return cls("person", column, MOST_ROWS)

    @classmethod
    def read(
        cls, person: str | None, max_rows: int | None, max_groups: Mapping[str, int] | None = None
    ) -> "PrivacyUnit":
        """Return the unit that the arguments ``person``, ``max_rows`` and ``max_groups`` describe."""
        if person is None and max_rows is None and max_groups is None:
            return cls.row()
        if person is None or max_rows is None:
            raise PrivacyError("person and max_rows go together: name the column and how many rows of a person to keep")
        return cls("person", person, max_rows, () if max_groups is None else max_groups)  # type: ignore[arg-type]

    @property
    def without_groups(self) -> "PrivacyUnit":
        """The unit that it is for noise: how many groups a person's rows lie in changes nothing."""
        return replace(self, max_groups=())

    @property
    def _rows(self) -> str:
        return "1 row" if self.max_rows == 1 else f"{self.max_rows} rows"

    @property
    def _groups(self) -> str:
        values = [f"{most} {'value' if most == 1 else 'values'} of '{name}'" for name, most in self.max_groups]
        return f", of at most {' and '.join(values)}" if values else ""

    @property
    def words(self) -> str:
        """The unit as a noun phrase."""
        if self.kind == "row":
            return "one row"
        rows = "all rows" if self.max_rows == MOST_ROWS else f"at most {self._rows}"
        return f"one person ('{self.column}', {rows} of each{self._groups})"

    @property
    def counted(self) -> str | None:
        """What readers of a count must know about the rows in it; None if every row counts."""
        if self.kind == "row":
            return None
        return (
            f"Counts are of at most {self._rows} per person{self._groups}; further rows are not counted, "
            "and intervals do not include them."
        )

    @property
    def identity(self) -> str:
        """What a ledger compares: two charges on one budget must protect the same kind of unit."""
        return "row" if self.kind == "row" else f"person:{self.column}"

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        groups = {"max_groups": dict(self.max_groups)} if self.max_groups else {}
        return {"kind": self.kind, "column": self.column, "max_rows": self.max_rows, **groups}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "PrivacyUnit":
        """Rebuild from ``to_dict``."""
        if not isinstance(data, Mapping) or not {"kind", "column", "max_rows"} <= set(data):
            raise PrivacyError("a privacy unit is a mapping with kind, column and max_rows, as to_dict writes it")
        return cls(data["kind"], data["column"], data["max_rows"], data.get("max_groups", ()))  # type: ignore[arg-type]


def _read_groups(given: object) -> tuple[tuple[str, int], ...]:
    """Return how many values of which attributes a person's rows may have, in the order of their names."""
    pairs = list(given.items()) if isinstance(given, Mapping) else list(given) if isinstance(given, tuple) else None
    if pairs is None or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise PrivacyError('max_groups is a mapping from attributes to numbers, such as {"district": 2}')
    if len(pairs) > MOST_GROUPED:
        raise PrivacyError(f"max_groups caps at most {MOST_GROUPED} attributes; leave some out")
    found = {}
    for name, most in pairs:
        read_text(name, "an attribute of max_groups", PrivacyError)
        found[name] = read_whole(most, f"max_groups of '{name}'", 1, MOST_ROWS, PrivacyError)
    return tuple(sorted(found.items()))


LONGEST_FRACTION = 2**57
SMALLEST_SCALE = Fraction(1, 2**10)
LARGEST_SCALE = Fraction(2**40)
# The largest table, in rows, and how often a row may count in all measurements of a release together. Both are public
# and fixed, and their product leaves a half of 62 bits for the noise: so no release is refused for its counts.
LARGEST_TABLE = 2**36
LARGEST_COLUMN = 2**25


def scale_for(epsilon: Fraction, sensitivity: int) -> Fraction:
    """Return the least scale that the sampler can draw and that spends at most ``epsilon``."""
    scale = sensitivity / epsilon
    if scale > LARGEST_SCALE:
        raise PrivacyError(
            f"epsilon is so small that the noise scale would exceed 2**40; use at least {sensitivity}/2**40"
        )
    scale = max(scale, SMALLEST_SCALE)
    if max(scale.numerator, scale.denominator) <= LONGEST_FRACTION:
        return scale
    # A binary grid fine enough to lose less than one part in 2**19, coarse enough for numerator and denominator.
    grid = Fraction(1, 2**30) if scale < 2**10 else Fraction(1, 2**20) if scale < 2**20 else Fraction(1)
    return ceil(scale / grid) * grid


# A sigma of 2^40, as for scales.
LARGEST_SIGMA_SQUARED, SMALLEST_SIGMA_SQUARED = Fraction(2**80), Fraction(1, 16)
_BITS_KEPT = 40


def sigma_squared_for(rho: Fraction, sensitivity_squared: int) -> Fraction:
    """Return the least sigma² that spends at most ``rho`` on measurements of this squared L2 sensitivity.

    It is rounded up to 40 bits where its fraction would be long: slightly more noise, never less.
    """
    exact = sensitivity_squared / (2 * rho)
    if exact > LARGEST_SIGMA_SQUARED:
        raise PrivacyError(
            f"rho is so small that the noise's sigma would exceed 2**40; use at least {sensitivity_squared}/2**81"
        )
    exact = max(exact, SMALLEST_SIGMA_SQUARED)
    if max(exact.numerator, exact.denominator) <= LONGEST_FRACTION:
        return exact
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    grid = Fraction(2) ** (exponent - _BITS_KEPT)
    return ceil(exact / grid) * grid


def unit_sensitivity(per_row: int, per_row_replaced: int, unit: PrivacyUnit, neighbours: Neighbours) -> int:
    """Return the L1 sensitivity to one unit from that to one row.

    ``per_row`` is the largest change when a row is added or removed, ``per_row_replaced`` when one is exchanged. A
    person with a rows who is exchanged for one with b < a rows changes b rows and takes a - b away, at most
    b * per_row_replaced + (a - b) * per_row, which is linear in b: it is largest where b is 0 or a.
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return per_row * unit.max_rows
    return per_row_replaced if unit.kind == "row" else unit.max_rows * max(per_row, per_row_replaced)


def unit_sensitivity_l2_squared(per_row: int, per_row_replaced: int, unit: PrivacyUnit, neighbours: Neighbours) -> int:
    """Return the squared L2 sensitivity to one unit from that to one row.

    All r rows of a person may fall into one cell: then the change is r times that of a row, and its square r² times. No
    more is possible, by the triangle inequality; and by the argument of ``unit_sensitivity``, which holds for every
    norm, an exchange changes no more than r exchanged rows or r rows that come (docs/proofs/zcdp.md).
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return per_row * unit.max_rows**2
    return per_row_replaced if unit.kind == "row" else unit.max_rows**2 * max(per_row, per_row_replaced)
