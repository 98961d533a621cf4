"""Which tables are worth measuring after a first look at every attribute: from published values only.

A table over k attributes tells something where its noise is well below its counts. So each is measured as finely as
leaves an average cell LEAST_ROWS standard deviations of its noise: with N rows and noise σ in about N / (4 σ) cells.
Groups of an attribute hold about equally many rows by the first look: neighbouring values of an ordinal attribute,
and the rarest values of a nominal one together. Tables over three attributes are measured where each attribute can
have LEAST_GROUPS groups. Whole cells, where the cube is small, tell what no table of few attributes shows: a little of
the budget suffices to notice it, and all of it is spent on them where they are full
(docs/decisions/0020-many-attributes.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt, prod, sqrt

import numpy as np

from veilcube.operators import GroupedTablesOperator
from veilcube.planner.design import Family
from veilcube.schema import Ordinal, Schema
from veilcube.system import Floats, Integers

# The multipliers of all tables of the second step add up to this, or their squares to its square.
UNITS = 2**16
LEAST_ROWS = 4.0
LEAST_GROUPS = 4
# Into how many groups attributes are cut: few numbers, so that tables share groupings.
LADDER = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)
# And into how many at most, in tables over two and over three attributes: no table is larger, however many rows.
FINEST = {2: LADDER[-1], 3: 32}
MOST_CELLS = 2**18
# Of longer attributes a model joins values, so that it could not read whole cells.
LONGEST_OF_CELLS = 512
MOST_TRIPLES = 1_000
OF_TRIPLES = 0.35
TO_NOTICE, WHERE_FULL = 0.1, 0.5
# Rows that an average cell holds at least if cells are measured alone.
LEAST_MEAN_OF_CELLS = 0.25
# Whole cells of larger cubes are not measured alone, however full.
MOST_CELLS_ALONE = 2**22
# Counts are whole: less noise than this is none.
LEAST_STDDEV = 1e-3


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What the first step told: the noisy count of every value of every attribute, and of all rows."""

    counts: tuple[Floats, ...]
    rows: float

    @classmethod
    def of(cls, operator: GroupedTablesOperator, values: Integers) -> "FirstLook":
        """Read the first step. The number of rows is taken from all tables, by the precision of their sums."""
        counts: dict[int, Floats] = {}
        sums, precisions = [], []
        for table, times, part in zip(operator.tables, operator.multipliers, operator.parts(values), strict=True):
            axis = operator.groupings[table[0]].axis
            if part.size == operator.cell_shape[axis]:
                counts[axis] = part.astype(np.float64) / times
            sums.append(float(part.sum()) / times)
            precisions.append(times**2 / part.size)
        return cls(tuple(counts[axis] for axis in sorted(counts)), float(np.average(sums, weights=precisions)))


@dataclass(frozen=True)
class Order:
    """Tables over the same number of attributes, and the share of the step's budget that they have together.

    The table of ``is_whole`` leaves every value on its own.
    """

    tables: tuple[tuple[int, ...], ...]
    share: float
    is_whole: bool = False

    def weight(self, family: Family) -> float:
        """Return the multiplier of each table, in units of all that there is: noise is inversely proportional."""
        each = self.share / max(len(self.tables), 1)
        return each if family == "laplace" else sqrt(each)


def choose_tables(schema: Schema, look: FirstLook, stddev: float, family: Family) -> GroupedTablesOperator:
    """Return the tables of the second step, whose numbers have noise of this standard deviation."""
    # A table with all of the budget would be multiplied by UNITS.
    rows, stddev = max(look.rows, 1.0), max(stddev, LEAST_STDDEV) / UNITS
    labelled: dict[tuple[int, int], tuple[int, Integers]] = {}
    numbers: dict[tuple[int, int], int] = {}
    tables, weights = [], []
    for order in _orders(schema, rows, stddev, family):
        weight = order.weight(family)
        for axes in order.tables:
            cells = rows / (LEAST_ROWS * stddev / weight)
            groups = schema.shape if order.is_whole else _groups_of(schema, axes, cells)
            keys = [(axis, groups[axis]) for axis in axes]
            for axis, many in keys:
                if (axis, many) not in numbers:
                    numbers[axis, many] = len(numbers)
                    labelled[axis, many] = (axis, group_values(schema, axis, look.counts[axis], many))
            tables.append(tuple(numbers[key] for key in keys))
            weights.append(weight)
    return GroupedTablesOperator.of(
        schema.shape, list(labelled.values()), tables, whole_multipliers_of(np.array(weights), family)
    )


def told_apart(schema: Schema) -> tuple[int, ...]:
    """Return the attributes with more than one value; the first one if there is none."""
    return tuple(axis for axis, size in enumerate(schema.shape) if size > 1) or (0,)


def looks_at_rows(schema: Schema) -> bool:
    """Whether all rows are counted before anything else, to see if cells alone are worth it: of cubes not too large.

    Where cells are known to be impossible, a model tells more than all cells on their own.
    """
    return schema.cells <= MOST_CELLS_ALONE and len(told_apart(schema)) > 1 and not schema.impossible


def are_cells_full(schema: Schema, rows: float, variance: float) -> bool:
    """Whether the spread of the cells' counts, as of any counts of rows, is beyond that of noise on each.

    Where most cells hold nobody, tables of few attributes tell more, however little noise there is.
    """
    return rows >= schema.cells * max(variance, LEAST_MEAN_OF_CELLS)


def has_cells(schema: Schema) -> bool:
    """Whether whole cells are measured: of small cubes without long attributes, and of single attributes."""
    is_small = schema.cells <= MOST_CELLS and max(schema.shape) <= LONGEST_OF_CELLS
    return is_small or len(told_apart(schema)) < 2


def _orders(schema: Schema, rows: float, stddev: float, family: Family) -> list[Order]:
    """Return the tables to measure by their number of attributes, with their shares of the budget."""
    axes = told_apart(schema)
    found: list[Order] = []
    left, full = 1.0, 0.0
    if has_cells(schema):
        # Cells are full where the spread of their counts, as of any counts of rows, is beyond that of noise.
        full = rows / schema.cells / stddev**2
        whole = Order((axes,), _share_of_cells(full) if len(axes) > 1 else 1.0, is_whole=True)
        found, left = [whole], 1.0 - whole.share
    triples = Order(tuple(combinations(axes, 3)), left * OF_TRIPLES)
    if 0 < len(triples.tables) <= MOST_TRIPLES and full < 1.0:
        cells = rows / (LEAST_ROWS * stddev / triples.weight(family))
        if cells >= LEAST_GROUPS**3:
            found.append(triples)
            left -= triples.share
    if len(axes) > 1:
        found.append(Order(tuple(combinations(axes, 2)), left))
    return found


def _share_of_cells(full: float) -> float:
    """Return the share of the budget for whole cells, by how far the spread of their counts is beyond that of noise.

    Cells that are very full are measured alone, as nothing else tells as much; from empty ones only what no table of
    few attributes shows is to be noticed. Something is always left for the other tables.
    """
    if full < 1.0:
        return TO_NOTICE + (WHERE_FULL - TO_NOTICE) * full**2
    return 1.0 - max((1.0 - WHERE_FULL) / full, 1.0 / UNITS)


def _groups_of(schema: Schema, axes: Sequence[int], cells: float) -> dict[int, int]:
    """Return into how many groups each attribute of a table is cut, for a table of about so many cells."""
    allowed = [most for most in LADDER if most <= FINEST[len(axes)]]
    fitting = [most for most in allowed if prod(min(schema.shape[axis], most) for axis in axes) <= cells]
    most = max(fitting, default=LADDER[0])
    return {axis: min(schema.shape[axis], most) for axis in axes}


def group_values(schema: Schema, axis: int, counts: Floats, many: int) -> Integers:
    """Return the group of each value of an attribute, so that groups hold about equally many rows.

    Groups of an ordinal attribute are runs of values; those of a nominal one are runs of values by falling counts.
    """
    size = schema.shape[axis]
    if many >= size:
        return np.arange(size)
    attribute = schema.attributes[axis]
    is_ordinal = isinstance(attribute, Ordinal)
    order = np.arange(size) if is_ordinal else np.argsort(-counts, kind="stable")
    labels = np.empty(size, dtype=np.int64)
    labels[order] = _even_runs(np.maximum(counts[order], 0.0), many)
    return labels


def _even_runs(counts: Floats, many: int) -> Integers:
    """Return the run of each value, for ``many`` runs that hold about equally many rows, each value in one of them."""
    counts = counts + max(float(counts.sum()), 1.0) * 1e-6 / counts.size
    ends = np.cumsum(counts)
    labels = np.minimum((ends - counts / 2) / ends[-1] * many, many - 1).astype(np.int64)
    # Full values leave groups empty: their neighbours are told apart instead, as far as there are any.
    steps = np.minimum(np.diff(labels, prepend=labels[:1]), 1)
    runs = np.cumsum(steps)
    spare = many - 1 - int(runs[-1])
    if spare > 0:
        joined = np.flatnonzero(steps[1:] == 0) + 1
        # Between the fullest neighbours first.
        gain = np.minimum(counts[joined - 1], counts[joined])
        steps[joined[np.argsort(-gain, kind="stable")[:spare]]] = 1
        runs = np.cumsum(steps)
    return runs.astype(np.int64)


def whole_multipliers_of(weights: Floats, family: Family) -> tuple[int, ...]:
    """Return whole multipliers in proportion to weights, of the sum UNITS, or whose squares add up to at most UNITS².

    >>> whole_multipliers_of(np.array([1.0, 1.0, 2.0]), "laplace")
    (16384, 16384, 32768)
    """
    norm = float(weights.sum()) if family == "laplace" else sqrt(float(np.square(weights).sum()))
    whole = np.maximum(np.floor(weights / norm * UNITS).astype(np.int64), 1)
    largest = int(np.argmax(whole))
    if family == "laplace":
        whole[largest] += UNITS - int(whole.sum())
    else:
        others = int(np.square(whole).sum()) - int(whole[largest]) ** 2
        whole[largest] = min(int(whole[largest]), isqrt(UNITS**2 - others))
    return tuple(int(times) for times in whole)
