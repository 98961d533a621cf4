"""Releases arrays again and again, each time with fresh noise, and measures how wrong the answers are."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from statistics import fmean, median, stdev
from typing import TypeVar

import numpy as np

import veilcube as vc
from benchmarks.peers.dpbench.arms import DEFAULT, Arm
from benchmarks.peers.dpbench.arrays import CountArray, Counts, exact_answers
from benchmarks.peers.dpbench.published import Peer, peer_for
from benchmarks.peers.dpbench.tasks import Questions, Task

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """How one arm did on one array and workload at one epsilon, over all trials.

    ``expected`` is the exact error of the arm where one is known before any data is seen, ``matched`` that of the
    strategy matched to such questions (as HDMM's). Seconds are medians; ``fit_seconds`` is a release's first answer.
    """

    task: str
    array: str
    workload: str
    epsilon: float
    arm: str
    trials: int
    queries: int
    rmse: float
    rmse_stderr: float | None
    expected: float | None
    peer: float | None
    peer_algorithm: str | None
    to_peer: float | None
    matched: float
    to_matched: float
    coverage: float
    coverage_stderr: float | None
    release_seconds: float
    fit_seconds: float
    answer_seconds: float


@dataclass(frozen=True)
class Missing:
    """An arm that cannot be run on a task, and why."""

    task: str
    arm: str
    reason: str


@dataclass(frozen=True)
class _Trial:
    mean_square: float
    coverage: float
    release_seconds: float
    fit_seconds: float
    answer_seconds: float


@dataclass(frozen=True)
class Contest:
    """One task at one epsilon, with the arms that can run it and what is known about them before any trial."""

    task: Task
    epsilon: float
    arms: tuple[Arm, ...]
    missing: tuple[Missing, ...]
    matched: Mapping[str, float]
    expected: Mapping[tuple[str, str], float]

    @classmethod
    def prepare(cls, task: Task, epsilon: float, arms: Sequence[Arm]) -> "Contest":
        """Try every arm on an empty cube, which also compiles what it runs, and plan."""
        found = [_why_missing(task, epsilon, arm) for arm in arms]
        able = tuple(arm for arm, missing in zip(arms, found, strict=True) if missing is None)
        return cls(
            task,
            epsilon,
            able,
            tuple(missing for missing in found if missing is not None),
            {name: _matched_error(task, epsilon, questions) for name, questions in task.questions.items()},
            _expected_errors(task, epsilon, able),
        )

    def run(self, trials: int) -> Iterator[list[Result]]:
        """Yield the results of one array after the other."""
        for array in self.task.arrays:
            yield self._run_array(array, trials)

    def _run_array(self, array: CountArray, trials: int) -> list[Result]:
        cube = vc.Cube(self.task.schema, array.counts)
        exact = {
            name: exact_answers(array.counts, questions.asked.low, questions.asked.high)
            for name, questions in self.task.questions.items()
        }
        found: dict[tuple[Arm, str], list[_Trial]] = {(arm, name): [] for arm in self.arms for name in exact}
        for _ in range(trials):
            for strategy in dict.fromkeys(arm.strategy for arm in self.arms):
                seconds, release = _timed(partial(vc.release, cube, epsilon=self.epsilon, strategy=strategy))
                for arm in self.arms:
                    if arm.strategy == strategy:
                        for name, trial in _ask(release, arm, self.task.questions, exact, seconds):
                            found[arm, name].append(trial)
        return [self._result(array, arm, name, those) for (arm, name), those in found.items()]

    def _result(self, array: CountArray, arm: Arm, workload: str, trials: Sequence[_Trial]) -> Result:
        squares = [trial.mean_square for trial in trials]
        covered = [trial.coverage for trial in trials]
        rmse = pooled_rmse(squares)
        # By the delta method: the root's error is the square's over twice the root.
        error_of_square = _stderr(squares)
        peer: Peer | None = peer_for(self.task.name, workload, array.name, self.epsilon)
        return Result(
            task=self.task.name,
            array=array.name,
            workload=workload,
            epsilon=self.epsilon,
            arm=arm.name,
            trials=len(trials),
            queries=len(self.task.questions[workload].asked),
            rmse=rmse,
            rmse_stderr=error_of_square / (2 * rmse) if error_of_square is not None and rmse > 0 else None,
            expected=self.expected.get((arm.name, workload)),
            peer=peer.rmse if peer else None,
            peer_algorithm=peer.algorithm if peer else None,
            to_peer=rmse / peer.rmse if peer else None,
            matched=self.matched[workload],
            to_matched=rmse / self.matched[workload],
            coverage=fmean(covered),
            coverage_stderr=_stderr(covered),
            release_seconds=median(trial.release_seconds for trial in trials),
            fit_seconds=median(trial.fit_seconds for trial in trials),
            answer_seconds=median(trial.answer_seconds for trial in trials),
        )


def _ask(
    release: vc.Release,
    arm: Arm,
    questions: Mapping[str, Questions],
    exact: Mapping[str, Counts],
    release_seconds: float,
) -> Iterator[tuple[str, _Trial]]:
    """Ask one release all questions; its first answer, to a single question, carries the cost of fitting."""
    fit_seconds, _ = _timed(partial(release.answer, _everything(release.schema), estimator=arm.estimator))
    for name, those in questions.items():
        seconds, answers = _timed(partial(release.answer, those.asked, estimator=arm.estimator))
        truth = exact[name]
        covered = (answers.low <= truth) & (truth <= answers.high)
        square = float(np.mean((answers.value - truth) ** 2))
        yield name, _Trial(square, float(covered.mean()), release_seconds, fit_seconds, seconds)


def _everything(schema: vc.Schema) -> vc.Workload:
    return vc.Workload(schema, [{}])


def _why_missing(task: Task, epsilon: float, arm: Arm) -> Missing | None:
    """Return why an arm cannot run; the default one must run, so its refusal is an error."""
    empty = vc.Cube(task.schema, np.zeros(task.schema.shape, dtype=np.int64))
    try:
        release = vc.release(empty, epsilon=epsilon, strategy=arm.strategy)
        release.answer(_everything(task.schema), estimator=arm.estimator)
    except vc.VeilcubeError as problem:
        if arm == DEFAULT:
            raise
        return Missing(task.name, arm.name, str(problem))
    return None


def _matched_error(task: Task, epsilon: float, questions: Questions) -> float:
    plan = vc.plan(task.schema, epsilon=epsilon, strategy="matched", workload=questions.matched_to)
    return _exact_error(plan, questions)


def _expected_errors(task: Task, epsilon: float, arms: Sequence[Arm]) -> dict[tuple[str, str], float]:
    """Return the exact errors of the arms that are known: those of plain least squares."""
    return {
        (arm.name, name): _exact_error(vc.plan(task.schema, epsilon=epsilon, strategy=arm.strategy), questions)
        for arm in arms
        if arm.estimator == "least_squares"
        for name, questions in task.questions.items()
    }


def _exact_error(plan: vc.Plan, questions: Questions) -> float:
    return float(np.sqrt(np.mean(plan.stddev(questions.asked) ** 2)))


def pooled_rmse(mean_squares: Sequence[float]) -> float:
    """Return the root of the mean over all trials and queries, every trial asking equally many."""
    return sqrt(fmean(mean_squares))


def _stderr(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean over trials, which are independent as the queries within one are not."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else None


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
