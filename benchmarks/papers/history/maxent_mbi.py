"""The same task with mbi (graphical models): pairs chosen as AIM chooses them, at the same epsilon.

All 36 pairs of 9 attributes make a graph whose one clique is the universe of 1.3e11 cells, so mbi cannot take them all.
AIM measures a few pairs instead, those that the model gets most wrong, as long as the graph stays tractable. mbi is not
a dependency: put it into a folder (pip install --target DIR mbi) and name that in MBI_FOLDER, or this part is skipped.
"""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.history.asking import PublicTable

Floats: TypeAlias = NDArray[np.float64]

DELTA = 1e-9
ROUNDS = 12
SHARE_OF_SINGLES = 0.1
SHARE_OF_CHOICES = 0.1
ITERATIONS = 500
LARGEST_MODEL = 40.0  # megabytes, as mbi counts them


def load_mbi() -> Any | None:
    """Return mbi, or None where it is not installed."""
    folder = os.environ.get("MBI_FOLDER")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    try:
        import_module("jax").config.update("jax_enable_x64", True)
        return import_module("mbi")
    except ImportError:
        return None


def aim(mbi: Any, table: PublicTable, epsilon: float, seed: int) -> tuple[Callable[..., Floats], int]:
    """Return the marginals of AIM's model, and how many pairs it measured; (epsilon, 1e-9)-private by zCDP."""
    random, shape = np.random.default_rng(seed), table.schema.shape
    domain = mbi.Domain(list(range(len(shape))), list(shape))
    budget = (np.sqrt(np.log(1 / DELTA) + epsilon) - np.sqrt(np.log(1 / DELTA))) ** 2
    per_single = SHARE_OF_SINGLES * budget / len(shape)
    per_round = (1 - SHARE_OF_SINGLES) * budget / ROUNDS
    measured = [_measure(mbi, table, (axis,), np.sqrt(1 / (2 * per_single)), random) for axis in range(len(shape))]
    spread = np.sqrt(1 / (2 * per_round * (1 - SHARE_OF_CHOICES)))
    model = _fit(mbi, domain, measured, table.rows)
    for _ in range(ROUNDS):
        taken = [measurement.clique for measurement in measured]
        pairs = [pair for pair in combinations(range(len(shape)), 2) if _is_tractable(mbi, domain, [*taken, pair])]
        scores = np.array([_gain(table, model, pair, spread) for pair in pairs])
        weights = np.sqrt(8 * per_round * SHARE_OF_CHOICES) * scores / 2
        chosen = pairs[int(np.argmax(weights + random.gumbel(size=len(pairs))))]
        measured.append(_measure(mbi, table, chosen, spread, random))
        model = _fit(mbi, domain, measured, table.rows)

    def marginal(*axes: int) -> Floats:
        return np.asarray(model.project(axes).values) / table.rows

    return marginal, len({measurement.clique for measurement in measured}) - len(shape)


def _measure(mbi: Any, table: PublicTable, axes: tuple[int, ...], spread: float, random: np.random.Generator) -> Any:
    counts = table.marginal(*axes).ravel()
    return mbi.LinearMeasurement(counts + random.normal(0, spread, counts.size), axes, stddev=spread)


def _fit(mbi: Any, domain: Any, measured: list[Any], rows: int) -> Any:
    return mbi.estimation.MirrorDescent().estimate(domain, measured, known_total=float(rows), iters=ITERATIONS)


def _is_tractable(mbi: Any, domain: Any, cliques: list[tuple[int, ...]]) -> bool:
    return bool(mbi.junction_tree.hypothetical_model_size(domain, cliques) <= LARGEST_MODEL)


def _gain(table: PublicTable, model: Any, pair: tuple[int, int], spread: float) -> float:
    counts = table.marginal(*pair)
    return float(
        np.abs(counts - np.asarray(model.project(pair).values)).sum() - np.sqrt(2 / np.pi) * spread * counts.size
    )
