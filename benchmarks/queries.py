"""Rectangle counts with intervals a second, on a release of 1000 x 1000 cells.

Bar: at least 1,000,000 a second. Run: python -m benchmarks.queries
"""

import time

import numpy as np

import veilcube as vc

QUERIES = 1_000_000
ROUNDS = 5
BAR = 1_000_000


def main() -> None:
    schema = vc.Schema([vc.Ordinal("x", 1, 1000), vc.Ordinal("y", 1, 1000)])
    release = vc.release(vc.Cube(schema, np.ones(schema.shape, dtype=np.int64)), epsilon=0.1)
    workload = vc.Workload.random_ranges(schema, QUERIES, seed=1)
    started = time.perf_counter()
    release.answer(workload)
    first = time.perf_counter() - started
    best = min(_timed(release, workload) for _ in range(ROUNDS))
    print(f"{'rectangle counts with 95% intervals, 1000 x 1000 cells':<58}{'per second':>14}{'bar':>14}")
    print(f"{'first call (builds its tables)':<58}{QUERIES / first:>14,.0f}{'':>14}")
    print(f"{f'best of {ROUNDS}':<58}{QUERIES / best:>14,.0f}{BAR:>14,}")


def _timed(release: vc.Release, workload: vc.Workload) -> float:
    started = time.perf_counter()
    release.answer(workload)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
