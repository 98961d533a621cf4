"""Answers that are asked for in advance: for estimates that a browser cannot compute.

Of every attribute, and of pairs of them, all ranges of runs are asked (of names: each one and each group), as finely as
so many questions allow. What cannot be answered from the release is left out, and the page does not offer it.
"""

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Protocol

import numpy as np

from veilcube.analyst.estimate import PlainData, Runs
from veilcube.analyst.publish.cutting import Cut, cut
from veilcube.errors import QueryError
from veilcube.query import Answers, Workload
from veilcube.schema import Nominal, Schema
from veilcube.system import Integers

MOST_QUESTIONS, MOST_PAIRS, FINEST, COARSEST = 80_000, 66, 200, 4


class Asked(Protocol):
    """What answers workloads as a release does."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    def answer(self, workload: Workload, *, estimator: str = "best", confidence: float = 0.95) -> Answers:
        """Estimate every query of a workload at once."""


def cut_for_asking(schema: Schema) -> list[Cut]:
    """Cut attributes so coarsely that all ranges of all pairs are few enough to be asked."""
    pairs = list(combinations(range(len(schema)), 2))[:MOST_PAIRS]
    for most in (*range(FINEST, 40, -20), *range(40, COARSEST, -1)):
        cuts = [cut(attribute, most) for attribute in schema]
        choices = [len(choices_of(one)) for one in cuts]
        if sum(choices) + sum(choices[a] * choices[b] for a, b in pairs) <= MOST_QUESTIONS:
            return cuts
    return [cut(attribute, COARSEST) for attribute in schema]


def choices_of(one: Cut) -> Integers:
    """Return the first and the last run of everything that may be chosen of an attribute, the whole first."""
    runs: Runs = one.runs
    whole = [(0, len(runs) - 1)]
    if isinstance(one.attribute, Nominal):
        found = [(group.first, group.last) for group in one.groups()]
        found += [(number, number) for number in range(len(runs))]
    else:
        found = [(low, high) for low in range(one.regular) for high in range(low, one.regular)]
        found += [(number, number) for number in range(one.regular, len(runs))]
    return np.array(list(dict.fromkeys(whole + found)), dtype=np.int64)


def ask_in_advance(release: Asked, cuts: Sequence[Cut], estimator: str, confidence: float) -> tuple[PlainData, str]:
    """Return the answers to all choices of each attribute and each pair, and the name of the estimator."""
    choices = [choices_of(one) for one in cuts]
    tables, named = [], ""
    wanted = [(), *((axis,) for axis in range(len(cuts))), *list(combinations(range(len(cuts)), 2))[:MOST_PAIRS]]
    for axes in wanted:
        try:
            found = release.answer(
                _questions(release.schema, cuts, choices, axes), estimator=estimator, confidence=confidence
            )
        except QueryError:  # no measured table tells about both
            continue
        named = named or found.estimator
        numbers = np.stack([found.value, found.low, found.high, found.stddev])
        tables.append({"axes": list(axes), "numbers": numbers})
    if not tables:
        raise QueryError("the release answers no question about one attribute; there is nothing to put on a page")
    return {"kind": "asked", "choices": choices, "tables": tables}, named


def _questions(schema: Schema, cuts: Sequence[Cut], choices: Sequence[Integers], axes: Sequence[int]) -> Workload:
    shape = [len(choices[axis]) for axis in axes]
    index = np.indices(shape).reshape(len(axes), prod(shape))
    low = np.zeros((prod(shape), len(schema)), dtype=np.int64)
    high = np.tile(np.array(schema.shape, dtype=np.int64) - 1, (len(low), 1))
    for axis, chosen in zip(axes, index, strict=True):
        low[:, axis] = cuts[axis].runs.first[choices[axis][chosen, 0]]
        high[:, axis] = cuts[axis].runs.last[choices[axis][chosen, 1]]
    return Workload.ranges(schema, low, high)
