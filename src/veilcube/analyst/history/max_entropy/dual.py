"""The box-constrained dual of maximum entropy (Theorem 6 of the history paper), and steps that climb it.

    maximise  Σ_i w_i π_i - ln Z_w    over  -β_i <= w_i <= β_i,    π_i = a_i / n,    β_i = α n / b_i

with a_i the noisy answers, b_i their Laplace scales and n the number of rows. The gradient is π - p_w[f], and minus the
Hessian is the covariance of the f_i under p_w. A step maximises, for each table of log-weights on its own, the
quadratic with that covariance inside the box; tables that share attributes undo each other's work, so steps are damped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.max_entropy.tables import TableGroup
from veilcube.system import Floats, compiled_fast

Marks = NDArray[np.bool_]

# Queries of one group whose covariance is written out; beyond it each query is bounded on its own.
MOST_COVARIANCES = 2048
# Curvature below this share of the noise tells nothing: steps there are as long as if it were there.
_FLOOR = 0.3
_EXACT_FLOOR = 1e-7
_PASSES = 12
# How far the log-weights of a table may move in one whole step.
_TRUST = 2.0
# Safe for chains that lag one sweep behind, if every query were about one shared attribute.
_DAMPING = 0.65
_EXACT_NOISE = 1e-4
# Averaged weights come this near to the wall that their last steps stood at.
_AT_THE_WALL = 0.95
# Half-widths of the median query's box that are tried, narrow to wide, until so many are worse than the best.
_TRIED_BOXES = tuple(2.0**power for power in range(-9, 5))
_WORSE_TRIALS = 2
# A weight beyond this is a cell that nobody is in; exp of it is 0 for every purpose.
LARGEST_WEIGHT = 200.0


@dataclass(frozen=True, eq=False)
class DualProblem:
    """What is to be maximised: queries in groups, their answers as ``shares`` π, noise and box.

    ``noise`` is the standard deviation of each share, 0 where it is exact; ``prior`` each attribute's probabilities p0.
    """

    groups: tuple[TableGroup, ...]
    shape: tuple[int, ...]
    shares: Floats
    noise: Floats
    bounds: Floats
    prior: tuple[Floats, ...]

    def with_alpha(self, alpha: float) -> "DualProblem":
        """Return the problem with the box of another alpha."""
        return replace(self, bounds=box(alpha, self.noise))

    def log_weights(self, weights: Floats) -> list[Floats]:
        """Return the table of each group."""
        return [group.log_weights(weights[group.members]) for group in self.groups]

    def expectations(self, tables: Sequence[Floats]) -> Floats:
        """Return p[f_i] of all queries from p's marginal over each group."""
        found = np.empty(self.shares.size)
        for group, table in zip(self.groups, tables, strict=True):
            found[group.members] = group.expectations(table)
        return found

    def held(self, weights: Floats, expected: Floats) -> Marks:
        """Say which queries the box keeps from being met: at its wall, and the gradient points outwards."""
        at_wall = np.abs(weights) >= self.bounds * _AT_THE_WALL
        return np.asarray(at_wall & (np.sign(weights) * (self.shares - expected) > 0))

    def risk(self, weights: Floats, expected: Floats) -> Floats:
        """Estimate each answer's squared error without bias, from the noisy answers alone, in shares (Stein).

        A query inside the box is met exactly, so its error is its noise; one at the wall does not move with its noise.
        """
        misfit = np.square(self.shares - expected) - np.square(self.noise)
        return np.where(self.held(weights, expected), misfit, np.square(self.noise))

    def in_noise(self, squares: Floats) -> Floats:
        """Return squared errors in units of the noise; exact answers are asked for to a ten-thousandth of all rows."""
        return np.asarray(squares / np.square(np.where(self.noise > 0, self.noise, _EXACT_NOISE)))

    @cached_property
    def damping(self) -> float:
        """The part of a full step that all groups can take at once."""
        sharing = np.zeros(len(self.shape))
        for group in self.groups:
            sharing[list(group.axes)] += 1
        return _DAMPING / max(1.0, float(sharing.max()))


def box(alpha: float, noise: Floats) -> Floats:
    """Return β_i = α n / b_i, where b_i/n is the scale of the share's Laplace noise; endless where it has none."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(alpha * np.sqrt(2.0) / noise, LARGEST_WEIGHT) if alpha > 0 else np.zeros(noise.size)


def least_risk(
    problem: DualProblem,
    attempt: Callable[[float], tuple[Floats, Floats]],
    progress: Callable[[float | None], None],
) -> tuple[float, Floats]:
    """Return the alpha whose estimated risk is least, and the weights found for it.

    ``attempt(alpha)`` returns expectations and weights; alphas ascend, so each may start from the last.
    """
    noisy = problem.noise[problem.noise > 0]
    if not noisy.size:
        return np.inf, np.zeros(problem.noise.size)
    unit = float(np.median(noisy)) / np.sqrt(2.0)
    found: list[tuple[float, float, Floats]] = []
    worse = 0
    for trial, width in enumerate(_TRIED_BOXES):
        progress(trial / len(_TRIED_BOXES))
        expected, weights = attempt(width * unit)
        risk = problem.with_alpha(width * unit).risk(weights, expected)
        found.append((float(problem.in_noise(risk)[problem.noise > 0].sum()), width * unit, weights))
        worse = worse + 1 if found[-1][0] > min(found, key=lambda entry: entry[0])[0] else 0
        if worse >= _WORSE_TRIALS:
            break
    _, alpha, weights = min(found, key=lambda entry: entry[0])
    progress(1.0)
    return alpha, weights


class BoxSteps:
    """Climbs the dual: each step looks at p's marginals and moves the weights, group by group, inside the box."""

    def __init__(self, problem: DualProblem) -> None:
        self._problem = problem
        self._floor = np.maximum(_FLOOR * problem.noise, _EXACT_FLOOR)
        self._curvature: list[Floats | None] | None = None

    def refresh(self, tables: Sequence[Floats]) -> None:
        """Take the covariances of the queries from these marginals."""
        self._curvature = [
            _curvature(group, table, self._floor[group.members])
            for group, table in zip(self._problem.groups, tables, strict=True)
        ]

    def step(self, weights: Floats, expected: Floats, length: float) -> Floats:
        """Return new weights; ``length`` 1 is the whole step of a group on its own."""
        if self._curvature is None:
            raise AssertionError("refresh comes before the first step")
        problem, moved = self._problem, weights.copy()
        slope, bounds = problem.shares - expected, problem.bounds
        for group, curvature in zip(problem.groups, self._curvature, strict=True):
            at = group.members
            if curvature is None:
                # Far from the answers a cell moves as iterative proportional fitting would move it, never further.
                bent = np.maximum(expected[at], problem.shares[at]) + self._floor[at]
                moved[at] = np.clip(weights[at] + length * slope[at] / bent, -bounds[at], bounds[at])
                continue
            if curvature.ndim == 1:
                wanted = np.clip(weights[at] + length * slope[at] / curvature, -bounds[at], bounds[at])
            else:
                wanted = _climb_box(weights[at], slope[at] * length, curvature, bounds[at], _PASSES)
            moved[at] = weights[at] + _trusted(group, wanted - weights[at], length)
        return moved


def _trusted(group: TableGroup, change: Floats, length: float) -> Floats:
    """Shorten a change that would move the log-weights of a table further than covariances can be trusted."""
    moved = group.log_weights(change)
    reach = float(moved.max() - moved.min())
    return change * min(1.0, _TRUST * length / reach) if reach > 0 else change


def _curvature(group: TableGroup, table: Floats, floor: Floats) -> Floats | None:
    """The covariance matrix of a group's queries, or a diagonal that is nowhere below it; None for distinct cells."""
    if group.cells is not None and np.bincount(group.cells).max() == 1:
        return None
    if group.cells is None and group.members.size <= MOST_COVARIANCES and group.dense is not None:
        dense = group.dense
        mean = dense @ table.ravel()
        matrix = (dense * table.ravel()) @ dense.T - np.outer(mean, mean)
        matrix[np.diag_indices_from(matrix)] += floor
        return np.asarray(matrix)
    sizes = group.magnitude()
    return sizes.expectations(table * sizes.log_weights(np.ones(group.members.size))) + floor


@compiled_fast
def _climb_box(weights: Floats, slope: Floats, curvature: Floats, bounds: Floats, passes: int) -> Floats:
    """Maximise slope·δ - δ'Cδ/2 over weights + δ inside the box, one coordinate after the other."""
    moved, rest = weights.copy(), slope.copy()
    for _ in range(passes):
        for query in range(moved.size):
            wanted = moved[query] + rest[query] / curvature[query, query]
            change = min(max(wanted, -bounds[query]), bounds[query]) - moved[query]
            if change != 0.0:
                moved[query] += change
                for other in range(moved.size):
                    rest[other] -= change * curvature[query, other]
    return moved
