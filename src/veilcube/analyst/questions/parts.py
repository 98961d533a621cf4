"""The parts of an adaptive release: regions of like cells, each with a label, its estimated total and an interval.

Parts were chosen from noisy cells. A part of few cells may have been chosen because its noise stands out; its interval
is that of any question about whole regions, which no choice can spoil.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from veilcube.analyst.estimate import CellQueries, CountQueries, Estimates, is_adaptive
from veilcube.analyst.questions.asking import Asking
from veilcube.errors import QueryError
from veilcube.operators import CellLists
from veilcube.query import Answers
from veilcube.schema import Attribute, Ordinal, Schema
from veilcube.system import Integers, show

MOST_PARTS = 100_000


@runtime_checkable
class AsksLists(Protocol):
    """An estimate that answers questions which list their cells."""

    def ask(self, asked: CountQueries, confidence: float) -> Estimates:
        """Estimate the count of each question."""


def parts_of(release: Asking, estimator: str, confidence: float) -> Answers:
    """Return the total of every part, under a label that says where it lies."""
    record = release.record
    regions = record.measurements[-1].parts if is_adaptive(record) else None
    if regions is None:
        raise QueryError("this release has no parts; vc.Adaptive() and vc.KdTree() make releases of parts")
    if regions.regions > MOST_PARTS:
        raise QueryError(
            f"the release has {regions.regions:,} parts, more than the {MOST_PARTS:,} that are listed at once"
        )
    fitted = release._estimate(estimator)
    if not isinstance(fitted, AsksLists):
        raise QueryError(
            f"the estimator {show(estimator)} does not answer for parts; use 'best', 'least_squares', 'shrunken' or "
            "'observed'"
        )
    labels = regions.chosen.ravel()
    cells = np.argsort(labels, kind="stable").astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=regions.regions))]).astype(np.int64)
    found = fitted.ask(CellQueries(CellLists(cells, ends)), confidence)
    words = _unlike(_words(release.schema, regions.chosen, regions.regions))
    return release._many(found, confidence, estimator, {"part": words})


def _words(schema: Schema, chosen: Integers, parts: int) -> list[str]:
    """Return for each part the ranges of values between which it lies, and how much of that it fills."""
    flat = chosen.ravel()
    sizes = np.bincount(flat, minlength=parts)
    whole = np.ones(parts, dtype=np.int64)
    ranges: list[list[str]] = [[] for _ in range(parts)]
    for axis, attribute in enumerate(schema):
        along = np.broadcast_to(
            np.arange(chosen.shape[axis]).reshape([-1 if at == axis else 1 for at in range(chosen.ndim)]), chosen.shape
        ).ravel()
        first, last = np.full(parts, chosen.shape[axis]), np.zeros(parts, dtype=np.int64)
        np.minimum.at(first, flat, along)
        np.maximum.at(last, flat, along)
        whole *= last - first + 1
        names = attribute.labels()
        for part in np.flatnonzero((first > 0) | (last < attribute.size - 1)).tolist():
            ranges[part].append(_range(attribute, names, int(first[part]), int(last[part])))
    filled = ["" if size == box else f" ({size:,} of {box:,} cells)" for size, box in zip(sizes, whole, strict=True)]
    places = [", ".join(listed) or "everything" for listed in ranges]
    return [place + more for place, more in zip(places, filled, strict=True)]


def _range(attribute: Attribute, names: Sequence[str], first: int, last: int) -> str:
    if first == last:
        return f"{attribute.name} {names[first]}"
    if isinstance(attribute, Ordinal) or last - first > 2:
        return f"{attribute.name} {names[first]} to {names[last]}"
    return f"{attribute.name} {' or '.join(names[first : last + 1])}"


def _unlike(words: Sequence[str]) -> tuple[str, ...]:
    """Return labels of which no two are alike: parts that lie between the same values are numbered."""
    seen: dict[str, int] = {}
    found = []
    for text in words:
        seen[text] = seen.get(text, 0) + 1
        found.append(text if seen[text] == 1 else f"{text}, no. {seen[text]}")
    return tuple(found)
