"""The design of grouped tables: what is measured step by step, and the error that is planned with.

If asked for, and the cube is not too large, all rows are counted first, for a hundredth of the budget: if there are so
many that cells are full, every cell is counted on its own with the rest, and nothing else. Otherwise one step counts
every attribute on its own, long ones at several resolutions, and the next the tables over several attributes that the
one before suggests (``choosing``). Shares of the budget follow from public facts; how the last step divides its share,
and which groups it counts, from what was published.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, isqrt
from typing import ClassVar

import numpy as np

from veilcube.errors import PlanError
from veilcube.laws import Noise
from veilcube.operators import (
    GroupedTablesOperator,
    Grouping,
    IdentityOperator,
    LinearAnswers,
    Moments,
    NeighbourName,
    OperatorDefaults,
)
from veilcube.planner.design import (
    Family,
    LeastSquaresErrors,
    Parts,
    Planned,
    Spending,
)
from veilcube.planner.grouped.choosing import (
    FINEST,
    LADDER,
    MOST_TRIPLES,
    UNITS,
    has_cells,
    looks_at_rows,
    told_apart,
)
from veilcube.privacy import Event, ParallelEvent, SequentialEvent
from veilcube.schema import Region, Schema
from veilcube.system import Floats, Integers, require_cells

# The share of the first step, in thousandths: so much for each attribute, within bounds. Many attributes have so many
# tables that their own counts tell more of each; of few, the tables tell it.
PERMILLE_AN_ATTRIBUTE, LEAST_PERMILLE, MOST_PERMILLE = 20, 200, 400
OF_ALL_ROWS = 2
# What counting all rows beforehand may cost.
SHARE_OF_ROWS = Fraction(1, 100)
# So many have 20 pairs and triples, which either family of noise serves about as well; more are served better by
# Gaussian noise, unless there are so few cells that they will probably be full.
MOST_ATTRIBUTES_OF_LAPLACE, MOST_CELLS_OF_LAPLACE = 5, 2**14
# Attributes longer than the first are also counted in runs of values, so that ranges do not sum up many noises: of 8
# values, or from the second length on of 16, 256 and so on.
LONG, VERY_LONG = 32, 128
RUN, RUN_OF_VERY_LONG = 8, 16
WAYS_OUT = "use coarser bins or fewer attributes"
# Into how many groups the error is planned with, for tables over 2, 3 and more attributes.
PLANNED_GROUPS = {1: 64, 2: 16, 3: 8}
# What is planned for the tables of each number of attributes in the second step, cells last.
PLANNED_SHARES = {2: 0.55, 3: 0.3, 0: 0.15}


def first_share(attributes: int) -> Fraction:
    """Return the share of the budget that the counts of every attribute on its own have."""
    return Fraction(min(max(PERMILLE_AN_ATTRIBUTE * attributes, LEAST_PERMILLE), MOST_PERMILLE), 1000)


def first_tables(schema: Schema) -> GroupedTablesOperator:
    """Return what the first step counts: all rows, every value of every attribute, and runs of values of long ones.

    Every answer is a share of all rows, so these are counted with a larger multiplier.
    """
    widths = [[1, *_widths_of_runs(size)] for size in schema.shape]
    labels = sum(size * len(own) for size, own in zip(schema.shape, widths, strict=True))
    require_cells(labels, 16, "counting every attribute on its own, at several resolutions,", WAYS_OUT)
    labelled = [_everybody(schema)] + [
        (axis, np.arange(size) // width) for axis, size in enumerate(schema.shape) for width in widths[axis]
    ]
    tables = [(number,) for number in range(len(labelled))]
    return GroupedTablesOperator.of(schema.shape, labelled, tables, [OF_ALL_ROWS] + [1] * (len(tables) - 1))


def _everybody(schema: Schema) -> tuple[int, Integers]:
    """Return the grouping of the first attribute into one group."""
    return 0, np.zeros(schema.shape[0], dtype=np.int64)


def _widths_of_runs(size: int) -> Iterator[int]:
    run = RUN if size <= VERY_LONG else RUN_OF_VERY_LONG
    width = run
    while size > LONG and size // width >= run // 2:
        yield width
        width *= run


@dataclass(frozen=True)
class GroupedDesign(LeastSquaresErrors):
    """Every attribute first, with a share of the budget, then the tables that these counts suggest."""

    schema: Schema
    full_cells: bool = False
    # By how much answers may be counted on to be better than planned (docs/benchmarks.md, many attributes).
    gain: ClassVar[float] = 3.0
    foreseen: ClassVar[str] = (
        "planned by the noise of all groups that a question meets, which a model then reads together"
    )

    @property
    def rows_share(self) -> Fraction:
        """The share of the budget for counting all rows beforehand: none where cells are never counted alone."""
        return SHARE_OF_ROWS if self.full_cells and looks_at_rows(self.schema) else Fraction(0)

    @property
    def suited(self) -> Family | None:
        """Laplace noise where tables are few or cells are probably full: on single counts it is several times less."""
        is_narrow = len(told_apart(self.schema)) <= MOST_ATTRIBUTES_OF_LAPLACE
        return "laplace" if self.rows_share and (is_narrow or self.schema.cells <= MOST_CELLS_OF_LAPLACE) else None

    @property
    def share(self) -> Fraction:
        """The share of the budget that the counts of single attributes have."""
        return (1 - self.rows_share) * first_share(len(self.schema))

    @property
    def tables_share(self) -> Fraction:
        """The share of the tables over several attributes: all that is left."""
        return 1 - self.rows_share - self.share

    @cached_property
    def rows(self) -> GroupedTablesOperator:
        """The number of all rows, as a table of one group."""
        return GroupedTablesOperator.of(self.schema.shape, [_everybody(self.schema)], [(0,)], [1])

    @cached_property
    def cells(self) -> IdentityOperator:
        """Every cell on its own."""
        return IdentityOperator(self.schema.shape, self.schema.names)

    @cached_property
    def first(self) -> GroupedTablesOperator:
        """What is counted of single attributes."""
        return first_tables(self.schema)

    def laws(self, plan: Planned) -> tuple[Noise, Noise]:
        """Return the noise of single attributes and of the tables over several."""
        first, second = self._spendings(plan)
        return first.law(self.share), second.law(self.tables_share)

    def laws_of_cells(self, plan: Planned) -> tuple[Noise, Noise]:
        """Return the noise of the number of all rows, and of cells that are counted alone after it."""
        spending = plan.step_spending
        return spending.law(self.rows_share), spending.law(1 - self.rows_share)

    def event(self, plan: Planned) -> Event:
        """Return what is done: steps of which each is chosen from the output of those before.

        The way that is not taken is as if done to no rows at all, so the two are parallel.
        """
        first, second = self._spendings(plan)
        tables = first.event(self.share), second.event(self.tables_share)
        if not self.rows_share:
            return SequentialEvent(tables)
        rows, cells = (plan.step_spending.event(share) for share in (self.rows_share, 1 - self.rows_share))
        return SequentialEvent((rows, ParallelEvent((cells, SequentialEvent(tables)))))

    def _spendings(self, plan: Planned) -> tuple[Spending, Spending]:
        summed, squared = self.first.sensitivity("add-remove"), self.first.sensitivity_l2_squared("add-remove")
        return plan.step_spending.of_tables(summed, squared), plan.step_spending.of_tables(UNITS, UNITS**2)

    def measured(self, plan: Planned) -> Parts:
        """Return the largest measurements that may be published."""
        first, second = self.laws(plan)
        tables: Parts = [(self.first, first), (largest_tables(self.schema), second)]
        if not self.rows_share:
            return tables
        of_rows, of_cells = self.laws_of_cells(plan)
        return [(self.rows, of_rows), (self.cells, of_cells), *tables]


def largest_tables(schema: Schema) -> GroupedTablesOperator:
    """Return more than the second step ever counts: all that it chooses among, as finely as it may be.

    Its multipliers are more than the squares of the whole budget, divided evenly: in sum no less for either noise. Its
    groupings are all that tables may have, for the labels that are kept of each.
    """
    sizes, axes = schema.shape, told_apart(schema)
    tables = list(combinations(axes, 2)) + (list(combinations(axes, 3)) if comb(len(axes), 3) <= MOST_TRIPLES else [])
    finest = [[(axis, min(sizes[axis], FINEST[len(table)])) for axis in table] for table in tables]
    if has_cells(schema):
        finest.append([(axis, sizes[axis]) for axis in axes])
    steps = [(axis, many) for axis, size in enumerate(sizes) for many in (*LADDER, size) if many <= size]
    numbers = {step: number for number, step in enumerate(dict.fromkeys(steps))}
    each = isqrt(UNITS**2 // len(finest)) + 1
    return GroupedTablesOperator(
        sizes,
        tuple(Grouping(*step) for step in numbers),
        tuple(tuple(numbers[step] for step in table) for table in finest),
        (each,) * len(finest),
    )


@dataclass(frozen=True)
class PlannedTables(OperatorDefaults):
    """Both steps as one map, for the error that is planned: each question is answered by the groups that it meets.

    A question that narrows k attributes is taken to sum up the groups of their table, 64, 16 or 8 to an attribute, that
    it meets. That is more noise than the answers will have, which read all tables together, but the groups that are
    measured, and what is not seen of single values, are known only with the data.
    """

    cell_shape: tuple[int, ...]
    multipliers: tuple[tuple[int, int], ...]  # by the number of attributes; 0 stands for the cells
    dimensions: tuple[str, ...] = ("row",)

    @classmethod
    def of(cls, schema: Schema, family: Family) -> "PlannedTables":
        """Return the map with the multipliers that are planned for a family of noise."""
        attributes, share = len(schema), float(first_share(len(schema)))
        kept = dict(PLANNED_SHARES)
        if comb(attributes, 3) > MOST_TRIPLES or attributes < 3:
            del kept[3]
        if not has_cells(schema):
            del kept[0]
        if attributes < 2:
            del kept[2]
        whole = sum(kept.values())
        shares = {1: share} | {order: (1 - share) * part / whole for order, part in kept.items()}
        counts = {order: comb(attributes, order) for order in shares} | {0: 1}
        each = {order: part / counts[order] for order, part in shares.items()}
        weights = each if family == "laplace" else {order: part**0.5 for order, part in each.items()}
        return cls(schema.shape, tuple((order, max(round(UNITS * part), 1)) for order, part in weights.items()))

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """As many rows as there are values of attributes; tables come with the data."""
        return (sum(self.cell_shape),)

    @property
    def words_to_apply(self) -> int:
        """Nothing is applied."""
        return 0

    @property
    def answers(self) -> LinearAnswers:
        """Itself: the noise of an answer is told in rows."""
        return self

    @cached_property
    def _of_order(self) -> dict[int, int]:
        return dict(self.multipliers)

    def apply(self, cells: Integers) -> Integers:
        """Refuse: errors are planned with it, and nothing is measured."""
        raise _only_planned()

    def adjoint(self, measurements: Floats) -> Floats:
        """Refuse: errors are planned with it, and nothing is measured."""
        raise _only_planned()

    def solve(self, measurements: Integers) -> Floats:
        """Refuse: errors are planned with it, and nothing is measured."""
        raise _only_planned()

    def noise_weights(self, query: Floats) -> Floats:
        """Refuse: which groups answer a query is known only with the data."""
        raise _only_planned()

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return the sum of all multipliers; twice that for an exchanged row."""
        summed = sum(times * self._tables(order) for order, times in self.multipliers)
        return summed if neighbours == "add-remove" else 2 * summed

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the same for the squares of the multipliers."""
        summed = sum(times**2 * self._tables(order) for order, times in self.multipliers)
        return summed if neighbours == "add-remove" else 2 * summed

    def _tables(self, order: int) -> int:
        return comb(len(self.cell_shape), order)

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Return the variance of the answer to each block, in units of the noise's."""
        return self.moments_of_rectangles(low, high).second

    def variance_of_region(self, region: Region) -> float:
        """Return the variance of the answer to a region, its boxes one by one."""
        return float(self.moments_of_region(region).second)

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of the noise weights of each block."""
        return self._moments(np.maximum(high - low + 1, 0).astype(np.float64))

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of a region, its boxes one by one."""
        lengths = np.array([box.sizes for box in region.boxes], dtype=np.float64).reshape(-1, len(self.cell_shape))
        each = self._moments(lengths)
        return Moments(*(np.asarray(powers.sum()) for powers in (each.second, each.fourth, each.sixth)))

    def _moments(self, lengths: Floats) -> Moments:
        sizes = np.array(self.cell_shape, dtype=np.float64)
        is_narrowed = lengths < sizes
        attributes = np.maximum(is_narrowed.sum(axis=1), 1)
        largest = max(order for order, _ in self.multipliers)
        second, fourth, sixth = np.full((3, len(lengths)), np.inf)
        for order, times in self.multipliers:
            if order:
                groups = np.minimum(sizes, PLANNED_GROUPS[order])
                met = np.minimum(np.minimum(lengths * groups / sizes + 1, groups), lengths)
                met = np.where(is_narrowed, met, 1.0).prod(axis=1)
                # More attributes than any table has: about as the part that a table has of them.
                is_told = (attributes == order) | ((attributes > order) & (order == largest))
                noises = np.where(is_told, met ** (order / np.maximum(attributes, order)), np.inf)
            else:  # there are few cells, so that their number is no obstacle
                noises = lengths.prod(axis=1)
            is_better = noises / float(times) ** 2 < second
            for powers, power in ((second, 2), (fourth, 4), (sixth, 6)):
                powers[is_better] = noises[is_better] / float(times) ** power
        return Moments(second, fourth, sixth)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"kind": "planned tables", "multipliers": [list(pair) for pair in self.multipliers]}


def _only_planned() -> PlanError:
    return PlanError("the tables of this strategy are chosen when it is carried out; release the table first")
