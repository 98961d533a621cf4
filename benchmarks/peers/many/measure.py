"""Releases a table again and again, asks everything each time, and sums up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from statistics import fmean, median

import pandas as pd

import veilcube as vc
from benchmarks.peers.dpbench.summary import geometric_mean
from benchmarks.peers.many.asking import Asked, ask_conjunctions, ask_tables, timed
from benchmarks.peers.many.coded import CodedTable, Questions


@dataclass(frozen=True)
class Promise:
    """What is promised: epsilon, with a delta unless the promise is pure."""

    epsilon: float
    delta: float | None

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, " + ("pure" if self.delta is None else f"delta {self.delta:g}")


@dataclass(frozen=True)
class KindFigures:
    """How one kind of questions did: the error (geometric mean over runs) and its 95% intervals."""

    error: float
    errors: tuple[float, ...]
    coverage: float
    width_to_rmse: float | None
    questions: int
    sliced: int


@dataclass(frozen=True)
class Result:
    """One table, promise and strategy over all runs.

    ``refused`` says why there is no release or no answer at all, ``refused_kinds`` why some kinds have no figures.
    """

    table: str
    attributes: int
    cells: int
    rows: int
    epsilon: float
    delta: float | None
    strategy: str
    runs: int
    refused: str | None
    kinds: dict[str, KindFigures]
    refused_kinds: dict[str, str]
    release_seconds: float | None = None
    fit_seconds: float | None = None
    answers_per_second: float | None = None
    table_cells_per_second: float | None = None


@dataclass(frozen=True)
class _Run:
    release_seconds: float
    fit_seconds: float
    tables: dict[str, Asked]
    conjunctions: dict[str, Asked]
    refused: dict[str, str]


def measure(table: CodedTable, questions: Questions, promise: Promise, strategy: str, runs: int) -> Result:
    """Release the table and ask everything, in each run anew; a refusal is a result too."""
    facts = (table.name, len(table.columns), table.cells, len(table.codes), promise.epsilon, promise.delta, strategy)
    frame = table.frame()
    try:
        made = [_run_once(table, frame, questions, promise, strategy) for _ in range(runs)]
    except vc.VeilcubeError as problem:
        return Result(*facts, runs, str(problem), {}, {})
    refused = {kind: reason for run in made for kind, reason in run.refused.items()}
    answered = [kind for kind in (*questions.tables, *questions.conjunctions) if kind not in refused]
    every = [{**run.tables, **run.conjunctions} for run in made]
    return Result(
        *facts,
        runs,
        None if answered else next(iter(refused.values())),
        {kind: _summarise([asked[kind] for asked in every]) for kind in answered},
        refused,
        release_seconds=median(run.release_seconds for run in made),
        fit_seconds=median(run.fit_seconds for run in made),
        answers_per_second=_speed([asked for run in made for asked in run.conjunctions.values()]),
        table_cells_per_second=_speed([asked for run in made for asked in run.tables.values()]),
    )


def _run_once(table: CodedTable, frame: pd.DataFrame, questions: Questions, promise: Promise, strategy: str) -> _Run:
    release_seconds, release = timed(
        partial(
            vc.release,
            frame,
            schema=table.schema(),
            epsilon=promise.epsilon,
            delta=promise.delta,
            strategy=strategy,
        )
    )
    refused: dict[str, str] = {}
    widest = list(questions.conjunctions.values())[-1].first()
    fit_seconds, _ = timed(partial(_unless_refused, {}, {"fit": partial(ask_conjunctions, release, widest)}))
    conjunctions = {kind: partial(ask_conjunctions, release, those) for kind, those in questions.conjunctions.items()}
    tables = {kind: partial(ask_tables, release, table, those) for kind, those in questions.tables.items()}
    return _Run(
        release_seconds,
        fit_seconds,
        conjunctions=_unless_refused(refused, conjunctions),
        tables=_unless_refused(refused, tables),
        refused=refused,
    )


def _unless_refused(refused: dict[str, str], work: Mapping[str, Callable[[], Asked]]) -> dict[str, Asked]:
    """Return what was asked, kind by kind, and note which kinds the release does not answer."""
    found = {}
    for kind, ask in work.items():
        try:
            found[kind] = ask()
        except vc.VeilcubeError as problem:
            refused[kind] = str(problem)
    return found


def _summarise(runs: Sequence[Asked]) -> KindFigures:
    errors = tuple(run.error for run in runs)
    rmse = sqrt(fmean(run.mean_square for run in runs))
    width = fmean(run.half_width for run in runs)
    return KindFigures(
        error=geometric_mean(errors),
        errors=errors,
        coverage=fmean(run.coverage for run in runs),
        width_to_rmse=width / rmse if rmse > 0 else None,
        questions=runs[0].questions,
        sliced=max(run.sliced for run in runs),
    )


def _speed(asked: Sequence[Asked]) -> float | None:
    seconds = sum(one.seconds for one in asked)
    return sum(one.answers for one in asked) / seconds if seconds > 0 else None
