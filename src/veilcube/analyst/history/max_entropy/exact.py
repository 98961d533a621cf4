"""Maximum entropy on universes that fit in memory: the dual by L-BFGS-B with exact sums over all cells."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from scipy.optimize import minimize

from veilcube.analyst.history.max_entropy.dual import DualProblem, least_risk
from veilcube.system import Floats

MOST_EXACT_CELLS = 1 << 18
_MOST_ITERATIONS = 5000
_ITERATIONS_OF_A_TRIAL = 100


def log_prior(prior: Sequence[Floats]) -> Floats:
    """Return ln p0 of every cell of the universe."""
    total = np.zeros(tuple(law.size for law in prior))
    for axis, law in enumerate(prior):
        total += np.log(law).reshape([-1 if axis == other else 1 for other in range(len(prior))])
    return total


def all_chances(problem: DualProblem, base: Floats, weights: Floats) -> tuple[Floats, float]:
    """Return p_w of every cell and ln Z_w."""
    exponent = base.copy()
    for group, table in zip(problem.groups, problem.log_weights(weights), strict=True):
        exponent += table.reshape([size if axis in group.axes else 1 for axis, size in enumerate(problem.shape)])
    top = float(exponent.max())
    chances = np.exp(exponent - top)
    mass = float(chances.sum())
    return chances / mass, top + float(np.log(mass))


def tables_of(problem: DualProblem, chances: Floats) -> list[Floats]:
    """Return p's marginal over each group's attributes."""
    every = range(len(problem.shape))
    return [chances.sum(axis=tuple(axis for axis in every if axis not in group.axes)) for group in problem.groups]


def choose_alpha_exactly(problem: DualProblem, progress: Callable[[float | None], None]) -> tuple[float, Floats]:
    """Return the alpha of least estimated risk, and weights near its solution."""
    last, base = np.zeros(problem.shares.size), log_prior(problem.prior)

    def attempt(alpha: float) -> tuple[Floats, Floats]:
        nonlocal last
        boxed = problem.with_alpha(alpha)
        last, _ = fit_exactly(boxed, last, lambda _: None, trial=True)
        chances, _ = all_chances(boxed, base, last)
        return boxed.expectations(tables_of(boxed, chances)), last

    return least_risk(problem, attempt, progress)


def fit_exactly(
    problem: DualProblem, start: Floats, step: Callable[[float | None], None], *, trial: bool = False
) -> tuple[Floats, int]:
    """Return the weights that maximise the dual, and how many iterations they took."""
    if prod(problem.shape) > MOST_EXACT_CELLS:
        raise AssertionError("the exact engine is for small universes")
    if not problem.bounds.any():
        return np.zeros(problem.shares.size), 0
    base = log_prior(problem.prior)
    most, close = (_ITERATIONS_OF_A_TRIAL, 1e-9) if trial else (_MOST_ITERATIONS, 1e-15)

    # Counts and moments differ by orders of magnitude; in units of its own spread every query has curvature 1 at first.
    units = _spreads(problem, base)

    def descent(scaled: Floats) -> tuple[float, Floats]:
        weights = scaled / units
        chances, log_mass = all_chances(problem, base, weights)
        expected = problem.expectations(tables_of(problem, chances))
        return log_mass - float(weights @ problem.shares), (expected - problem.shares) / units

    found = minimize(
        descent,
        np.clip(start, -problem.bounds, problem.bounds) * units,
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([-problem.bounds * units, problem.bounds * units], axis=1),
        callback=lambda _: step(None),
        options={"maxiter": most, "maxfun": 4 * most, "maxcor": 30, "ftol": close, "gtol": 1e-10},
    )
    return np.clip(found.x / units, -problem.bounds, problem.bounds), int(found.nit)


def _spreads(problem: DualProblem, base: Floats) -> Floats:
    """The size of each query under the prior: the root mean square of its terms."""
    chances, _ = all_chances(problem, base, np.zeros(problem.shares.size))
    found = np.empty(problem.shares.size)
    for group, table in zip(problem.groups, tables_of(problem, chances), strict=True):
        found[group.members] = np.sqrt(group.squared().expectations(table))
    return np.where(found > 0, found, 1.0)
