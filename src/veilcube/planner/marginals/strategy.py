"""Marginals as a strategy: tables over few attributes, the budget divided among them for the least error."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError, QueryError
from veilcube.operators import Axes, MarginalsOperator, block_norms, require_few_tables, table_precisions
from veilcube.planner.design import Family, LinearDesign, MeasuredOnce, balance_weights, price_of, whole_multipliers
from veilcube.query import Workload
from veilcube.schema import Schema
from veilcube.system import Floats, read_whole

MOST_QUERIES_LISTED = 100_000
QUERIES_DRAWN = 20_000


@dataclass(frozen=True)
class Marginals(MeasuredOnce):
    """Measure every table over ``k`` attributes, or the ``tables`` that are named: for questions about few attributes.

    Only questions about attributes that stand together in a table are answered from it. ``multipliers`` divide the
    budget among the tables, in their order (that of ``itertools.combinations`` if they are not named); by default so
    that a workload, or the tables' own cells, have the least error. A table is counted straight into these tables, so
    the schema may have any number of cells.

    >>> from veilcube.schema import Ordinal
    >>> Marginals(k=1).operator(Schema([Ordinal("age", 1, 50), Ordinal("floor", 1, 2)])).multipliers
    (3, 1)
    """

    k: int = 2
    multipliers: tuple[int, ...] | None = None
    tables: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        if type(self.k) is not int or self.k < 1:
            raise PlanError("the k of marginals must be a whole number of at least 1, such as Marginals(k=2)")
        if self.multipliers is not None:
            if isinstance(self.multipliers, str | bytes) or not isinstance(self.multipliers, Sequence):
                raise PlanError("the multipliers of marginals are a list of whole numbers, one for each table")
            whole = (read_whole(one, "a multiplier of marginals", 0, error=PlanError) for one in self.multipliers)
            object.__setattr__(self, "multipliers", tuple(whole))
        if self.tables is not None:
            object.__setattr__(self, "tables", _read_tables(self.tables))

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "marginals"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        if self.tables is not None:
            return f"{len(self.tables)} chosen table{'s' if len(self.tables) > 1 else ''}"
        return f"every table over {self.k} attribute{'s' if self.k > 1 else ''}"

    @property
    def is_fitted(self) -> bool:
        """Whether it is made for some questions: those about attributes of one table."""
        return True

    @property
    def counts_tables(self) -> bool:
        """Whether only some tables need to be counted: yes, whatever the size of the cube."""
        return True

    def design(self, schema: Schema) -> LinearDesign:
        """Return the design: only the tables need to be counted."""
        return LinearDesign(self.axes(schema))

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "tuple[Marginals, ...]":
        """Return the strategy with every choice made for a workload."""
        return (self.resolve(schema, workload, family),)

    def operator(self, schema: Schema) -> MarginalsOperator:
        """Return the tables' sums; without multipliers, those that suit the tables' own cells."""
        if self.multipliers is None:
            return self._best(schema, *_own_cells(schema, self.axes(schema)), "laplace").operator(schema)
        return self._operator(schema, self.multipliers)

    def axes(self, schema: Schema) -> tuple[Axes, ...]:
        """Return the attributes of each table, by their positions in the schema."""
        if self.tables is None:
            if self.k > len(schema):
                raise PlanError(f"marginals over {self.k} attributes do not exist; the schema has {len(schema)}")
            require_few_tables(len(schema), self.k)
            return tuple(combinations(range(len(schema)), self.k))
        try:
            return tuple(tuple(sorted(schema.axis(name) for name in table)) for table in self.tables)
        except QueryError as problem:
            raise PlanError(f"a chosen marginal does not fit the schema: {problem}") from problem

    def resolve(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "Marginals":
        """Return the strategy with its multipliers chosen for a workload, and for the price of a family of noise."""
        if self.multipliers is not None or (self.tables is None and self.k > len(schema)):
            return self
        asked = np.maximum(workload.high - workload.low + 1, 0)
        lengths, which = np.unique(asked, axis=0, return_inverse=True)
        times = np.bincount(which.ravel(), workload.weights)
        return self._best(schema, lengths.astype(np.float64), times / times.sum(), family)

    def natural_workload(self, schema: Schema) -> Workload:
        """Return the questions it is made for: the cells of its tables, or a fixed random sample of them."""
        if self.tables is None and self.k > len(schema):
            return replace(self, k=len(schema)).natural_workload(schema)
        tables = self.axes(schema)
        cells = np.array([prod(schema.shape[axis] for axis in table) for table in tables], dtype=np.float64)
        many = cells.sum() > MOST_QUERIES_LISTED
        if not many and self.tables is None:
            return Workload.marginals(schema, self.k)
        generator, shape = np.random.default_rng(0), np.array(schema.shape)
        asked = generator.multinomial(QUERIES_DRAWN, cells / cells.sum()) if many else cells.astype(np.int64)
        lows, highs = [], []
        for table, number in zip(tables, asked.tolist(), strict=True):
            sizes = tuple(schema.shape[axis] for axis in table)
            chosen = _drawn_cells(generator, sizes, number) if many else np.unravel_index(np.arange(number), sizes)
            low, high = np.zeros((number, len(shape)), dtype=np.int64), np.tile(shape - 1, (number, 1))
            low[:, table] = high[:, table] = np.stack(chosen, axis=1)
            lows.append(low)
            highs.append(high)
        return Workload.ranges(schema, np.concatenate(lows), np.concatenate(highs)).made_by("cells of tables")

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        plain: dict[str, object] = {
            "name": self.name,
            "k": self.k,
            "multipliers": None if self.multipliers is None else list(self.multipliers),
        }
        return plain if self.tables is None else plain | {"tables": [list(table) for table in self.tables]}

    def _operator(self, schema: Schema, multipliers: tuple[int, ...]) -> MarginalsOperator:
        axes = self.axes(schema)
        if self.tables is None:
            return MarginalsOperator(schema.shape, schema.names, self.k, multipliers)
        return MarginalsOperator(schema.shape, schema.names, max(map(len, axes)), multipliers, axes)

    def _best(self, schema: Schema, lengths: Floats, weights: Floats, family: Family) -> "Marginals":
        """Minimise norm(m)² Σ_R c_R / π_R(m), where c_R is the mean over the queries of that of component R."""
        price = price_of(family)
        start = self._operator(schema, (1,) * len(self.axes(schema)))
        gains = table_precisions(schema.shape, start.tables, start.components)
        norms = np.array([block_norms(schema.shape, [part], lengths)[0] @ weights for part in start.components])

        def error_of(theta: Floats) -> tuple[float, Floats]:
            precisions = gains @ np.square(theta)
            slopes = -(norms / np.square(precisions)) @ gains * 2 * theta
            return float((norms / precisions).sum()), slopes

        theta, _ = balance_weights(error_of, np.ones(len(start.tables)), price)
        return replace(self, multipliers=whole_multipliers(theta, lambda tried: error_of(tried)[0], price))


def _read_tables(tables: object) -> tuple[tuple[str, ...], ...]:
    wanted = "the tables of marginals are lists of attributes, such as [('age', 'sex'), ('job',)]"
    if isinstance(tables, str) or not isinstance(tables, Sequence):
        raise PlanError(wanted)
    if not all(isinstance(table, Sequence) and not isinstance(table, str) and table for table in tables) or not tables:
        raise PlanError(wanted)
    return tuple(tuple(table) for table in tables)


def _own_cells(schema: Schema, tables: Sequence[Axes]) -> tuple[Floats, Floats]:
    """Return one cell of each table, with the share of the tables' cells that it stands for."""
    lengths, cells = [], []
    for table in tables:
        lengths.append([1.0 if axis in table else float(size) for axis, size in enumerate(schema.shape)])
        cells.append(float(prod(schema.shape[axis] for axis in table)))
    return np.array(lengths), np.array(cells) / sum(cells)


def _drawn_cells(generator: np.random.Generator, sizes: tuple[int, ...], number: int) -> tuple[NDArray[np.int64], ...]:
    """Return cells of a table drawn at random, an array of positions for each axis; it may have more than 2^63."""
    if prod(sizes) < 2**63:
        return tuple(np.unravel_index(generator.integers(0, prod(sizes), number), sizes))
    return tuple(generator.integers(0, size, number) for size in sizes)
