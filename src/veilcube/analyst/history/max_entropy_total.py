"""How many rows a table has, as its history tells: the best unbiased combination of noisy answers that counts all."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.max_entropy_tables import TableGroup
from veilcube.errors import QueryError

Floats = NDArray[np.float64]

# Least squares on more numbers than this would take longer than the whole fit.
_MOST_WORK = 2e10
_IN_SPAN = 1e-6
# What an exact answer counts as, relative to the noisiest: exact for every purpose, and no division by zero.
_NEARLY_EXACT = 1e-5


@dataclass(frozen=True)
class Total:
    """The number of rows and the variance of what is known about it; 0 if it was given."""

    value: float
    variance: float


def estimate_total(groups: Sequence[TableGroup], values: Floats, variances: Floats) -> Total:
    """Combine, over all tables, the weighted sums of answers that count every row once."""
    spread = np.sqrt(variances)
    floor = _NEARLY_EXACT * (float(spread.max()) or 1.0)
    found = [
        estimate
        for group in groups
        if (estimate := _of_group(group, values[group.members], np.maximum(spread[group.members], floor))) is not None
    ]
    if not found:
        raise QueryError("the history does not tell how many rows the table has; say it with total=...")
    precision = sum(1 / estimate.variance for estimate in found)
    value = sum(estimate.value / estimate.variance for estimate in found) / precision
    if value <= 0:
        raise QueryError("the history is too noisy to tell how many rows the table has; say it with total=...")
    return Total(value, 1 / precision)


def _of_group(group: TableGroup, values: Floats, spread: Floats) -> Total | None:
    if group.cells is not None:
        precision = np.bincount(group.cells, 1 / np.square(spread), group.size)
        if (precision == 0).any():
            return None
        means = np.bincount(group.cells, values / np.square(spread), group.size) / precision
        return Total(float(means.sum()), float((1 / precision).sum()))
    weights = group.dense if group.axes else np.ones((values.size, 1))
    if weights is None or weights.size * float(min(weights.shape)) > _MOST_WORK:
        return None
    # The combination c of least variance Σ c²σ² with A'c = 1, in z = cσ.
    system = weights.T / spread
    combination = np.linalg.lstsq(system, np.ones(group.size), rcond=None)[0]
    if np.abs(system @ combination - 1).max() > _IN_SPAN:
        return None
    return Total(float((combination / spread) @ values), float(combination @ combination))
