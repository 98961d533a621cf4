"""The two passes of belief propagation over a tree of counts, compiled.

Upward, a node's message is U(j) = L(j) Σ_i U_left(i) U_right(j-i) π(i|j), L the likelihood of its own noisy counts;
downward, each (j, i) gets its share of the node's posterior, which adds up to the posteriors of its children. Counts
are in units of the grid's step. A message lives on a window outside which it is negligible. The sums are
direct: a transform would lose the relative precision that matters near zero.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.parallel import compiled, compiled_fast
from veilcube.posterior.split_law import READY_ROWS, add_atoms, fill_row

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-8
NO_BOUND = 1 << 62


class Nodes(NamedTuple):
    """The tree, as the kernels read it: children, class of the split law, and measurements."""

    left: Integers
    right: Integers
    kind: Integers
    first: Integers
    values: Floats
    scales: Floats


class Grid(NamedTuple):
    """The grid of counts: its step, and which part of a message's peak is negligible."""

    step: float
    trimmed: float


class Windows(NamedTuple):
    """Where each node's message lives: grid points ``start`` onwards, at ``offset`` of the buffers."""

    start: Integers
    length: Integers
    offset: Integers


class Law(NamedTuple):
    """The split law's tables, as the kernels read them."""

    weights: Floats
    rows: Floats
    shares: Floats
    logs: Floats


@compiled
def plan_windows(group: Integers, nodes: Nodes, windows: Windows, grid: Grid) -> None:
    """Bound the window of each node by its children's windows and by the reach of its own measurements."""
    step, scales_away = grid.step, -np.log(grid.trimmed)
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
            value, reach = max(nodes.values[m], 0.0), scales_away * nodes.scales[m]
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


@compiled_fast
def _dot(first: Floats, second: Floats, third: Floats) -> float:
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i] * third[i]
    return total


@compiled_fast
def _spread(factor: float, first: Floats, second: Floats, third: Floats, to_first: Floats, to_second: Floats) -> None:
    for i in range(first.size):
        part = factor * first[i] * second[i] * third[i]
        to_first[i] += part
        to_second[i] += part


@compiled
def split_row(law: Law, kind: int, j: int, low: int, high: int, room: Floats) -> Floats:
    """Return π(i|j) for i from ``low`` to ``high``: a view of a ready row, or computed into ``room``."""
    if j < READY_ROWS:
        start = j * (j + 1) // 2
        return law.rows[kind, start + low : start + high + 1]
    fill_row(law.shares[kind], law.logs, j, low, high, room)
    add_atoms(law.weights[kind], j, low, high, room)
    return room[: high - low + 1]


@compiled
def pass_up(
    group: Integers, nodes: Nodes, windows: Windows, grid: Grid, law: Law, message: Floats, norm: Floats
) -> None:
    """Compute the messages of nodes whose children have theirs; ``norm`` keeps them without the own likelihood."""
    room, mirrored = np.empty(1), np.empty(1)
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
            if mirrored.size < windows.length[right] or room.size < windows.length[left]:
                mirrored, room = np.empty(2 * windows.length[right]), np.empty(2 * windows.length[left])
            _combine(v, nodes, windows, law, message, mirrored, room)
        norm[offset : offset + count] = message[offset : offset + count]
        _weigh(v, nodes, start, count, grid.step, message[offset : offset + count])
        _trim(v, windows, grid.trimmed, message, norm)


@compiled
def _combine(v: int, nodes: Nodes, windows: Windows, law: Law, message: Floats, mirrored: Floats, room: Floats) -> None:
    left, right = nodes.left[v], nodes.right[v]
    first, last = windows.start[left], windows.start[left] + windows.length[left] - 1
    bottom, top = windows.start[right], windows.start[right] + windows.length[right] - 1
    begin, other = windows.offset[left] - first, windows.offset[right]
    for x in range(windows.length[right]):
        mirrored[x] = message[other + windows.length[right] - 1 - x]
    for x in range(windows.length[v]):
        j = windows.start[v] + x
        low, high = max(first, j - top), min(last, j - bottom)
        total = 0.0
        if high >= low:
            row = split_row(law, nodes.kind[v], j, low, high, room)
            total = _dot(message[begin + low : begin + high + 1], mirrored[top - j + low : top - j + high + 1], row)
        message[windows.offset[v] + x] = total


@compiled
def _weigh(v: int, nodes: Nodes, start: int, count: int, step: float, message: Floats) -> None:
    """Multiply by the likelihood of the node's own measurements, relative to its best point in the window."""
    if nodes.first[v] == nodes.first[v + 1]:
        return
    exponents = np.zeros(count)
    for m in range(nodes.first[v], nodes.first[v + 1]):
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
    room, mirrored, shares = np.empty(1), np.empty(1), np.empty(1)
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
        if mirrored.size < width or room.size < windows.length[left]:
            mirrored, shares, room = np.empty(2 * width), np.empty(2 * width), np.empty(2 * windows.length[left])
        for x in range(width):
            mirrored[x] = message[windows.offset[right] + width - 1 - x]
            shares[x] = 0.0
        _divide(v, nodes, windows, law, message, norm, posterior, mirrored, shares, room)
        for x in range(width):
            posterior[windows.offset[right] + width - 1 - x] = shares[x]


@compiled
def _divide(
    v: int,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    norm: Floats,
    posterior: Floats,
    mirrored: Floats,
    shares: Floats,
    room: Floats,
) -> None:
    left, right, offset = nodes.left[v], nodes.right[v], windows.offset[v]
    first, last = windows.start[left], windows.start[left] + windows.length[left] - 1
    bottom, top = windows.start[right], windows.start[right] + windows.length[right] - 1
    begin = windows.offset[left] - first
    for x in range(windows.length[v]):
        if posterior[offset + x] < NEGLIGIBLE or norm[offset + x] <= 0.0:
            continue
        j = windows.start[v] + x
        low, high = max(first, j - top), min(last, j - bottom)
        if high < low:
            continue
        row = split_row(law, nodes.kind[v], j, low, high, room)
        factor = posterior[offset + x] / norm[offset + x]
        ours, theirs = message[begin + low : begin + high + 1], mirrored[top - j + low : top - j + high + 1]
        _spread(
            factor,
            ours,
            theirs,
            row,
            posterior[begin + low : begin + high + 1],
            shares[top - j + low : top - j + high + 1],
        )
