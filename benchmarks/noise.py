"""Exact discrete Laplace and Gaussian noise: veilcube against OpenDP's integer mechanisms, side by side in one run."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp

from veilcube.curator.sampling import SystemWords, discrete_gaussian, discrete_laplace

VECTOR = 1_000_000
BAR = 50
ROUNDS = 3
RUNS_A_ROUND = 5
OPENDP = "OpenDP"


@dataclass(frozen=True)
class Law:
    """A law of noise: its name, that of its parameter, both samplers, and the parameters to draw with."""

    name: str
    parameter: str
    ours: Callable[..., object]
    theirs: Callable[[Fraction], Any]
    values: list[Fraction]


def opendp_laplace(scale: Fraction) -> Any:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=float(scale))


def opendp_gaussian(variance: Fraction) -> Any:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=math.sqrt(variance))


LAWS = [
    Law("Laplace", "scale", discrete_laplace, opendp_laplace, [Fraction(10), Fraction(1000, 3)]),
    Law("Gaussian", "variance", discrete_gaussian, opendp_gaussian, [Fraction(100), Fraction(10**6, 9)]),
]


def opendp_sampler(law: Law, value: Fraction) -> Callable[[], object]:
    """OpenDP's sampler on a vector of zeros; building the mechanism is not timed."""
    dp.enable_features("contrib")
    mechanism = law.theirs(value)
    zeros = np.zeros(VECTOR, dtype=np.int64)
    return lambda: mechanism(zeros)


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor time of one run."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def measure(law: Law, value: Fraction) -> dict[str, tuple[float, float]]:
    """Best wall and best processor time of each contender, in rounds that alternate.

    On a busy machine a short run finds a quiet moment more easily than a long one, so wall time alone would flatter
    the faster contender: there, the ratio of the processor times is the one to trust.
    """
    contenders: dict[str, tuple[Callable[[], object], int]] = {
        OPENDP: (opendp_sampler(law, value), 1),
        # A source that is passed in is read in order, by one thread.
        "veilcube, one core": (lambda: law.ours(value, VECTOR, source=SystemWords()), RUNS_A_ROUND),
        "veilcube, two cores": (lambda: law.ours(value, VECTOR), RUNS_A_ROUND),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, (work, runs) in contenders.items():
            times[name] += [seconds(work) for _ in range(runs)]
    return {name: (min(wall for wall, _ in runs), min(cpu for _, cpu in runs)) for name, runs in times.items()}


def report(law: Law) -> None:
    law.ours(1, 1)  # compile, or load the compiled sampler, before the clock starts
    print(f"discrete {law.name} noise, a vector of {VECTOR:,}, best of {ROUNDS} rounds (the bar is {BAR}x)")
    print(f"{law.parameter:>9}  {'sampler':<20} {'wall s':>9} {'cpu s':>9} {'wall ratio':>11} {'cpu ratio':>10}  bar")
    for value in law.values:
        best = measure(law, value)
        for name, (wall, processor) in best.items():
            wall_ratio, processor_ratio = best[OPENDP][0] / wall, best[OPENDP][1] / processor
            verdict = "" if name == OPENDP else f"{'reached' if wall_ratio >= BAR else 'MISSED'} ({BAR}x)"
            times = f"{wall:>9.4f} {processor:>9.4f} {wall_ratio:>10.0f}x {processor_ratio:>9.0f}x"
            print(f"{value!s:>9}  {name:<20} {times}  {verdict}".rstrip())


def main() -> None:
    for law in LAWS:
        report(law)


if __name__ == "__main__":
    main()
