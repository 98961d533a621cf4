"""What expectation-maximisation of the split law needs: which splits were seen, and which component explains them.

Splits of small counts are added up in a triangle of (j, i), from which every component's responsibility follows by one
product with its rows. Larger counts are looked at in a few quantiles only: their windows are wide and smooth.
"""

import numpy as np

from veilcube.polya_tree.messages import NEGLIGIBLE, Nodes, Windows
from veilcube.polya_tree.split_law import ALL_LEFT, ALL_RIGHT, BETAS, HALF, READY_ROWS, Law, place_of, split_row
from veilcube.polya_tree.triple_products import add_products
from veilcube.system import Floats, Integers, compiled

QUANTILES = 3
LEAST_MASS = 1e-4


@compiled
def add_splits(
    group: Integers,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    norm: Floats,
    posterior: Floats,
    splits: Floats,
) -> None:
    """Add the posterior of every split (j, i) with j < READY_ROWS to the triangle of its class."""
    mirrored = np.empty(1)
    for v in group:
        left, right, offset = nodes.left[v], nodes.right[v], windows.offset[v]
        if right < 0 or windows.start[v] >= READY_ROWS:
            continue
        first, last = windows.start[left], windows.start[left] + windows.length[left] - 1
        bottom, top = windows.start[right], windows.start[right] + windows.length[right] - 1
        begin = windows.offset[left] - first
        if mirrored.size < windows.length[right]:
            mirrored = np.empty(2 * windows.length[right])
        for x in range(windows.length[right]):
            mirrored[x] = message[windows.offset[right] + windows.length[right] - 1 - x]
        row, out = law.rows[nodes.kind[v]], splits[nodes.kind[v]]
        for j in range(windows.start[v], min(windows.start[v] + windows.length[v], READY_ROWS)):
            chance, weight = posterior[offset + j - windows.start[v]], norm[offset + j - windows.start[v]]
            low, high, entry = max(first, j - top), min(last, j - bottom), j * (j + 1) // 2
            if chance >= NEGLIGIBLE and weight > 0.0 and high >= low:
                factor, count = chance / weight, high - low + 1
                add_products(factor, message, begin + low, mirrored, top - j + low, row, entry + low, count, out)


@compiled
def credit_large_counts(
    group: Integers,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    posterior: Floats,
    knots: Floats,
    credit: Floats,
) -> None:
    """Add each component's responsibility for splits of large counts, at quantiles of j and of i given j.

    ``knots`` holds every component's F, knots first.
    """
    room = np.empty(1)
    for v in group:
        if nodes.right[v] < 0 or windows.start[v] + windows.length[v] <= READY_ROWS:
            continue
        offset, skipped = windows.offset[v], max(0, READY_ROWS - windows.start[v])
        mass = posterior[offset + skipped : offset + windows.length[v]].sum()
        if mass < LEAST_MASS:
            continue
        if room.size < windows.length[nodes.left[v]]:
            room = np.empty(2 * windows.length[nodes.left[v]])
        seen, taken = 0.0, 0
        for x in range(skipped, windows.length[v]):
            seen += posterior[offset + x]
            while taken < QUANTILES and seen >= mass * (taken + 0.5) / QUANTILES:
                taken += 1
                j = windows.start[v] + x
                _credit_one(v, j, mass / QUANTILES, nodes, windows, law, message, knots, credit, room)


@compiled
def _credit_one(
    v: int,
    j: int,
    mass: float,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    knots: Floats,
    credit: Floats,
    room: Floats,
) -> None:
    left, right, kind = nodes.left[v], nodes.right[v], nodes.kind[v]
    low = max(windows.start[left], j - windows.start[right] - windows.length[right] + 1)
    high = min(windows.start[left] + windows.length[left] - 1, j - windows.start[right])
    if high < low:
        return
    row = split_row(law, kind, j, low, high, room)
    chances = np.empty(high - low + 1)
    for i in range(low, high + 1):
        mine = message[windows.offset[left] + i - windows.start[left]]
        chances[i - low] = mine * message[windows.offset[right] + j - i - windows.start[right]] * row[i - low]
    total, seen, taken = chances.sum(), 0.0, 0
    for i in range(low, high + 1):
        seen += chances[i - low]
        while total > 0 and taken < QUANTILES and seen >= total * (taken + 0.5) / QUANTILES:
            taken += 1
            _credit_split(mass / QUANTILES / row[i - low], i, j, law.weights[kind], law.logs, knots, credit[kind])


@compiled
def _credit_split(share: float, i: int, j: int, weights: Floats, logs: Floats, knots: Floats, credit: Floats) -> None:
    """Divide one split of j into i and the rest among the components: ``share`` over all that explains it."""
    upto, before = np.empty(BETAS), np.empty(BETAS)
    _fill_components(knots, logs, 2 * i + 1, j, upto)
    _fill_components(knots, logs, 2 * i - 1, j, before)
    for c in range(BETAS):
        credit[c] += share * weights[c] * (upto[c] - before[c])
    for middle in (j // 2, (j + 1) // 2):
        if i == middle:
            credit[HALF] += share * weights[HALF] * 0.5
    if i == j:
        credit[ALL_LEFT] += share * weights[ALL_LEFT]
    if i == 0:
        credit[ALL_RIGHT] += share * weights[ALL_RIGHT]


@compiled
def _fill_components(knots: Floats, logs: Floats, twice: int, j: int, out: Floats) -> None:
    """Write F(twice / 2j) of every Beta component."""
    if twice <= 0 or twice >= 2 * j or twice == j:
        out[:] = 0.0 if twice <= 0 else 0.5 if twice == j else 1.0
        return
    knot, part = place_of(logs, twice, j)
    for c in range(out.size):
        below = knots[knot, c] + (knots[knot + 1, c] - knots[knot, c]) * part
        out[c] = below if twice < j else 1.0 - below
