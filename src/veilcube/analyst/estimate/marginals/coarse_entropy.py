"""Maximum entropy for one question: what marginals over few attributes impute about more of them at once.

A block that narrows the attributes T cuts each of them in two, so it is one cell of a table of 2^|T| cells. Least
squares knows the count of every part of the block that stands in a measured table, and with these all margins of that
small table over measured attributes. Among the tables that have them, the one of maximum entropy has no further
dependence; iterative proportional fitting finds it. What dependence there is beyond the margins, nothing measured:
any table with these margins may be the true one. So the interval reaches to the Fréchet bounds, the least and the
most that a table with these margins can hold in the block, with the noise of the margins that they follow from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np
import scipy

from veilcube.operators import Axes
from veilcube.system import Floats

SWEEPS = 60
# No cell of a margin counts as emptier than this share of all rows: noise can make it negative.
LEAST_SHARE = 1e-9
DEVIATIONS_OF_95_PERCENT = 1.96
# The narrowest of several noisy bounds is taken, which is too narrow by about this many of its standard deviations.
_LUCK_OF_THE_NARROWEST = 1.0
_CLOSE_ENOUGH = 1e-7
# Each block makes up to 6 moves for each part, and each move a table of its own.
_CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Imputed:
    """The counts of blocks, with the standard deviations of the noise in them, and the Fréchet bounds with theirs."""

    counts: Floats
    noise: Floats
    least: Floats
    noise_of_least: Floats
    most: Floats
    noise_of_most: Floats

    @classmethod
    def told(cls, counts: Floats, stddevs: Floats) -> "Imputed":
        """Return counts that the tables determine but for noise."""
        nothing = np.zeros_like(counts)
        return cls(counts, stddevs, counts, nothing, counts, nothing)

    @classmethod
    def of_parts(cls, parts: Sequence["Imputed"], combine: Callable[[list[Floats]], Floats]) -> "Imputed":
        """Return several of them as one, each array combined with its likes."""
        return cls(*(combine([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    @property
    def stddevs(self) -> Floats:
        """Standard deviations of which 95% intervals would reach to the farther bound."""
        reach = np.maximum(self.most - self.counts, self.counts - self.least) / DEVIATIONS_OF_95_PERCENT
        stddevs: Floats = np.sqrt(np.square(self.noise) + np.square(np.maximum(reach, 0.0)))
        return stddevs

    def interval(self, deviations: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals that stretch by this z-score beyond what is possible."""
        beyond = deviations + _LUCK_OF_THE_NARROWEST
        low = np.minimum(self.counts - deviations * self.noise, self.least - beyond * self.noise_of_least)
        high = np.maximum(self.counts + deviations * self.noise, self.most + beyond * self.noise_of_most)
        return np.maximum(low, np.minimum(self.counts, 0.0)), high


def impute(narrowed: Axes, counts: Mapping[Axes, Floats], covariances: Floats) -> Imputed:
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
    over, under = _bounding_weights(narrowed, parts)
    most, noise_of_most = _narrowest(known, covariances, over)
    least, noise_of_least = _narrowest(-known, covariances, under)
    return Imputed(found, np.sqrt(variances), -least, noise_of_least, most, noise_of_most)


def _moves(steps: Floats) -> Floats:
    """Return the noises (moves, blocks, parts) whose effects tell a variance: each step alone, and all steps at once.

    Those at once have signs from a Hadamard matrix, whose columns are orthogonal. Two margins that are empty hold a
    block at zero until both of them move.
    """
    number = steps.shape[2]
    signs = scipy.linalg.hadamard(1 << number.bit_length())[:, 1 : number + 1].astype(np.float64)
    alone, together = np.moveaxis(steps, 2, 0), np.moveaxis(steps @ signs.T, 2, 0)
    return np.concatenate([alone, -alone, together, -together])


def _variances(squares: Floats, number: int) -> Floats:
    """Return variances from the squared effects of ``_moves``: both kinds tell the same where effects are linear."""
    alone = np.maximum(squares[:number], squares[number : 2 * number]).sum(axis=0)
    return np.asarray(np.maximum(alone, squares[2 * number :].mean(axis=0)))


def _bounding_weights(narrowed: Axes, parts: Sequence[Axes]) -> tuple[Floats, Floats]:
    """Return weights (bounds, parts) of the parts' counts that no block exceeds, and of those that none falls below.

    A block lies in each of its parts. Two parts that narrow all attributes together overlap in it alone, within what
    both narrow alike. Nothing has fewer rows than none, also what lies outside on all of three attributes.
    """
    number = {part: place for place, part in enumerate(parts)}
    over = list(np.eye(len(parts)))
    under = [np.zeros(len(parts))]
    for one, other in combinations(_widest(parts), 2):
        both = tuple(sorted(set(one) & set(other)))
        if set(one) | set(other) == set(narrowed) and both in number:
            under.append(over[number[one]] + over[number[other]] - over[number[both]])
    widest = _widest(parts)
    under.append(np.sum([over[number[part]] for part in widest], axis=0) - (len(widest) - 1) * over[number[()]])
    if len(narrowed) == 3 and len(parts) == 7:
        over.append(np.array([1.0 if len(part) % 2 == 0 else -1.0 for part in parts]))
    return np.array(over), np.array(under)


def _narrowest(known: Floats, covariances: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the least of several noisy bounds from above, noise considered, and its standard deviation."""
    bounds = known @ weights.T
    variances = np.einsum("bp,npq,bq->nb", weights, covariances, weights)
    stddevs = np.sqrt(np.maximum(variances, 0.0))
    chosen = np.argmin(bounds + 2.0 * stddevs, axis=1)[:, None]
    return np.take_along_axis(bounds, chosen, 1)[:, 0], np.take_along_axis(stddevs, chosen, 1)[:, 0]


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
