"""How one attribute is measured: flat, by its hierarchy, or by a balanced tree, each level with a whole multiplier."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.axis import AxisOperator, FlatAxis
from veilcube.operators.tree import TreeAxis
from veilcube.operators.tree_shape import hierarchy_levels, levels_of_fanouts
from veilcube.schema import Attribute, Nominal

# Fan-outs of the levels between the total and the cells: (8, 8) on 512 cells has levels of 1, 8, 64 and 512 nodes.
Branches: TypeAlias = tuple[int, ...] | Literal["flat", "hierarchy"]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class AxisTree:
    """A tree over one attribute and a multiplier for each of its levels, from the top down to the cells.

    One multiplier fewer than there are levels: the total is not measured. A flat attribute has the multiplier 1.
    """

    branches: Branches
    multipliers: tuple[int, ...]

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """Each level's share of the budget."""
        return tuple(Fraction(multiplier, sum(self.multipliers)) for multiplier in self.multipliers)

    def operator(self, attribute: Attribute) -> AxisOperator:
        """Return the linear map on the attribute's cells."""
        if self.branches == "flat" or attribute.size == 1:
            return FlatAxis(attribute.size)
        if self.branches == "hierarchy":
            cells = np.arange(attribute.size + 1, dtype=np.int64)
            levels = (*inner_levels_of(attribute, self.branches), cells)
            return TreeAxis(attribute.size, levels[len(levels) - len(self.multipliers) :], self.multipliers)
        fanouts = (1, *self.branches)
        return TreeAxis.balanced(attribute.size, fanouts[len(fanouts) + 1 - len(self.multipliers) :], self.multipliers)


FLAT = AxisTree("flat", (1,))


def inner_levels_of(attribute: Attribute, branches: Branches) -> tuple[Integers, ...]:
    """Return the boundaries of every level above the cells, the total first; none if the attribute is flat."""
    if branches == "flat" or attribute.size == 1:
        return ()
    if branches == "hierarchy":
        if not isinstance(attribute, Nominal):
            raise TypeError("only a nominal attribute has a hierarchy")
        return hierarchy_levels(attribute.hierarchy, attribute.size)[:-1]
    return levels_of_fanouts(attribute.size, (1, *branches))


def count_levels(attribute: Attribute, branches: Branches) -> int:
    """Return how many levels the tree has, total and cells included."""
    if branches == "flat" or attribute.size == 1:
        return 1
    return len(inner_levels_of(attribute, branches)) + 1 if branches == "hierarchy" else len(branches) + 2
