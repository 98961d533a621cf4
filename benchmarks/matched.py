"""Strategies matched to a workload, 4096 cells at epsilon 0.1: exact error of least squares beside HDMM's.

Bars: 141.4 on all prefixes, 174.4 on random ranges (a length uniform in 1..n, then a position uniform among those that
fit; the exact moments of that law), planning in 20 seconds. Run: python -m benchmarks.matched
"""

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from veilcube.operators.base.axis import AxisOperator
from veilcube.planner.matched.strategy import match_axis, matched_strategies

CELLS = 4096
EPSILON = 0.1
BARS = {"all prefixes": 141.4, "random ranges": 174.4}
SAMPLED = 2000
_SECONDS = 20

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def main() -> None:
    schema = vc.Schema([vc.Ordinal("x", 1, CELLS)])
    print(f"{'least squares, 4096 cells, epsilon 0.1':<42}{'error':>9}{'bar':>9}{'rows':>7}{'seconds':>9}{'bar':>5}")
    prefixes = vc.Workload.prefixes(schema)
    started = time.perf_counter()
    axis = matched_strategies(schema, prefixes)[0].axes[0]
    _report("all prefixes", axis, _error(axis, [(prefixes.low[:, 0], prefixes.high[:, 0], np.ones(CELLS))]), started)
    started = time.perf_counter()
    matched_strategies(schema, vc.Workload.prefixes(schema))
    print(f"{'  the same again':<42}{'':>25}{time.perf_counter() - started:>9.3f}")
    started = time.perf_counter()
    axis = match_axis(random_range_moments(CELLS))
    seconds = time.perf_counter() - started
    _report("random ranges", axis, _error(axis, random_range_law(CELLS)), time.perf_counter() - seconds)
    sample = vc.Workload.random_ranges(schema, SAMPLED, seed=0)
    started = time.perf_counter()
    axis = matched_strategies(schema, sample)[0].axes[0]
    seconds = time.perf_counter() - started
    error = _error(axis, [(sample.low[:, 0], sample.high[:, 0], np.ones(SAMPLED))])
    _report(f"a sample of {SAMPLED} random ranges", axis, error, time.perf_counter() - seconds)


def random_range_law(size: int) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Yield for each length all ranges of it with their weights."""
    for length in range(1, size + 1):
        low = np.arange(size - length + 1)
        yield low, low + length - 1, np.full(len(low), 1.0 / len(low))


def random_range_moments(size: int) -> Floats:
    """Return the chance that a random range holds both of two cells, for every pair."""
    low, high = np.triu_indices(size)
    table = np.zeros((size, size))
    table[low, high] = 1.0 / (size * (size - (high - low)))
    held = np.cumsum(np.cumsum(table, axis=0)[:, ::-1], axis=1)[:, ::-1]
    return np.triu(held) + np.triu(held, 1).T


def _error(
    axis: AxisOperator, queries: "Iterator[tuple[Integers, Integers, Floats]] | list[tuple[Integers, Integers, Floats]]"
) -> float:
    total = weight = 0.0
    for low, high, weights in queries:
        total += float(axis.variance_of_ranges(low, high) @ weights)
        weight += float(weights.sum())
    return float(np.sqrt(2 * total / weight) * axis.column_sums().max() / EPSILON)


def _report(name: str, axis: AxisOperator, error: float, started: float) -> None:
    seconds = time.perf_counter() - started
    bar = f"{BARS[name]:.1f}" if name in BARS else ""
    print(f"{name:<42}{error:>9.1f}{bar:>9}{axis.rows:>7}{seconds:>9.1f}{_SECONDS:>5}")


if __name__ == "__main__":
    main()
