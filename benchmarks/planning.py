"""The planner's search beside Privelet+ on its census cube: age 101 x gender 2 x occupation 512 x income 1001.

Occupation has a hierarchy of three levels with 22 groups. Queries as in Privelet's experiments: one to four attributes
at random; on an ordinal one a random interval (both ends uniform), on a nominal one a random node that is not the root.
Replace neighbours, epsilon 1. Privelet+ (age and gender flat, nominal wavelet on occupation, Haar wavelet on income) is
computed from its exact variances, not simulated. Bar: at most 0.31 of it, 547. Also one attribute of 4096 cells, beside
HDMM. Run: python -m benchmarks.planning
"""

import time
from math import sqrt

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from veilcube.planner import Tree

QUERIES = 40_000
BAR = 0.31 * 1766
HDMM = {"prefixes": 141.4, "random ranges": 174.4}
GROUPS = 22
PADDED_INCOME = 1024
SHAPE = (101, 2, 512, 1001)


def main() -> None:
    schema, runs = census_schema()
    workload = privelet_queries(schema, runs, QUERIES, seed=1)
    reference = privelet_plus_error(workload, runs)
    started = time.perf_counter()
    plan = vc.plan(schema, strategy=Tree(refine=False), workload=workload, neighbours="replace")
    seconds = time.perf_counter() - started
    print(f"{'expected RMSE, ' + ' x '.join(map(str, SHAPE)) + ' cube':<52}{'error':>10}{'bar':>10}{'seconds':>10}")
    print(f"{'Privelet+, age and gender flat':<52}{reference:>10,.0f}{'':>10}{'':>10}")
    print(f"{'searched product of trees':<52}{plan.expected_error:>10,.0f}{BAR:>10,.0f}{seconds:>10.1f}")
    print(f"{'ratio':<52}{plan.expected_error / reference:>10.3f}{0.31:>10.2f}{'':>10}")
    print(f"    {plan.candidates[0].summary}; {plan.searched}")
    line = vc.Schema([vc.Ordinal("x", 1, 4096)])
    asked = {"prefixes": vc.Workload.prefixes(line), "random ranges": vc.Workload.random_ranges(line, 20_000, seed=2)}
    for name, queries in asked.items():
        started = time.perf_counter()
        plan = vc.plan(line, epsilon=0.1, strategy=Tree(refine=False), workload=queries)
        seconds = time.perf_counter() - started
        label = f"4096 cells, epsilon 0.1, {name} (HDMM)"
        print(f"{label:<52}{plan.expected_error:>10.1f}{HDMM[name]:>10.1f}{seconds:>10.1f}")
        print(f"    {plan.candidates[0].summary}")


def census_schema() -> tuple[vc.Schema, NDArray[np.int64]]:
    """Return the schema, and the inclusive runs of cells of the nodes of occupation, the groups first."""
    ends = np.cumsum([SHAPE[2] // GROUPS + (group < SHAPE[2] % GROUPS) for group in range(GROUPS)])
    starts = np.append(0, ends[:-1])
    hierarchy = {
        f"group {group}": [f"job {job}" for job in range(start, end)]
        for group, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
    }
    schema = vc.Schema(
        [
            vc.Ordinal("age", 0, SHAPE[0] - 1),
            vc.Nominal("gender", ["Female", "Male"]),
            vc.Nominal("occupation", hierarchy=hierarchy),
            vc.Ordinal("income", 0, SHAPE[3] - 1),
        ]
    )
    cells = np.arange(SHAPE[2])
    return schema, np.concatenate([np.stack([starts, ends - 1], axis=1), np.stack([cells, cells], axis=1)])


def privelet_queries(schema: vc.Schema, runs: NDArray[np.int64], queries: int, seed: int) -> vc.Workload:
    """Draw queries of one to four predicates."""
    generator = np.random.default_rng(seed)
    shape = np.array(schema.shape)
    ends = np.sort(generator.integers(0, shape[:, np.newaxis], size=(queries, len(shape), 2)), axis=2)
    ends[:, 1, 1] = ends[:, 1, 0]
    ends[:, 2] = runs[generator.integers(0, len(runs), queries)]
    rank = generator.random((queries, len(shape))).argsort(axis=1).argsort(axis=1)
    is_asked = rank < generator.integers(1, 4, queries, endpoint=True)[:, np.newaxis]
    low, high = np.where(is_asked, ends[..., 0], 0), np.where(is_asked, ends[..., 1], shape - 1)
    return vc.Workload.ranges(schema, low, high)


def privelet_plus_error(workload: vc.Workload, runs: NDArray[np.int64]) -> float:
    """Return the exact root mean squared error of Privelet+: 2 λ² Π V, λ = 2 (1 + log2 1024) 3 at epsilon 1."""
    lengths = workload.high - workload.low + 1
    scale = 2 * (1 + np.log2(PADDED_INCOME)) * 3
    nominal = _nominal_variance(workload.low[:, 2], lengths[:, 2], runs)
    haar = _haar_variance(workload.low[:, 3], workload.high[:, 3] + 1)
    return sqrt(float(np.mean(2 * scale**2 * lengths[:, 0] * lengths[:, 1] * nominal * haar)))


def _nominal_variance(
    low: NDArray[np.int64], length: NDArray[np.int64], runs: NDArray[np.int64]
) -> NDArray[np.float64]:
    """V(root) = 1 and V(node) = 4 (1 - 1/f)³ + V(parent)/f², f the fan-out of the parent."""
    groups = runs[:GROUPS]
    fanout = (groups[:, 1] - groups[:, 0] + 1)[np.searchsorted(groups[:, 1], low)]
    group = 4 * (1 - 1 / GROUPS) ** 3 + 1 / GROUPS**2
    leaf = 4 * (1 - 1 / fanout) ** 3 + group / fanout**2
    return np.where(length == SHAPE[2], 1.0, np.where(length > 1, group, leaf))


def _haar_variance(low: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
    """(q/M)² + Σ over the boundary nodes of each level of ((|L∩q| - |R∩q|) / size)²."""
    total = ((end - low) / PADDED_INCOME) ** 2
    size = PADDED_INCOME
    while size > 1:
        first, last = low // size, (end - 1) // size
        for node, counts in ((first, np.ones_like(first)), (last, last != first)):
            start = node * size
            left = np.clip(np.minimum(end, start + size // 2) - np.maximum(low, start), 0, None)
            right = np.clip(np.minimum(end, start + size) - np.maximum(low, start + size // 2), 0, None)
            total += counts * ((left - right) / size) ** 2
        size //= 2
    return total


if __name__ == "__main__":
    main()
