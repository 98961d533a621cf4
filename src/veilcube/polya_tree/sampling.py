"""Draws from the joint posterior, as deviations from its mean: what intervals of any sums are made of.

From the root down, each node's count is divided by the exact conditional law of its left half. Below the nodes that
were measured last all of it goes to one cell, so that what nobody measured counts as unknown and not as even. Draws
are post-processing: they come from a hash of the draw and the node, and the same release always gives the same
intervals.
"""

from collections.abc import Iterator

import numpy as np

from veilcube.polya_tree.belief import Belief, loop_law, loop_nodes
from veilcube.polya_tree.messages import Nodes, Windows
from veilcube.polya_tree.split_law import Law, split_row
from veilcube.system import Floats, Integers, compiled, compiled_fast, share_out

DRAWS = 128
# How much further than alone unmeasured cells stray from their means, since neighbouring nodes stray alike.
ALIKE = 1.6
# Draws of one node that have the same count share its law, so many of them are drawn together; cells fill more memory.
DRAWS_TOGETHER, DRAWS_AT_ONCE = 64, 16
# Laws are summed by blocks of so many counts, and a draw looks for its block first.
BLOCK = 16
EVERY_SO_MANY_ALIKE = 4


def draw_deviations(belief: Belief, draws: int) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Yield draws of the cells less their means, as far as nodes were measured, and of what lies below these.

    Each time these are a few draws, with their numbers.
    """
    means = belief.cells()
    for first in range(0, draws, DRAWS_TOGETHER):
        together = np.arange(first, min(first + DRAWS_TOGETHER, draws))
        counts = draw_counts(belief, together)
        for start in range(0, together.size, DRAWS_AT_ONCE):
            numbers, some = together[start : start + DRAWS_AT_ONCE], counts[start : start + DRAWS_AT_ONCE]
            yield numbers, belief.spread(some) - means, scattered(belief, some, numbers)


def draw_counts(belief: Belief, numbers: Integers) -> Floats:
    """Return the draws with these numbers of the counts of all nodes: (draws, nodes)."""
    nodes, tables = loop_nodes(belief.measured), loop_law(belief.law)
    counts = np.empty((numbers.size, belief.measured.left.size))

    def draw(start: int, stop: int) -> None:
        drawn = np.empty((belief.measured.left.size, stop - start), dtype=np.int64)
        _draw_nodes(numbers[start:stop], nodes, belief.windows, tables, belief.messages, belief.chances, drawn)
        np.multiply(drawn.T, belief.step, out=counts[start:stop])

    share_out(draw, numbers.size, counts.size)
    return counts


def scattered(belief: Belief, counts: Floats, numbers: Integers) -> Floats:
    """Return how far cells that nobody measured lie from their shares, if all of a node is in one of them."""
    measured, tree = belief.measured, belief.measured.tree
    (starts, ends), leaves = measured.spans(), measured.leaves
    upto, found = belief.cumulative_shares(), np.empty((numbers.size, tree.cells))

    def scatter(start: int, stop: int) -> None:
        for row in range(start, stop):
            in_order = np.zeros(tree.cells)
            _scatter_one(int(numbers[row]), counts[row], leaves, starts, ends, upto, in_order)
            found[row, tree.order] = in_order

    share_out(scatter, numbers.size, found.size)
    return found


@compiled
def _uniform(draw: int, place: int) -> float:
    """Return a number in (0, 1) that depends on its arguments only (splitmix64)."""
    mixed = np.uint64(draw + 1) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(place + 1) * np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return (float(mixed >> np.uint64(11)) + 0.5) * 2.0**-53


def hashed_normals(numbers: Integers, places: int, after: int) -> Floats:
    """Return standard normal numbers (draws, places) that depend on the draws' numbers and on the places only.

    ``after`` places of the same hash are left to others.
    """
    found = np.empty((numbers.size, places))

    def fill(start: int, stop: int) -> None:
        _fill_normals(numbers[start:stop], after, found[start:stop])

    share_out(fill, numbers.size, found.size)
    return found


@compiled
def _fill_normals(numbers: Integers, after: int, out: Floats) -> None:
    for row in range(out.shape[0]):
        for place in range(out.shape[1]):  # Box and Muller
            radius = np.sqrt(-2.0 * np.log(_uniform(numbers[row], after + 2 * place)))
            out[row, place] = radius * np.cos(2.0 * np.pi * _uniform(numbers[row], after + 2 * place + 1))


@compiled
def _draw_nodes(
    numbers: Integers, nodes: Nodes, windows: Windows, law: Law, message: Floats, chances: Floats, counts: Integers
) -> None:
    """Draw the counts (nodes, draws) of all nodes, in steps of the grid.

    Draws are the inner loop: what is read of a node is read once for all of them.
    """
    size = windows.length.max()
    room, products, upto = np.empty(size), np.empty(size), np.empty(size // BLOCK + 2)
    for row in range(numbers.size):
        target, seen, x = _uniform(numbers[row], 0), 0.0, 0
        while x < windows.length[0] - 1 and seen + chances[windows.offset[0] + x] < target:
            seen += chances[windows.offset[0] + x]
            x += 1
        counts[0, row] = windows.start[0] + x
    for v in range(nodes.left.size):  # parents come before their children
        left, right = nodes.left[v], nodes.right[v]
        if left >= 0 and right < 0:
            counts[left] = counts[v]
        elif left >= 0:
            ready, low, high = -1, 0, 0
            for row in np.argsort(counts[v]):
                j = counts[v, row]
                if j != ready:  # the law of the halves depends on the count alone
                    low, high = _fill_products(v, j, nodes, windows, law, message, room, products, upto)
                    ready = j
                target = _uniform(numbers[row], v + 1)
                counts[left, row] = _place(products, upto, low, high, target) if low <= high else max(0, min(j, low))
                counts[right, row] = j - counts[left, row]


@compiled
def _scatter_one(
    number: int, counts: Floats, leaves: Integers, starts: Integers, ends: Integers, upto: Floats, out: Floats
) -> None:
    """Put the whole count of every leaf into one of its cells, drawn by their shares, less what each would get.

    Rows may be heaped alike everywhere, so in some draws it is the same cell in all leaves.
    """
    is_alike = number % EVERY_SO_MANY_ALIKE == 0
    for v in leaves:
        place = counts.size + (0 if is_alike else starts[v])
        target = _uniform(number, place) * upto[ends[v] - 1]
        for cell in range(starts[v], ends[v]):
            share = upto[cell] - (upto[cell - 1] if cell > starts[v] else 0.0)
            out[cell] -= ALIKE * counts[v] * share
        out[starts[v] + np.searchsorted(upto[starts[v] : ends[v] - 1], target)] += ALIKE * counts[v]


@compiled
def _fill_products(
    v: int,
    j: int,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    room: Floats,
    products: Floats,
    upto: Floats,
) -> tuple[int, int]:
    """Write the law of the left half's count given the node's and all measurements below, and return its ends.

    The law is not normalised; ``upto`` has its sums up to the end of each block. Where the messages kept no division,
    the ends cross, and the first is the nearest one.
    """
    left, right = nodes.left[v], nodes.right[v]
    low = max(windows.start[left], j - windows.start[right] - windows.length[right] + 1)
    high = min(windows.start[left] + windows.length[left] - 1, j - windows.start[right])
    if high < low:
        return low, high
    count = high - low + 1
    row = split_row(law, nodes.kind[v], j, low, high, room)
    mine = windows.offset[left] + low - windows.start[left]
    theirs = windows.offset[right] + j - low - windows.start[right]
    _multiply(message[mine : mine + count], message[theirs - count + 1 : theirs + 1], row, products)
    total = 0.0
    for block in range((count + BLOCK - 1) // BLOCK):
        total += _summed(products[block * BLOCK : min((block + 1) * BLOCK, count)])
        upto[block] = total
    return low, high


@compiled_fast
def _multiply(mine: Floats, theirs: Floats, row: Floats, out: Floats) -> None:
    last = mine.size - 1
    for x in range(mine.size):
        out[x] = mine[x] * theirs[last - x] * row[x]


@compiled_fast
def _summed(values: Floats) -> float:
    total = 0.0
    for x in range(values.size):
        total += values[x]
    return total


@compiled
def _place(products: Floats, upto: Floats, low: int, high: int, target: float) -> int:
    """Return the first count up to which the law holds a share ``target`` of its mass."""
    count = high - low + 1
    last = (count + BLOCK - 1) // BLOCK - 1
    wanted, block = target * upto[last], 0
    while block < last and upto[block] < wanted:
        block += 1
    seen, x = upto[block - 1] if block > 0 else 0.0, block * BLOCK
    end = min(x + BLOCK, count) - 1
    while x < end and seen + products[x] < wanted:
        seen += products[x]
        x += 1
    return int(low + x)
