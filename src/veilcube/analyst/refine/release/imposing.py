"""Facts imposed on a release: checked against each other, then met by the cells nearest in the noise's metric.

Upper bounds, thousands of them and however they depend, are met by their prices. With sums of covariance C that exceed
their bounds by e, the nearest sums that obey are s - C λ, where λ >= 0 minimises λ'C λ/2 - e'λ. A primal-dual interior
point (Mehrotra's) finds which bounds have a price, in some twenty factorisations of the size of C; then the prices of
these are solved for exactly, exchanging bounds as long as one is broken or has a negative price (block pivoting). A
small ridge keeps dependent bounds apart; proximal steps take its effect away again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from veilcube.analyst.refine.facts import BoxSums, ReleaseFacts, inner_product
from veilcube.analyst.refine.release.covariance import CellMetric, between, variances
from veilcube.analyst.refine.release.factoring import FactoredFacts, factor_facts
from veilcube.errors import CapacityError, QueryError
from veilcube.operators import BlockSums
from veilcube.system import Floats, Integers

_RIDGE = 1e-9
_MOST_STEPS = 60
_MOST_EXCHANGES = 40
_PROXIMAL_STEPS = 8
_CLOSE = 1e-10
_BROKEN = 1e-9
# What rounding may leave of a fact: relative to the cells that it sums, and never more than this of its own noise.
_ROUNDING = 1e-9
_OF_ITS_NOISE = 1e-4
_SHORTEN = 0.995
# In units of the largest excess in standard deviations: what two bounds that contradict each other are left with.
_UNREACHABLE = 1e-7


@dataclass(frozen=True, eq=False)
class Prices:
    """The price of each bound; ``unreachable`` are those that stand in each other's way, if no sums obey."""

    values: Floats
    unreachable: tuple[int, ...] = ()


def prices_of_bounds(covariance: Floats, excess: Floats) -> Prices:
    """Return λ >= 0 such that the sums less ``covariance`` λ obey their bounds and are the nearest that do."""
    deviations = np.sqrt(np.diag(covariance))
    ridged = covariance / deviations / deviations[:, np.newaxis]
    np.fill_diagonal(ridged, 1.0 + _RIDGE)
    needed = excess / deviations
    size = float(needed.max())
    if size <= 0:
        return Prices(np.zeros(excess.size))
    inside, room = _interior(ridged, needed / size)
    found = _exchanged(ridged, needed / size, inside > room)
    prices = inside if found is None else found
    left = needed / size - ridged @ prices + _RIDGE * prices
    if left.max() > _UNREACHABLE:
        return Prices(prices, tuple(np.flatnonzero(prices > 1e-3 * prices.max()).tolist()))
    return Prices(prices * size / deviations)


def _interior(ridged: Floats, needed: Floats) -> tuple[Floats, Floats]:
    """Return prices and the room that their bounds have, both positive, whose products are nearly zero."""
    prices = np.ones(needed.size)
    room = np.maximum(ridged @ prices - needed, 1.0)
    diagonal = np.diag_indices(needed.size)
    for _ in range(_MOST_STEPS):
        missed = ridged @ prices - needed - room
        gap = float(prices @ room) / needed.size
        if gap <= _CLOSE * max(1.0, float(prices.max())) and np.abs(missed).max() <= _CLOSE:
            break
        system = ridged.copy()
        system[diagonal] += room / prices
        step = partial(
            _step, cho_factor(system, lower=True, overwrite_a=True, check_finite=False), prices, room, missed
        )
        move, change = step(-prices * room)
        length = min(_longest(prices, move), _longest(room, change))
        ahead = float((prices + length * move) @ (room + length * change)) / needed.size
        move, change = step((ahead / gap) ** 3 * gap - prices * room - move * change)
        length = _SHORTEN * min(_longest(prices, move), _longest(room, change))
        prices, room = prices + length * move, room + length * change
    return prices, room


def _step(
    factor: tuple[Floats, bool], prices: Floats, room: Floats, missed: Floats, target: Floats
) -> tuple[Floats, Floats]:
    """Return the moves of prices and room that bring their products to the target and leave nothing missed."""
    move = cho_solve(factor, target / prices - missed, check_finite=False)
    return move, (target - room * move) / prices


def _longest(values: Floats, move: Floats) -> float:
    """Return how far positive values can move, at most 1 whole step and a little more than they can shorten."""
    falls = move < 0
    return min(1.0 / _SHORTEN, float((values[falls] / -move[falls]).min(initial=np.inf)))


def _exchanged(ridged: Floats, needed: Floats, is_binding: NDArray[np.bool_]) -> Floats | None:
    """Return the prices of the bounds that bind, exactly, from a good guess of which; None if the guesses go round."""
    for _ in range(_MOST_EXCHANGES):
        chosen = np.flatnonzero(is_binding)
        found = _solved(ridged[np.ix_(chosen, chosen)], needed[chosen])
        if found is None:
            return None
        prices = np.zeros(needed.size)
        prices[chosen] = found
        room = ridged @ prices - needed
        tolerance = _BROKEN * max(1.0, float(np.abs(found).max(initial=0.0)))
        wrong = np.where(is_binding, prices < -tolerance, room < -_BROKEN)
        if not wrong.any():
            return np.maximum(prices, 0.0)
        is_binding = is_binding ^ wrong
    return None


def _solved(ridged: Floats, needed: Floats) -> Floats | None:
    """Return the prices under which all these bounds bind, the ridge's effect taken away by proximal steps."""
    if not needed.size:
        return needed
    try:
        factor = cho_factor(ridged, lower=True, check_finite=False)
    except LinAlgError:
        return None
    prices = cho_solve(factor, needed, check_finite=False)
    for _ in range(_PROXIMAL_STEPS):
        missing = needed - ridged @ prices + _RIDGE * prices
        if np.abs(missing).max() <= 1e-13:
            break
        prices = prices + cho_solve(factor, missing, check_finite=False)
    return np.asarray(prices)


MOST_INEQUALITIES = 2_000
_NO_NOISE = 1e-11
_DETERMINED = 1e-9
# Relative to the largest price: what is left of a bound that does not bind.
_NO_PRICE = 1e-7


@dataclass(frozen=True, eq=False)
class Imposed:
    """Cells under the equalities and, with inequalities, those that obey them too; and what was used.

    ``known`` and ``factored`` are the independent equalities and the factor of their covariance. The cells were moved
    by ``squared_distance`` in the metric of the noise, by ``bound`` independent facts; ``binding`` tells which
    inequalities among the used facts are among these.
    """

    known: BoxSums
    factored: FactoredFacts
    refined_cells: Floats
    moved_cells: Floats | None
    used: ReleaseFacts
    redundant: ReleaseFacts
    squared_distance: float
    binding: NDArray[np.bool_]

    @property
    def bound(self) -> int:
        """How many independent facts moved the cells."""
        return len(self.known) + int(np.count_nonzero(self.binding))


@dataclass(frozen=True, eq=False)
class _Moved:
    """Cells that obey upper bounds, how far they were moved, and which bounds have a price."""

    cells: Floats
    squared_distance: float
    is_binding: NDArray[np.bool_]


def impose_facts(covariance: CellMetric, cells: Floats, facts: ReleaseFacts, unit: float = 1.0) -> Imposed:
    """Return estimated cells, refined; refuses facts that contradict each other, in the user's words.

    ``unit`` is the variance that the covariance is in units of.
    """
    equal, bounded = np.flatnonzero(facts.is_equality), np.flatnonzero(~facts.is_equality)
    if len(bounded) > MOST_INEQUALITIES:
        raise CapacityError(
            f"a release can be refined with at most {MOST_INEQUALITIES:,} inequalities, not {len(bounded):,}"
        )
    kept, factored = _independent(covariance, facts, equal)
    known = facts.take(kept)
    refined, distance = _impose_equalities(covariance, cells, known, factored)
    is_binding = np.zeros(len(facts), dtype=np.bool_)
    moved = None
    if len(bounded):
        slack = rounding_of(covariance, np.maximum(np.abs(cells), np.abs(refined)), facts.take(bounded), unit)
        found = _impose_inequalities(covariance, refined, known.sums, factored, facts.take(bounded), slack)
        moved, is_binding[bounded] = found.cells, found.is_binding
        distance += found.squared_distance
    used = np.sort(np.concatenate([kept, bounded]))
    redundant = facts.take(np.setdiff1d(equal, kept))
    return Imposed(known.sums, factored, refined, moved, facts.take(used), redundant, distance, is_binding[used])


def _independent(covariance: CellMetric, facts: ReleaseFacts, equal: Integers) -> tuple[Integers, FactoredFacts]:
    """Return the equalities that say something new, in the order of their factored covariance."""
    deviations = _deviations(covariance, facts.sums.take(equal))
    is_empty = deviations == 0
    for row in equal[is_empty].tolist():
        if facts.constants[row] != 0:
            raise QueryError(f"the constraint {facts.quote([row])} can never hold; correct it or leave it out")
    some = equal[~is_empty]
    sums = facts.sums.take(some)

    def build(out: Floats) -> None:
        between(covariance, sums, sums, out)

    found = factor_facts(build, deviations[~is_empty], facts.constants[some])
    if found.contradiction:
        raise QueryError(_contradiction(facts, some[list(found.contradiction)].tolist()))
    if found.near_repeat:
        sentences = facts.quote(some[list(found.near_repeat)].tolist())
        raise QueryError(f"the constraints {sentences} are the same up to rounding; keep one, or write exact numbers")
    return some[found.kept], found


def _contradiction(facts: ReleaseFacts, rows: Sequence[int]) -> str:
    if len({facts.facts[row] for row in rows}) == 1:
        return f"the constraint {facts.quote(rows)} can never hold; correct it or leave it out"
    return f"the constraints {facts.quote(rows)} contradict each other; correct or leave out one of them"


def _deviations(covariance: CellMetric, sums: BoxSums) -> Floats:
    """Return the standard deviation of each sum, zero where its boxes cancel but for rounding."""
    found = np.sqrt(np.maximum(variances(covariance, sums), 0.0))
    if sums.shares is None:
        return found
    of_boxes = np.sqrt(np.maximum(variances(covariance, BoxSums(sums.boxes)), 0.0))
    return np.where(found <= np.sqrt(_NO_NOISE) * (abs(sums.shares) @ of_boxes), 0.0, found)


def _impose_equalities(
    covariance: CellMetric, cells: Floats, known: ReleaseFacts, factored: FactoredFacts
) -> tuple[Floats, float]:
    """Return the nearest cells that obey the equalities, and the squared distance to them."""
    refined = cells
    along = factored.halve(known.constants - known.sums.values(BlockSums(cells), cells))
    # The second pass takes away what rounding left of the first.
    for _ in range(2 if len(known) else 0):
        missing = known.constants - known.sums.values(BlockSums(refined), refined)
        refined = refined + covariance.spread(known.sums.spread(factored.solve(missing)))
    return refined, inner_product(along, along)


def _impose_inequalities(
    covariance: CellMetric,
    cells: Floats,
    known: BoxSums,
    factored: FactoredFacts,
    bounded: ReleaseFacts,
    slack: Floats,
) -> _Moved:
    """Return the nearest cells that obey the bounds too: a program over the bounded sums and their covariance C.

    With G, K and C' the covariances of the equalities, between both, and of the bounded sums, C = C' - K'G^-1 K. Moving
    the sums by C λ moves the cells by S (I λ - B G^-1 K λ), which leaves the equalities as they are. Sums that the
    equalities determine cannot move: they obey their bounds or nothing does.
    """
    excess = bounded.sums.values(BlockSums(cells), cells) - bounded.constants
    if not (excess > slack).any():
        return _Moved(cells, 0.0, np.zeros(len(bounded), dtype=np.bool_))
    with_facts = between(covariance, bounded.sums, known).T
    halves = factored.halve(with_facts)
    remaining = between(covariance, bounded.sums, bounded.sums)
    own = np.diag(remaining).copy()
    remaining -= halves.T @ halves
    is_fixed = np.diag(remaining) <= _DETERMINED * own
    _refuse_unreachable(bounded, np.flatnonzero(is_fixed & (excess > slack)).tolist())
    free = np.flatnonzero(~is_fixed)
    remaining = (remaining + remaining.T)[np.ix_(free, free)] / 2
    found = prices_of_bounds(remaining, excess[free])
    _refuse_unreachable(bounded, free[list(found.unreachable)].tolist())
    prices = np.zeros(len(bounded))
    prices[free] = -found.values
    weights = bounded.sums.spread(prices) - known.spread(factored.solve(with_facts @ prices))
    distance = inner_product(found.values, remaining @ found.values)
    is_binding = prices < _NO_PRICE * prices.min()
    return _Moved(cells + covariance.spread(weights), distance, is_binding)


def rounding_of(covariance: CellMetric, sizes: Floats, facts: ReleaseFacts, unit: float) -> Floats:
    """Return how far each sum may be off by rounding alone, ``sizes`` being how large the summed cells are.

    Cells that hardly anything was measured of may be huge and cancel in sums that are known well: there a part of the
    sum's own noise is less, and as good as nothing.
    """
    summed = abs(facts.sums.matrix) @ facts.sums.boxes.sums(BlockSums(sizes), sizes)
    slack = _ROUNDING * (summed + np.abs(facts.constants))
    deviations = np.sqrt(unit) * _deviations(covariance, facts.sums)
    return np.asarray(np.where(deviations > 0, np.minimum(slack, _OF_ITS_NOISE * deviations), slack))


def _refuse_unreachable(bounded: ReleaseFacts, rows: Sequence[int]) -> None:
    if rows:
        raise QueryError(
            f"no table obeys {bounded.quote(rows)} beside the other constraints; correct or leave out one of them"
        )
