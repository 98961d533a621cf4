"""Figures 10 to 12: learning the parity 0000011 from a release, by the paper's elimination and by a transform."""

import time
from collections.abc import Iterator

import numpy as np

import veilcube as vc
from benchmarks.papers.distributive.data import PARITY, Series, parity_rows
from benchmarks.papers.privelet.verdict import Verdict
from veilcube.analyst.study.parity import EliminatedParity, learn_parity, learn_parity_by_elimination
from veilcube.laws import DiscreteLaplace

ROWS = 10**5


def share_right(epsilon: float, runs: int) -> tuple[float, float]:
    """Return how often the transform and the elimination find the hidden vector."""
    cube = parity_rows(ROWS)
    by_transform = by_elimination = 0
    for run in range(runs):
        measured = vc.release(cube, epsilon, vc.Identity()).record.measurements[0]
        by_transform += learn_parity(measured.values, DiscreteLaplace(measured.noise.parameter)).vector == PARITY
        if run < runs // 10 + 1:
            by_elimination += _eliminated(measured.values).vector == PARITY
    return by_transform / runs, by_elimination / (runs // 10 + 1)


def _eliminated(counts: np.ndarray) -> EliminatedParity:
    return learn_parity_by_elimination(counts, samples=32, votes=1000, seed=1)


def judge_learners(runs: int) -> list[Verdict]:
    """Return both learners' shares of right vectors, with the bar."""
    found = []
    for epsilon, bar in ((0.01, None), (0.002, 0.99)):
        transform, elimination = share_right(epsilon, runs)
        name = f"d = 8, n = {ROWS:,}, epsilon {epsilon:g}"
        found.append(Verdict("parity", f"{name}: Walsh-Hadamard", transform, "share right", bar, note=f"{runs} runs"))
        found.append(Verdict("parity", f"{name}: elimination", elimination, "share right", note="the paper's"))
    return found


def judge_speed() -> Verdict:
    """Time a parity over 20 binary attributes."""
    counts = np.random.default_rng(1).integers(0, 50, 1 << 20)
    started = time.process_time()  # of this process alone, so that a busy machine changes nothing
    learn_parity(counts)
    return Verdict("parity", "20 binary attributes, a million cells", time.process_time() - started, "s", high=2)


def draw_figures() -> Iterator[Series]:
    """Yield the released and the original counts (10, 11) and each bit's share of votes (12)."""
    cube = parity_rows(ROWS)
    released = vc.release(cube, 0.01, vc.Identity()).record.measurements[0].values
    for figure, counts in (("10", cube.exact_counts), ("11", released)):
        yield from (Series(figure, "rows", cell, float(count)) for cell, count in enumerate(counts.ravel()))
    shares = _eliminated(released).shares
    yield from (Series("12", "share of votes for 1", bit + 1, share) for bit, share in enumerate(shares))
