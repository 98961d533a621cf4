"""Time against the number of rows and of cells, as in the paper's section 8.2: uniform rows, nothing kept flat.

Two ordinal and two nominal attributes of about m^(1/4) values, with about the square root of as many groups. Each step
is the best of three in one process, after a warm-up, by the clock on the wall and by the processor's, which others on
the same machine disturb less.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import TypeVar

import numpy as np
import pyarrow as pa

import veilcube as vc
from benchmarks.papers.privelet.verdict import Claim, Verdict, log_slope
from veilcube.analyst.estimate.linear.thresholded import Thresholded

ROUNDS = 3
SLOPES = (0.9, 1.15)
MILLION = 10**6
# Slopes are fitted over this many of the largest sizes.
UPPER_PART = 3
ROWS = tuple(millions * MILLION for millions in range(1, 6))
CELL_POWERS = tuple(range(22, 27))
FIXED_POWER, FIXED_ROWS = 24, 5 * MILLION

CLOCKS = ("wall", "processor")
STEPS = ("count", "noise_only", "transform_and_noise", "inverse", "threshold")

Made = TypeVar("Made")


@dataclass(frozen=True)
class Timing:
    """Seconds of each step for a number of rows and of cells, by one clock."""

    clock: str
    rows: int
    cells: int
    count: float
    noise_only: float
    transform_and_noise: float
    inverse: float
    threshold: float

    @property
    def basic(self) -> float:
        """Counting and noise."""
        return self.count + self.noise_only

    @property
    def plus(self) -> float:
        """Counting, transform, noise and inverse."""
        return self.count + self.transform_and_noise + self.inverse

    @property
    def star(self) -> float:
        """The same with thresholds found and applied before the inverse."""
        return self.count + self.transform_and_noise + self.threshold


def schema_of(power: int) -> vc.Schema:
    """Return four attributes with 2^power cells, powers of two each, as even as that goes."""
    sizes = [2 ** (power // 4 + (place < power % 4)) for place in range(4)]
    # The longest of an uneven cube alternate between ordinal and nominal attributes.
    return vc.Schema(
        [
            vc.Ordinal("first", 0, sizes[0] - 1),
            _nominal("second", sizes[1]),
            vc.Ordinal("third", 0, sizes[2] - 1),
            _nominal("fourth", sizes[3]),
        ]
    )


def _nominal(name: str, size: int) -> vc.Nominal:
    parts = np.array_split(np.arange(size), round(sqrt(size)))
    tree = {f"group {part[0]}": [f"value {code}" for code in part.tolist()] for part in parts}
    return vc.Nominal(name, hierarchy=tree)


def uniform_rows(schema: vc.Schema, rows: int, seed: int) -> pa.Table:
    """Return uniform rows in memory; nominal values by name."""
    random = np.random.default_rng(seed)
    columns = {}
    for attribute in schema:
        codes = pa.array(random.integers(0, attribute.size, rows).astype(np.int16))
        is_nominal = isinstance(attribute, vc.Nominal)
        columns[attribute.name] = (
            pa.DictionaryArray.from_arrays(codes, pa.array(attribute.labels())) if is_nominal else codes
        )
    return pa.table(columns)


def time_steps(power: int, rows: int) -> tuple[Timing, Timing]:
    """Time every step on one cube once, by the wall's clock and by the processor's."""
    schema = schema_of(power)
    table = uniform_rows(schema, rows, seed=power)
    wavelet = vc.plan(schema, 1.0, vc.Wavelet(flat=[]), neighbours="replace")
    basic = vc.plan(schema, 1.0, vc.Identity(), neighbours="replace")
    counting, cube = timed(lambda: vc.count(table, schema))
    noise_only, _ = timed(lambda: vc.release(cube, plan=basic))
    measuring, release = timed(lambda: vc.release(cube, plan=wavelet))
    (measurement,) = release.record.measurements
    inverting, _ = timed(lambda: measurement.operator.solve(measurement.values))
    thresholding, _ = timed(lambda: Thresholded().fit(release.record))
    steps = zip(counting, noise_only, measuring, inverting, thresholding, strict=True)
    by_wall, by_processor = (
        Timing(clock, rows, prod(schema.shape), *seconds) for clock, seconds in zip(CLOCKS, steps, strict=True)
    )
    return by_wall, by_processor


def timed(work: Callable[[], Made]) -> tuple[tuple[float, float], Made]:
    """Return the seconds of the wall and of the processor, all threads together, and what was made."""
    wall, processor = time.perf_counter(), time.process_time()
    made = work()
    return (time.perf_counter() - wall, time.process_time() - processor), made


def best_of(work: Callable[[], Made], rounds: int = ROUNDS) -> tuple[float, Made]:
    """Return the least seconds of some rounds, and what the last one made; only one result is held at a time."""
    seconds = []
    for _ in range(rounds):
        made = None
        (wall, _), made = timed(work)
        seconds.append(wall)
    assert made is not None
    return min(seconds), made


def time_sizes(sizes: Sequence[tuple[int, int]], rounds: int = ROUNDS) -> list[Timing]:
    """Time cubes of 2^power cells with numbers of rows, the best of each step, one clock after the other.

    Every round goes through all sizes, so that a busy spell of the machine disturbs all of them and not one.
    """
    time_steps(8, 1000)
    found = [[time_steps(*size) for size in sizes] for _ in range(rounds)]
    return [
        _best([turn[place][clock] for turn in found]) for clock in range(len(CLOCKS)) for place in range(len(sizes))
    ]


def _best(timings: Sequence[Timing]) -> Timing:
    least = {step: min(getattr(one, step) for one in timings) for step in STEPS}
    return replace(timings[0], **least)


def judge_times(by_rows: Sequence[Timing], by_cells: Sequence[Timing]) -> tuple[list[Verdict], list[Claim]]:
    """Return the slopes by both clocks with their bars, and the paper's claims about time by the processor's."""
    verdicts: list[Verdict] = []
    claims: list[Claim] = []
    for clock in CLOCKS:
        rows, cells = ([one for one in timings if one.clock == clock] for timings in (by_rows, by_cells))
        verdicts_of_clock, claims = _judge_clock(rows, cells, clock)
        verdicts += verdicts_of_clock
    return verdicts, claims


def _judge_clock(
    by_rows: Sequence[Timing], by_cells: Sequence[Timing], clock: str
) -> tuple[list[Verdict], list[Claim]]:
    upper_rows, upper_cells = by_rows[-UPPER_PART:], by_cells[-UPPER_PART:]
    rows, cells = [one.rows for one in upper_rows], [one.cells for one in upper_cells]
    of_rows = log_slope(rows, [one.plus for one in upper_rows])
    of_counting = log_slope(rows, [one.count for one in upper_rows])
    of_cells = log_slope(cells, [one.plus for one in upper_cells])
    of_rest = log_slope(cells, [one.plus - one.count for one in upper_cells])
    fixed = [one.plus - one.count for one in by_rows]
    remark = f"what does not depend on n took {min(fixed):.2f} to {max(fixed):.2f} s: below 0.9 is better than linear"
    verdicts = [
        _slope(f"slope in n, {clock} time of counting (all that depends on n)", of_counting),
        _slope(f"slope in n, {clock} time of the whole", of_rows, remark),
        _slope(f"slope in m, {clock} time of transform, noise and inverse (all that depends on m)", of_rest),
        _slope(f"slope in m, {clock} time of the whole", of_cells, "counting the rows is a fixed part of it"),
    ]
    last = by_cells[-1]
    claims = [
        Claim(f"{clock} time", "all run in linear time in n", _growth(by_rows, "rows"), of_counting <= SLOPES[1]),
        Claim(f"{clock} time", "all scale almost linearly with m", _growth(by_cells, "cells"), of_cells <= SLOPES[1]),
        Claim(
            f"{clock} time",
            "Privelet* takes longer than Privelet+, and that longer than Basic",
            f"{last.star:.2f} s, {last.plus:.2f} s and {last.basic:.2f} s at {last.cells:,} cells",
            last.star > last.plus > last.basic,
        ),
    ]
    return verdicts, claims


def _slope(what: str, value: float, note: str = "") -> Verdict:
    return Verdict("time", what, value, low=SLOPES[0], high=SLOPES[1], note=note)


def _growth(timings: Sequence[Timing], size: str) -> str:
    first, last = timings[0], timings[-1]
    more = getattr(last, size) / getattr(first, size)
    ratios = (last.basic / first.basic, last.plus / first.plus, last.star / first.star)
    return f"{more:g} times the {size} take {', '.join(f'{ratio:.1f}' for ratio in ratios)} times as long"
