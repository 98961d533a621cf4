"""What the paper asks: random queries on two attributes, their answers with Laplace noise, and a measured prior.

Noise here is seeded and continuous, as in the paper: this is a study of estimators and publishes nothing.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.history.census import Codes, random_attribute_ranges
from veilcube.query import LinearQueries

Floats: TypeAlias = NDArray[np.float64]

QUERIES, SCALE = 5000, 5000.0
# The paper's prior: all one-attribute marginals with 0.02 differential privacy.
PRIOR_EPSILON = 0.02
RANGES, FUNCTIONS = "ranges", "functions"


class PublicTable(Protocol):
    """A table whose rows are at hand, so that errors can be told."""

    @property
    def rows(self) -> int:
        """How many rows it has."""

    @property
    def schema(self) -> vc.Schema:
        """Its attributes."""

    @property
    def codes(self) -> Codes:
        """Its rows as cell numbers."""

    def marginal(self, *axes: int) -> Codes:
        """Count its rows by some attributes."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Past queries with noisy and true answers, new ones with true answers, and the measured prior."""

    history: vc.History
    truth: Floats
    new: LinearQueries
    new_truth: Floats
    prior: dict[str, Floats]
    rows: int

    @property
    def noisy_rmse(self) -> float:
        """The error of the answers as they were given."""
        return root_mean_square(self.history.values - self.truth)


def root_mean_square(errors: Floats) -> float:
    """Return the square root of the mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def ask(
    table: PublicTable, kind: str = RANGES, queries: int = QUERIES, scale: float = SCALE, new: int = 2000, seed: int = 1
) -> Asked:
    """Ask random queries of a kind, and draw the noise of the answers and of the prior."""
    random = np.random.default_rng([seed, 2])
    past, fresh = draw_queries(table.schema, kind, queries, seed), draw_queries(table.schema, kind, new, seed + 1000)
    truth = past.count_rows(table.codes)
    noise = random.laplace(0.0, scale, queries)
    spread = len(table.schema) / PRIOR_EPSILON
    prior = {
        name: np.maximum(table.marginal(axis) + random.laplace(0.0, spread, table.schema.shape[axis]), spread)
        for axis, name in enumerate(table.schema.names)
    }
    history = vc.History(table.schema, past, truth + noise, 2 * scale**2)
    return Asked(history, truth, fresh, fresh.count_rows(table.codes), prior, table.rows)


def draw_queries(schema: vc.Schema, kind: str, queries: int, seed: int) -> LinearQueries:
    """Draw ranges on two attributes, or functions of two attributes whose entries are 0 or 1 at random."""
    if kind == RANGES:
        return LinearQueries.of(random_attribute_ranges(schema, queries, seed))
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(queries):
        pair = random.permutation(len(schema))[:2].tolist()
        names = tuple(schema.names[axis] for axis in pair)
        drawn.append({names: random.integers(0, 2, [schema.shape[axis] for axis in pair])})
    return LinearQueries.function(schema, drawn)
