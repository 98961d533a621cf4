"""The nearest sums that obey upper bounds, by the prices of the bounds: thousands of them, however they depend.

With sums of covariance C that exceed their bounds by e, the nearest sums that obey are s - C λ, where λ >= 0 minimises
λ'C λ/2 - e'λ. A primal-dual interior point (Mehrotra's) finds which bounds have a price, in some twenty factorisations
of the size of C; then the prices of these are solved for exactly, exchanging bounds as long as one is broken or has a
negative price (block pivoting). A small ridge keeps dependent bounds apart; proximal steps take its effect away again.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Floats = NDArray[np.float64]

_RIDGE = 1e-9
_MOST_STEPS = 60
_MOST_EXCHANGES = 40
_PROXIMAL_STEPS = 8
_CLOSE = 1e-10
_BROKEN = 1e-9
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
