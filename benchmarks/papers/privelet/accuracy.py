"""The errors of Basic, Privelet+, Privelet* and our tree on one census, query by query."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.privelet.census import Census
from benchmarks.papers.privelet.questions import quintiles, random_questions
from benchmarks.peers.dpbench.arrays import exact_answers
from veilcube.planner import Strategy

# The paper's sanity bound of relative errors, as a share of the rows.
SANITY_BOUND = 0.001
NEIGHBOURS = "replace"
ASKED_SEED = 1
# Strategies are planned for questions of the same kind, but not for those that are asked.
PLANNED_SEED = 2
PLANNED_QUERIES = 5_000
MOST_BYTES = 8 * 10**9
BASIC, PLUS, STAR, STAR_SEPARATE = "Basic", "Privelet+", "Privelet*", "Privelet* separate"
PLUS_AUTO, STAR_AUTO = "Privelet+ auto", "Privelet* auto"
PLUS_UNTOLD, STAR_UNTOLD, TREE = "Privelet+ untold", "Privelet* untold", "tree"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """One release, and the estimators that read it by the name of the arm; ``is_told`` of the kind of questions."""

    strategy: Strategy
    estimators: Mapping[str, str]
    is_told: bool = True


METHODS = (
    Method(vc.Identity(), {BASIC: "least_squares"}),
    Method(
        vc.Wavelet(flat=("age", "gender")),
        {PLUS: "least_squares", STAR: "thresholded", STAR_SEPARATE: "thresholded_separately"},
    ),
    Method(vc.Wavelet(), {PLUS_AUTO: "least_squares", STAR_AUTO: "thresholded"}),
    Method(vc.Wavelet(), {PLUS_UNTOLD: "least_squares", STAR_UNTOLD: "thresholded"}, is_told=False),
    Method(vc.Tree(refine=False), {TREE: "least_squares"}),
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one arm answered: its errors, how they were expected to spread, and which intervals held the truth."""

    arm: str
    planned: str
    errors: Floats = field(repr=False)
    stddev: Floats = field(repr=False)
    is_covered: NDArray[np.bool_] = field(repr=False)
    is_unbiased: bool
    release_seconds: float
    answer_seconds: float

    @property
    def rmse(self) -> float:
        """The root mean squared error over all queries."""
        return sqrt(float(np.mean(np.square(self.errors))))

    @property
    def expected(self) -> float | None:
        """The same as the plan's exact formula has it; None for estimators that are not linear."""
        return sqrt(float(np.mean(np.square(self.stddev)))) if self.is_unbiased else None

    @property
    def standardised(self) -> float | None:
        """The root mean square of the errors, each divided by its own exact deviation; None as above."""
        return sqrt(float(np.mean(np.square(self.errors / self.stddev)))) if self.is_unbiased else None


@dataclass(frozen=True, eq=False)
class Experiment:
    """All arms on one census at one epsilon, with what is known about each query."""

    census: str
    rows: int
    epsilon: float
    coverage: Floats = field(repr=False)
    truth: Floats = field(repr=False)
    outcomes: Mapping[str, Outcome]

    @property
    def selectivity(self) -> Floats:
        """The share of the rows that each query counts."""
        shares: Floats = self.truth / self.rows
        return shares

    def absolute(self, arm: str) -> Floats:
        """Return the absolute errors of an arm."""
        found: Floats = np.abs(self.outcomes[arm].errors)
        return found

    def relative(self, arm: str) -> Floats:
        """Return the relative errors of an arm, small counts raised to the sanity bound."""
        found: Floats = self.absolute(arm) / np.maximum(self.truth, SANITY_BOUND * self.rows)
        return found


@dataclass(frozen=True)
class Quintile:
    """The mean errors of one arm over a fifth of the queries, by coverage or by selectivity."""

    census: str
    epsilon: float
    arm: str
    by: str
    quintile: int
    middle: float
    square: float
    absolute: float
    relative: float


def run_experiments(census: Census, epsilons: Sequence[float], queries: int) -> Iterator[Experiment]:
    """Count once, then release, answer and forget, arm by arm."""
    asked = random_questions(census.schema, queries, ASKED_SEED)
    cube = census.count()
    truth = exact_answers(cube.exact_counts, asked.workload.low, asked.workload.high).astype(np.float64)
    for epsilon in epsilons:
        outcomes: dict[str, Outcome] = {}
        for method, chosen in _distinct_plans(census.schema, epsilon):
            outcomes |= _outcomes(method, chosen, cube, asked.workload, truth)
        yield Experiment(census.name, census.rows, epsilon, asked.coverage, truth, outcomes)


def _distinct_plans(schema: vc.Schema, epsilon: float) -> list[tuple[Method, vc.Plan]]:
    """Plan all methods; one that comes to the strategy of another before it is not measured again."""
    found: list[tuple[Method, vc.Plan]] = []
    for method in METHODS:
        chosen = affordable_plan(method, schema, epsilon)
        same = [other for other, known in found if known.operator == chosen.operator]
        if same:
            arms, others = (" and ".join(one.estimators) for one in (method, same[0]))
            print(f"{arms}: the planner's choice is the strategy of {others}, so it is not measured twice")
        else:
            found.append((method, chosen))
    return found


def affordable_plan(method: Method, schema: vc.Schema, epsilon: float) -> vc.Plan:
    """Plan a method; what would not fit into memory gives way to what "auto" picks."""
    questions = random_questions(schema, PLANNED_QUERIES, PLANNED_SEED).workload if method.is_told else None
    chosen = vc.plan(schema, epsilon, method.strategy, questions, NEIGHBOURS)
    # The counts, the measurements, and two arrays of floats while those are solved.
    needed = 8 * (2 * schema.cells + 2 * prod(chosen.operator.measurement_shape))
    if needed <= MOST_BYTES:
        return chosen
    print(f"{chosen.strategy.name} would take {needed / 10**9:.1f} GB; the strategy that 'auto' picks takes its place")
    return vc.plan(schema, epsilon, "auto", questions, NEIGHBOURS)


def _outcomes(
    method: Method, chosen: vc.Plan, cube: vc.Cube, asked: vc.Workload, truth: Floats
) -> Mapping[str, Outcome]:
    started = time.perf_counter()
    release = vc.release(cube, plan=chosen)
    release_seconds = time.perf_counter() - started
    stddev = chosen.stddev(asked)
    found: dict[str, Outcome] = {}
    for arm, estimator in method.estimators.items():
        started = time.perf_counter()
        # A release keeps what its estimators made of all cells; a fresh one forgets the arm before.
        answers = vc.Release(release.record).answer(asked, estimator=estimator)
        found[arm] = Outcome(
            arm,
            str(getattr(chosen.strategy, "summary", chosen.strategy.name)),
            answers.value - truth,
            stddev,
            (answers.low <= truth) & (truth <= answers.high),
            estimator == "least_squares",
            release_seconds,
            time.perf_counter() - started,
        )
    return found


def in_quintiles(experiment: Experiment) -> list[Quintile]:
    """Return the mean errors of every arm by coverage and by selectivity."""
    found = []
    for by, values in (("coverage", experiment.coverage), ("selectivity", experiment.selectivity)):
        for number, group in enumerate(quintiles(values), 1):
            for arm in experiment.outcomes:
                absolute, relative = experiment.absolute(arm)[group], experiment.relative(arm)[group]
                found.append(
                    Quintile(
                        experiment.census,
                        experiment.epsilon,
                        arm,
                        by,
                        number,
                        float(values[group].mean()),
                        float(np.square(absolute).mean()),
                        float(absolute.mean()),
                        float(relative.mean()),
                    )
                )
    return found
