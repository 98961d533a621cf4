"""Whether any answers obey the facts at all, which facts stand in each other's way, and what ranges the facts leave.

The elastic program gives every fact a slack and minimises their sum. It is zero if and only if the facts agree; if not,
the facts with a dual price form a contradiction (Farkas), which a deletion filter makes irreducible.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, identity
from scipy.sparse.csgraph import connected_components

from veilcube.analyst.refine.facts.facts import FactSystem
from veilcube.system import Floats

# HiGHS meets constraints to 1e-7. Rows are scaled to the length one, and constants so that the largest is at least one
# and at most the last figure: whole counts of millions still differ by far more than the tolerance.
_VIOLATED = 1e-6
_LARGEST_CONSTANT = 1e7
_PRICE = 1e-9
_MOST_RANGES = 60


def contradicting_facts(system: FactSystem, *, nonnegative: bool) -> tuple[int, ...]:
    """Return facts that no answers (no answers >= 0) obey together though fewer could hold; empty if all agree."""
    rows, constants = _scaled(system)
    violation, prices = _elastic(rows, constants, system.is_equality, nonnegative)
    if violation <= _VIOLATED:
        return ()
    suspects = np.flatnonzero(np.abs(prices) > _PRICE)
    for fact in suspects:
        fewer = suspects[suspects != fact]
        left, _ = _elastic(rows[fewer], constants[fewer], system.is_equality[fewer], nonnegative)
        if left > _VIOLATED:
            suspects = fewer
    return tuple(suspects.tolist())


def implied_ranges(system: FactSystem) -> tuple[Floats, Floats]:
    """Return the least and the greatest value that the facts allow each answer, infinite where they do not bound it.

    Only answers that an inequality reaches, directly or through other facts, are looked at; the others keep no bounds.
    Among more than 60 answers that facts link, only facts about a single answer count: each range is two programs.
    """
    answers = system.weights.shape[1]
    low, high = np.full(answers, -np.inf), np.full(answers, np.inf)
    links = csr_array(system.weights != 0, dtype=np.int8)
    _, component = connected_components(links.T @ links, directed=False)
    reached = component[np.flatnonzero((system.weights[~system.is_equality] != 0).any(axis=0))]
    for label in np.unique(reached):
        members = np.flatnonzero(component == label)
        inside = (system.weights[:, members] != 0).any(axis=1)
        part = system.take(inside)
        if len(members) > _MOST_RANGES:
            part = part.take((part.weights != 0).sum(axis=1) == 1)
            for at in members[(part.weights[:, members] != 0).any(axis=0)]:
                own = part.take(part.weights[:, at] != 0)
                low[at], high[at] = _ranges(own.weights[:, [at]], own.constants, own.is_equality)[:, 0]
            continue
        low[members], high[members] = _ranges(part.weights[:, members], part.constants, part.is_equality)
    return low, high


def _ranges(rows: Floats, constants: Floats, is_equality: NDArray[np.bool_]) -> Floats:
    if rows.shape[1] == 1:
        bounds = constants / rows[:, 0]
        upper = bounds[is_equality | (rows[:, 0] > 0)]
        lower = bounds[is_equality | (rows[:, 0] < 0)]
        return np.array([[lower.max(initial=-np.inf)], [upper.min(initial=np.inf)]])
    ends = [
        (_extreme(rows, constants, is_equality, at, 1), -_extreme(rows, constants, is_equality, at, -1))
        for at in range(rows.shape[1])
    ]
    return np.array(ends).T


def _extreme(rows: Floats, constants: Floats, is_equality: NDArray[np.bool_], at: int, sign: int) -> float:
    """Return the least value of sign times one answer; -inf where the program has no bound or no certain end."""
    objective = np.zeros(rows.shape[1])
    objective[at] = sign
    size = _unit(constants)
    outcome = linprog(
        objective,
        A_ub=rows[~is_equality],
        b_ub=constants[~is_equality] / size,
        A_eq=rows[is_equality],
        b_eq=constants[is_equality] / size,
        bounds=(None, None),
        method="highs",
    )
    return float(outcome.fun) * size if outcome.status == 0 else -np.inf


def _scaled(system: FactSystem) -> tuple[Floats, Floats]:
    lengths = np.linalg.norm(system.weights, axis=1)
    lengths[lengths == 0] = 1.0
    constants = system.constants / lengths
    return system.weights / lengths[:, None], constants / _unit(constants)


def _unit(constants: Floats) -> float:
    largest = float(np.abs(constants).max(initial=0.0)) or 1.0
    return max(min(largest, 1.0), largest / _LARGEST_CONSTANT)


def _elastic(
    rows: Floats, constants: Floats, is_equality: NDArray[np.bool_], nonnegative: bool
) -> tuple[float, Floats]:
    """Return the least sum of slacks, rows x + p - q = c (an inequality's own slack p is free), and the dual prices."""
    facts, answers = rows.shape
    if facts == 0:
        return 0.0, np.empty(0)
    outcome = linprog(
        np.concatenate([np.zeros(answers), np.where(is_equality, 1.0, 0.0), np.ones(facts)]),
        A_eq=hstack([csr_array(rows), identity(facts), -identity(facts)], format="csr"),
        b_eq=constants,
        bounds=[(0 if nonnegative else None, None)] * answers + [(0, None)] * (2 * facts),
        method="highs",
    )
    return float(outcome.fun), np.asarray(outcome.eqlin.marginals)
