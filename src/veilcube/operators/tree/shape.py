"""The shape of a tree over the cells of one axis: from levels of runs to nodes, parents before children.

A level is a partition of the cells 0..n-1 into runs, kept as its boundaries b_0 = 0 < b_1 < ... < b_m = n. Each level
refines the one before it, and the last one is the cells themselves. A run that a level does not split is the same set
of cells as its parent: it stays ONE node, measured once, with the budget of all the levels that it spans (its
multiplier is the sum of theirs). So every cell's column has the same sum, and no budget buys the same number twice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from veilcube.schema import Hierarchy, Node
from veilcube.system import Integers

MOST_LEVELS = 128


def tree_fanouts(size: int, branching: int) -> tuple[int, ...]:
    """Return into how many parts each level above the cells splits a node of the one before; the first is the root, 1.

    With h the least number of levels below the root for which branching^h >= size, all fan-outs are near size^(1/h)
    and none exceeds ``branching``: a domain that is no power of it makes for smaller fan-outs, not for padding.

    >>> tree_fanouts(4096, 8), tree_fanouts(1001, 11), tree_fanouts(5, 8), tree_fanouts(1, 2)
    ((1, 8, 8, 8), (1, 10, 10), (1,), ())
    """
    if size == 1:
        return ()
    height = 1
    while branching**height < size:
        height += 1
    fanouts, largest = [1], size
    for left in range(height, 1, -1):
        needed = -(-largest // branching ** (left - 1))
        fanout = max(needed, round(largest ** (1 / left)), 1)
        fanouts.append(fanout)
        largest = -(-largest // fanout)
    return tuple(fanouts)


def tree_levels(size: int, branching: int) -> tuple[Integers, ...]:
    """Return the boundaries of every level of a balanced tree, from the root to the cells.

    >>> [level.tolist() for level in tree_levels(5, 2)]
    [[0, 5], [0, 2, 5], [0, 1, 2, 3, 5], [0, 1, 2, 3, 4, 5]]
    """
    return (*levels_of_fanouts(size, tree_fanouts(size, branching)), np.arange(size + 1, dtype=np.int64))


def levels_of_fanouts(size: int, fanouts: Sequence[int]) -> tuple[Integers, ...]:
    """Return the boundaries of the levels above the cells; levels that split nothing share one array.

    So a file that lists many such levels takes no more memory than one that lists few.
    """
    levels: list[Integers] = []
    before = np.array([0, size], dtype=np.int64)
    for fanout in fanouts:
        if fanout > 1 and before.size <= size:
            before = split_runs(before, fanout)
        levels.append(before)
    return tuple(levels)


def split_runs(boundaries: Integers, fanout: int) -> Integers:
    """Split each run into ``fanout`` parts whose lengths differ by at most one; shorter runs into single cells."""
    lengths = np.diff(boundaries)
    parts = np.minimum(np.int64(fanout), lengths)
    starts = np.cumsum(parts) - parts
    within = np.arange(int(parts.sum()), dtype=np.int64) - np.repeat(starts, parts)
    first = np.repeat(boundaries[:-1], parts) + within * np.repeat(lengths, parts) // np.repeat(parts, parts)
    return np.append(first, boundaries[-1])


def hierarchy_levels(hierarchy: Hierarchy, size: int | None = None) -> tuple[Integers, ...]:
    """Return the boundaries of each depth of a hierarchy, from the root to the cells.

    A value that sits higher than others keeps its own run in the deeper levels. Levels that split nothing, as below
    groups that all have one child, are left out. ``size`` counts further cells behind the leaves (missing, other):
    they hang below the root.
    """
    cells = len(hierarchy.leaves) if size is None else size
    levels = [np.array([0, cells], dtype=np.int64)]
    nodes: list[Node] = [hierarchy.root]
    while any(not node.is_leaf for node in nodes):
        nodes = [child for node in nodes for child in (node.children or (node,))]
        ends = [node.end for node in nodes]
        level = np.array([0, *ends, *range(len(hierarchy.leaves) + 1, cells + 1)], dtype=np.int64)
        if level.size > levels[-1].size:
            levels.append(level)
    return tuple(levels)


def count_rows(size: int, fanouts: Sequence[int]) -> int:
    """Return how many distinct nodes a balanced tree has, cells included, without building it."""
    lengths: Counter[int] = Counter({size: 1})
    rows = 0
    for depth, fanout in enumerate(fanouts):
        below: Counter[int] = Counter()
        for length, times in lengths.items():
            parts = min(fanout, length)
            short, longer = divmod(length, parts)
            below[short] += times * (parts - longer)
            if longer:
                below[short + 1] += times * longer
            rows += times * parts if parts > 1 or depth == 0 else 0
        lengths = below
    return rows + sum(length * times for length, times in lengths.items() if length > 1 or not fanouts)


@dataclass(frozen=True, eq=False)
class TreeShape:
    """The distinct nodes of a tree, parents before children, level by level.

    Nodes 0..inner-1 are all but the cells that only the last level brings; those are nodes inner..nodes-1 and need no
    arrays. Node 0 is the root; where the first level has several runs, it is ``virtual``: it stands for all cells and
    is not measured. The row of a node in the measurements is its number, less one below a virtual root. The children
    of node v are ``child_start[v]`` and the ``child_count[v] - 1`` nodes behind it; if they are last-level cells, they
    are the cells ``first[v]`` up to ``end[v]``. ``segments`` cuts the inner nodes by the level that brings them;
    ``spans[v]`` are the first and the last level that a node belongs to.
    """

    size: int
    virtual: bool
    first: Integers
    end: Integers
    child_start: Integers
    child_count: Integers
    segments: Integers
    spans: Integers
    leaves: int

    @property
    def inner(self) -> int:
        """How many nodes have arrays."""
        return self.first.size

    @property
    def rows(self) -> int:
        """How many nodes are measured."""
        return self.inner + self.leaves - int(self.virtual)

    @property
    def depth(self) -> int:
        """How many levels bring inner nodes."""
        return self.segments.size - 1


def build_shape(size: int, levels: Sequence[Integers]) -> TreeShape:
    """Join the runs of the levels above the cells into nodes."""
    whole = np.array([0, size], dtype=np.int64)
    virtual = size > 1 and not (levels and levels[0].size == 2)
    above = list(levels) if levels else []
    if virtual or not above:
        above.insert(0, whole)
    # Level numbers count measured levels; the virtual root spans level -1 alone.
    offset = -1 if virtual else 0
    first, end, spans = [whole[:1]], [whole[1:]], [np.array([[offset, offset]], dtype=np.int64)]
    parents, segments, ids = [np.array([-1], dtype=np.int64)], [0, 1], np.zeros(1, dtype=np.int64)
    for level, (before, now) in enumerate(pairwise(above), start=offset + 1):
        if now is before:  # it brings no node
            continue
        parent = np.searchsorted(before, now[:-1], side="right") - 1
        same = before[parent + 1] - before[parent] == np.diff(now)
        kept, new = ids[parent], ~same
        ids = np.where(same, kept, segments[-1] + np.cumsum(new) - 1)
        first.append(now[:-1][new])
        end.append(now[1:][new])
        parents.append(kept[new])
        spans.append(np.full((int(new.sum()), 2), level, dtype=np.int64))
        segments.append(segments[-1] + int(new.sum()))
    return _finish(size, virtual, first, end, parents, segments, spans, len(levels))


def _finish(
    size: int,
    virtual: bool,
    first: list[Integers],
    end: list[Integers],
    parents: list[Integers],
    segments: list[int],
    spans: list[Integers],
    last_level: int,
) -> TreeShape:
    """Number the children and close the span of every node with the level before its children's."""
    firsts, ends, parent = np.concatenate(first), np.concatenate(end), np.concatenate(parents)
    span = np.concatenate(spans)
    inner = firsts.size
    child_count = np.bincount(parent[1:], minlength=inner).astype(np.int64)
    child_start = np.zeros(inner, dtype=np.int64)
    # Children of one parent are consecutive; written back to front, the first of them is what stays.
    child_start[parent[:0:-1]] = np.arange(inner - 1, 0, -1)
    lengths = ends - firsts
    bottom = (child_count == 0) & (lengths > 1)
    child_count[bottom] = lengths[bottom]
    upto = np.cumsum(lengths[bottom])
    child_start[bottom] = inner + upto - lengths[bottom]
    branches = (child_count > 0) & ~bottom
    span[:, 1] = last_level
    span[branches, 1] = span[child_start[branches], 0] - 1
    span[bottom, 1] = last_level - 1
    leaves = int(upto[-1]) if upto.size else 0
    cuts = np.array(segments, dtype=np.int64)
    return TreeShape(size, virtual, firsts, ends, child_start, child_count, cuts, span, leaves)


def refines(size: int, levels: Sequence[Integers]) -> bool:
    """Whether the boundaries of each level rise from 0 to the size and hold those of the level before."""
    before = np.array([0, size], dtype=np.int64)
    for level in levels:
        rises = level.ndim == 1 and level.size > 1 and bool((np.diff(level) > 0).all())
        if not rises or level[0] != 0 or level[-1] != size:
            return False
        if not np.array_equal(level[np.searchsorted(level, before).clip(max=level.size - 1)], before):
            return False
        before = level
    return True


def read_runs(value: object, size: int) -> tuple[Integers, ...]:
    """Read levels from untrusted lists of the lengths of their runs, each refining the one before."""
    if not isinstance(value, list) or not 1 <= len(value) < MOST_LEVELS:
        raise ValueError("the runs of a tree must be a list of levels")
    runs = [whole_numbers(level, size) for level in value]
    if any(sum(level) != size for level in runs):
        raise ValueError("the runs of a level must cover the cells")
    boundaries = tuple(np.concatenate([[0], np.cumsum(level)]).astype(np.int64) for level in runs)
    if not refines(size, boundaries):
        raise ValueError("each level of a tree must refine the one before")
    return boundaries


def whole_numbers(value: object, most: int) -> list[int]:
    """Read a list of whole numbers above 0 from untrusted data."""
    if not isinstance(value, list) or len(value) > most:
        raise TypeError(f"a list of at most {most} whole numbers was expected")
    if not all(type(number) is int and 1 <= number <= 2**48 for number in value):
        raise ValueError("the whole numbers must be at least 1")
    return value
