"""What answers: a release, a refined release, a model of past answers, and whatever is asked far away, in one way.

``Answering`` is what all of them offer. Whoever answers workloads gets counts and marginals from ``AnswersWorkloads``.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.query.answer import Answer, Answers, read_confidence
from veilcube.query.predicate import Query, read_query
from veilcube.query.sql import read_sql
from veilcube.query.workload import MAX_QUERIES, Workload, grouped_regions
from veilcube.schema import Grouping, Region, Schema, read_groupings, require_groups
from veilcube.system import Floats, Integers


class Answering(Protocol):
    """Answers counts about one schema, each with its interval, under a promise that it can say."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def privacy(self) -> object:
        """The promise; ``str`` gives it in words."""

    def answer(self, workload: Workload, *, confidence: float = 0.95) -> Answers:
        """Estimate every query of a workload at once."""

    def count(self, query: Query | None = None, *, confidence: float = 0.95, **conditions: object) -> Answer | Answers:
        """Estimate how many rows meet a condition; SQL with GROUP BY gives one answer per group."""

    def marginal(self, *names: str, where: Query | None = None, confidence: float = 0.95) -> Answers:
        """Estimate the counts of every combination of the named attributes' cells, the others summed out."""


class AnswersWorkloads:
    """Counts and marginals of whatever answers workloads, asked as a release is."""

    def count(
        self: Answering, query: Query | None = None, *, confidence: float = 0.95, **conditions: object
    ) -> Answer | Answers:
        """Estimate how many rows meet a condition, given by keywords, as a mapping, or as SQL text."""
        region, group_by = read_question(self.schema, query, conditions)
        if group_by:
            return _groups(self, region, group_by, confidence)
        return self.answer(Workload(self.schema, [region]), confidence=confidence)[0]

    def marginal(self: Answering, *names: str, where: Query | None = None, confidence: float = 0.95) -> Answers:
        """Estimate the counts of every combination of the named attributes' cells, the others summed out."""
        return _groups(self, *read_marginal(self.schema, names, where), confidence)


def read_question(schema: Schema, query: Query | None, conditions: dict[str, object]) -> tuple[Region, Sequence[str]]:
    """Return the cells that a question is about, and the attributes by which it wants groups, if any."""
    if query is not None and conditions:
        raise QueryError("give the condition either as one argument or by keywords, not both")
    if isinstance(query, str):
        parsed = read_sql(schema, query)
        return parsed.region, parsed.group_by
    return read_query(schema, conditions if query is None else query), ()


def read_marginal(schema: Schema, names: Sequence[str], where: Query | None) -> tuple[Region, Sequence[str]]:
    """Return the cells that a marginal is about, and its attributes."""
    if not names:
        raise QueryError(f"a marginal needs at least one attribute of {', '.join(schema.names)}")
    return read_query(schema, where if where is not None else {}), names


def held_groups(
    groupings: Sequence[Grouping], sizes: Integers
) -> tuple[tuple[Integers, ...], dict[str, tuple[str, ...]]]:
    """Return which groups of each attribute of a marginal hold anybody that was asked about, and their labels."""
    held = [np.flatnonzero(sizes.max(axis=tuple({*range(sizes.ndim)} - {axis})) > 0) for axis in range(sizes.ndim)]
    labels = {
        grouping.name: tuple(np.array(grouping.labels)[kept].tolist())
        for grouping, kept in zip(groupings, held, strict=True)
    }
    return np.ix_(*held), labels


def ask_groups(
    schema: Schema,
    region: Region,
    groupings: Sequence[Grouping],
    ask: Callable[[Workload], Answers],
    nothing: Callable[..., Answers],
) -> Answers:
    """Ask for the count of every combination of groups in one workload; ``nothing`` makes answers of zeros."""
    shape = tuple(map(len, groupings))
    asked, is_held = _questions(schema, region, groupings)
    held, labels = held_groups(groupings, is_held.astype(np.int64).reshape(shape))
    places = np.arange(is_held.size).reshape(shape)[held]
    if asked is None:
        return nothing(np.zeros(places.shape), labels)
    found = ask(asked)

    def arranged(one_each: Floats) -> Floats:
        every = np.zeros(is_held.size)
        every[is_held] = one_each
        return every[places]

    arrays = (arranged(found.value), arranged(found.low), arranged(found.high), arranged(found.stddev))
    return Answers(*arrays, found.confidence, found.privacy, labels, found.estimator)


def _groups(answering: Answering, region: Region, names: Sequence[str], confidence: float) -> Answers:
    def nothing(empty: Floats, labels: dict[str, tuple[str, ...]]) -> Answers:
        return Answers(empty, empty, empty, empty, read_confidence(confidence), str(answering.privacy), labels)

    def ask(workload: Workload) -> Answers:
        return answering.answer(workload, confidence=confidence)

    return ask_groups(answering.schema, region, read_groupings(answering.schema, names), ask, nothing)


def _questions(
    schema: Schema, region: Region, groupings: Sequence[Grouping]
) -> tuple[Workload | None, NDArray[np.bool_]]:
    """Return a question for each group that holds any cell of a region, and which groups do."""
    block = region.rectangle()
    if block is None:
        regions = grouped_regions(schema, region, [grouping.name for grouping in groupings])
        is_held = np.array([group.cells > 0 for group in regions])
        asked = [group for group in regions if group.cells]
        return (Workload(schema, asked) if asked else None), is_held
    # Before anything is written out: a workload would refuse so many only afterwards.
    require_groups(groupings, MAX_QUERIES, "ask for fewer attributes")
    numbers = np.indices([len(grouping) for grouping in groupings]).reshape(len(groupings), -1)
    low, high = (np.repeat(np.asarray(end, dtype=np.int64)[np.newaxis], numbers.shape[1], axis=0) for end in block)
    for grouping, chosen in zip(groupings, numbers, strict=True):
        low[:, grouping.axis] = np.maximum(low[:, grouping.axis], grouping.first[chosen])
        high[:, grouping.axis] = np.minimum(high[:, grouping.axis], grouping.last[chosen])
    is_held = np.asarray((low <= high).all(axis=1))
    return (Workload.ranges(schema, low[is_held], high[is_held]) if is_held.any() else None), is_held
