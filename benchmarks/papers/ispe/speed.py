"""A release of 256 x 256 x 16 cells end to end beside numpy's Laplace noise, and range queries a second.

End to end is the release, the default estimator's fit and 1000 queries; planning looks at no data and is timed apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import veilcube as vc
from benchmarks.papers.ispe.coverage import STRATEGIES
from benchmarks.papers.ispe.data import Table
from benchmarks.papers.privelet.scaling import best_of
from benchmarks.papers.privelet.verdict import Verdict
from benchmarks.report import best_seconds

PART = "speed"
SHAPE = (256, 256, 16)
QUERIES = 1_000
ROUNDS = 3
RATIO_BAR = 20
QUERIES_A_SECOND = 100_000
SEED = 6


@dataclass(frozen=True)
class EndToEnd:
    """Seconds of each step, and of numpy in the same rounds."""

    numpy: float
    plan: float
    release: float
    answers: float
    whole: float

    @property
    def ratio(self) -> float:
        """How many times as long as numpy it takes from counts to answers."""
        return self.whole / self.numpy


def made_cube(shape: Sequence[int]) -> vc.Cube:
    """Return a cube of counts around a bump."""
    schema = vc.Schema([vc.Ordinal(f"axis {axis}", 0, size - 1) for axis, size in enumerate(shape)])
    places = np.meshgrid(*(np.linspace(-1, 1, size) for size in shape), indexing="ij")
    bump = 20 * np.exp(-3 * np.sum(np.square(places), axis=0))
    return vc.Cube(schema, np.random.default_rng(SEED).poisson(bump))


def measure_end_to_end(cube: vc.Cube, epsilon: float, queries: int) -> EndToEnd:
    """Take the best of some rounds; numpy has its turn in every round, under the same load."""
    planning, chosen = best_of(lambda: vc.plan(cube.schema, epsilon, vc.Adaptive()), rounds=1)
    asked = vc.Workload.random_ranges(cube.schema, queries, seed=SEED)
    rounds = []
    # The first round compiles and is not counted.
    for _ in range(1 + ROUNDS):
        by_numpy, _ = best_of(
            lambda: np.random.laplace(0, 1 / epsilon, cube.schema.shape),  # noqa: NPY002
            rounds=1,
        )
        releasing, release = best_of(lambda: vc.release(cube, plan=chosen), rounds=1)
        answering, _ = best_of(lambda: release.answer(asked), rounds=1)  # noqa: B023 - called at once
        rounds.append((by_numpy, releasing, answering, releasing + answering))
    by_numpy, releasing, answering, whole = (min(seconds) for seconds in zip(*rounds[1:], strict=True))
    return EndToEnd(by_numpy, planning, releasing, answering, whole)


def queries_a_second(cube: vc.Cube, epsilon: float, partition: str, queries: int) -> float:
    """Return how many ranges least squares answers in a second with their intervals, once it is fitted."""
    release = vc.release(cube, epsilon, STRATEGIES[partition])
    asked = vc.Workload.random_ranges(cube.schema, queries, seed=SEED)
    release.answer(asked, estimator="least_squares")
    return queries / best_seconds(lambda: release.answer(asked, estimator="least_squares"), ROUNDS)


def run_speed(table: Table, shape: Sequence[int], epsilon: float, queries: int) -> list[Verdict]:
    """Time both, and return the figures with their bars."""
    cube = made_cube(shape)
    whole = measure_end_to_end(cube, epsilon, QUERIES)
    title = " x ".join(map(str, shape))
    steps = (
        f"release {whole.release:.2f} s, fit and {QUERIES:,} queries {whole.answers:.2f} s, numpy {whole.numpy:.3f} s"
    )
    found = [
        Verdict(PART, f"{title} end to end in times of numpy.random.laplace", whole.ratio, high=RATIO_BAR, note=steps),
        Verdict(PART, f"{title} planning, before any data", whole.plan, "s"),
    ]
    for name, where in ((table.name, table.cube), (title, cube)):
        for partition in STRATEGIES:
            rate = queries_a_second(where, epsilon, partition, queries)
            what = f"{name}, {partition}: ranges by least squares"
            found.append(Verdict(PART, what, rate, "a second", low=QUERIES_A_SECOND))
    return found
