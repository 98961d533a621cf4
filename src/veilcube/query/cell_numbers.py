"""The whole numbers that distributive queries are given for the cells of an attribute, in parts of one.

A whole number stands for itself. A bin stands for its middle, edges read as the decimals that people write; middles
that are not whole are counted in halves, tenths, or whatever makes all of them whole. Dates and names stand for no
number: their cells are numbered from 0, for queries that look at rows only.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, lcm

import numpy as np

from veilcube.errors import QueryError
from veilcube.schema import Attribute, Bins, Ordinal, WholeNumbers
from veilcube.system import Integers

LARGEST_NUMBER = 2**53


@dataclass(frozen=True, eq=False)
class CellNumbers:
    """Each regular cell's number, ``numbers[cell] / parts_of_one``; values of it lie from ``low`` to ``high``.

    ``missing`` tells, in words, why the cells have no numbers; empty if they have.
    """

    numbers: Integers
    low: Integers
    high: Integers
    parts_of_one: int = 1
    missing: str = ""

    def take(self, cells: Integers) -> "CellNumbers":
        """Return those of some cells."""
        return CellNumbers(self.numbers[cells], self.low[cells], self.high[cells], self.parts_of_one, self.missing)


def cell_numbers(attribute: Attribute) -> CellNumbers:
    """Return the numbers that stand for an attribute's regular cells."""
    division = attribute.division if isinstance(attribute, Ordinal) else None
    if isinstance(division, WholeNumbers):
        numbers = np.arange(division.low, division.high + 1)
        return CellNumbers(numbers, numbers, numbers)
    if isinstance(division, Bins):
        return _of_bins(attribute.name, division)
    numbers = np.arange(attribute.regular_size)
    kind = "names" if division is None else "dates"
    return CellNumbers(numbers, numbers, numbers, 1, f"'{attribute.name}' holds {kind}")


def _of_bins(name: str, division: Bins) -> CellNumbers:
    # The shortest decimal of a float is what was written: 0.1 means one tenth.
    edges = [Fraction(repr(edge)) for edge in division.edges]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    parts = lcm(*(middle.denominator for middle in middles))
    if parts * max(map(abs, edges)) > LARGEST_NUMBER:
        raise QueryError(f"the edges of '{name}' have too many digits for whole numbers of their bins; round the edges")
    numbers = np.array([int(middle * parts) for middle in middles], dtype=np.int64)
    low = np.array([floor(edge * parts) for edge in edges[:-1]], dtype=np.int64)
    return CellNumbers(numbers, low, np.array([ceil(edge * parts) for edge in edges[1:]], dtype=np.int64), parts)
