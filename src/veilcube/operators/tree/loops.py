"""Compiled passes over a tree: sums up, estimates down, and the noise of an answer.

Symbols, for a node v with children c: a_v its multiplier (row v measures a_v times the count of v), U_v the variance of
its count as the measurements of its subtree alone estimate it, V_v = Σ_c U_c, so that 1/U_v = a_v² + 1/V_v (a cell:
1/U = a²). ``own`` is a_v U_v, the weight of its own measurement, and ``below`` is U_v/V_v, the weight of its children's
sum. Two passes give generalised least squares (Hay, Rastogi, Miklau, Suciu 2010, here for any multipliers):

    up    m_v = own_v y_v + below_v Σ_c m_c            down    x_c = m_c + U_c (x_v - Σ_c m_c) / V_v

Their transpose gives the noise weights of a query q: up β_v = Σ_c U_c β_c / V_v from β = q at the cells; down μ_root =
β_root and μ_c = β_c - β_v + below_v μ_v; node v's noise has the weight own_v μ_v. Below a node where q is constant, all
β are equal and μ shrinks by ``below`` a level: its squares sum to μ² U and its fourth powers to μ⁴ K with
K_v = own_v⁴ + below_v⁴ Σ_c K_c (the sixth powers alike), so a step function needs only the nodes that its cuts go
through.

Every pass works on nodes ``start`` to ``stop`` of one level, or of all, for the rows ``top`` to ``bottom`` of a matrix.
"""

import numpy as np

from veilcube.system import Floats, Integers, compiled_if_long

# first, child_start, child_count of the inner nodes (``TreeShape``).
Nodes = tuple[Integers, Integers, Integers]
# own, below, U, V of the inner nodes (``TreeGains``).
Gains = tuple[Floats, Floats, Floats, Floats]


@compiled_if_long
def measure_up(
    nodes: Nodes, multipliers: Integers, leaf: int, skip: int, cells: Integers, sums: Integers, out: Integers,
    span: tuple[int, int], part: tuple[int, int],
) -> None:  # fmt: skip
    """Write multiplier times count for each node of a span, children before parents; ``sums`` keeps the counts."""
    first, child_start, child_count = nodes
    inner = first.size
    for row in range(part[0], part[1]):
        for v in range(span[1] - 1, span[0] - 1, -1):
            begin, count = child_start[v], child_count[v]
            total = np.int64(0)
            if count == 0:
                total = cells[row, first[v]]
            elif begin >= inner:
                for i in range(count):
                    value = cells[row, first[v] + i]
                    total += value
                    out[row, begin + i - skip] = leaf * value
            else:
                for c in range(begin, begin + count):
                    total += sums[row, c]
            sums[row, v] = total
            if v >= skip:
                out[row, v - skip] = multipliers[v] * total


@compiled_if_long
def adjoint_down(
    nodes: Nodes, multipliers: Integers, leaf: int, skip: int, measurements: Floats, sums: Floats, out: Floats,
    span: tuple[int, int], part: tuple[int, int],
) -> None:  # fmt: skip
    """Write for each cell the sum over its nodes of multiplier times measurement; ``sums`` starts at the root."""
    first, child_start, child_count = nodes
    inner = first.size
    for row in range(part[0], part[1]):
        for v in range(span[0], span[1]):
            begin, count = child_start[v], child_count[v]
            total = sums[row, v]
            if count == 0:
                out[row, first[v]] = total
            elif begin >= inner:
                for i in range(count):
                    out[row, first[v] + i] = total + leaf * measurements[row, begin + i - skip]
            else:
                for c in range(begin, begin + count):
                    sums[row, c] = total + multipliers[c] * measurements[row, c - skip]


@compiled_if_long
def estimate_up(
    nodes: Nodes, gains: Gains, leaf: int, skip: int, measurements: Floats, sums: Floats, estimates: Floats,
    span: tuple[int, int], part: tuple[int, int],
) -> None:  # fmt: skip
    """Estimate each node from its subtree: m_v; ``sums`` keeps Σ_c m_c. Measurements are integers or floats."""
    first, child_start, child_count = nodes
    own, below, _, _ = gains
    inner = first.size
    shrink = 1.0 / leaf
    for row in range(part[0], part[1]):
        for v in range(span[1] - 1, span[0] - 1, -1):
            begin, count = child_start[v], child_count[v]
            total = 0.0
            if begin >= inner:
                for i in range(begin - skip, begin - skip + count):
                    total += measurements[row, i]
                total *= shrink
            else:
                for c in range(begin, begin + count):
                    total += estimates[row, c]
            sums[row, v] = total
            mine = own[v] * measurements[row, v - skip] if v >= skip else 0.0
            estimates[row, v] = mine + below[v] * total


@compiled_if_long
def estimate_down(
    nodes: Nodes, gains: Gains, leaf: int, skip: int, measurements: Floats, sums: Floats, estimates: Floats,
    out: Floats, span: tuple[int, int], part: tuple[int, int],
) -> None:  # fmt: skip
    """Turn m into the least-squares estimate x of every node, from the root down, and write that of the cells.

    Without room for the cells (an empty ``out``) they are left out.
    """
    first, child_start, child_count = nodes
    _, _, variance, spread = gains
    inner = first.size
    shrink = 1.0 / leaf
    for row in range(part[0], part[1]):
        for v in range(span[0], span[1]):
            begin, count = child_start[v], child_count[v]
            if count == 0 or (begin >= inner and out.shape[1] == 0):
                if out.shape[1] > 0:
                    out[row, first[v]] = estimates[row, v]
                continue
            correction = (estimates[row, v] - sums[row, v]) / spread[v]
            if begin >= inner:
                step = correction * shrink * shrink
                for i in range(count):
                    out[row, first[v] + i] = shrink * measurements[row, begin + i - skip] + step
            else:
                for c in range(begin, begin + count):
                    estimates[row, c] += variance[c] * correction


@compiled_if_long
def weigh_up(
    nodes: Nodes, gains: Gains, leaf: int, query: Floats, shares: Floats,
    span: tuple[int, int], part: tuple[int, int],
) -> None:  # fmt: skip
    """Write β_v, the mean of the query over a node's cells, weighted by what is unknown of each child."""
    first, child_start, child_count = nodes
    _, _, variance, spread = gains
    inner = first.size
    for row in range(part[0], part[1]):
        for v in range(span[1] - 1, span[0] - 1, -1):
            begin, count = child_start[v], child_count[v]
            if count == 0:
                shares[row, v] = query[row, first[v]]
            elif begin >= inner:
                total = 0.0
                for i in range(first[v], first[v] + count):
                    total += query[row, i]
                shares[row, v] = total / count
            else:
                total = 0.0
                for c in range(begin, begin + count):
                    total += variance[c] * shares[row, c]
                shares[row, v] = total / spread[v]


@compiled_if_long
def weigh_down(
    nodes: Nodes, gains: Gains, leaf: int, skip: int, query: Floats, shares: Floats, out: Floats, pulls: Floats,
    span: tuple[int, int], part: tuple[int, int],
) -> None:  # fmt: skip
    """Write the noise weight own_v μ_v of every node; ``pulls`` holds μ and starts at the root."""
    first, child_start, child_count = nodes
    own, below, _, _ = gains
    inner = first.size
    shrink = 1.0 / leaf
    for row in range(part[0], part[1]):
        for v in range(span[0], span[1]):
            begin, count = child_start[v], child_count[v]
            if v >= skip:
                out[row, v - skip] = own[v] * pulls[row, v]
            passed = below[v] * pulls[row, v] - shares[row, v]
            if count == 0:
                continue
            if begin >= inner:
                for i in range(count):
                    out[row, begin + i - skip] = shrink * (query[row, first[v] + i] + passed)
            else:
                for c in range(begin, begin + count):
                    pulls[row, c] = shares[row, c] + passed


@compiled_if_long
def gain_up(
    nodes: Nodes, multipliers: Floats, leaf: float, gains: Gains, powers: Floats, before: Floats, under: Floats,
) -> None:  # fmt: skip
    """Fill the gains of all inner nodes, children before parents.

    ``powers[v]`` are the sums over the subtree of v of the second, fourth and sixth power of its noise weights for
    μ_v = 1 (the first one is U_v), ``before[v]`` those of its elder siblings, ``under[v]`` those of its children.
    """
    _, child_start, child_count = nodes
    own, below, variance, spread = gains
    inner = child_start.size
    for v in range(inner - 1, -1, -1):
        begin, count, square = child_start[v], child_count[v], multipliers[v] * multipliers[v]
        if count == 0:
            own[v], below[v], variance[v], spread[v] = 1.0 / multipliers[v], 0.0, 1.0 / square, 0.0
        elif begin >= inner:
            power = 1.0
            for k in range(3):
                power *= leaf * leaf
                under[v, k] = count / power
        else:
            for c in range(begin, begin + count):
                for k in range(3):
                    before[c, k] = under[v, k]
                    under[v, k] += powers[c, k]
        if count > 0:
            spread[v] = under[v, 0]
            below[v] = 1.0 / (1.0 + square * spread[v])
            variance[v] = spread[v] * below[v]
            own[v] = multipliers[v] * variance[v]
        own_power, below_power = 1.0, 1.0
        for k in range(3):
            own_power *= own[v] * own[v]
            below_power *= below[v] * below[v]
            powers[v, k] = own_power + below_power * under[v, k]


@compiled_if_long
def read_up_to(
    nodes: Nodes, gains: Gains, leaf: int, skip: int, measurements: Integers, estimates: Floats, ends: Integers,
    found: Floats,
) -> None:  # fmt: skip
    """Write the sum of the first ``ends`` cells from x of the inner nodes: whole children, then the one that is cut."""
    first, child_start, child_count = nodes
    spread, inner, shrink = gains[3], first.size, 1.0 / leaf
    for i in range(ends.size):
        v, total = 0, 0.0
        while ends[i] > first[v]:
            begin, count = child_start[v], child_count[v]
            if count == 0:
                total += estimates[v]
                break
            if begin >= inner:
                sums = 0.0
                for cell in range(begin - skip, begin - skip + count):
                    sums += measurements[cell] * shrink
                step = (estimates[v] - sums) / spread[v] * shrink * shrink
                for cell in range(min(count, ends[i] - first[v])):
                    total += measurements[begin - skip + cell] * shrink + step
                break
            c = begin
            while c + 1 < begin + count and first[c + 1] <= ends[i]:
                total += estimates[c]
                c += 1
            v = c
        found[i] = total
