"""Releases a table again and again and keeps, for each way to read it, the mean absolute error of each release."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.ispe.data import Table
from benchmarks.papers.ispe.questions import KINDS, Questions
from veilcube.planner import Strategy

Floats = NDArray[np.float64]
# By arm and kind of query, one number for each release.
Errors: TypeAlias = Mapping[tuple[str, str], Floats]
Answerer: TypeAlias = Callable[[vc.Workload], Floats]


@dataclass(frozen=True)
class Reading:
    """A way to answer questions from a release; ``kinds`` are those it can answer, None for all."""

    arm: str
    fit: Callable[[vc.Release], Answerer]
    kinds: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Measured:
    """The mean absolute error of an arm: one point of a figure, or one field of a table."""

    part: str
    table: str
    queries: str
    arm: str
    setting: float | None
    epsilon: float
    releases: int
    error: float
    stderr: float


@dataclass(frozen=True)
class Ratio:
    """The error of one arm over that of another, with its standard error over releases."""

    value: float
    stderr: float


def by_estimator(arm: str, estimator: str = "best", kinds: tuple[str, ...] | None = None) -> Reading:
    """Return the reading by an estimator of the library."""
    return Reading(arm, lambda release: lambda asked: release.answer(asked, estimator=estimator).value, kinds)


def run_trials(
    table: Table,
    epsilon: float,
    strategy: Strategy,
    readings: Sequence[Reading],
    asked: Sequence[Questions],
    releases: int,
) -> dict[tuple[str, str], Floats]:
    """Release a table so often, and read every release in all ways."""
    chosen = vc.plan(table.schema, epsilon, strategy)
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(releases):
        release = vc.release(table.cube, plan=chosen)
        for reading in readings:
            answer = reading.fit(release)
            for questions in asked:
                if reading.kinds is None or questions.kind in reading.kinds:
                    errors = np.abs(answer(questions.workload) - questions.truth)
                    found.setdefault((reading.arm, questions.kind), []).append(float(errors.mean()))
    return {key: np.array(errors) for key, errors in found.items()}


def summarise(part: str, table: Table, epsilon: float, errors: Errors, setting: float | None = None) -> list[Measured]:
    """Return the mean of each arm and kind of query."""
    return [
        Measured(part, table.name, kind, arm, setting, epsilon, each.size, float(each.mean()), stderr_of(each))
        for (arm, kind), each in errors.items()
    ]


def stderr_of(values: Floats) -> float:
    """Return the standard error of a mean over releases, which are independent as the queries of one are not."""
    return float(values.std(ddof=1)) / sqrt(values.size) if values.size > 1 else nan


def ratio_of(errors: Floats, others: Floats) -> Ratio:
    """Return the ratio of two means; for the same releases their common luck cancels, for others it adds up."""
    value = float(errors.mean() / others.mean())
    return Ratio(value, stderr_of(errors - value * others) / float(others.mean()))


def kinds_in_order(measured: Sequence[Measured]) -> list[str]:
    """Return the kinds of queries, the usual ones first."""
    found = dict.fromkeys(one.queries for one in measured)
    return [kind for kind in KINDS if kind in found] + [kind for kind in found if kind not in KINDS]
