"""Rows of the split law for large counts, shared by neighbouring counts.

π(i|j) of the Beta components is smooth in j along lines on which the share of the left half hardly changes: lines of
equal difference 2i - j where both halves hold much of the count, lines of equal i (or of equal j - i) where one half
holds little. Along them rows are interpolated between the borders of bands of counts, each narrow beside its counts. A
band costs two evaluated rows however many counts lie in it; atoms are no part of this and are added to each row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.parallel import compiled
from veilcube.posterior.split_law import READY_ROWS, fill_row, fill_shares

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Bands are from 2^-FINENESS to half of that as wide as their counts are large.
FINENESS = 5
EQUAL_DIFFERENCE, EQUAL_LEFT, EQUAL_RIGHT, NO_LINES = 0, 1, 2, 3
# Up to which share of a half lines of its equal counts serve, and from which on lines of equal difference do.
LITTLE, MUCH = 0.35, 1 / 16


class Frame(NamedTuple):
    """The windows of two halves, inclusive, and the kind of lines along which rows are interpolated."""

    first: int
    last: int
    bottom: int
    top: int
    lines: int


class Band(NamedTuple):
    """The rows at the two ``borders`` of the band at hand; ``shares`` is room to compute them."""

    borders: Integers
    lower: Floats
    upper: Floats
    shares: Floats


@compiled
def frame_of(first: int, last: int, bottom: int, top: int) -> Frame:
    """Return the frame of halves with counts from ``first`` to ``last`` and from ``bottom`` to ``top``."""
    start, end = max(first + bottom, READY_ROWS), last + top
    if end < start:
        return Frame(first, last, bottom, top, NO_LINES)
    # Where i is least beside j its two bounds, first and j - top, cross; likewise where it is greatest.
    low_at, high_at = min(max(first + top, start), end), min(max(last + bottom, start), end)
    least, greatest = max(first, low_at - top) / low_at, min(last, high_at - bottom) / high_at
    lines = NO_LINES
    if least >= MUCH and greatest <= 1.0 - MUCH:
        lines = EQUAL_DIFFERENCE
    elif greatest <= LITTLE:
        lines = EQUAL_LEFT
    elif least >= 1.0 - LITTLE:
        lines = EQUAL_RIGHT
    return Frame(first, last, bottom, top, lines)


@compiled
def new_band(width: int) -> Band:
    """Return an empty band for halves whose windows are ``width`` wide together."""
    return Band(np.full(2, -1), np.zeros(width + 4), np.zeros(width + 4), np.zeros(width + 4))


@compiled
def enter_band(shares: Floats, logs: Floats, j: int, low: int, high: int, frame: Frame, band: Band) -> None:
    """Make ``band`` the one that holds j; where there are no lines, the row of j alone."""
    if frame.lines == NO_LINES:
        fill_row(shares, logs, j, low, high, band.lower)
        band.borders[0], band.borders[1] = j, j + 1
        return
    width, used = 1, frame.last - frame.first + frame.top - frame.bottom + 2
    while width <= j >> (FINENESS + 1):
        width *= 2
    begin = j // width * width
    if band.borders[1] == begin:
        band.lower[:used] = band.upper[:used]
    else:
        _fill_border(shares, logs, begin, frame, band.shares, band.lower)
    _fill_border(shares, logs, begin + width, frame, band.shares, band.upper)
    band.borders[0], band.borders[1] = begin, begin + width


@compiled
def place_in_band(j: int, low: int, frame: Frame) -> int:
    """Return where in both rows of the band the split of j into ``low`` and the rest lies; larger ones follow."""
    if frame.lines == EQUAL_LEFT:
        return low - frame.first
    if frame.lines == EQUAL_RIGHT:
        return frame.top - j + low
    if frame.lines == NO_LINES:
        return 0
    apart = 2 * low - j - (frame.first - frame.top)
    return apart // 2 + (apart % 2) * _odd_begin(frame)


@compiled
def _odd_begin(frame: Frame) -> int:
    """Return where the odd differences start, after the even ones (counted from the least)."""
    return (frame.last - frame.first + frame.top - frame.bottom) // 2 + 1


@compiled
def _fill_border(shares: Floats, logs: Floats, j: int, frame: Frame, room: Floats, out: Floats) -> None:
    """Write the row at a border of bands, laid out so that consecutive i are neighbours on every line."""
    if frame.lines == EQUAL_LEFT:
        fill_row(shares, logs, j, frame.first, frame.last, out)
    elif frame.lines == EQUAL_RIGHT:  # the Beta components are symmetric
        count = frame.top - frame.bottom + 1
        fill_row(shares, logs, j, frame.bottom, frame.top, room)
        for x in range(count):
            out[x] = room[count - 1 - x]
    else:
        least, greatest = frame.first - frame.top, frame.last - frame.bottom
        fill_shares(shares, logs, j, j + least - 1, 1, greatest - least + 3, room)
        odd = _odd_begin(frame)
        for x in range(greatest - least + 1):
            out[x // 2 + (x % 2) * odd] = room[x + 2] - room[x]
