"""How wrong the model's answers are: the whole release is played again on tables whose truth is known.

A table of as many rows is drawn from the model, its tables are counted, noise of the release's own law is added, and a
model is fitted to them (the parametric bootstrap). What its answers then miss by is what the release's own answers miss
by, if the table is like the model. Whether it is, is told by what is left unexplained in the measured tables: more than
in the replayed ones means that the model misses something, which widens the intervals (``errors``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import project_onto_simplex
from veilcube.analyst.estimate.mixture.cells import CellSums
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import Observations
from veilcube.analyst.estimate.mixture.possible import are_possible
from veilcube.schema import Region
from veilcube.system import Floats, Integers

# More rows than this are drawn as so many, each for several: their own spread is then too large, never too small.
MOST_ROWS = 2**18
# In standard deviations of the noise of a pair's group: measured groups hold four of these, and rows may lie within
# them less evenly than the model has it, which no table tells. Values of single attributes were counted, so clumps are
# weighed for these to have the model's counts; that takes a few rounds.
CLUMP, ROUNDS_OF_WEIGHING = 0.5, 5


class Answering(Protocol):
    """Whatever gives expected counts: a model, corrected cells, or rows."""

    def blocks(self, low: Integers, high: Integers) -> Floats:
        """Return the count of each block, inclusive indices (questions, attributes)."""

    def groups(self, region: Region, axes: Sequence[int]) -> Floats:
        """Return the counts inside a region for every combination of values of some attributes."""


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows that were drawn, each with how many rows it stands for."""

    shape: tuple[int, ...]
    columns: Sequence[Integers]
    weights: Floats

    def blocks(self, low: Integers, high: Integers) -> Floats:
        """Return how many rows lie in each block."""
        found = np.empty(len(low))
        last = np.array(self.shape) - 1
        for row, (begin, end) in enumerate(zip(low, high, strict=True)):
            inside: NDArray[np.bool_] | None = None
            for axis in np.flatnonzero((begin > 0) | (end < last)).tolist():
                column = self.columns[axis]
                held = (column >= begin[axis]) & (column <= end[axis])
                inside = held if inside is None else inside & held
            found[row] = self.weights.sum() if inside is None else self.weights[inside].sum()
        return found

    def groups(self, region: Region, axes: Sequence[int]) -> Floats:
        """Return how many rows inside a region have each combination of values of some attributes."""
        shape = tuple(self.shape[axis] for axis in axes)
        found = np.zeros(int(np.prod(shape, dtype=np.int64)))
        for box in region.boxes:
            inside = np.ones(len(self.columns[0]), dtype=np.bool_)
            for axis, mask in enumerate(box.axes):
                if mask is not None:
                    inside &= mask[self.columns[axis]]
            places = np.ravel_multi_index([self.columns[axis][inside] for axis in axes], shape) if axes else ()
            weights = self.weights[inside]
            found += np.bincount(places, weights, minlength=found.size) if axes else weights.sum()
        return found.reshape(shape)


@dataclass(frozen=True, eq=False)
class Replicate:
    """One replay: what was drawn, and what was fitted to its noisy tables."""

    truth: Answering
    fitted: Answering
    observed: Observations
    exact: list[Floats]
    model: Mixture


Refit = Callable[[Observations, int], tuple[Mixture, Answering]]


def replay(
    observed: Observations, model: Mixture, cells: CellSums | None, refit: Refit, generator: np.random.Generator
) -> Replicate:
    """Draw a table from what was estimated, measure it again, and fit a model to that."""
    rows = max(round(observed.rows), 1)
    clump = rows_of_a_clump(observed)
    drawn_rows = max(round(rows / clump), 1)
    seed = int(generator.integers(2**31))
    if cells is not None and observed.cells is not None:
        # Cut at 0 alone, the noise of many small cells would count as rows and leave few for the full ones.
        shares = cells.values.ravel() / rows
        project_onto_simplex(shares, 0, shares.size, 1.0)
        shares = (shares / shares.sum()).reshape(cells.values.shape)
        counts = generator.multinomial(drawn_rows, shares.ravel()).reshape(shares.shape) * clump
        counts = _weighed_cells(counts, rows * shares) if clump > 1 else counts
        drawn: Answering = CellSums(counts)
        tables = [_table_of_cells(counts, table.axes, table.groups) for table in observed.tables]
        of_cells = _noisy(counts.reshape(observed.cells.counts.shape), observed.cells.variance, observed, generator)
    else:
        number = min(drawn_rows, MOST_ROWS)
        columns = model.draw(number, generator)
        values = [axis.values_of(column, generator) for axis, column in zip(model.axes, columns, strict=True)]
        kept = are_possible(values, observed.impossible)
        columns, values, number = [one[kept] for one in columns], [one[kept] for one in values], max(int(kept.sum()), 1)
        weights = np.full(len(columns[0]), rows / number)
        if clump > 1 and weights.size:
            weights = _weighed_rows(columns, weights, [rows * (model.weights @ law) for law in model.laws])
        drawn, of_cells = DrawnRows(observed.shape, values, weights), None
        tables = [
            _table_of_rows(columns, weights, table.axes, table.groups, table.counts.shape) for table in observed.tables
        ]
    noisy = [
        _noisy(table, one.variance, observed, generator) for table, one in zip(tables, observed.tables, strict=True)
    ]
    again = observed.with_counts(noisy, of_cells)
    refitted, answering = refit(again, seed)
    return Replicate(drawn, answering, again, tables, refitted)


def rows_of_a_clump(observed: Observations) -> float:
    """Return how many rows are drawn as one: as large a clump as could well hide in the noise of a pair's group."""
    stddevs = [table.variance**0.5 for table in observed.tables if len(table.axes) == 2]
    return max(1.0, CLUMP * min(stddevs, default=0.0))


def _noisy(counts: Floats, variance: float, observed: Observations, generator: np.random.Generator) -> Floats:
    stddev = np.sqrt(variance)
    if observed.family == "laplace":
        return np.asarray(counts + generator.laplace(0.0, stddev / np.sqrt(2.0), counts.shape))
    return np.asarray(counts + generator.normal(0.0, stddev, counts.shape))


def _weighed_rows(columns: Sequence[Integers], weights: Floats, wanted: Sequence[Floats]) -> Floats:
    """Return weights of rows by which every attribute has the wanted counts, as nearly as a few rounds bring them."""
    for _ in range(ROUNDS_OF_WEIGHING):
        for column, counts in zip(columns, wanted, strict=True):
            found = np.bincount(column, weights, minlength=counts.size)
            weights = weights * np.divide(counts, found, out=np.zeros(counts.size), where=found > 0)[column]
    return np.asarray(weights * (wanted[0].sum() / weights.sum()))


def _weighed_cells(cells: Floats, wanted: Floats) -> Floats:
    """Return cells scaled so that every attribute has the counts that it has in the wanted ones, nearly."""
    for _ in range(ROUNDS_OF_WEIGHING):
        for axis in range(cells.ndim):
            others = tuple(other for other in range(cells.ndim) if other != axis)
            counts, found = wanted.sum(axis=others, keepdims=True), cells.sum(axis=others, keepdims=True)
            cells = cells * np.divide(counts, found, out=np.zeros(counts.shape), where=found > 0)
    return np.asarray(cells * (wanted.sum() / cells.sum()), dtype=np.float64)


def _table_of_rows(
    columns: Sequence[Integers],
    weights: Floats,
    axes: Sequence[int],
    groups: Sequence[Integers],
    shape: tuple[int, ...],
) -> Floats:
    places = np.ravel_multi_index([labels[columns[axis]] for axis, labels in zip(axes, groups, strict=True)], shape)
    return np.bincount(places, weights, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def _table_of_cells(counts: Floats, axes: Sequence[int], groups: Sequence[Integers]) -> Floats:
    found: Floats = counts.sum(axis=tuple(axis for axis in range(counts.ndim) if axis not in axes))
    for place, labels in enumerate(groups):
        ahead = np.moveaxis(found, place, 0)
        joined = np.zeros((int(labels.max()) + 1, *ahead.shape[1:]))
        np.add.at(joined, labels, ahead)
        found = np.moveaxis(joined, 0, place)
    return found
