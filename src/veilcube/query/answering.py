"""What answers: a release, a refined release, a model of past answers, and whatever is asked far away, in one way.

``Answering`` is what all of them offer. Whoever answers workloads gets counts and marginals from ``AnswersWorkloads``.
"""

from collections.abc import Sequence
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.query.answer import Answer, Answers, read_confidence
from veilcube.query.predicate import Query, read_query
from veilcube.query.sql import read_sql
from veilcube.query.workload import MAX_QUERIES, Workload, grouped_regions
from veilcube.schema import Region, Schema
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
    schema: Schema, axes: Sequence[int], sizes: Integers
) -> tuple[tuple[Integers, ...], dict[str, tuple[str, ...]]]:
    """Return which cells of each attribute of a marginal hold anybody that was asked about, and their labels."""
    held = [np.flatnonzero(sizes.max(axis=tuple({*range(sizes.ndim)} - {axis})) > 0) for axis in range(sizes.ndim)]
    labels = {
        schema.names[axis]: tuple(np.array(schema.attributes[axis].labels())[cells].tolist())
        for axis, cells in zip(axes, held, strict=True)
    }
    return np.ix_(*held), labels


def _groups(answering: Answering, region: Region, names: Sequence[str], confidence: float) -> Answers:
    schema = answering.schema
    axes = schema.axes(names)
    shape = tuple(schema.shape[axis] for axis in axes)
    asked, is_held = _questions(schema, region, names, axes)
    held, labels = held_groups(schema, axes, is_held.astype(np.int64).reshape(shape))
    places = np.arange(is_held.size).reshape(shape)[held]
    if asked is None:
        empty = np.zeros(places.shape)
        return Answers(empty, empty, empty, empty, read_confidence(confidence), str(answering.privacy), labels)
    found = answering.answer(asked, confidence=confidence)

    def arranged(one_each: Floats) -> Floats:
        every = np.zeros(is_held.size)
        every[is_held] = one_each
        return every[places]

    arrays = (arranged(found.value), arranged(found.low), arranged(found.high), arranged(found.stddev))
    return Answers(*arrays, found.confidence, found.privacy, labels, found.estimator)


def _questions(
    schema: Schema, region: Region, names: Sequence[str], axes: Sequence[int]
) -> tuple[Workload | None, NDArray[np.bool_]]:
    """Return a question for each group that holds any cell of a region, and which groups do."""
    block = region.rectangle()
    if block is None:
        regions = grouped_regions(schema, region, names)
        is_held = np.array([group.cells > 0 for group in regions])
        asked = [group for group in regions if group.cells]
        return (Workload(schema, asked) if asked else None), is_held
    # Before anything is written out: a workload would refuse so many only afterwards.
    if prod(schema.shape[axis] for axis in axes) > MAX_QUERIES:
        raise QueryError(f"a marginal of more than {MAX_QUERIES:,} groups is too many to ask; ask for fewer attributes")
    cells = np.indices([schema.shape[axis] for axis in axes]).reshape(len(axes), -1).T
    low, high = (np.repeat(np.asarray(end, dtype=np.int64)[np.newaxis], len(cells), axis=0) for end in block)
    low[:, axes], high[:, axes] = np.maximum(low[:, axes], cells), np.minimum(high[:, axes], cells)
    is_held = np.asarray((low <= high).all(axis=1))
    return (Workload.ranges(schema, low[is_held], high[is_held]) if is_held.any() else None), is_held
