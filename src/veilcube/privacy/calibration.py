"""Calibration: the noise scale that an epsilon buys, and back.

For integer measurements of L1 sensitivity d, discrete Laplace noise of scale s is (d / s)-differentially private and
no better (the ratio of the probabilities of neighbouring tables reaches exp(d / s)). The sampler works with 64-bit
integers, so a scale whose fraction is too long is rounded up: slightly more noise, never less.
"""

from fractions import Fraction
from math import ceil

from veilcube.errors import PrivacyError
from veilcube.privacy.neighbours import Neighbours
from veilcube.privacy.unit import PrivacyUnit

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


def unit_sensitivity(per_row: int, per_row_replaced: int, unit: PrivacyUnit, neighbours: Neighbours) -> int:
    """Return the L1 sensitivity to one unit from that to one row.

    ``per_row`` is the largest change when a row is added or removed, ``per_row_replaced`` when one is exchanged. A
    person with a rows who is exchanged for one with b < a rows changes b rows and takes a - b away, at most
    b * per_row_replaced + (a - b) * per_row, which is linear in b: it is largest where b is 0 or a.
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return per_row * unit.max_rows
    return per_row_replaced if unit.kind == "row" else unit.max_rows * max(per_row, per_row_replaced)
