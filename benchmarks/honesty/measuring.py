"""One combination measured: releases of one table by one strategy, asked everything of one estimator."""

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

import veilcube as vc
from benchmarks.honesty.histories import LEAST_ATTRIBUTES, PAIRS, RANGES, Asking, models_of, past_ranges
from benchmarks.honesty.kinds import table_of
from benchmarks.honesty.questions import TOTAL, Answered, Counts, Floats, Question, questions_about, schema_of
from veilcube.analyst.estimate.linear.least_squares import LeastSquares
from veilcube.analyst.estimate.polya.posterior import Posterior
from veilcube.errors import VeilcubeError
from veilcube.planner import Strategy

STRATEGIES: dict[str, Strategy | str] = {
    "auto": "auto",
    "identity": vc.Identity(),
    "tree": vc.Tree(),
    "tree once": vc.Tree(refine=False),
    "wavelet": vc.Wavelet(),
    "blocks": vc.Adaptive(partition="blocks"),
    "grow": vc.Adaptive(partition="grow"),
    "kd": vc.KdTree(),
    "marginals": vc.Marginals(2),
}
ESTIMATORS = ("best", "least_squares", "posterior", "nonnegative", "shrunken", "thresholded")

# A table, its plan and the number of the release: tests draw noise that can be repeated.
Releasing: TypeAlias = Callable[[vc.Cube, vc.Plan, int], vc.Release]


@dataclass(frozen=True)
class Finding:
    """How one kind of question did: coverage over releases, the worst release, bias of totals, and width over error."""

    kind: str
    strategy: str
    epsilon: float
    estimator: str
    question: str
    releases: int
    coverage: float
    stderr: float
    worst: float
    bias: float
    width_over_error: float
    plain_stddev: float  # of the total by least squares on the same release; nan for other questions


@dataclass(frozen=True)
class _Made:
    """One release or history: who reads it, and the standard deviation of the total by least squares, if known."""

    readers: Iterable[tuple[str, Asking]]
    plain_stddev: float = float("nan")


def measure(
    kind: str,
    strategy: str,
    epsilon: float,
    estimators: tuple[str, ...],
    releases: int,
    releasing: Releasing = lambda cube, plan, _: vc.release(cube, plan=plan),
) -> list[Finding]:
    """Make the releases and ask them everything; what has no plan, or an estimator that cannot read it, is left out."""
    counts = table_of(kind)
    make = _maker(counts, strategy, epsilon, estimators, releasing)
    if make is None:
        return []
    held, off, errors, widths = (defaultdict(list) for _ in range(4))
    questions, plain_stddev = list(questions_about(counts)), float("nan")
    warnings.simplefilter("ignore")
    for number in range(releases):
        made = make(number)
        plain_stddev = plain_stddev if number else made.plain_stddev
        for estimator, ask in made.readers:
            for name, parts in _found(questions, ask).items():
                inside, error, width = (np.concatenate(column) for column in zip(*parts, strict=True))
                held[estimator, name].append(inside.mean())
                off[estimator, name].append(error.mean())
                errors[estimator, name].append(np.square(error).mean())
                widths[estimator, name].append(np.median(width))
    return [
        Finding(
            kind,
            strategy,
            epsilon,
            estimator,
            name,
            len(shares),
            float(np.mean(shares)),
            float(np.std(shares, ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else float("nan"),
            float(np.min(shares)),
            float(np.mean(off[estimator, name])),
            float(np.median(widths[estimator, name]) / max(np.sqrt(np.mean(errors[estimator, name])), 1e-12)),
            plain_stddev if name == TOTAL else float("nan"),
        )
        for (estimator, name), shares in held.items()
    ]


def _maker(
    counts: Counts, strategy: str, epsilon: float, estimators: tuple[str, ...], releasing: Releasing
) -> Callable[[int], _Made] | None:
    """Return what makes the release or history of each number; None where there is no such thing."""
    cube, is_of_pairs = vc.Cube(schema_of(counts.shape), counts), strategy == PAIRS
    if strategy == RANGES:
        return lambda number: _Made(models_of(past_ranges(counts, cube.schema, epsilon, number), estimators))
    if is_of_pairs and counts.ndim < LEAST_ATTRIBUTES:
        return None
    try:
        plan = vc.plan(cube.schema, epsilon=epsilon, strategy=vc.Marginals(2) if is_of_pairs else STRATEGIES[strategy])
    except VeilcubeError:
        return None
    if is_of_pairs:
        return lambda number: _Made(models_of(releasing(cube, plan, number), estimators))

    def make(number: int) -> _Made:
        release = releasing(cube, plan, number)
        return _Made(_estimates_of(release, estimators), float("nan") if number else _plain_stddev(release))

    return make


def _estimates_of(release: vc.Release, estimators: tuple[str, ...]) -> Iterator[tuple[str, Asking]]:
    """Yield each estimator that can read a release, as something that answers questions."""
    for name in estimators:
        try:
            release.count(estimator=name)
        except VeilcubeError:
            continue
        yield name, partial(_asked, release, name)


def _asked(release: vc.Release, estimator: str, question: Question) -> Answered:
    return question.ask(release, estimator)


def _found(questions: Sequence[Question], ask: Asking) -> dict[str, list[tuple[Floats, Floats, Floats]]]:
    """Return by kind of question whether intervals hold, errors, and half-widths; what is refused is left out."""
    found = defaultdict(list)
    for question in questions:
        try:
            value, low, high = ask(question)
        except VeilcubeError:
            continue
        # A truth on the border of an interval lies in it, but for the rounding of sums of floats.
        slack = 1e-9 * np.maximum(np.abs(question.truth), 1.0)
        inside = (low - slack <= question.truth) & (question.truth <= high + slack)
        found[question.kind].append((inside.astype(np.float64), value - question.truth, (high - low) / 2))
    return found


def _plain_stddev(release: vc.Release) -> float:
    """Return the standard deviation of the total by least squares, which staged trees have under the posterior."""
    plain, posterior = LeastSquares(), Posterior()
    if plain.can_read(release.record):
        return float(release.count(estimator=plain.name).stddev)
    if posterior.can_read(release.record):
        return float(np.sqrt(posterior.fit(release.record).reconciled.least_squares.variances[0]))
    return float("nan")
