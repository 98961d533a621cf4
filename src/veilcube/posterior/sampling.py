"""Draws from the joint posterior of all cells, as deviations from its mean: what intervals of any sums are made of.

From the root down, each node's count is divided by the exact conditional law of its left half; below the nodes that
were measured last all of it goes to one cell, so that what nobody measured counts as unknown and not as even. Draws are
post-processing: they come from a hash of the draw and the node, and the same release always gives the same intervals.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.parallel import THREADS, compiled
from veilcube.posterior.belief import Belief, kernel_law, kernel_nodes
from veilcube.posterior.messages import Nodes, Windows
from veilcube.posterior.split_law import Law, split_row

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Draws = NDArray[np.float32]

DRAWS = 128
# How much further than alone unmeasured cells stray from their means, since neighbouring nodes stray alike.
ALIKE = 1.6
# A prior may be wrong, so whoever makes an interval of the spread of draws multiplies it by this.
WIDENING = 1.2


def draw_cells(belief: Belief, draws: int = DRAWS) -> Draws:
    """Return draws (draws, cells) of all cells less their posterior means, flat in the cube's order.

    Deviations are small where counts are large, so that short floats hold them, and sums of them, without loss.
    """
    measured, tree = belief.measured, belief.measured.tree
    starts, ends = measured.spans()
    nodes, tables = kernel_nodes(measured), kernel_law(belief.law)
    upto = belief.cumulative_shares()
    deviations = np.empty((draws, tree.cells), dtype=np.float32)
    means = belief.cells()

    def draw(part: Integers) -> None:
        counts = np.empty(tree.cells)
        for number in part:
            counts[:] = 0.0
            _draw_one(
                int(number),
                nodes,
                belief.windows,
                tables,
                belief.messages,
                belief.chances,
                starts,
                ends,
                upto,
                counts,
            )
            deviations[number, tree.order] = counts * belief.step - means[tree.order]

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(draw, np.array_split(np.arange(draws), THREADS)))
    return deviations


@compiled
def _uniform(draw: int, place: int) -> float:
    """Return a number in (0, 1) that depends on its arguments only (splitmix64)."""
    mixed = np.uint64(draw + 1) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(place + 1) * np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return (float(mixed >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled
def _draw_one(
    number: int,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    chances: Floats,
    starts: Integers,
    ends: Integers,
    upto: Floats,
    out: Floats,
) -> None:
    """Draw all cells once, in the order of the tree, in steps of the grid."""
    counts = np.zeros(nodes.left.size, dtype=np.int64)
    room = np.empty(1)
    target, seen, x = _uniform(number, 0), 0.0, 0
    while x < windows.length[0] - 1 and seen + chances[windows.offset[0] + x] < target:
        seen += chances[windows.offset[0] + x]
        x += 1
    counts[0] = windows.start[0] + x
    for v in range(nodes.left.size):  # parents come before their children
        left, right = nodes.left[v], nodes.right[v]
        if left < 0:
            target = _uniform(number, nodes.left.size + starts[v]) * upto[ends[v] - 1]
            for cell in range(starts[v], ends[v]):
                share = upto[cell] - (upto[cell - 1] if cell > starts[v] else 0.0)
                out[cell] = (1.0 - ALIKE) * counts[v] * share
            out[starts[v] + np.searchsorted(upto[starts[v] : ends[v] - 1], target)] += ALIKE * counts[v]
        elif right < 0:
            counts[left] = counts[v]
        else:
            if room.size < windows.length[left]:
                room = np.empty(2 * windows.length[left])
            counts[left] = _draw_left(number, v, counts[v], nodes, windows, law, message, room)
            counts[right] = counts[v] - counts[left]


@compiled
def _draw_left(
    number: int, v: int, j: int, nodes: Nodes, windows: Windows, law: Law, message: Floats, room: Floats
) -> int:
    """Draw the count of the left half from its law given the node's count and all measurements below."""
    left, right = nodes.left[v], nodes.right[v]
    low = max(windows.start[left], j - windows.start[right] - windows.length[right] + 1)
    high = min(windows.start[left] + windows.length[left] - 1, j - windows.start[right])
    if high < low:  # outside what the messages kept: the nearest division that they allow
        return int(max(0, min(j, low)))
    row = split_row(law, nodes.kind[v], j, low, high, room)
    total = 0.0
    chances = np.empty(high - low + 1)
    for i in range(low, high + 1):
        mine = message[windows.offset[left] + i - windows.start[left]]
        total += mine * message[windows.offset[right] + j - i - windows.start[right]] * row[i - low]
        chances[i - low] = total
    target = _uniform(number, v + 1) * total
    return int(low + np.searchsorted(chances[:-1], target))
