"""The numbers that stand for an attribute's cells, as whole multiples of one unit, so that sums of them are integers.

A whole number stands for itself, in units of 1. A bin stands for its middle; edges are read as the decimals that people
write, and the unit is the largest number of which every middle is a whole multiple. Values outside the schema and
missing ones count as 0.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.schema import Attribute, Bins, Ordinal, WholeNumbers
from veilcube.system.memory import require_cells

LARGEST_NUMBER = 2**53


@dataclass(frozen=True, eq=False)
class CellValues:
    """Each cell's number, ``unit`` times ``numbers[cell]``; 0 for the cells of stray values."""

    unit: Fraction
    numbers: NDArray[np.int64]


def cell_values(attribute: Attribute) -> CellValues:
    """Return the numbers of an attribute's cells; refuses attributes whose cells have none."""
    division = attribute.division if isinstance(attribute, Ordinal) else None
    require_cells(attribute.size, 24, f"summing '{attribute.name}'")
    numbers = np.zeros(attribute.size, dtype=np.int64)
    if isinstance(division, WholeNumbers):
        numbers[: division.size] = np.arange(division.low, division.high + 1)
        return CellValues(Fraction(1), numbers)
    if isinstance(division, Bins):
        unit, multiples = _in_units(_middles(division))
        if max(map(abs, multiples)) > LARGEST_NUMBER:
            raise QueryError(
                f"the edges of '{attribute.name}' have too many digits to be summed as whole numbers; round the edges"
            )
        numbers[: division.size] = multiples
        return CellValues(unit, numbers)
    if division is not None:
        raise QueryError(f"'{attribute.name}' holds dates, which have no sum or mean; ask for counts instead")
    raise QueryError(f"'{attribute.name}' has no order, so it has no sum, mean or moment; ask for its marginal")


def _middles(division: Bins) -> list[Fraction]:
    # The shortest decimal of a float is what was written: 0.1 means one tenth.
    edges = [Fraction(repr(edge)) for edge in division.edges]
    return [(low + high) / 2 for low, high in pairwise(edges)]


def _in_units(values: list[Fraction]) -> tuple[Fraction, list[int]]:
    denominator = lcm(*(value.denominator for value in values))
    multiples = [int(value * denominator) for value in values]
    common = reduce(gcd, multiples) or 1
    return Fraction(common, denominator), [multiple // common for multiple in multiples]
