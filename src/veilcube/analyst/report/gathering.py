"""What a report asks a release for: the counts behind its charts and tables, each with its interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np

from veilcube.analyst.export import Exporting
from veilcube.analyst.report.views import (
    MOST_BARS,
    MOST_COLUMNS,
    MOST_LINES,
    MOST_POINTS,
    View,
    is_line,
    is_listed,
    view_of,
)
from veilcube.errors import QueryError
from veilcube.privacy import PrivacyStatement
from veilcube.query import Answer, Answers, Workload
from veilcube.schema import Schema
from veilcube.system import Integers

MOST_ATTRIBUTES, MOST_PAIRS = 24, 6
# Into how many runs attributes are cut to see which pairs depend most on each other.
_FEW = 8
_MOST_TRIED = 100


class Reported(Exporting, Protocol):
    """A release, or what answers as one does."""

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise."""

    @property
    def counted(self) -> str | None:
        """What a reader must know about the rows behind the counts."""

    def answer(self, workload: Workload, *, estimator: str = "best", confidence: float = 0.95) -> Answers:
        """Estimate every query of a workload at once."""


@dataclass(frozen=True, eq=False)
class Shown:
    """The counts along one attribute; ``stray`` are those of cells that a line has no place for."""

    view: View
    answers: Answers
    stray: Sequence[tuple[str, Answer]] = ()


@dataclass(frozen=True, eq=False)
class ShownPair:
    """The counts over two attributes, as a list, the second changing fastest."""

    across: View
    upwards: View
    answers: Answers


def shown_attributes(release: Reported, names: Sequence[str], confidence: float) -> list[Shown]:
    """Return the counts along each attribute."""
    return [_shown(release, name, confidence) for name in names]


def _shown(release: Reported, name: str, confidence: float) -> Shown:
    attribute, as_line = release.schema[name], is_line(release.schema[name])
    counts = release.marginal(name).value if is_listed(attribute, MOST_BARS) else None
    view = view_of(attribute, counts, MOST_POINTS if as_line else MOST_BARS, as_line=as_line)
    answers = release.answer(_runs(release.schema, [view]), confidence=confidence)
    cells = range(attribute.regular_size, attribute.size) if as_line else ()
    stray = []
    for cell in cells:
        where = Workload.ranges(release.schema, *_block(release.schema, {name: (cell, cell)}))
        label = "(missing)" if cell == attribute.missing_cell else "(other)"
        stray.append((label, release.answer(where, confidence=confidence)[0]))
    return Shown(view, answers, stray)


def shown_pairs(release: Reported, pairs: Sequence[tuple[str, str]], confidence: float) -> list[ShownPair]:
    """Return the counts over each pair; whichever has more runs goes across."""
    found = []
    for names in pairs:
        views = [_view_for_pair(release, name, MOST_COLUMNS) for name in names]
        if len(views[1]) > len(views[0]):
            views.reverse()
        across, upwards = views[0], _view_for_pair(release, views[1].name, MOST_LINES)
        answers = release.answer(_runs(release.schema, [across, upwards]), confidence=confidence)
        found.append(ShownPair(across, upwards, answers))
    return found


def _view_for_pair(release: Reported, name: str, most: int) -> View:
    attribute = release.schema[name]
    counts = release.marginal(name).value if is_listed(attribute, most) else None
    return view_of(attribute, counts, most, as_line=is_line(attribute))


def telling_pairs(release: Reported, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of attributes that depend most on each other, by their estimated counts; at most six."""
    known = [name for name in names if release.schema[name].size > 1]
    pairs = list(combinations(known, 2))[:_MOST_TRIED]
    if len(pairs) <= MOST_PAIRS:
        return pairs
    views = {name: view_of(release.schema[name], None, _FEW, as_line=True) for name in known}
    strength = {pair: _dependence(release, [views[name] for name in pair]) for pair in pairs}
    return sorted(pairs, key=lambda pair: -strength[pair])[:MOST_PAIRS]


def _dependence(release: Reported, views: Sequence[View]) -> float:
    """Return how far a table is from independence, as a share of its rows, beyond what noise makes."""
    try:
        found = release.answer(_runs(release.schema, views))
    except QueryError:  # no measured table tells about both
        return -1.0
    shape = tuple(map(len, views))
    counts, noise = np.maximum(found.value.reshape(shape), 0.0), np.square(found.stddev.reshape(shape))
    total = counts.sum()
    if total <= 0:
        return 0.0
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / total
    apart = (np.square(counts - expected) - noise) / np.maximum(expected, 1.0)
    return float(apart.sum() / total / max(min(shape) - 1, 1))


def read_pairs(schema: Schema, pairs: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Return pairs of attributes as the schema spells them."""
    found = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise QueryError(f"a pair names two attributes, such as ('{schema.names[0]}', '{schema.names[-1]}')")
        axes = schema.axes(pair)
        found.append((schema.names[axes[0]], schema.names[axes[1]]))
    return found


def _runs(schema: Schema, views: Sequence[View]) -> Workload:
    """Return a question for every combination of runs, the last attribute changing fastest."""
    index = np.indices([len(view) for view in views]).reshape(len(views), -1)
    low = np.zeros((index.shape[1], len(schema)), dtype=np.int64)
    high = np.tile(np.array(schema.shape, dtype=np.int64) - 1, (index.shape[1], 1))
    for view, chosen in zip(views, index, strict=True):
        axis = schema.axis(view.name)
        low[:, axis], high[:, axis] = view.low[chosen], view.high[chosen]
    return Workload.ranges(schema, low, high)


def _block(schema: Schema, cells: dict[str, tuple[int, int]]) -> Iterator[Integers]:
    """Yield the lower and the upper ends of one block."""
    last = np.array(schema.shape, dtype=np.int64) - 1
    for end in (0, 1):
        corner = last.copy() if end else np.zeros_like(last)
        for name, ends in cells.items():
            corner[schema.axis(name)] = ends[end]
        yield corner[np.newaxis]
