"""99 quantiles of a million rows with one budget, beside independent draws and quantiles read from a tree release.

Every run has a table of its own, since how much a way misses by depends on it. Ours are those of a protected table,
charged and stored. Independent draws, which take long, are judged on every fifth of the quantiles.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

import veilcube as vc
from benchmarks.papers.privelet.verdict import Verdict
from veilcube.curator.sampling.rank import draw_rank
from veilcube.planner.quantiles import QuantileChoice, plan_by_total

Integers = NDArray[np.int64]

PERCENTILES = [Fraction(i, 100) for i in range(1, 100)]
FEW = slice(None, None, 5)
ROWS = 10**6
SECONDS_BAR = 5.0
# Independent draws miss by fifty times as many rows or more: few runs show it.
RUNS_OF_INDEPENDENT = 2
FIRST_SEED = 20_000

SHAPES: Mapping[str, Callable[[np.random.Generator], NDArray[np.float64]]] = {
    "uniform": lambda generator: generator.random(ROWS),
    "bell": lambda generator: generator.normal(0.5, 0.15, ROWS),
    "lognormal": lambda generator: generator.lognormal(-2.0, 0.8, ROWS),
}


@dataclass(frozen=True)
class Setting:
    """Tables of one shape, and the budget."""

    shape: str
    cells: int
    epsilon: float
    runs: int


@dataclass(frozen=True)
class Contest:
    """Mean numbers of rows that each way misses by, with the standard errors of ours and of the trees.

    ``seconds`` is the median of ours: the first run of a process also loads compiled code.
    """

    shape: str
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


def table_of(shape: str, cells: int, seed: int) -> Integers:
    """Return a million rows of a shape, clipped to a domain."""
    values = np.clip(SHAPES[shape](np.random.default_rng(seed)) * cells, 0, cells - 1)
    return np.bincount(values.astype(np.int64), minlength=cells)


def mean_miss(counts: Integers, places: Sequence[int], quantiles: Sequence[Fraction]) -> float:
    """Return the mean number of rows by which answers miss their quantiles."""
    at, up_to = np.array(places), np.cumsum(counts)
    wanted = np.array([float(quantile) for quantile in quantiles]) * up_to[-1]
    return float(np.maximum(np.maximum(up_to[at] - counts[at] - wanted, wanted - up_to[at]), 0).mean())


def released_quantiles(release: vc.Release) -> list[int]:
    """Return the places that ``release.quantile`` gives, from its best estimate of the cells at once."""
    up_to = np.cumsum(release.to_xarray().to_numpy())
    ascending = isotonic_regression(up_to).x
    return [min(int(np.searchsorted(ascending, float(q) * up_to[-1])), up_to.size - 1) for q in PERCENTILES]


def planned_method(cells: int, epsilon: float) -> str:
    """Return how the quantiles are found if the noisy number of rows is about right."""
    way = plan_by_total(cells, PERCENTILES, epsilon)
    return str((way.way_for(ROWS) if isinstance(way, QuantileChoice) else way).method)


def run_contest(setting: Setting) -> Contest:
    """Measure all ways, each run on a table of its own."""
    cells, epsilon = setting.cells, setting.epsilon
    ours: list[float] = []
    alone: list[float] = []
    tree: list[float] = []
    refined: list[float] = []
    seconds: list[float] = []
    for run in range(setting.runs):
        counts = table_of(setting.shape, cells, FIRST_SEED + run)
        cube = vc.Cube(vc.Schema([vc.Ordinal("place", 1, cells)]), counts)
        started = time.perf_counter()
        places = protected_quantiles(cube, epsilon)
        seconds.append(time.perf_counter() - started)
        ours.append(mean_miss(counts, places, PERCENTILES))
        for found, strategy in ((tree, vc.Tree(refine=False)), (refined, vc.Tree())):
            places = released_quantiles(vc.release(cube, epsilon, strategy))
            found.append(mean_miss(counts, places, PERCENTILES))
        if run < RUNS_OF_INDEPENDENT:
            few = PERCENTILES[FEW]
            alone.append(mean_miss(counts, independent_quantiles(counts, epsilon, few), few))
    means = (*_mean(ours), _mean(alone)[0], *_mean(tree), *_mean(refined))
    return Contest(setting.shape, cells, epsilon, planned_method(cells, epsilon), *means, float(np.median(seconds)))


def protected_quantiles(cube: vc.Cube, epsilon: float) -> list[int]:
    """Return the places that a protected table gives."""
    with tempfile.TemporaryDirectory(prefix="quantiles-") as folder:
        ledger = vc.Ledger(f"sqlite:///{Path(folder) / 'budget.db'}")
        table = vc.protect(cube, ledger=ledger, dataset="made up", epsilon=1)
        found = table.noisy_quantiles("place", [float(q) for q in PERCENTILES], epsilon=epsilon)
    return [int(value) - 1 for value in found.value]


def independent_quantiles(counts: Integers, epsilon: float, quantiles: Sequence[Fraction]) -> list[int]:
    """Draw quantiles one by one, each with its part of a budget for all 99."""
    budget = Fraction(str(epsilon)) / len(PERCENTILES)
    return [draw_rank(counts, budget, max(ROWS - int(ROWS * q), 1), "exponential") for q in quantiles]


def judge_contests(contests: Sequence[Contest]) -> list[Verdict]:
    """Return ours over the best of the others, and the time; a ratio above 1 is missed, whatever its error."""
    found = []
    for one in contests:
        name = f"{one.shape}, {one.cells:,} cells, epsilon {one.epsilon:g}, by {one.method}"
        best, error = one.best_other
        note = (
            f"rows missed: ours {one.ours:.1f} ± {one.ours_error:.1f}, independent {one.independent:.0f}, "
            f"tree {one.tree:.1f} ± {one.tree_error:.1f}, staged tree {one.refined:.1f} ± {one.refined_error:.1f}"
        )
        ratio = one.ours / best if best > 0 else float("inf")
        spread = ratio * ((one.ours_error / one.ours) ** 2 + (error / best) ** 2) ** 0.5 if best > 0 < one.ours else 0.0
        what = f"{name}: ours / best of the others (± {spread:.2f})"
        found.append(Verdict("quantiles", what, ratio, "", high=1.0, note=note))
        found.append(Verdict("quantiles", f"{name}: plan, charge and draw", one.seconds, "s", high=SECONDS_BAR))
    return found


def _mean(found: Sequence[float]) -> tuple[float, float]:
    """Return the mean over runs and its standard error."""
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
