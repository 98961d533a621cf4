"""The two passes of belief propagation over a tree of counts, compiled.

Upward, a node's message is U(j) = L(j) Σ_i U_left(i) U_right(j-i) π(i|j), L the likelihood of its own noisy counts;
downward, each (j, i) gets its share of the node's posterior, which adds up to the posteriors of its children. Counts
are in units of the grid's step. A message lives on a window outside which it is negligible. The sums are direct: a
transform would lose the relative precision that matters near zero.

For large counts, π(i|j) of the Beta components is smooth in j along lines on which the share of the left half hardly
changes: of equal 2i - j where both halves hold much of the count, of equal i (or j - i) where one half holds little.
Along them rows are interpolated between the borders of bands of counts, so a band costs two evaluated rows however many
counts lie in it; atoms are added to each row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcube.polya_tree.split_law import READY_ROWS, Law, fill_row, fill_shares
from veilcube.polya_tree.triple_products import dot, dot_atoms, dot_between, spread, spread_atoms, spread_between
from veilcube.system import Floats, Integers, compiled

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


NEGLIGIBLE = 1e-8
NO_BOUND = 1 << 62
FIRST_WIDTH = 256


class Nodes(NamedTuple):
    """The tree, as the kernels read it: children, class of the split law, and measurements.

    A scale t makes a likelihood of exp(-|x - y|/t), or of exp(-((x - y)/(2t))²) where noise is normal: the variance
    is 2t² both times.
    """

    left: Integers
    right: Integers
    kind: Integers
    first: Integers
    values: Floats
    scales: Floats
    is_normal: NDArray[np.bool_]


class Grid(NamedTuple):
    """The grid of counts: its step, and which part of a message's peak is negligible."""

    step: float
    trimmed: float


class Windows(NamedTuple):
    """Where each node's message lives: grid points ``start`` onwards, at ``offset`` of the buffers."""

    start: Integers
    length: Integers
    offset: Integers


@compiled
def plan_windows(group: Integers, nodes: Nodes, windows: Windows, grid: Grid) -> None:
    """Bound the window of each node by its children's windows and by the reach of its own measurements."""
    step, scales_away = grid.step, -np.log(grid.trimmed)
    scales_away_if_normal = 2.0 * np.sqrt(scales_away)
    for v in group:
        low, high = 0, NO_BOUND
        if nodes.left[v] >= 0:
            low, high = windows.start[nodes.left[v]], windows.start[nodes.left[v]] + windows.length[nodes.left[v]] - 1
        if nodes.right[v] >= 0:
            low += windows.start[nodes.right[v]]
            high += windows.start[nodes.right[v]] + windows.length[nodes.right[v]] - 1
        near, far = 0, NO_BOUND
        sharpest, its_near, its_far = np.inf, near, far
        for m in range(nodes.first[v], nodes.first[v + 1]):
            away = scales_away_if_normal if nodes.is_normal[m] else scales_away
            value, reach = max(nodes.values[m], 0.0), away * nodes.scales[m]
            lowest, highest = max(0, int(np.floor((value - reach) / step))), int(np.ceil((value + reach) / step))
            near, far = max(near, lowest), min(far, highest)
            if nodes.scales[m] < sharpest:
                sharpest, its_near, its_far = nodes.scales[m], lowest, highest
        if far < near:  # measurements that contradict each other: the one with the least noise counts
            near, far = its_near, its_far
        start, end = max(low, near), min(high, far)
        if end < start:
            start, end = max(low, min(near, high)), min(high, max(far, low))
            start, end = min(start, end), max(start, end)
        windows.start[v] = max(start, 0)
        windows.length[v] = end - max(start, 0) + 1


class Scratch(NamedTuple):
    """Room for one node's work: the right half's message and posterior backwards, and a band of rows."""

    mirrored: Floats
    shares: Floats
    band: Band


@compiled
def _new_scratch(width: int) -> Scratch:
    return Scratch(np.empty(width), np.empty(width), new_band(width))


@compiled
def _roomy(scratch: Scratch, left: int, right: int) -> Scratch:
    """Return room for halves with windows of these lengths."""
    return scratch if left + right <= scratch.mirrored.size else _new_scratch(2 * (left + right))


@compiled
def _mirror(source: Floats, offset: int, count: int, out: Floats) -> None:
    for x in range(count):
        out[x] = source[offset + count - 1 - x]


@compiled
def _halves(v: int, nodes: Nodes, windows: Windows) -> Frame:
    """Return the frame of a node: from its children alone, so that it is the same on the way up and down."""
    left, right = nodes.left[v], nodes.right[v]
    first, bottom = windows.start[left], windows.start[right]
    return frame_of(first, first + windows.length[left] - 1, bottom, bottom + windows.length[right] - 1)


@compiled
def pass_up(
    group: Integers, nodes: Nodes, windows: Windows, grid: Grid, law: Law, message: Floats, norm: Floats
) -> None:
    """Compute the messages of nodes whose children have theirs; ``norm`` keeps them without the own likelihood."""
    scratch = _new_scratch(FIRST_WIDTH)
    for v in group:
        start, count, offset = windows.start[v], windows.length[v], windows.offset[v]
        left, right = nodes.left[v], nodes.right[v]
        if left < 0:
            message[offset : offset + count] = 1.0
        elif right < 0:
            for x in range(count):
                y = start + x - windows.start[left]
                inside = 0 <= y < windows.length[left]
                message[offset + x] = message[windows.offset[left] + y] if inside else 0.0
        else:
            scratch = _roomy(scratch, windows.length[left], windows.length[right])
            _mirror(message, windows.offset[right], windows.length[right], scratch.mirrored)
            _combine(v, nodes, windows, law, message, scratch)
        norm[offset : offset + count] = message[offset : offset + count]
        _weigh(v, nodes, start, count, grid.step, message[offset : offset + count])
        _trim(v, windows, grid.trimmed, message, norm)


@compiled
def _combine(v: int, nodes: Nodes, windows: Windows, law: Law, message: Floats, scratch: Scratch) -> None:
    frame, mirrored, band = _halves(v, nodes, windows), scratch.mirrored, scratch.band
    first, last, bottom, top = frame.first, frame.last, frame.bottom, frame.top
    begin, to, start = windows.offset[nodes.left[v]] - first, windows.offset[v], windows.start[v]
    kind, logs = nodes.kind[v], law.logs
    shares, ready, weights = law.shares[kind], law.rows[kind], law.weights[kind]
    borders, lower, upper = band.borders, band.lower, band.upper
    borders[:] = -1
    for j in range(start, start + windows.length[v]):
        low, high = max(first, j - top), min(last, j - bottom)
        total, mine, other, count = 0.0, begin + low, top - j + low, high - low + 1
        if count > 0 and j < READY_ROWS:
            total = dot(message, mine, mirrored, other, ready, j * (j + 1) // 2 + low, count)
        elif count > 0:
            if not borders[0] <= j < borders[1]:
                enter_band(shares, logs, j, low, high, frame, band)
            part, place = (j - borders[0]) / (borders[1] - borders[0]), place_in_band(j, low, frame)
            total = dot_between(message, mine, mirrored, other, lower, upper, place, part, count)
            total += dot_atoms(message, begin, mirrored, top - j, weights, j, low, high)
        message[to + j - start] = total


@compiled
def _weigh(v: int, nodes: Nodes, start: int, count: int, step: float, message: Floats) -> None:
    """Multiply by the likelihood of the node's own measurements, relative to its best point in the window."""
    if nodes.first[v] == nodes.first[v + 1]:
        return
    exponents = np.zeros(count)
    for m in range(nodes.first[v], nodes.first[v + 1]):
        if nodes.is_normal[m]:
            for x in range(count):
                exponents[x] += ((nodes.values[m] - step * (start + x)) / (2.0 * nodes.scales[m])) ** 2
            continue
        for x in range(count):
            exponents[x] += abs(nodes.values[m] - step * (start + x)) / nodes.scales[m]
    least = exponents.min()
    for x in range(count):
        message[x] *= np.exp(least - exponents[x])


@compiled
def _trim(v: int, windows: Windows, trimmed: float, message: Floats, norm: Floats) -> None:
    """Scale the message to a peak of 1 and cut its negligible ends; if all of it vanished, know nothing."""
    offset, count = windows.offset[v], windows.length[v]
    peak = message[offset : offset + count].max()
    if not peak > 0.0:
        message[offset : offset + count] = 1.0
        norm[offset : offset + count] = 0.0
        return
    head, tail = 0, count - 1
    while message[offset + head] < trimmed * peak:
        head += 1
    while message[offset + tail] < trimmed * peak:
        tail -= 1
    for x in range(head, tail + 1):
        message[offset + x] /= peak
    windows.start[v] += head
    windows.offset[v] += head
    windows.length[v] = tail - head + 1


@compiled
def pass_down(
    group: Integers,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    norm: Floats,
    posterior: Floats,
) -> None:
    """Divide the posteriors of nodes among their children."""
    scratch = _new_scratch(FIRST_WIDTH)
    for v in group:
        left, right = nodes.left[v], nodes.right[v]
        if left < 0:
            continue
        start, count, offset = windows.start[v], windows.length[v], windows.offset[v]
        if right < 0:
            for x in range(count):
                y = start + x - windows.start[left]
                if 0 <= y < windows.length[left]:
                    posterior[windows.offset[left] + y] = posterior[offset + x]
            continue
        width = windows.length[right]
        scratch = _roomy(scratch, windows.length[left], width)
        _mirror(message, windows.offset[right], width, scratch.mirrored)
        scratch.shares[:width] = 0.0
        _divide(v, nodes, windows, law, message, norm, posterior, scratch)
        _mirror(scratch.shares, 0, width, posterior[windows.offset[right] : windows.offset[right] + width])


@compiled
def _divide(
    v: int,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    norm: Floats,
    posterior: Floats,
    scratch: Scratch,
) -> None:
    frame, mirrored, band = _halves(v, nodes, windows), scratch.mirrored, scratch.band
    first, last, bottom, top = frame.first, frame.last, frame.bottom, frame.top
    begin, at, start = windows.offset[nodes.left[v]] - first, windows.offset[v], windows.start[v]
    kind, logs = nodes.kind[v], law.logs
    shares, ready, weights = law.shares[kind], law.rows[kind], law.weights[kind]
    borders, lower, upper, theirs = band.borders, band.lower, band.upper, scratch.shares
    borders[:] = -1
    for j in range(start, start + windows.length[v]):
        chance, weight = posterior[at + j - start], norm[at + j - start]
        low, high = max(first, j - top), min(last, j - bottom)
        if chance < NEGLIGIBLE or weight <= 0.0 or high < low:
            continue
        factor, mine, other, count = chance / weight, begin + low, top - j + low, high - low + 1
        if j < READY_ROWS:
            spread(factor, message, mine, mirrored, other, ready, j * (j + 1) // 2 + low, count, posterior, theirs)
            continue
        if not borders[0] <= j < borders[1]:
            enter_band(shares, logs, j, low, high, frame, band)
        part, place = (j - borders[0]) / (borders[1] - borders[0]), place_in_band(j, low, frame)
        spread_between(factor, message, mine, mirrored, other, lower, upper, place, part, count, posterior, theirs)
        spread_atoms(factor, message, begin, mirrored, top - j, weights, j, low, high, posterior, theirs)
