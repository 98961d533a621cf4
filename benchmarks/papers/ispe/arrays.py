"""Adaptive releases beside what "auto" picks, on the DPBench arrays summed to 64 x 64: which one wins."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt
from pathlib import Path

import numpy as np

import veilcube as vc
from benchmarks.papers.ispe.trials import Ratio, stderr_of
from benchmarks.papers.privelet.verdict import Verdict
from benchmarks.peers.dpbench.arrays import CountArray, exact_answers, load_arrays, sum_blocks
from benchmarks.peers.dpbench.summary import geometric_mean
from benchmarks.peers.dpbench.tasks import BLOCK_SIDE, QUERIES, QUERY_SEED, SQUARE
from veilcube.planner import Strategy

PART = "arrays"
ADAPTIVE, AUTO = "adaptive", "auto"
ARMS: tuple[tuple[str, Strategy | str], ...] = ((ADAPTIVE, vc.Adaptive()), (AUTO, "auto"))
EPSILONS = (0.1, 1.0)


@dataclass(frozen=True)
class Contest:
    """The root mean squared errors of both releases of one array, over all trials."""

    array: str
    epsilon: float
    trials: int
    adaptive: float
    auto: float
    stderr: float

    @property
    def ratio(self) -> Ratio:
        """The error of the adaptive release over that of "auto"."""
        return Ratio(self.adaptive / self.auto, self.stderr)


def read_arrays(data: Path) -> tuple[CountArray, ...]:
    """Read the 2-D arrays of a folder and sum their blocks."""
    arrays = load_arrays(data / "2D", SQUARE)
    return tuple(CountArray(array.name, sum_blocks(array.counts, BLOCK_SIDE)) for array in arrays)


def run_contest(array: CountArray, epsilon: float, trials: int) -> Contest:
    """Release an array by both strategies again and again, and ask random rectangles."""
    rows, columns = array.counts.shape
    schema = vc.Schema([vc.Ordinal("x", 0, rows - 1), vc.Ordinal("y", 0, columns - 1)])
    asked = vc.Workload.random_ranges(schema, QUERIES, seed=QUERY_SEED)
    truth = exact_answers(array.counts, asked.low, asked.high)
    cube = vc.Cube(schema, array.counts)
    squares: dict[str, list[float]] = {}
    for arm, strategy in ARMS:
        chosen = vc.plan(schema, epsilon, strategy)
        for _ in range(trials):
            errors = vc.release(cube, plan=chosen).answer(asked).value - truth
            squares.setdefault(arm, []).append(float(np.mean(np.square(errors))))
    ours, theirs = (np.array(squares[arm]) for arm, _ in ARMS)
    ratio = sqrt(ours.mean() / theirs.mean())
    # By the delta method: the root of a ratio of means of independent releases.
    relative = sqrt((stderr_of(ours) / ours.mean()) ** 2 + (stderr_of(theirs) / theirs.mean()) ** 2) / 2
    return Contest(array.name, epsilon, trials, sqrt(ours.mean()), sqrt(theirs.mean()), ratio * relative)


def run_contests(arrays: Sequence[CountArray], trials: int) -> list[Contest]:
    """Run all arrays at both epsilons of the peers."""
    return [run_contest(array, epsilon, trials) for epsilon in EPSILONS for array in arrays]


def judge_contests(contests: Sequence[Contest]) -> list[Verdict]:
    """Return the ratios and their geometric mean; they have no bar, the lower one wins."""
    found = []
    for epsilon in dict.fromkeys(one.epsilon for one in contests):
        here = [one for one in contests if one.epsilon == epsilon]
        name = f"epsilon {epsilon:g}: adaptive / auto, RMSE of random rectangles"
        found += [
            Verdict(
                PART,
                f"{name}, {one.array}",
                one.ratio.value,
                note=f"± {one.ratio.stderr:.3f}; {one.adaptive:,.1f} and {one.auto:,.1f}",
            )
            for one in here
        ]
        mean = geometric_mean(one.ratio.value for one in here)
        spread = sqrt(sum((one.ratio.stderr / one.ratio.value) ** 2 for one in here)) / len(here) if here else nan
        winner = ADAPTIVE if mean < 1 else AUTO
        note = f"± {mean * spread:.3f}; {winner} wins"
        found.append(Verdict(PART, f"{name}, geometric mean of {len(here)}", mean, note=note))
    return found
