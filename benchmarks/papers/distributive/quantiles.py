"""99 quantiles of a million rows with one budget, beside independent draws and quantiles read from a tree release."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.privelet.verdict import Verdict
from veilcube.curator.mechanisms.rank_quantiles import draw_quantiles, read_quantiles_from_tree
from veilcube.curator.noise import discrete_laplace
from veilcube.curator.noise.rank import draw_rank
from veilcube.planner.quantiles import QuantileMethod, QuantilePlan, plan_quantiles

Integers = NDArray[np.int64]

PERCENTILES = [Fraction(i, 100) for i in range(1, 100)]
ROWS = 10**6
SECONDS_BAR = 5.0


@dataclass(frozen=True)
class Contest:
    """Mean numbers of rows that each way misses by, with the standard errors of ours and of the trees."""

    cells: int
    epsilon: float
    method: str
    ours: float
    ours_error: float
    independent: float
    tree: float
    tree_error: float
    refined: float
    refined_error: float
    seconds: float

    @property
    def best_other(self) -> tuple[float, float]:
        """The mean miss of the best other way, and its standard error."""
        return min((self.independent, 0.0), (self.tree, self.tree_error), (self.refined, self.refined_error))


def bell(cells: int) -> Integers:
    """Return a million rows around the middle of a domain."""
    values = np.clip(np.random.default_rng(3).normal(0.5, 0.15, ROWS) * cells, 0, cells - 1)
    return np.bincount(values.astype(np.int64), minlength=cells)


def mean_miss(counts: Integers, places: Sequence[int], quantiles: Sequence[Fraction]) -> float:
    """Return the mean number of rows by which answers miss their quantiles."""
    at, up_to = np.array(places), np.cumsum(counts)
    wanted = np.array([float(quantile) for quantile in quantiles]) * up_to[-1]
    return float(np.maximum(np.maximum(up_to[at] - counts[at] - wanted, wanted - up_to[at]), 0).mean())


def find(plan: QuantilePlan, counts: Integers) -> list[int]:
    """Return the places of the quantiles, as ``noisy_quantiles`` finds them."""
    if plan.method is QuantileMethod.TREE and plan.tree is not None:
        return read_quantiles_from_tree(counts, plan.split.quantiles, plan.tree, 0.95, discrete_laplace).places
    return draw_quantiles(counts, plan.split, plan.budgets)


def run_contest(cells: int, epsilon: float, runs: int, others: int) -> Contest:
    """Measure all three ways on one table; ``others`` runs of the slow ones, on every fifth quantile."""
    counts = bell(cells)
    started = time.perf_counter()
    plan = plan_quantiles(cells, PERCENTILES, epsilon)
    find(plan, counts)
    seconds = time.perf_counter() - started
    few = PERCENTILES[::5]

    def independent() -> list[int]:
        budget = plan.epsilon / len(PERCENTILES)
        return [draw_rank(counts, budget, max(ROWS - int(ROWS * q), 1), "exponential") for q in few]

    cube = vc.Cube(vc.Schema([vc.Ordinal("place", 1, cells)]), counts)

    def from_release(strategy: vc.Tree) -> list[int]:
        release = vc.release(cube, epsilon, strategy)
        return [int(release.quantile("place", float(q)).value) - 1 for q in few]  # type: ignore[arg-type]

    ours = _mean(lambda: mean_miss(counts, find(plan, counts), PERCENTILES), runs)
    alone, _ = _mean(lambda: mean_miss(counts, independent(), few), others)
    tree = _mean(lambda: mean_miss(counts, from_release(vc.Tree(refine=False)), few), others)
    refined = _mean(lambda: mean_miss(counts, from_release(vc.Tree()), few), others)
    return Contest(cells, epsilon, str(plan.method), *ours, alone, *tree, *refined, seconds)


def judge_contests(contests: Sequence[Contest]) -> list[Verdict]:
    """Return ours over the best of the others, and the time; a ratio above 1 is missed, whatever its error."""
    found = []
    for one in contests:
        name = f"{one.cells:,} cells, epsilon {one.epsilon:g}, by {one.method}"
        best, error = one.best_other
        note = (
            f"rows missed: ours {one.ours:.1f} ± {one.ours_error:.1f}, independent {one.independent:.0f}, "
            f"tree {one.tree:.1f} ± {one.tree_error:.1f}, refined tree {one.refined:.1f} ± {one.refined_error:.1f}"
        )
        ratio = one.ours / best if best > 0 else float("inf")
        spread = ratio * ((one.ours_error / one.ours) ** 2 + (error / best) ** 2) ** 0.5 if best > 0 < one.ours else 0.0
        what = f"{name}: ours / best of the others (± {spread:.2f})"
        found.append(Verdict("quantiles", what, ratio, "", high=1.0, note=note))
        found.append(Verdict("quantiles", f"{name}: plan and draw", one.seconds, "s", high=SECONDS_BAR))
    return found


def _mean(measure: Callable[[], float], runs: int) -> tuple[float, float]:
    """Return the mean over runs and its standard error."""
    found = [measure() for _ in range(runs)]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(runs)) if runs > 1 else 0.0
