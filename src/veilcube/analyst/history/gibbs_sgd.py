"""The published way to the maximum entropy model (section 4.2 of the history paper), kept for reproductions.

One chain; every attribute in turn is offered a cell drawn evenly, taken by the rule of Metropolis and Hastings; after
every such row all weights move by rate · (π_i - f_i(row)) and are cut to the box. It is slow to converge; the engine
with many chains reaches better distributions in a fraction of the time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.max_entropy_dual import DualProblem
from veilcube.operators.parallel import compiled_fast

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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


def descend(
    problem: DualProblem, steps: int, rate: float, seed: int, progress: Callable[[float | None], None]
) -> Floats:
    """Return the weights after so many rows."""
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
