"""What expectation-maximisation of the split law needs: which splits were seen, and which component explains them.

Splits of small counts are added up in a triangle of (j, i), from which every component's responsibility follows by one
product with its rows. Larger counts are looked at in a few quantiles only: their windows are wide and smooth.
"""

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.parallel import compiled, compiled_fast
from veilcube.posterior.messages import NEGLIGIBLE, Law, Nodes, Windows, split_row
from veilcube.posterior.split_law import ALL_LEFT, ALL_RIGHT, BETAS, HALF, READY_ROWS, share_below

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

QUANTILES = 3
LEAST_MASS = 1e-4
LEAST_WEIGHT = 1e-5


@compiled_fast
def _add_product(factor: float, first: Floats, second: Floats, third: Floats, out: Floats) -> None:
    for i in range(first.size):
        out[i] += factor * first[i] * second[i] * third[i]


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
        for j in range(windows.start[v], min(windows.start[v] + windows.length[v], READY_ROWS)):
            chance, weight = posterior[offset + j - windows.start[v]], norm[offset + j - windows.start[v]]
            low, high, entry = max(first, j - top), min(last, j - bottom), j * (j + 1) // 2
            if chance >= NEGLIGIBLE and weight > 0.0 and high >= low:
                _add_product(
                    chance / weight,
                    message[begin + low : begin + high + 1],
                    mirrored[top - j + low : top - j + high + 1],
                    law.rows[nodes.kind[v], entry + low : entry + high + 1],
                    splits[nodes.kind[v], entry + low : entry + high + 1],
                )


@compiled
def credit_large_counts(
    group: Integers,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    posterior: Floats,
    component_shares: Floats,
    credit: Floats,
) -> None:
    """Add each component's responsibility for splits of large counts, at quantiles of j and of i given j."""
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
                _credit_one(v, j, mass / QUANTILES, nodes, windows, law, message, component_shares, credit, room)


@compiled
def _credit_one(
    v: int,
    j: int,
    mass: float,
    nodes: Nodes,
    windows: Windows,
    law: Law,
    message: Floats,
    component_shares: Floats,
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
            share = mass / QUANTILES / row[i - low]
            for c in range(BETAS):
                if law.weights[kind, c] < LEAST_WEIGHT:
                    continue
                upto = share_below(component_shares[c], law.logs, i, j)
                credit[kind, c] += (
                    share * law.weights[kind, c] * (upto - share_below(component_shares[c], law.logs, i - 1, j))
                )
            for middle in (j // 2, (j + 1) // 2):
                if i == middle:
                    credit[kind, HALF] += share * law.weights[kind, HALF] * 0.5
            if i == j:
                credit[kind, ALL_LEFT] += share * law.weights[kind, ALL_LEFT]
            if i == 0:
                credit[kind, ALL_RIGHT] += share * law.weights[kind, ALL_RIGHT]
