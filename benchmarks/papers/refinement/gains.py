"""What common facts leave of the variance of common questions: exact, from the strategy alone."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import veilcube as vc
from benchmarks.papers.ispe.data import Table
from benchmarks.papers.privelet.verdict import Verdict
from veilcube.planner import Strategy

PART = "gains"
STRATEGIES: Mapping[str, Strategy] = {
    "identity": vc.Identity(),
    "tree": vc.Tree(refine=False),
    "wavelet": vc.Wavelet(),
    "adaptive": vc.Adaptive(),
}
KNOWN = ("total", "first marginal", "both marginals", "quarters")


@dataclass(frozen=True)
class Gain:
    """The mean variance of questions of one kind after refinement over the one before."""

    strategy: str
    known: str
    questions: str
    ratio: float


def measure_gains(table: Table, epsilon: float, queries: int) -> list[Gain]:
    """Refine one release of each strategy with each kind of fact; variances do not depend on the noise drawn."""
    asked = _questions(table, queries)
    found = []
    for name, strategy in STRATEGIES.items():
        release = vc.release(table.cube, epsilon=epsilon, strategy=strategy)
        before = {kind: release.answer(some, estimator="least_squares").stddev for kind, some in asked.items()}
        for known in KNOWN:
            refined = refine_with(release, table, known)
            for kind, some in asked.items():
                after = refined.answer(some).stddev
                ratio = float(np.mean(np.square(after)) / np.mean(np.square(before[kind])))
                found.append(Gain(name, known, kind, ratio))
    return found


def refine_with(release: vc.Release, table: Table, known: str) -> vc.Release:
    """Return the release refined with true counts of one kind."""
    counts, (rows, columns) = table.counts, table.names
    if known == "total":
        return vc.refine(release, f"total = {counts.sum()}")
    first = vc.refine(release, B=rows, c=counts.sum(axis=1)) if known != "quarters" else None
    if first is not None:
        return first if known == "first marginal" else vc.refine(first, B=columns, c=counts.sum(axis=0))
    blocks = _quarters(table)
    return vc.refine(release, B=blocks, c=exact_counts(table, blocks))


def exact_counts(table: Table, asked: vc.Workload) -> np.ndarray:
    """Return the exact count of each block."""
    ends = zip(asked.low, asked.high, strict=True)
    return np.array([table.counts[low[0] : high[0] + 1, low[1] : high[1] + 1].sum() for low, high in ends])


def _quarters(table: Table) -> vc.Workload:
    rows, columns = table.counts.shape
    cuts = [(0, rows // 2, rows), (0, columns // 2, columns)]
    low = [(cuts[0][i], cuts[1][j]) for i in (0, 1) for j in (0, 1)]
    high = [(cuts[0][i + 1] - 1, cuts[1][j + 1] - 1) for i in (0, 1) for j in (0, 1)]
    return vc.Workload.ranges(table.schema, low, high)


def _questions(table: Table, queries: int) -> dict[str, vc.Workload]:
    cells = vc.Workload.marginals(table.schema, 2)
    some = np.random.default_rng(1).choice(len(cells), min(queries, len(cells)), replace=False)
    return {
        "cells": vc.Workload.ranges(table.schema, cells.low[some], cells.high[some]),
        "ranges": vc.Workload.random_ranges(table.schema, queries, seed=1),
        "marginals": vc.Workload.marginals(table.schema, 1),
    }


def judge_gains(gains: list[Gain]) -> list[Verdict]:
    """Return the largest ratio, which the theorem keeps at 1 or below."""
    worst = max(gains, key=lambda one: one.ratio)
    note = f"{worst.strategy}, {worst.known}, {worst.questions}"
    return [Verdict(PART, "largest refined / unrefined variance", worst.ratio, high=1 + 1e-9, note=note)]
