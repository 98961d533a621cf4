"""Transform, noise and inverse of a whole census cube, beside numpy's Laplace noise added to the same cube."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.privelet.census import Census
from benchmarks.papers.privelet.scaling import ROUNDS, best_of
from benchmarks.papers.privelet.verdict import Verdict

RATIO_BAR = 8
# By name, what is kept flat: the planner's choice for ranges, the paper's, and nothing.
FLATS: tuple[tuple[str, str | Sequence[str]], ...] = (
    ("flat auto", "auto"),
    ("flat age, gender", ("age", "gender")),
    ("nothing flat", ()),
)


@dataclass(frozen=True)
class Speed:
    """Seconds of one strategy, and of numpy in the same run."""

    strategy: str
    transform_and_noise: float
    inverse: float
    numpy: float

    @property
    def ratio(self) -> float:
        """How many times as long as numpy it takes."""
        return (self.transform_and_noise + self.inverse) / self.numpy


def laplace_by_numpy(counts: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """Return counts with numpy's Laplace noise, added in place: the fastest way to have it."""
    noisy = np.random.laplace(0, scale, counts.shape)  # noqa: NPY002
    noisy += counts
    return noisy


def measure_speeds(census: Census) -> list[Speed]:
    """Time numpy and each strategy on the cube of a census."""
    cube = census.count()
    _warm_up()
    return [_measure(name, flat, cube) for name, flat in FLATS]


def _measure(name: str, flat: str | Sequence[str], cube: vc.Cube) -> Speed:
    """Take the best of three rounds of each step; numpy has its turn in every round, under the same load."""
    chosen = vc.plan(cube.schema, 1.0, vc.Wavelet(flat=flat))
    rounds = []
    for _ in range(ROUNDS):
        by_numpy, _ = best_of(lambda: laplace_by_numpy(cube.exact_counts, 2.0), rounds=1)
        measuring, release = best_of(lambda: vc.release(cube, plan=chosen), rounds=1)
        (measurement,) = release.record.measurements
        inverting, _ = best_of(partial(measurement.operator.solve, measurement.values), rounds=1)
        rounds.append((measuring, inverting, by_numpy))
        del release, measurement
    return Speed(name, *(min(seconds) for seconds in zip(*rounds, strict=True)))


def _warm_up() -> None:
    """Compile what is compiled on first use."""
    schema = vc.Schema([vc.Ordinal("x", 0, 4), vc.Nominal("y", hierarchy={"a": ["b", "c"], "d": ["e", "f", "g"]})])
    cube = vc.Cube(schema, np.ones(schema.shape, dtype=np.int64))
    (measurement,) = vc.release(cube, 1.0, vc.Wavelet(flat=[])).record.measurements
    measurement.operator.solve(measurement.values)


def judge_speeds(speeds: Sequence[Speed]) -> list[Verdict]:
    """Return the ratio of each strategy with its bar."""
    return [
        Verdict(
            "speed",
            f"transform, noise and inverse in times of numpy.random.laplace + add, {speed.strategy}",
            speed.ratio,
            high=RATIO_BAR,
            note=f"{speed.transform_and_noise:.2f} s + {speed.inverse:.2f} s beside {speed.numpy:.2f} s",
        )
        for speed in speeds
    ]
