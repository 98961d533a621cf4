"""Whether any table of counts obeys facts about a release: a linear program over groups of cells that all facts share.

Cells that lie in the same boxes are one group. Where the groups are too many for a program, each fact is looked at on
its own: a sum of counts is never negative.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.refine.boxes import AxisSets, BoxSums
from veilcube.analyst.refine.facts import FactSystem
from veilcube.analyst.refine.feasible import contradicting_facts
from veilcube.analyst.refine.release_facts import ReleaseFacts

Floats = NDArray[np.float64]

_MOST_ENTRIES = 2_000_000


def impossible_facts(facts: ReleaseFacts) -> tuple[int, ...]:
    """Return facts that no table of counts obeys together, though fewer could hold; empty if none is found."""
    alone = _impossible_alone(facts)
    if alone:
        return alone
    weights = _group_weights(facts.sums)
    if weights is None:
        return ()
    columns = np.unique(weights, axis=1)
    system = FactSystem(columns, facts.constants, facts.is_equality, facts.facts)
    return contradicting_facts(system, nonnegative=True)


def _impossible_alone(facts: ReleaseFacts) -> tuple[int, ...]:
    """Return the first fact whose sum of counts, all weights of one sign, would have to have the other one."""
    matrix = facts.sums.matrix
    positive = np.asarray(matrix.maximum(0).sum(axis=1)).ravel() > 0
    negative = np.asarray((-matrix).maximum(0).sum(axis=1)).ravel() > 0
    is_below = ~negative & (facts.constants < 0)
    is_above = ~positive & (facts.constants > 0) & facts.is_equality
    found = np.flatnonzero(is_below | is_above)
    return (int(found[0]),) if len(found) else ()


def _group_weights(sums: BoxSums) -> Floats | None:
    """Return the weight of each group of cells in each sum, (sums, groups); None where that is too much."""
    classes = []
    for sets, _ in sums.boxes.axes:
        if len(sets) * sets.size > _MOST_ENTRIES:
            return None
        classes.append(np.unique(_membership(sets), axis=1))
    if prod(kinds.shape[1] for kinds in classes) * max(len(sums.boxes), len(sums)) > _MOST_ENTRIES:
        return None
    inside = np.ones((len(sums.boxes), 1))
    for kinds, (_, which) in zip(classes, sums.boxes.axes, strict=True):
        inside = (inside[:, :, np.newaxis] * kinds[which][:, np.newaxis, :]).reshape(
            len(inside), inside.shape[1] * kinds.shape[1]
        )
    return np.asarray(sums.matrix @ inside)


def _membership(sets: AxisSets) -> Floats:
    return sets.weights(np.arange(len(sets)))
