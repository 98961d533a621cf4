"""Maximum entropy on any universe: persistent Gibbs chains follow the weights while these climb the dual.

First a few chains bring the weights near; then many chains move them by ever smaller steps, and the weights of all
these steps are averaged (Polyak and Ruppert), so that the noise of single sweeps cancels. With no alpha given, boxes
are tried from narrow to wide, each starting from the one before, and the one of least estimated risk is taken.

The published way (section 4.2 of the history paper) is kept for reproductions: one chain; every attribute in turn is
offered a cell drawn evenly, taken by the rule of Metropolis and Hastings; after every such row all weights move by
rate · (π_i - f_i(row)) and are cut to the box. It converges slowly.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.max_entropy.dual import BoxSteps, DualProblem, least_risk
from veilcube.analyst.history.max_entropy.gibbs import Chains, TableLayout
from veilcube.system import Floats, Integers, compiled_fast

Progress = Callable[[float | None], None]

MOST_CHAINS = 1 << 17
_FEWEST_CHAINS = 1 << 13
# Multiplications in one sweep of all chains: about a fifth of a second on two cores.
_WORK_OF_A_SWEEP = 1 << 30
_COST_OF_A_RUN = 12
# How much smaller than the noise of answers the variance of the chains should be.
_QUIETER = 20.0
_SCOUTS = 4
_SWEEPS_OF_A_TRIAL = 24
_SWEEPS_TO_APPROACH = 60
_SWEEPS_OF_A_ROUND = 30
_MOST_ROUNDS = 6
_SWEEPS_TO_SETTLE = 10
_SWEEPS_FROM_SCRATCH = 100
_SWEEPS_TO_COLLECT = 20
_SWEEPS_BETWEEN_REFRESHES = 8
# Misfit that is left, in standard deviations of the noise: what the noise itself hides.
_CLOSE_ENOUGH = 0.15
_WORTH_ANOTHER_ROUND = 0.9


@dataclass(frozen=True, eq=False)
class ChainFit:
    """Weights, p's marginal over each group from settled chains, the chains themselves, and how it went."""

    weights: Floats
    tables: list[Floats]
    chains: Chains
    packed: NDArray[np.float32] | Floats
    sweeps: int


def layout_of(problem: DualProblem) -> TableLayout:
    """Return where the tables of a problem's groups lie."""
    return TableLayout(problem.shape, tuple(group.axes for group in problem.groups))


def chains_for(problem: DualProblem) -> int:
    """Return as many chains as make their own noise small beside the answers', if that keeps a sweep short."""
    layout = layout_of(problem)
    work = 2 * sum(layout.shape[axis] + _COST_OF_A_RUN for axis, _ in layout.entries) + sum(layout.shape)
    noise = np.where(problem.noise > 0, problem.noise, np.inf)
    wanted = _QUIETER * float(np.mean(np.clip(problem.shares, 0.0, 1.0) / np.square(noise)))
    most = min(MOST_CHAINS, _WORK_OF_A_SWEEP // max(work, 1))
    return int(np.clip(wanted if wanted > 0 else most, _FEWEST_CHAINS, max(most, _FEWEST_CHAINS))) // _SCOUTS * _SCOUTS


def choose_alpha(problem: DualProblem, seed: int, progress: Progress) -> tuple[float, Floats]:
    """Return the alpha of least estimated risk, and weights near its solution."""
    climber = _Climber(problem, chains_for(problem) // _SCOUTS, seed)

    def attempt(alpha: float) -> tuple[Floats, Floats]:
        climber.widen(problem.with_alpha(alpha))
        return climber.climb(_SWEEPS_OF_A_TRIAL), climber.weights

    return least_risk(problem, attempt, progress)


def fit_chains(problem: DualProblem, start: Floats, seed: int, progress: Progress, *, moving: bool = True) -> ChainFit:
    """Climb from ``start`` and return averaged weights with chains that have settled at them.

    With ``moving`` off the weights stay as they are, and the chains only settle.
    """
    many = chains_for(problem)
    if moving:
        weights, climber = _climb_all(problem, start, many, seed, progress)
    else:
        weights, climber = start, _Climber(problem, many, seed, start)
    packed = climber.layout.pack(problem.log_weights(weights))
    climber.chains.sweep(packed, _SWEEPS_TO_SETTLE if moving else _SWEEPS_FROM_SCRATCH)
    progress(0.95)
    tables = climber.chains.collect(packed, _SWEEPS_TO_COLLECT)
    progress(1.0)
    return ChainFit(weights, tables, climber.chains, packed, climber.sweeps)


def _climb_all(
    problem: DualProblem, start: Floats, many: int, seed: int, progress: Progress
) -> tuple[Floats, "_Climber"]:
    """Approach with few chains, then average with many until answers are met or no round brings them nearer."""
    scout = _Climber(problem, many // _SCOUTS, seed, start)
    before = np.inf
    for turn in range(_MOST_ROUNDS):

        def approach(share: float, turn: int = turn) -> None:
            progress(0.3 * (turn + share) / _MOST_ROUNDS)

        misfit = scout.misfit(scout.climb(_SWEEPS_TO_APPROACH, approach))
        if misfit < _CLOSE_ENOUGH or misfit > _WORTH_ANOTHER_ROUND * before:
            break
        before = misfit
    climber = _Climber(problem, 2, seed + 1, scout.weights)
    climber.chains = Chains(climber.layout, problem.prior, np.repeat(scout.chains.rows, _SCOUTS, axis=0), seed + 1)
    climber.sweeps, average, before = scout.sweeps, scout.weights, np.inf
    for turn in range(_MOST_ROUNDS):

        def advance(share: float, turn: int = turn) -> None:
            progress(0.3 + 0.6 * (turn + share) / _MOST_ROUNDS)

        average, misfit = climber.average(_SWEEPS_OF_A_ROUND, advance)
        if misfit < _CLOSE_ENOUGH or misfit > _WORTH_ANOTHER_ROUND * before:
            break
        before = misfit
    return average, climber


class _Climber:
    """Weights, chains that follow them, and the step length, which shrinks once averaging begins."""

    def __init__(self, problem: DualProblem, chains: int, seed: int, start: Floats | None = None) -> None:
        self.problem, self.layout = problem, layout_of(problem)
        self.chains = Chains.drawn(self.layout, problem.prior, max(chains, 2), seed)
        self.weights = np.zeros(problem.shares.size) if start is None else np.clip(start, *_walls(problem))
        self.steps = BoxSteps(problem)
        self.sweeps = self._averaged = 0

    def widen(self, problem: DualProblem) -> None:
        """Go on with another box."""
        self.problem, self.steps = problem, BoxSteps(problem)
        self.weights = np.clip(self.weights, *_walls(problem))

    def climb(self, sweeps: int, progress: Callable[[float], None] = lambda _: None) -> Floats:
        """Take steps of full length and return the mean expectations of the second half of them."""
        total, counted = np.zeros(self.weights.size), 0
        for sweep in range(sweeps):
            expected = self._advance(self.problem.damping, refresh=sweep % _SWEEPS_BETWEEN_REFRESHES == 0)
            if sweep >= sweeps // 2:
                total, counted = total + expected, counted + 1
            progress((sweep + 1) / sweeps)
        return total / max(counted, 1)

    def average(self, sweeps: int, progress: Callable[[float], None]) -> tuple[Floats, float]:
        """Take shrinking steps; return the mean of their weights and the misfit of the mean expectations."""
        weights, expected = np.zeros(self.weights.size), np.zeros(self.weights.size)
        for sweep in range(sweeps):
            self._averaged += 1
            length = self.problem.damping * (1 + self._averaged / 10) ** -0.6
            expected += self._advance(length, refresh=sweep % _SWEEPS_BETWEEN_REFRESHES == 0) / sweeps
            weights += self.weights / sweeps
            progress((sweep + 1) / sweeps)
        return weights, self.misfit(expected)

    def _advance(self, length: float, *, refresh: bool) -> Floats:
        tables = self.chains.collect(self.layout.pack(self.problem.log_weights(self.weights)))
        if refresh:
            self.steps.refresh(tables)
        expected = self.problem.expectations(tables)
        self.weights = self.steps.step(self.weights, expected, length)
        self.sweeps += 1
        return expected

    def misfit(self, expected: Floats) -> float:
        """Return how far answers that can be met are from being met, in units of their noise."""
        free = ~self.problem.held(self.weights, expected)
        gaps = self.problem.in_noise(np.square(self.problem.shares - expected))[free]
        return float(np.sqrt(gaps.mean())) if gaps.size else 0.0


def _walls(problem: DualProblem) -> tuple[Floats, Floats]:
    return -problem.bounds, problem.bounds


_STEPS_AT_ONCE = 2000


@dataclass(frozen=True, eq=False)
class _Terms:
    """All terms of all queries: term j is Π_a flat[places[j, a] + row[axes[j, a]]], and belongs to query owner[j].

    ``by_axis`` lists the terms that weigh each attribute, from ``first[axis]`` on. Unused places point at a single 1.
    """

    owner: Integers
    axes: Integers
    places: Integers
    spans: Integers
    flat: Floats
    by_axis: Integers
    first: Integers


def descend_stochastically(
    problem: DualProblem, steps: int, rate: float, seed: int, progress: Callable[[float | None], None]
) -> Floats:
    """Return the weights after ``steps`` rows."""
    terms, random = _collect_terms(problem), np.random.default_rng([seed, 3])
    sizes = np.array(problem.shape, dtype=np.int64)
    log_prior = np.concatenate([np.log(law) for law in problem.prior])
    starts = np.cumsum([0, *problem.shape]).astype(np.int64)
    row, weights = random.integers(0, sizes), np.zeros(problem.shares.size)
    for done in range(0, steps, _STEPS_AT_ONCE):
        uniforms = random.random((min(_STEPS_AT_ONCE, steps - done), sizes.size, 2))
        _descend(
            row, weights, uniforms, problem.shares, problem.bounds, rate, sizes, log_prior, starts, terms.owner,
            terms.axes, terms.places, terms.spans, terms.flat, terms.by_axis, terms.first,
        )  # fmt: skip
        progress((done + len(uniforms)) / steps)
    return weights


def _collect_terms(problem: DualProblem) -> _Terms:
    widest = max(1, *(len(group.axes) for group in problem.groups))
    many = sum(group.owner.size for group in problem.groups)
    axes, places = np.zeros((many, widest), dtype=np.int64), np.zeros((many, widest), dtype=np.int64)
    owner, spans = np.empty(many, dtype=np.int64), np.zeros((many, widest), dtype=np.int64)
    pieces, at, begin = [np.ones(1)], 1, 0
    for group in problem.groups:
        part = slice(begin, begin + group.owner.size)
        owner[part] = group.members[group.owner]
        for column, (axis, factor) in enumerate(zip(group.axes, group.factors, strict=True)):
            axes[part, column], spans[part, column] = axis, 1
            places[part, column] = at + np.arange(len(factor)) * factor.shape[1]
            pieces.append(factor.ravel())
            at += factor.size
        begin += group.owner.size
    weighing = [np.flatnonzero(((axes == axis) & (spans == 1)).any(axis=1)) for axis in range(len(problem.shape))]
    first = np.cumsum([0, *(terms.size for terms in weighing)]).astype(np.int64)
    return _Terms(owner, axes, places, spans, np.concatenate(pieces), np.concatenate(weighing), first)


@compiled_fast
def _descend(
    row: Integers,
    weights: Floats,
    uniforms: Floats,
    shares: Floats,
    bounds: Floats,
    rate: float,
    sizes: Integers,
    log_prior: Floats,
    starts: Integers,
    owner: Integers,
    axes: Integers,
    places: Integers,
    spans: Integers,
    flat: Floats,
    by_axis: Integers,
    first: Integers,
) -> None:
    values = np.zeros(weights.size)
    for step in range(uniforms.shape[0]):
        for axis in range(sizes.size):
            offered, held = int(uniforms[step, axis, 0] * sizes[axis]), row[axis]
            gain = log_prior[starts[axis] + offered] - log_prior[starts[axis] + held]
            for number in range(first[axis], first[axis + 1]):
                term = by_axis[number]
                rest, change = 1.0, 0.0
                for place in range(axes.shape[1]):
                    at = places[term, place]
                    if spans[term, place] and axes[term, place] == axis:
                        change = flat[at + offered] - flat[at + held]
                    else:
                        rest *= flat[at + spans[term, place] * row[axes[term, place]]]
                gain += weights[owner[term]] * rest * change
            if np.log(uniforms[step, axis, 1]) < gain:
                row[axis] = offered
        values[:] = 0.0
        for term in range(owner.size):
            product = 1.0
            for place in range(axes.shape[1]):
                product *= flat[places[term, place] + spans[term, place] * row[axes[term, place]]]
            values[owner[term]] += product
        for query in range(weights.size):
            moved = weights[query] + rate * (shares[query] - values[query])
            weights[query] = min(max(moved, -bounds[query]), bounds[query])
