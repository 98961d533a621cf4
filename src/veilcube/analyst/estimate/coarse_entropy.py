"""Maximum entropy for one question: what marginals over few attributes foretell about more of them at once.

A block that narrows the attributes T cuts each of them in two, so it is one cell of a table of 2^|T| cells. Least
squares knows the count of every part of the block that stands in a measured table, and with these all margins of that
small table over measured attributes. Among the tables that have them, the one of maximum entropy has no further
dependence; iterative proportional fitting finds it. Its error has three parts: the noise of the margins; the scatter of
a table of whole people about any model, as of a Poisson count; and what dependence there is beyond the margins, which
nothing measured. That is foretold as a part of what the widest margins added to the narrower ones. Where no margin
holds two of the attributes together nothing is known of their dependence, and the interval reaches to the Fréchet
bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from veilcube.operators.components import Axes

Floats = NDArray[np.float64]

SWEEPS = 60
# No cell of a margin counts as emptier than this share of all rows: noise can make it negative.
LEAST_SHARE = 1e-9
UNMEASURED_PART = 0.5
_DEVIATIONS_OF_95_PERCENT = 1.96
_CLOSE_ENOUGH = 1e-7
# Each block makes up to 6 moves for each part, and each move a table of its own.
_CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Foretold:
    """The counts of blocks and the standard deviations of what was foretold."""

    counts: Floats
    stddevs: Floats


def foretell(narrowed: Axes, counts: Mapping[Axes, Floats], covariances: Floats) -> Foretold:
    """Return the counts of blocks from those of their parts, (blocks,) each, and the parts' covariances.

    Parts are in the order of ``counts``; they hold the total, the part that narrows nothing.
    """
    parts = list(counts)
    known = np.stack([counts[part] for part in parts], axis=1)
    tables = fit_tables(narrowed, parts, known)
    found = tables.reshape(len(tables), -1)[:, -1]
    # Noise may put counts where no table is; how far the truth lies is told from the nearest ones that a table has.
    held = np.stack([_inside(tables, [narrowed.index(axis) for axis in part]) for part in parts], axis=1)
    # Directions of independent noise of one standard deviation each; rounding may leave eigenvalues below 0.
    values, vectors = np.linalg.eigh(covariances)
    steps = vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis, :]
    variances = np.empty(len(found))
    at_once = max(1, _CELLS_AT_ONCE // (6 * len(parts) << len(narrowed)))
    for start in range(0, len(found), at_once):
        chosen = slice(start, start + at_once)
        moves = _moves(steps[chosen])
        moved = fit_blocks(narrowed, parts, (held[chosen] + moves).reshape(-1, len(parts))).reshape(moves.shape[:2])
        variances[chosen] = _variances(np.square(moved - found[chosen]), len(parts))
    variances += np.maximum(found, 1.0)
    if all(pair in counts for pair in combinations(narrowed, 2)):
        beyond = UNMEASURED_PART * _added_by_the_widest(narrowed, parts, known, found)
    else:
        beyond = _reach_of_bounds(counts, found)
    return Foretold(found, np.sqrt(variances + np.square(beyond)))


def _moves(steps: Floats) -> Floats:
    """Return the noises (moves, blocks, parts) whose effects tell a variance: each step alone, and all steps at once.

    Those at once have signs from a Hadamard matrix, whose columns are orthogonal. Two margins that are empty hold a
    block at zero until both of them move.
    """
    number = steps.shape[2]
    signs = hadamard(1 << number.bit_length())[:, 1 : number + 1].astype(np.float64)
    alone, together = np.moveaxis(steps, 2, 0), np.moveaxis(steps @ signs.T, 2, 0)
    return np.concatenate([alone, -alone, together, -together])


def _variances(squares: Floats, number: int) -> Floats:
    """Return variances from the squared effects of ``_moves``: both kinds tell the same where effects are linear."""
    alone = np.maximum(squares[:number], squares[number : 2 * number]).sum(axis=0)
    return np.asarray(np.maximum(alone, squares[2 * number :].mean(axis=0)))


def _added_by_the_widest(narrowed: Axes, parts: Sequence[Axes], known: Floats, found: Floats) -> Floats:
    widest = max(map(len, parts))
    narrower = [number for number, part in enumerate(parts) if len(part) < widest]
    simpler = fit_blocks(narrowed, [parts[number] for number in narrower], known[:, narrower])
    return np.abs(found - simpler)


def _reach_of_bounds(counts: Mapping[Axes, Floats], found: Floats) -> Floats:
    """Return how far the Fréchet bounds lie, in standard deviations of which 95% intervals take 1.96."""
    total = counts[()]
    widest = [counts[part] for part in _widest(list(counts))]
    most = np.minimum.reduce([np.maximum(count, 0.0) for count in counts.values()])
    least = np.maximum(np.sum(widest, axis=0) - (len(widest) - 1) * total, 0.0)
    reach: Floats = np.maximum(np.abs(most - found), np.abs(found - least)) / _DEVIATIONS_OF_95_PERCENT
    return reach


def fit_blocks(narrowed: Axes, parts: Sequence[Axes], counts: Floats) -> Floats:
    """Return the count of each block in its table of maximum entropy."""
    return fit_tables(narrowed, parts, counts).reshape(len(counts), -1)[:, -1]


def fit_tables(narrowed: Axes, parts: Sequence[Axes], counts: Floats) -> Floats:
    """Return the tables (blocks, 2, 2, ...) of maximum entropy with the margins that the parts determine.

    Each attribute is cut in two, outside and inside the block, so that the block is the last cell.
    """
    position = {axis: place for place, axis in enumerate(narrowed)}
    number = {part: place for place, part in enumerate(parts)}
    total = np.maximum(counts[:, number[()]], LEAST_SHARE)
    margins = []
    for axes in _widest(parts):
        margin = _margin(axes, number, counts)
        floor = (LEAST_SHARE * total).reshape(-1, *(1,) * len(axes))
        margin = np.maximum(margin, floor)
        margin *= (total / margin.reshape(len(total), -1).sum(axis=1)).reshape(floor.shape)
        others = tuple(1 + place for axis, place in position.items() if axis not in axes)
        margins.append((np.expand_dims(margin, others), others))
    ones = (1,) * len(narrowed)
    table = np.broadcast_to(total.reshape(-1, *ones), (len(counts), *(2,) * len(narrowed))).copy()
    found, before = table.reshape(len(counts), -1)[:, -1], np.full(len(counts), np.inf)
    for _ in range(SWEEPS):
        for margin, others in margins:
            table *= margin / np.maximum(table.sum(axis=others, keepdims=True), 1e-300)
        if (np.abs(found - before) <= _CLOSE_ENOUGH * total).all():
            break
        before = found.copy()
    return table


def _inside(tables: Floats, places: Sequence[int]) -> Floats:
    """Return the count of each table inside the block on some attributes, whatever the others are."""
    chosen: list[slice | int] = [slice(None)] * tables.ndim
    for place in places:
        chosen[1 + place] = 1
    return np.asarray(tables[tuple(chosen)].reshape(len(tables), -1).sum(axis=1))


def _widest(parts: Sequence[Axes]) -> list[Axes]:
    """Return the parts that lie within no other."""
    return [one for one in parts if not any(set(one) < set(other) for other in parts)]


def _margin(axes: Axes, number: Mapping[Axes, int], counts: Floats) -> Floats:
    """Return the table over some attributes, outside and inside on each, by inclusion and exclusion of the parts."""
    margin = np.zeros((len(counts), *(2,) * len(axes)))
    for inside in np.ndindex(*(2,) * len(axes)):
        fixed = tuple(axis for axis, chosen in zip(axes, inside, strict=True) if chosen)
        free = [axis for axis in axes if axis not in fixed]
        for size in range(len(free) + 1):
            for more in combinations(free, size):
                part = tuple(sorted((*fixed, *more)))
                margin[(slice(None), *inside)] += (-1) ** size * counts[:, number[part]]
    return margin
