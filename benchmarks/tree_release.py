"""A tree release of 2^24 cells from counts to non-negative answers, beside numpy's Laplace noise on the same cube.

Bar: noise, least squares and the non-negative walk in no more than 12 times the time of ``numpy.random.laplace``.
Planning builds the tree and comes before any data; it is timed apart, and the last line counts it as well.
Run: python -m benchmarks.tree_release
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import veilcube as vc
from veilcube.analyst.estimate.linear.least_squares import LeastSquares
from veilcube.analyst.estimate.linear.nonnegative import Nonnegative, walked_cells
from veilcube.operators import ProductOperator
from veilcube.operators.tree.axis import tree_axis
from veilcube.planner import MeasuredOnce
from veilcube.schema import Schema

CELLS = 2**24
ROUNDS = 3
BAR = 12


@dataclass(frozen=True)
class BalancedTree(MeasuredOnce):
    """A tree of fan-out 16 with equal weights: nothing to search, so that only the release is timed."""

    name: str = "tree"

    def operator(self, schema: Schema) -> ProductOperator:
        return ProductOperator(tuple(tree_axis(size, 16) for size in schema.shape), schema.names)

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "branching": 16}


def timed(work: Callable[[], object]) -> tuple[float, object]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def one_round(cube: vc.Cube, chosen: vc.Plan, scale: float) -> dict[str, float]:
    """Time each step once, then the whole way again; on a busy machine the steps do not add up exactly."""
    laplace, _ = timed(lambda: np.random.laplace(0, scale, CELLS))  # noqa: NPY002
    measuring, release = timed(lambda: vc.release(cube, plan=chosen))
    assert isinstance(release, vc.Release)
    record = release.record
    solving, cells = timed(lambda: LeastSquares().fit(record).cells())
    assert isinstance(cells, np.ndarray)
    walking, _ = timed(lambda: walked_cells(record.measurements[0].product, cells))
    estimating, _ = timed(lambda: Nonnegative().fit(record))
    return {
        "numpy.random.laplace": laplace,
        "release (noise, tree sums)": measuring,
        "least squares": solving,
        "non-negative walk": walking,
        "all of it": measuring + estimating,
    }


def main() -> None:
    schema = vc.Schema([vc.Ordinal("position", 1, CELLS)])
    counts = np.random.default_rng(1).poisson(0.3, CELLS)
    cube = vc.Cube(schema, counts)
    planning, chosen = timed(lambda: vc.plan(schema, epsilon=0.1, strategy=BalancedTree()))
    assert isinstance(chosen, vc.Plan)
    rounds = [one_round(cube, chosen, float(chosen.noise.parameter)) for _ in range(ROUNDS)]
    best = {step: min(found[step] for found in rounds) for step in rounds[0]}
    print(f"a tree release of {CELLS:,} cells, best of {ROUNDS} (planned in {planning:.2f} s)")
    for step, seconds in best.items():
        print(f"{step:<32}{seconds:>8.3f} s")
    # Best against best: a ratio within one round would pick the round in which numpy was disturbed most.
    ratio = best["all of it"] / best["numpy.random.laplace"]
    print(f"{'ratio':<32}{ratio:>8.2f}    bar {BAR} {'reached' if ratio <= BAR else 'MISSED'}")
    print(f"{'ratio, planning counted as well':<32}{ratio + planning / best['numpy.random.laplace']:>8.2f}")


if __name__ == "__main__":
    main()
