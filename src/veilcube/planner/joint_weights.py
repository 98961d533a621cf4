"""How joint noise of a block shares out its budget between the heights of its binary tree.

The shares are within 1% of the least-squares optimum for prefixes and random ranges together, as
docs/decisions/0014-joint-noise.md tells. They follow from the height alone.
"""

from fractions import Fraction

# A block that nothing was measured of yet, in percent: its root gets what is left, since it bounds the error of every
# prefix beyond the block.
OF_CELLS, OF_PAIRS, OF_A_HEIGHT, TALLEST = 24, 2, 7, 11
# Below a node that was measured: the cells, their pairs, each height between, and the two at the top.
CELLS, PAIRS, BETWEEN, TOP = 45, 3, 13, (15, 15)


def shares_with_root(height: int) -> tuple[Fraction, ...]:
    """Return the share of each height of a block, cells first, that was not measured before."""
    if not 0 <= height <= TALLEST:
        raise ValueError(f"shares are known for blocks of height 0 to {TALLEST}")
    below = (OF_CELLS, OF_PAIRS, *[OF_A_HEIGHT] * (height - 2))[:height]
    return _normalised((*below, 100 - sum(below)))


def shares_below(level: int) -> tuple[Fraction, ...]:
    """Return the share of each height below a measured node of some level, cells first.

    The node's halves, and from 16 cells on their halves, are left out: its own measurement and those below tell enough.
    """
    height = level - 2 if level > 3 else level - 1
    between = [PAIRS, *[BETWEEN] * (height - 3)] if height > 2 else []
    return _normalised((CELLS, *between, *TOP[: min(height, 2)]))


def _normalised(parts: tuple[int, ...]) -> tuple[Fraction, ...]:
    return tuple(Fraction(part, sum(parts)) for part in parts)
