"""What the schema calls impossible, as facts: no row lies there, so that every count of such cells is 0.

Where a strategy tells of every cell, each impossible cell is a fact of its own, since estimates may be negative and a
sum of 0 leaves its parts open. Tables of attributes tell of their own cells only. Beyond some thousand cells each
impossible combination is one fact, about all of it.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate import Estimates
from veilcube.analyst.refine.facts import Boxes, BoxSums, Fact, ReleaseFacts, join_facts
from veilcube.analyst.refine.release.amended import Questions
from veilcube.schema import Box, Schema
from veilcube.system import Integers

# Their covariance is a dense matrix.
MOST_CELLS = 4_000
_VALUES_SHOWN = 3
# Of a row: known counts are whole numbers.
_ROUNDING = 1e-6

Masks = Sequence[NDArray[np.bool_]]
Entry = tuple[Fact, Masks]


@dataclass(frozen=True, eq=False)
class StructuralZeros:
    """Impossible combinations: ``imposed`` cell by cell where they are few, and as a ``whole``, one fact for each."""

    schema: Schema
    imposed: ReleaseFacts
    whole: ReleaseFacts

    @classmethod
    def of(cls, schema: Schema, tables: Sequence[Sequence[int]] | None) -> "StructuralZeros | None":
        """Return those that a release tells of; ``tables`` are the attributes of its tables, None for all cells."""
        measured = [tuple(range(len(schema)))] if tables is None else [tuple(table) for table in tables]
        kept = [
            (Fact(f"`impossible: {_words(entry)}` = 0", "public"), masks)
            for entry, masks in zip(schema.impossible, schema.impossible_boxes, strict=True)
            if any(_narrowed(masks) <= set(table) for table in measured)
        ]
        if not kept:
            return None
        boxes = [Box(schema.shape, tuple(None if mask.all() else mask for mask in masks)) for _, masks in kept]
        whole = _zeros(BoxSums(Boxes.of(schema.shape, boxes)), [fact for fact, _ in kept])
        cells = sum(_cells_in(masks, table) for _, masks in kept for table in measured)
        return cls(schema, _each_cell(schema, kept, measured) if cells <= MOST_CELLS else whole, whole)

    def beside(self, facts: ReleaseFacts, *, each_cell: bool = False) -> ReleaseFacts:
        """Return facts and then these, cell by cell or each as a whole."""
        added = self.imposed if each_cell else self.whole
        return join_facts(self.schema, [facts, added]) if len(facts) else added

    def left_out(self, facts: ReleaseFacts) -> ReleaseFacts:
        """Return facts without these."""
        own = set(self.whole.facts)
        return facts.take(np.array([row for row, fact in enumerate(facts.facts) if fact not in own], dtype=np.int64))


def without_rounding(found: Estimates, questions: Questions, confidence: float) -> Estimates:
    """Return estimates in which a count that is known to be 0 is 0, and not what sums of cells round to."""
    del questions, confidence
    is_zero = (found.stddev == 0) & (np.abs(found.value) < _ROUNDING)
    value, low, high = (np.where(is_zero, 0.0, part) for part in (found.value, found.low, found.high))
    return Estimates(value, low, high, found.stddev, found.estimator)


def _narrowed(masks: Masks) -> set[int]:
    return {axis for axis, mask in enumerate(masks) if not mask.all()}


def _cells_in(masks: Masks, table: Sequence[int]) -> int:
    """Return how many cells of a table are impossible by one entry, 0 if the table cannot tell."""
    if not _narrowed(masks) <= set(table):
        return 0
    return prod(int(np.count_nonzero(masks[axis])) for axis in table)


def _each_cell(schema: Schema, kept: Sequence[Entry], measured: Sequence[Sequence[int]]) -> ReleaseFacts:
    known: set[tuple[int, ...]] = set()
    low: list[Integers] = []
    high: list[Integers] = []
    facts: list[Fact] = []
    last = np.array(schema.shape, dtype=np.int64) - 1
    for fact, masks in kept:
        for table in (one for one in measured if _cells_in(masks, one)):
            grid = np.meshgrid(*(np.flatnonzero(masks[axis]) for axis in table), indexing="ij")
            for cell in np.stack([part.ravel() for part in grid], axis=1):
                first, end = np.zeros_like(last), last.copy()
                first[list(table)] = end[list(table)] = cell
                if (key := (*first.tolist(), *end.tolist())) not in known:
                    known.add(key)
                    low.append(first)
                    high.append(end)
                    facts.append(fact)
    return _zeros(BoxSums(Boxes(schema.shape, np.array(low), np.array(high))), facts)


def _zeros(sums: BoxSums, facts: Sequence[Fact]) -> ReleaseFacts:
    return ReleaseFacts(sums, np.zeros(len(sums)), np.ones(len(sums), dtype=np.bool_), tuple(facts))


def _words(entry: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_chosen(value)}" for name, value in entry.items()).replace("`", "'")


def _chosen(value: object) -> str:
    """Return a range, a set or a value as a message shows it, not too long."""
    if isinstance(value, tuple) and len(value) == 2:
        low, high = value
        return f"up to {high}" if low is None else f"from {low}" if high is None else f"{low} to {high}"
    if isinstance(value, Set):
        several = sorted(map(str, value))
        return " or ".join(several[:_VALUES_SHOWN]) + (" or more" if len(several) > _VALUES_SHOWN else "")
    return str(value)
