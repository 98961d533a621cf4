"""Whether any table of counts obeys facts about a release: a linear program over groups of cells that all facts share.

Cells that lie in the same boxes are one group. Where the groups are too many for a program, each fact is looked at on
its own: a sum of counts is never negative.
"""

from math import prod

import numpy as np

from veilcube.analyst.refine.facts import BoxSums, FactSystem, ReleaseFacts, contradicting_facts
from veilcube.system import Floats

_MOST_ENTRIES = 2_000_000


def impossible_facts(facts: ReleaseFacts) -> tuple[int, ...]:
    """Return facts that no table of counts obeys together, though fewer could hold; empty if none is found."""
    alone = _impossible_alone(facts)
    if alone:
        return alone
    classes = group_classes(facts.sums)
    if classes is None:
        return ()
    columns = np.unique(group_weights(facts.sums, classes), axis=1)
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


def group_classes(sums: BoxSums, most: int = _MOST_ENTRIES) -> list[Floats] | None:
    """Return the classes of like cells of each attribute, as rows of ones and zeros over its cells.

    A group of cells is a product of one class per attribute; None where groups times sums would be more than ``most``.
    """
    classes = []
    for sets, _ in sums.boxes.axes:
        if len(sets) * sets.size > _MOST_ENTRIES:
            return None
        kinds, which = np.unique(sets.weights(np.arange(len(sets))), axis=1, return_inverse=True)
        classes.append((which.ravel() == np.arange(kinds.shape[1])[:, np.newaxis]).astype(np.float64))
    if prod(map(len, classes)) * max(len(sums.boxes), len(sums)) > most:
        return None
    return classes


def cells_in_groups(sums: BoxSums, classes: list[Floats]) -> Floats:
    """Return how many cells of each group each sum of boxes has, by their weights: (sums, groups)."""
    inside = np.ones((len(sums.boxes), 1))
    for kinds, (sets, which) in zip(classes, sums.boxes.axes, strict=True):
        held = sets.sums(kinds).T[which]
        inside = (inside[:, :, np.newaxis] * held[:, np.newaxis, :]).reshape(len(inside), inside.shape[1] * len(kinds))
    return np.asarray(sums.matrix @ inside)


def sizes_of_groups(classes: list[Floats]) -> Floats:
    """Return how many cells each group has."""
    sizes = np.ones(1)
    for kinds in classes:
        sizes = np.outer(sizes, kinds.sum(axis=1)).ravel()
    return sizes


def group_weights(sums: BoxSums, classes: list[Floats]) -> Floats:
    """Return the weight of each group in each sum, whose boxes hold a group whole or not at all: (sums, groups)."""
    return cells_in_groups(sums, classes) / sizes_of_groups(classes)
