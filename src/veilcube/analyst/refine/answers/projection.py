"""The nearest answers that obey facts, in the metric of the noise: minimise (x - X)'S⁻¹(x - X).

S = L L' may be singular: x = X + L z and z is as short as possible. Equalities B'x = c have the closed form
X + S B (B'S B)⁻¹ (c - B'X), refined covariance S - S B (B'S B)⁻¹ B'S, computed from L'B = Q T' without forming B'S B.
Inequalities are Lawson and Hanson's least-distance program (Solving Least Squares Problems, ch. 23), solved exactly in
finitely many steps by non-negative least squares, then once more in closed form with the facts that bind.

Hundreds of facts are left to Clarabel's interior point where that extra is installed. It ends strictly inside to a
tolerance, so its prices only tell which facts bind: prices far below the largest are those of facts with room to spare.
"""

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from scipy.sparse import csc_matrix, identity

from veilcube.analyst.refine.answers.dependence import independent_rows
from veilcube.analyst.refine.facts import inner_product
from veilcube.system import Floats

_TOLERANCE = 1e-12
_NO_PRICE = 1e-7


@cache
def has_interior_point() -> bool:
    """Return whether the extra is installed."""
    return find_spec("clarabel") is not None


def least_distance_inside(slopes: Floats, needed: Floats) -> tuple[Floats, Floats] | None:
    """Return the shortest z and the prices of the rows, zero for those that do not bind; None if it was not found."""
    # By name, since it is an extra: mypy and users without it must not need it.
    clarabel = import_module("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    width = slopes.shape[1]
    solver = clarabel.DefaultSolver(
        csc_matrix(identity(width)),
        np.zeros(width),
        csc_matrix(-slopes),
        -needed,
        [clarabel.NonnegativeConeT(len(needed))],
        settings,
    )
    found = solver.solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        return None
    prices = np.array(found.z)
    return np.array(found.x), np.where(prices > _NO_PRICE * prices.max(), prices, 0.0)


_ROUNDING = 1e-9
_UNREACHABLE = 1e-8
# Above so many inequalities an interior point is faster than going from one set of binding facts to the next.
_MANY = 300
_MOST_POLISHED = 1_000


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest point and a factor of its covariance; or the facts that the answers, where exact, cannot obey.

    ``squared_distance`` is how far it was moved in the metric of the noise, by ``bound`` independent facts.
    """

    value: Floats
    factor: Floats
    unreachable: tuple[int, ...] = ()
    squared_distance: float = 0.0
    bound: int = 0


def impose_equalities(value: Floats, factor: Floats, rows: Floats, constants: Floats) -> Nearest:
    """Return the best linear unbiased refinement under ``rows @ x == constants`` and a factor of its covariance."""
    missing = constants - rows @ value
    magnitudes = np.abs(constants) + np.abs(rows) @ np.abs(value)
    tilted = rows @ factor
    # A row that moves no noise beyond rounding concerns exact answers only.
    tilted[np.linalg.norm(tilted, axis=1) <= 1e-14 * (np.abs(rows) @ np.linalg.norm(factor, axis=1))] = 0.0
    found = independent_rows(tilted, missing, magnitudes)
    if found.contradiction:
        return Nearest(value, factor, found.contradiction)
    if not found.kept:
        return Nearest(value, factor)
    along = solve_triangular(found.triangle, missing[list(found.kept)], lower=True)
    step = along @ found.basis
    remaining = factor - (factor @ found.basis.T) @ found.basis
    distance = inner_product(along, along)
    return Nearest(value + factor @ step, remaining, squared_distance=distance, bound=len(found.kept))


def impose_inequalities(
    value: Floats, factor: Floats, rows: Floats, bounds: Floats, before: Floats | None = None
) -> Nearest:
    """Return the nearest answers with ``rows @ x <= bounds``; the factor stays that of the answers before.

    ``before`` are the answers that ``value`` was computed from: what its rounding is relative to.
    """
    excess = rows @ value - bounds
    sizes = np.abs(value) if before is None else np.maximum(np.abs(value), np.abs(before))
    slack = _ROUNDING * (np.abs(bounds) + np.abs(rows) @ sizes)
    if (excess <= slack).all():
        return Nearest(value, factor)
    slopes = rows @ factor
    lengths = np.linalg.norm(slopes, axis=1)
    is_movable = lengths > 1e-10 * (np.abs(rows) @ np.linalg.norm(factor, axis=1))
    stuck = np.flatnonzero(~is_movable & (excess > slack))
    if len(stuck):
        return Nearest(value, factor, tuple(stuck.tolist()))
    movable = np.flatnonzero(is_movable)
    step, prices = _least_distance(-slopes[movable] / lengths[movable, None], excess[movable] / lengths[movable])
    binding = movable[prices > 0]
    if step is None:
        return Nearest(value, factor, tuple(binding.tolist()))
    found = Nearest(value + factor @ step, factor, squared_distance=inner_product(step, step), bound=len(binding))
    if len(binding) > _MOST_POLISHED:
        return found
    polished = impose_equalities(value, factor, rows[binding], bounds[binding])
    is_better = not polished.unreachable and (rows @ polished.value - bounds <= slack).all()
    return replace(polished, factor=factor) if is_better else found


def _least_distance(slopes: Floats, needed: Floats) -> tuple[Floats | None, Floats]:
    """Return the shortest z with ``slopes @ z >= needed`` and the prices of the rows; None if there is no such z."""
    size = needed.max()
    if len(needed) > _MANY and has_interior_point():
        inside = least_distance_inside(slopes, needed / size)
        if inside is not None:
            return inside[0] * size, inside[1]
    target = np.zeros(slopes.shape[1] + 1)
    target[-1] = 1.0
    prices, distance = nnls(np.vstack([slopes.T, needed / size]), target, maxiter=30 * sum(slopes.shape))
    if distance <= _UNREACHABLE:
        return None, prices
    residual = slopes.T @ prices
    last = needed @ prices / size - 1
    return -residual / last * size, prices
