"""Exact moments of the noise of step functions on a tree, in the time of the paths to their cuts.

Symbols as in ``loops``. Only nodes that a cut goes through (``active``) differ from a constant: each is visited
once on the way down to find its runs of constant children, once upwards for β and once downwards for μ.
"""

import numpy as np

from veilcube.operators.tree.loops import Gains, Nodes
from veilcube.system import Floats, Integers, compiled

# Sums of powers of the noise weights: of a node's subtree, of its elder siblings', of its children's (``TreeGains``).
Sums = tuple[Floats, Floats, Floats]


@compiled
def child_holding(first: Integers, begin: int, count: int, cell: int) -> int:
    """Return the position among the children of the last one that starts at or before a cell."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if first[begin + middle] <= cell:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def _add_run(
    nodes: Nodes, sums: Sums, leaf: float, active: int, v: int, start: int, stop: int, value: float, runs: int,
    run_active: Integers, run_sums: Floats,
) -> int:  # fmt: skip
    """Note a run of children on which the query is constant: its value and its three sums of powers."""
    if start >= stop:
        return runs
    _, child_start, child_count = nodes
    _, before, under = sums
    begin, count = child_start[v], child_count[v]
    run_active[runs], run_sums[runs, 3] = active, value
    for k in range(3):
        if begin >= before.shape[0]:
            run_sums[runs, k] = (stop - start) / leaf ** (2 * k + 2)
        else:
            upto = before[begin + stop, k] if stop < count else under[v, k]
            run_sums[runs, k] = upto - before[begin + start, k]
    return runs + 1


@compiled
def _find_active(
    nodes: Nodes, sums: Sums, leaf: float, end: Integers, cuts: Integers, values: Floats, path: Integers,
    run_active: Integers, run_sums: Floats,
) -> tuple[int, int]:  # fmt: skip
    """List the nodes that cuts go through (node, its first cut, parent) and their constant runs; root first."""
    first, child_start, child_count = nodes
    inner = first.size
    path[0, 0], path[0, 1], path[0, 2] = 0, 0, -1
    actives, runs, a = 1, 0, 0
    while path[0, 1] < cuts.size and cuts[path[0, 1]] <= 0:
        path[0, 1] += 1
    while a < actives:
        v, j = path[a, 0], path[a, 1]
        begin, count, position = child_start[v], child_count[v], 0
        while j < cuts.size and cuts[j] < end[v]:
            if begin >= inner:
                child, starts_there = cuts[j] - first[v], True
            else:
                child = child_holding(first, begin, count, cuts[j])
                starts_there = first[begin + child] == cuts[j]
            runs = _add_run(nodes, sums, leaf, a, v, position, child, values[j], runs, run_active, run_sums)
            # An empty run leaves the position where it is; so do equal cuts.
            position = max(position, child)
            if starts_there:
                j += 1
                continue
            path[actives, 0], path[actives, 1], path[actives, 2] = begin + child, j, a
            actives += 1
            position = child + 1
            while j < cuts.size and cuts[j] < end[begin + child]:
                j += 1
        runs = _add_run(nodes, sums, leaf, a, v, position, count, values[j], runs, run_active, run_sums)
        a += 1
    return actives, runs


@compiled
def _pull_down(
    gains: Gains, path: Integers, actives: int, run_active: Integers, run_sums: Floats, runs: int, shares: Floats,
    pulls: Floats,
) -> None:  # fmt: skip
    """Find β (``shares``) of the active nodes from their runs and from each other upwards, then μ (``pulls``) down."""
    _, below, variance, spread = gains
    shares[:actives] = 0.0
    for r in range(runs):
        shares[run_active[r]] += run_sums[r, 3] * run_sums[r, 0]
    for a in range(actives - 1, -1, -1):
        v = path[a, 0]
        shares[a] /= spread[v]
        if a > 0:
            shares[path[a, 2]] += variance[v] * shares[a]
    pulls[0] = shares[0]
    for a in range(1, actives):
        parent = path[a, 2]
        pulls[a] = shares[a] - shares[parent] + below[path[parent, 0]] * pulls[parent]


@compiled
def step_moments(
    nodes: Nodes, gains: Gains, sums: Sums, leaf: float, end: Integers, depth: int, cuts: Integers, values: Floats,
    moments: Floats, start: int, stop: int,
) -> None:  # fmt: skip
    """Fill the sums of the second, fourth and sixth powers of the noise weights of step functions."""
    own, below, _, _ = gains
    room = cuts.shape[1] * (depth + 1) + 1
    path = np.empty((room, 3), dtype=np.int64)
    run_active, run_sums = np.empty(2 * room + 1, dtype=np.int64), np.empty((2 * room + 1, 4))
    shares, pulls = np.empty(room), np.empty(room)
    for q in range(start, stop):
        if nodes[2][0] == 0:  # a single cell: the last step that starts at or before it
            step = 0
            while step < cuts.shape[1] and cuts[q, step] <= 0:
                step += 1
            value = values[q, step]
            for k in range(3):
                moments[k, q] = value ** (2 * k + 2) * sums[0][0, k]
            continue
        actives, runs = _find_active(nodes, sums, leaf, end, cuts[q], values[q], path, run_active, run_sums)
        _pull_down(gains, path, actives, run_active, run_sums, runs, shares, pulls)
        second, fourth, sixth = 0.0, 0.0, 0.0
        for a in range(actives):
            square = (own[path[a, 0]] * pulls[a]) ** 2
            second += square
            fourth += square * square
            sixth += square * square * square
        for r in range(runs):
            a = run_active[r]
            square = (run_sums[r, 3] - shares[a] + below[path[a, 0]] * pulls[a]) ** 2
            second += square * run_sums[r, 0]
            fourth += square * square * run_sums[r, 1]
            sixth += square * square * square * run_sums[r, 2]
        moments[0, q], moments[1, q], moments[2, q] = second, fourth, sixth
