"""How one attribute may be measured (flat, by its hierarchy, by a balanced tree), and which of these are tried.

Each level has a whole multiplier.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal, TypeAlias

import numpy as np

from veilcube.operators import AxisOperator, FlatAxis, TreeAxis, hierarchy_levels, levels_of_fanouts, tree_fanouts
from veilcube.planner.design import Family
from veilcube.schema import Attribute, Nominal
from veilcube.system import Integers

# Fan-outs of the levels between the total and the cells: (8, 8) on 512 cells has levels of 1, 8, 64 and 512 nodes.
Branches: TypeAlias = tuple[int, ...] | Literal["flat", "hierarchy"]


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


# Beyond this many cells only a few fan-outs are tried, and beyond the second limit only one, with equal weights.
MOST_CELLS_TO_SEARCH = 2**18
MOST_CELLS_TO_OPTIMISE = 2**24
# Gaussian noise on L levels costs the root of L times that on one, not L times it: more levels pay.
FEW_FANOUTS: Mapping[Family, tuple[int, ...]] = {"laplace": (16, 32, 64), "gaussian": (4, 8, 16)}
ONE_FANOUT: Mapping[Family, int] = {"laplace": 16, "gaussian": 8}
_DEEPEST: Mapping[Family, int] = {"laplace": 6, "gaussian": 12}
_SKEWS = (0.6, 1.0, 1.6)
_FULL_DEPTH = (2, 3)
_MOST_BINARY_CELLS = 2**12


def options_for(attribute: Attribute, family: Family = "laplace") -> tuple[Branches, ...]:
    """Return the trees to try for a family of noise, flat first.

    Ordinal attributes: balanced trees of each depth, with a smaller or larger first fan-out, and the trees of fan-out 2
    and 3, whose levels of little weight are merged later. Nominal ones: their hierarchy, and the total with the cells.
    """
    if attribute.size == 1:
        return ("flat",)
    if isinstance(attribute, Nominal):
        return ("flat", "hierarchy", ()) if attribute.hierarchy.groups else ("flat", ())
    if attribute.size > MOST_CELLS_TO_OPTIMISE:
        return (tree_fanouts(attribute.size, ONE_FANOUT[family])[1:],)
    if attribute.size > MOST_CELLS_TO_SEARCH:
        return tuple(dict.fromkeys(tree_fanouts(attribute.size, fanout)[1:] for fanout in FEW_FANOUTS[family]))
    found: list[Branches] = ["flat", ()]
    for depth in range(2, _DEEPEST[family] + 1):
        found += [_balanced(attribute.size, depth, skew) for skew in _SKEWS]
    if attribute.size <= _MOST_BINARY_CELLS:
        found += [tree_fanouts(attribute.size, fanout)[1:] for fanout in _FULL_DEPTH]
    return tuple(dict.fromkeys(found))


def _balanced(size: int, depth: int, skew: float) -> tuple[int, ...]:
    """Return near-equal fan-outs of a tree of ``depth`` levels below the total; ``skew`` multiplies the first one."""
    fanouts: list[int] = []
    left = size
    for below in range(depth, 1, -1):
        even = left ** (1 / below)
        fanout = round(even * skew) if below == depth else round(even)
        if fanout < 2 or ceil(left / max(fanout, 1)) < 2:
            break
        fanouts.append(fanout)
        left = ceil(left / fanout)
    return tuple(fanouts)


def merge_levels(branches: tuple[int, ...], is_light: tuple[bool, ...]) -> tuple[int, ...]:
    """Leave out inner levels: ``is_light`` tells for each fan-out's level whether it goes; its fan-out joins the next.

    >>> merge_levels((2, 2, 2, 2), (True, False, True, False))
    (4, 4)
    """
    merged: list[int] = []
    pending = 1
    for fanout, leaves in zip(branches, is_light, strict=True):
        pending *= fanout
        if not leaves:
            merged.append(pending)
            pending = 1
    return tuple(merged)
