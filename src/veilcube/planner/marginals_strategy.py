"""Marginals as a strategy: all tables over k attributes, the budget divided for the least error."""

from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError
from veilcube.operators.marginals import MarginalsOperator, component_eigenvalues, component_norms, require_few_tables
from veilcube.planner.weights import balance_weights, whole_multipliers
from veilcube.query import Workload
from veilcube.schema import Schema

Floats = NDArray[np.float64]

MOST_QUERIES_LISTED = 100_000
QUERIES_DRAWN = 20_000


@dataclass(frozen=True)
class Marginals:
    """Measure every table over ``k`` attributes: best when questions are about few attributes at a time.

    Only questions about at most ``k`` attributes can be answered. ``multipliers`` divide the budget among the tables,
    in the order of ``itertools.combinations``; by default so that a workload, or the tables' own cells, have the least
    error.

    >>> from veilcube.schema import Ordinal
    >>> Marginals(k=1).operator(Schema([Ordinal("age", 1, 50), Ordinal("floor", 1, 2)])).multipliers
    (3, 1)
    """

    k: int = 2
    multipliers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if type(self.k) is not int or self.k < 1:
            raise PlanError("the k of marginals must be a whole number of at least 1, such as Marginals(k=2)")
        if self.multipliers is not None:
            object.__setattr__(self, "multipliers", tuple(self.multipliers))

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "marginals"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        return f"every table over {self.k} attribute{'s' if self.k > 1 else ''}"

    def operator(self, schema: Schema) -> MarginalsOperator:
        """Return the tables' sums; without multipliers, those that suit the tables' own cells."""
        if self.k > len(schema):
            raise PlanError(f"marginals over {self.k} attributes do not exist; the schema has {len(schema)}")
        require_few_tables(len(schema), self.k)
        if self.multipliers is None:
            return self._best(schema, *_own_cells(schema, self.k)).operator(schema)
        return MarginalsOperator(schema.shape, schema.names, self.k, self.multipliers)

    def resolve(self, schema: Schema, workload: Workload) -> "Marginals":
        """Return the strategy with its multipliers chosen for a workload."""
        if self.multipliers is not None or self.k > len(schema):
            return self
        lengths, times = np.unique(np.maximum(workload.high - workload.low + 1, 0), axis=0, return_counts=True)
        return self._best(schema, lengths.astype(np.float64), times / times.sum())

    def natural_workload(self, schema: Schema) -> Workload:
        """Return the questions it is made for: the cells of its tables, or a fixed random sample of them."""
        k = min(self.k, len(schema))
        sizes = [prod(schema.shape[axis] for axis in table) for table in combinations(range(len(schema)), k)]
        if sum(sizes) <= MOST_QUERIES_LISTED:
            return Workload.marginals(schema, k)
        generator = np.random.default_rng(0)
        shape = np.array(schema.shape)
        tables = np.array(list(combinations(range(len(schema)), k)))
        drawn = tables[generator.choice(len(tables), QUERIES_DRAWN, p=np.array(sizes) / sum(sizes))]
        low, high = np.zeros((QUERIES_DRAWN, len(shape)), dtype=np.int64), np.tile(shape - 1, (QUERIES_DRAWN, 1))
        cells = generator.integers(0, shape[drawn])
        np.put_along_axis(low, drawn, cells, axis=1)
        np.put_along_axis(high, drawn, cells, axis=1)
        return Workload.ranges(schema, low, high)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {
            "name": self.name,
            "k": self.k,
            "multipliers": None if self.multipliers is None else list(self.multipliers),
        }

    def _best(self, schema: Schema, lengths: Floats, weights: Floats) -> "Marginals":
        """Minimise (Σ m)² Σ_R c_R / λ_R(m), where c_R is the queries' mean squared norm on component R."""
        start = MarginalsOperator(schema.shape, schema.names, self.k, _ones(schema, self.k))
        gains = component_eigenvalues(schema.shape, start.tables, start.components)
        norms = np.array(
            [weights @ component_norms(schema.shape, [part], lengths, np.ones(1)) for part in start.components]
        )

        def error_of(theta: Floats) -> tuple[float, Floats]:
            eigenvalues = gains @ np.square(theta)
            slopes = -(norms / np.square(eigenvalues)) @ gains * 2 * theta
            return float((norms / eigenvalues).sum()), slopes

        theta, _ = balance_weights(error_of, np.ones(len(start.tables)))
        return replace(self, multipliers=whole_multipliers(theta, lambda tried: error_of(tried)[0]))


def _ones(schema: Schema, k: int) -> tuple[int, ...]:
    return (1,) * sum(1 for _ in combinations(range(len(schema)), k))


def _own_cells(schema: Schema, k: int) -> tuple[Floats, Floats]:
    """Return one cell of each table, with the share of the tables' cells that it stands for."""
    lengths, cells = [], []
    for table in combinations(range(len(schema)), k):
        lengths.append([1.0 if axis in table else float(size) for axis, size in enumerate(schema.shape)])
        cells.append(float(prod(schema.shape[axis] for axis in table)))
    return np.array(lengths), np.array(cells) / sum(cells)
