"""How often 95% intervals hold the truth, on regions that were fixed and on regions that the noisy cells chose."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.ispe.data import Table
from benchmarks.papers.ispe.questions import Questions, questions_for
from benchmarks.papers.ispe.trials import stderr_of
from benchmarks.papers.privelet.verdict import Verdict
from veilcube.operators import RegionCounts
from veilcube.planner import Strategy
from veilcube.query import Answer, Answers
from veilcube.schema import Region
from veilcube.schema.region import Box

PART = "coverage"
CONFIDENCE = 0.95
PARTITIONS = "partitions"
LEAST_SQUARES, SHRUNKEN = "least_squares", "shrunken"
BLOCKS, GROWN, KD = "blocks", "grow", "kd"
STRATEGIES: Mapping[str, Strategy] = {
    BLOCKS: vc.Adaptive(partition="blocks"),
    GROWN: vc.Adaptive(partition="grow"),
    KD: vc.KdTree(),
}
ESTIMATORS = (LEAST_SQUARES, SHRUNKEN)
FIXED_BAR = (0.94, 0.965)
CHOSEN_BAR = 0.93

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Coverage:
    """The share of intervals that held the truth."""

    table: str
    queries: str
    partition: str
    estimator: str
    epsilon: float
    releases: int
    coverage: float
    stderr: float
    half_width: float


@dataclass(frozen=True)
class CoverageEffort:
    """How many releases are made, and how many of their regions are asked.

    Blocks are few and large, so a release tells little about them, and least squares on them has the narrowest bar.
    """

    of_least_squares: int
    of_default: int
    of_chosen_regions: int
    regions: int


def measure_coverage(table: Table, epsilon: float, queries: int, effort: CoverageEffort) -> Iterator[Coverage]:
    """Release a table again and again by every partition."""
    asked = questions_for(table, queries)
    for partition, estimators, releases in (
        (BLOCKS, (LEAST_SQUARES,), effort.of_least_squares),
        (BLOCKS, (SHRUNKEN,), effort.of_default),
        (GROWN, ESTIMATORS, effort.of_chosen_regions),
        (KD, ESTIMATORS, effort.of_chosen_regions),
    ):
        chosen = vc.plan(table.schema, epsilon, STRATEGIES[partition])
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for number in range(releases):
            release = vc.release(table.cube, plan=chosen)
            picked = pick_regions(release, effort.regions, seed=number)
            for estimator in estimators:
                for kind, held in _held(release, estimator, asked, picked, table):
                    found.setdefault((kind, estimator), []).append(held)
        for (kind, estimator), each in found.items():
            shares, widths = np.array(each).T
            means = float(shares.mean()), stderr_of(shares), float(widths.mean())
            yield Coverage(table.name, kind, partition, estimator, epsilon, releases, *means)


def _held(
    release: vc.Release, estimator: str, asked: Sequence[Questions], picked: Sequence[Region], table: Table
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield, for each kind of query, the share of intervals that hold the truth, and their mean half-width."""
    for questions in asked:
        answers = release.answer(questions.workload, estimator=estimator, confidence=CONFIDENCE)
        yield questions.kind, _shares(answers, questions.truth)
    answers = release.answer(vc.Workload(table.schema, picked), estimator=estimator, confidence=CONFIDENCE)
    yield PARTITIONS, _shares(answers, np.array([float(table.counts[region.mask()].sum()) for region in picked]))


def _shares(answers: Answers | Answer, truth: NDArray[np.float64]) -> tuple[float, float]:
    is_held = (answers.low <= truth) & (truth <= answers.high)
    return float(np.mean(is_held)), float(np.mean((answers.high - answers.low) / 2))


def pick_regions(release: vc.Release, most: int, seed: int) -> list[Region]:
    """Return some of the regions of a release, drawn without looking at their counts."""
    operator = release.record.measurements[1].operator
    assert isinstance(operator, RegionCounts)
    random = np.random.default_rng(seed)
    picked = random.permutation(operator.regions)[:most]
    return [region_of(operator.chosen == label) for label in picked.tolist()]


def region_of(mask: Mask) -> Region:
    """Return the cells of a mask over a plane as a region: rows that are alike share a box, so a rectangle is one."""
    patterns = np.unique(mask[mask.any(axis=1)], axis=0)
    return Region(mask.shape, tuple(Box(mask.shape, ((mask == row).all(axis=1), row)) for row in patterns))


def judge_coverage(found: Sequence[Coverage]) -> list[Verdict]:
    """Return every coverage with its bar: both sides for least squares on blocks, from below elsewhere."""
    verdicts = []
    for one in found:
        is_exact = one.partition == BLOCKS and one.estimator == LEAST_SQUARES
        low, high = FIXED_BAR if is_exact else (CHOSEN_BAR, None)
        verdicts.append(
            Verdict(
                PART,
                f"{one.table}, {one.queries}: {one.partition}, {one.estimator}",
                one.coverage,
                low=low,
                high=high,
                note=f"± {one.stderr:.3f}; mean half-width {one.half_width:,.1f}",
            )
        )
    return verdicts
