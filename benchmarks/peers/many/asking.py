"""Asks a release for whole tables and for conjunctions, and judges the answers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from statistics import fmean
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.peers.many.coded import Axes, CodedTable, Conjunctions, Whole, spaced

MOST_TABLES_FOR_INTERVALS = 20

Floats: TypeAlias = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Estimated:
    """Estimates with the ends of their 95% intervals; a table may have been refused whole and asked in slices."""

    value: Floats
    low: Floats
    high: Floats
    is_sliced: bool = False


@dataclass(frozen=True)
class Asked:
    """One kind of questions, asked of one release.

    ``error`` is the kind's own measure; coverage, mean half-width and mean square are over all conjunctions, or over
    all cells of a sample of the tables. ``answers`` counts conjunctions or cells.
    """

    error: float
    coverage: float
    half_width: float
    mean_square: float
    questions: int
    answers: int
    seconds: float
    sliced: int = 0


def ask_conjunctions(release: vc.Release, asked: Conjunctions) -> Asked:
    """Ask all conjunctions of a kind at once."""
    workload = vc.Workload.ranges(release.schema, asked.low, asked.high)
    seconds, answers = timed(partial(release.answer, workload))
    judged = judge([(Estimated(answers.value, answers.low, answers.high), asked.truth)])
    return Asked(sqrt(judged[-1]), *judged, questions=len(workload), answers=len(workload), seconds=seconds)


def ask_tables(release: vc.Release, table: CodedTable, asked: Sequence[Axes]) -> Asked:
    """Ask for the tables of a kind, one after the other; the intervals of a sample are judged."""
    sample = set(spaced(asked, MOST_TABLES_FOR_INTERVALS))
    distances, pairs, spent, cells, sliced = [], [], 0.0, 0, 0
    for axes in asked:
        seconds, found = timed(partial(ask_table, release, table, axes))
        truth = table.count_by(axes)
        distances.append(total_variation(found.value, truth))
        if axes in sample:
            pairs.append((found, truth))
        spent += seconds
        cells += truth.size
        sliced += found.is_sliced
    return Asked(fmean(distances), *judge(pairs), questions=len(asked), answers=cells, seconds=spent, sliced=sliced)


def ask_table(release: vc.Release, table: CodedTable, axes: Axes) -> Estimated:
    """Ask for every cell of some attributes; if that is too much at once, for each value of the longest of them."""
    names = [table.columns[axis] for axis in axes]
    try:
        answers = release.marginal(*names)
    except vc.VeilcubeError:
        return _ask_slices(release, table, axes)
    return Estimated(answers.value, answers.low, answers.high)


def _ask_slices(release: vc.Release, table: CodedTable, axes: Axes) -> Estimated:
    place = int(np.argmax([table.sizes[axis] for axis in axes]))
    longest = axes[place]
    others = [table.columns[axis] for axis in axes if axis != longest]
    values = [code if table.is_ordered[longest] else str(code) for code in range(table.sizes[longest])]
    slices = [release.marginal(*others, where={table.columns[longest]: value}) for value in values]
    value, low, high = (
        np.stack([getattr(one, name) for one in slices], axis=place) for name in ("value", "low", "high")
    )
    return Estimated(value, low, high, is_sliced=True)


def total_variation(estimate: Floats, truth: Whole) -> float:
    """Return half the L1 distance of the normalised tables, the estimate cut at 0; if nothing is left, it is even."""
    cut = np.maximum(estimate, 0)
    total = cut.sum()
    shares = cut / total if total > 0 else np.full(cut.shape, 1 / cut.size)
    return float(np.abs(shares - truth / truth.sum()).sum() / 2)


def judge(pairs: Sequence[tuple[Estimated, Whole]]) -> tuple[float, float, float]:
    """Return the share of intervals that hold, their mean half-width and the mean squared error, all answers alike."""
    value, low, high = (
        np.concatenate([getattr(found, name).ravel() for found, _ in pairs]) for name in ("value", "low", "high")
    )
    truth = np.concatenate([exact.ravel() for _, exact in pairs])
    holds = (low <= truth) & (truth <= high)
    return float(holds.mean()), float(np.mean((high - low) / 2)), float(np.mean((value - truth) ** 2))


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return how long some work took, and what it gave."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
