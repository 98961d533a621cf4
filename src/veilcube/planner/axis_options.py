"""Which trees over one attribute the planner tries."""

from math import ceil

from veilcube.operators.tree_shape import tree_fanouts
from veilcube.planner.axis_tree import Branches
from veilcube.schema import Attribute, Nominal

# Beyond this many cells only a few fan-outs are tried, and beyond the second limit only one, with equal weights.
MOST_CELLS_TO_SEARCH = 2**18
MOST_CELLS_TO_OPTIMISE = 2**24
FEW_FANOUTS = (16, 32, 64)
ONE_FANOUT = 16
_DEEPEST = 6
_SKEWS = (0.6, 1.0, 1.6)
_FULL_DEPTH = (2, 3)
_MOST_BINARY_CELLS = 2**12


def options_for(attribute: Attribute) -> tuple[Branches, ...]:
    """Return the trees to try, flat first.

    Ordinal attributes: balanced trees of each depth, with a smaller or larger first fan-out, and the trees of fan-out 2
    and 3, whose levels of little weight are merged later. Nominal ones: their hierarchy, and the total with the cells.
    """
    if attribute.size == 1:
        return ("flat",)
    if isinstance(attribute, Nominal):
        return ("flat", "hierarchy", ()) if attribute.hierarchy.groups else ("flat", ())
    if attribute.size > MOST_CELLS_TO_OPTIMISE:
        return (tree_fanouts(attribute.size, ONE_FANOUT)[1:],)
    if attribute.size > MOST_CELLS_TO_SEARCH:
        return tuple(dict.fromkeys(tree_fanouts(attribute.size, fanout)[1:] for fanout in FEW_FANOUTS))
    found: list[Branches] = ["flat", ()]
    for depth in range(2, _DEEPEST + 1):
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
