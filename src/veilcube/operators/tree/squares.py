"""Squared L2 norms and inner products of the columns of a tree: what nodes add to the cells below them.

The squared norm of a cell's column is the sum of what the nodes above it add, and two columns have in common what the
nodes above both add, plus what the node that parts them says of their product. So of all pairs parted at one node, the
longest two columns from different children are the farthest apart, and no other pair needs to be compared.
Whole numbers are Python's own: squares of multipliers do not fit into 64 bits.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise

from veilcube.operators.base import ColumnProducts, farthest_products
from veilcube.operators.tree.shape import TreeShape


def products_of_nodes(shape: TreeShape, squares: Sequence[int], parting: Sequence[int]) -> tuple[ColumnProducts, ...]:
    """Return the farthest pairs of columns of a tree whose nodes are listed.

    ``squares[v]`` is what the rows of node v add to the squared norms of the cells below it, ``parting[v]`` what they
    add to the product of two columns that inner node v parts.
    """
    starts, counts = shape.child_start.tolist(), shape.child_count.tolist()
    above, reach = list(squares), list(squares)
    for v, (start, count) in enumerate(zip(starts, counts, strict=True)):
        for child in range(start, start + count):
            above[child] += above[v]
    found = set()
    for v in range(shape.inner - 1, -1, -1):
        if counts[v]:
            longest = sorted(reach[starts[v] : starts[v] + counts[v]])[-2:]
            reach[v] += longest[-1]
            if len(longest) == 2:
                found.add(ColumnProducts(above[v] + longest[1], above[v] + longest[0], above[v] + parting[v]))
    return farthest_products(found, reach[0])


def products_of_fanouts(size: int, fanouts: Sequence[int], multipliers: Sequence[int]) -> tuple[ColumnProducts, ...]:
    """Return the same for a balanced tree, without its nodes: those of one level have at most two lengths.

    A node keeps the multipliers of all levels up to the one that splits it. A node of several cells is split wherever
    the fan-out is above 1, so on a level all of them have ancestors of the same weights; a single cell is never split.

    >>> [tuple(pair) for pair in products_of_fanouts(3, (1, 2), (1, 1, 1))]
    [(5, 5, 5), (5, 3, 1), (3, 5, 1)]
    """
    if size == 1:
        return farthest_products((), sum(multipliers) ** 2)
    splits, upto = (*fanouts, size), [0, *accumulate(multipliers)]
    levels = [level for level, fanout in enumerate(splits) if fanout > 1]
    # What a node that level levels[i] brings weighs, if it is split by the next one of these levels.
    weights = [upto[later] - upto[level] for level, later in pairwise(levels)]

    @cache
    def reach(step: int, length: int) -> int:
        """Return the most that a node of a level and what is below it add to a column."""
        if length == 1:
            return (upto[-1] - upto[levels[step]]) ** 2
        longest = max(reach(step + 1, part) for part, _ in _parts(length, splits[levels[step + 1]]))
        return weights[step] ** 2 + longest

    # Level 0 may split the whole, which then has no row; otherwise it brings the root.
    above, lengths, found = upto[levels[0]] ** 2, {size}, set()
    largest = above + max(reach(0, part) for part, _ in _parts(size, splits[levels[0]]))
    for step, level in enumerate(levels):
        below = [list(_parts(length, splits[level])) for length in lengths if length > 1]
        for parts in below:
            two = sorted(reach(step, part) for part, times in parts for _ in range(min(times, 2)))[-2:]
            found.add(ColumnProducts(above + two[1], above + two[0], above))
        lengths = {part for parts in below for part, _ in parts}
        above += weights[step] ** 2 if step < len(weights) else 0
    return farthest_products(found, largest)


def _parts(length: int, fanout: int) -> Iterator[tuple[int, int]]:
    """Yield the lengths into which a run is split, and how many parts have each."""
    parts = min(fanout, length)
    short, longer = divmod(length, parts)
    yield short, parts - longer
    if longer:
        yield short + 1, longer
