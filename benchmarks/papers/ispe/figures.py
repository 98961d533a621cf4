"""The paper's figures 7 to 23 in spirit: what its parameters, its estimates and its query sizes do to the error."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.ispe.data import AGE_HOURS, RANDOM, SMOOTH, Table
from benchmarks.papers.ispe.errors import DEFAULT, IDENTITY
from benchmarks.papers.ispe.paper import (
    CONSISTENCY,
    MMSE,
    NEIGHBOURS,
    PASSES,
    SPLIT,
    UNWEIGHTED,
    exact_mmse,
    neighbourhood_reference,
    paper_readings,
    paper_strategy,
    unweighted_consistency,
)
from benchmarks.papers.ispe.questions import CELLS, KINDS, SMALL, Questions, questions_for, questions_of_size
from benchmarks.papers.ispe.trials import Errors, Measured, Reading, by_estimator, run_trials, summarise
from veilcube.planner import Strategy

Floats = NDArray[np.float64]
# Where something is varied, its value.
Setting: TypeAlias = float | None
T = TypeVar("T")

BY_SPLIT, BY_PASSES, BY_XI = "budget split (7-9)", "smoothing passes (10-12)", "threshold (13-15)"
BY_PASSES_SCALED, BY_MULTIPLE = "smoothing passes, threshold 2", "threshold, multiples of the noise"
BY_METHOD, BY_METHOD_SCALED = "estimation method (16-18)", "estimation method, threshold 2"
BY_SIZE, TWO_LEVELS = "query size (19-21)", "two levels (22-23)"
# The paper's continuous, random and real data.
PAPERS_TABLES = (SMOOTH, RANDOM, AGE_HOURS)
SPLITS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.96)
SMOOTHINGS = (0, 1, 2, 5, 10, 20)
COUNTS = (1.0, 2.0, 4.0, 6.0, 12.0, 24.0)
MULTIPLES = (0.5, 1.0, 2.0, 3.0, 5.0)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
# The cells' share: equal, and geometric (2^(h-L-1) of L = 2 levels, made to sum to one) either way round.
EQUAL, GEOMETRIC, REVERSED = 1 / 2, 2 / 3, 1 / 3
SHRUNKEN = "shrunken"
TREE, KD, REFINED, WAVELET, GROWN = "tree", "kd", "staged tree", "wavelet", "grown regions"


@dataclass(frozen=True)
class Effort:
    """How much is asked how often: ``slow_queries`` where every answer is an exact posterior.

    A figure has at most ``settings`` points along its axis, the first and the last among them.
    """

    queries: int
    releases: int
    slow_queries: int = 0
    settings: int = 100


@dataclass(frozen=True, eq=False)
class Figure:
    """One figure on one table: its points, and the errors of every release for claims that compare arms."""

    name: str
    table: str
    measured: list[Measured]
    errors: Mapping[Setting, Errors]


_SWEPT = (
    Reading(NEIGHBOURS, neighbourhood_reference),
    by_estimator(CONSISTENCY, "least_squares"),
    by_estimator(SHRUNKEN, "shrunken"),
)


def draw_figures(tables: Sequence[Table], epsilon: float, effort: Effort) -> Iterator[Figure]:
    """Yield every figure on the tables that the paper has."""
    for table in tables:
        if table.name in PAPERS_TABLES:
            yield from _sweeps(table, epsilon, effort)
            yield from _methods(table, epsilon, effort)
            yield _sizes(table, epsilon, effort)
            yield _levels(table, epsilon, effort)


def _sweeps(table: Table, epsilon: float, effort: Effort) -> Iterator[Figure]:
    swept: dict[str, list[tuple[float, Strategy]]] = {
        BY_SPLIT: [(split, paper_strategy(epsilon, split=split)) for split in SPLITS],
        BY_PASSES: [(passes, paper_strategy(epsilon, passes=passes)) for passes in SMOOTHINGS],
        BY_PASSES_SCALED: [
            (passes, vc.Adaptive(partition="grow", split=SPLIT, smooth=passes)) for passes in SMOOTHINGS
        ],
        BY_XI: [(xi, paper_strategy(epsilon, xi=xi)) for xi in COUNTS],
        BY_MULTIPLE: [
            (multiple, vc.Adaptive(partition="grow", split=SPLIT, smooth=PASSES, threshold=multiple))
            for multiple in MULTIPLES
        ],
    }
    asked = questions_for(table, effort.queries)
    for name, settings in swept.items():
        errors: dict[Setting, Errors] = {
            setting: run_trials(table, epsilon, strategy, _SWEPT, asked, effort.releases)
            for setting, strategy in thinned(settings, effort.settings)
        }
        yield _figure(name, table, epsilon, errors)


def thinned(settings: Sequence[T], most: int) -> list[T]:
    """Return so many of the settings, evenly spaced, with both ends."""
    places = np.linspace(0, len(settings) - 1, min(most, len(settings)))
    return [settings[place] for place in np.rint(places).astype(int).tolist()]


def _methods(table: Table, epsilon: float, effort: Effort) -> Iterator[Figure]:
    """Read the same releases in all ways; where regions are many, MMSE answers cells only."""
    asked = questions_for(table, effort.slow_queries)
    ways = (
        (BY_METHOD, paper_strategy(epsilon), (CELLS, SMALL) if table.name == AGE_HOURS else KINDS),
        (BY_METHOD_SCALED, vc.Adaptive(partition="grow", split=SPLIT, smooth=PASSES), (CELLS,)),
    )
    for name, strategy, mmse_for in ways:
        readings = [*paper_readings(mmse_for), *_SWEPT[1:]]
        errors = run_trials(table, epsilon, strategy, readings, asked, effort.releases)
        errors |= run_trials(table, epsilon, vc.Adaptive(), [by_estimator(DEFAULT)], asked, effort.releases)
        yield _figure(name, table, epsilon, {None: errors})


def _sizes(table: Table, epsilon: float, effort: Effort) -> Figure:
    asked = [questions_of_size(table, share, effort.queries) for share in SHARES]
    errors = run_trials(table, epsilon, paper_strategy(epsilon), _SWEPT[:2], asked, effort.releases)
    errors |= rival_errors(table, epsilon, asked, effort.releases)
    by_share: dict[Setting, Errors] = {
        share: {key: each for key, each in errors.items() if key[1] == f"{share:g}"} for share in SHARES
    }
    return _figure(BY_SIZE, table, epsilon, by_share)


def _levels(table: Table, epsilon: float, effort: Effort) -> Figure:
    """Two levels with unequal budgets: blocks of 2 x 2 cells, and kd boxes.

    In large regions the cells' noise outweighs the total's, whatever the budgets: only small ones can tell weighted
    from unweighted.
    """
    asked = questions_for(table, effort.slow_queries)
    errors: dict[Setting, Errors] = {}
    for split in (REVERSED, EQUAL, GEOMETRIC):
        found: dict[tuple[str, str], Floats] = {}
        for partition, strategy in (
            ("blocks", vc.Adaptive(partition="blocks", split=split, side=2)),
            ("kd", vc.KdTree(split=split)),
        ):
            readings = [
                Reading(f"{MMSE}, {partition}", exact_mmse, (CELLS, SMALL)),
                Reading(f"{UNWEIGHTED}, {partition}", unweighted_consistency),
                by_estimator(f"{CONSISTENCY}, {partition}", "least_squares"),
            ]
            found |= run_trials(table, epsilon, strategy, readings, asked, effort.releases)
        errors[split] = found
    return _figure(TWO_LEVELS, table, epsilon, errors)


def rival_errors(
    table: Table, epsilon: float, asked: Sequence[Questions], releases: int
) -> dict[tuple[str, str], Floats]:
    """Return the errors of the default and of other releases, each as it is best read."""
    rivals: tuple[tuple[Strategy, tuple[Reading, ...]], ...] = (
        (vc.Adaptive(), (by_estimator(DEFAULT),)),
        (vc.Identity(), (by_estimator(IDENTITY, "least_squares"),)),
        (vc.Tree(refine=False), (by_estimator(f"{TREE}, least squares", "least_squares"),)),
        (vc.Wavelet(), (by_estimator(f"{WAVELET}, least squares", "least_squares"),)),
        (vc.KdTree(), (by_estimator(f"{KD}, least squares", "least_squares"), by_estimator(f"{KD}, shrunken"))),
        (
            vc.Adaptive(partition="grow"),
            (by_estimator(f"{GROWN}, least squares", "least_squares"), by_estimator(f"{GROWN}, shrunken")),
        ),
        (vc.Tree(), (by_estimator(f"{REFINED}, posterior"),)),
    )
    found: dict[tuple[str, str], Floats] = {}
    for strategy, readings in rivals:
        found |= run_trials(table, epsilon, strategy, readings, asked, releases)
    return found


def run_rivals(tables: Sequence[Table], epsilon: float, effort: Effort) -> Iterator[Figure]:
    """Yield the default beside all other releases, on every table."""
    for table in tables:
        errors = rival_errors(table, epsilon, questions_for(table, effort.queries), effort.releases)
        yield _figure("rivals", table, epsilon, {None: errors})


def _figure(name: str, table: Table, epsilon: float, errors: Mapping[Setting, Errors]) -> Figure:
    measured = [one for setting, found in errors.items() for one in summarise(name, table, epsilon, found, setting)]
    return Figure(name, table.name, measured, errors)
