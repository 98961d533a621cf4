"""The error of any question, learned from replays: by how many attributes it narrows, which ones, and how many rows.

Random conjunctions are asked of every replay, wide ones and narrow ones. The logarithm of their squared errors is
regressed on the number of attributes, on the logarithm of the answer (for each number apart) and on the attributes.
Then each stretch of predicted errors is scaled so that 95% intervals hold 95% of the errors seen, and that their mean
square is no less than it was. What is left unexplained in the measured tables beyond that of the replayed ones is taken
for error that replays do not show, and added.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from veilcube.analyst.estimate.base import Finding, PlainData
from veilcube.analyst.estimate.mixture.cells import CellSums
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import Observations, ObservedTable
from veilcube.analyst.estimate.mixture.replicates import Answering, Replicate
from veilcube.system import Floats, Integers

MOST_NARROWED = 5
QUESTIONS = 500
STRETCHES = 6
DEVIATIONS_OF_95_PERCENT = 1.96
# Part of a row that no squared error is taken to be below, and no predicted standard deviation: a 95% interval around
# no row at all holds a single one.
_LEAST_SQUARE = 0.25
_LEAST_STDDEV = 0.52
_RIDGE = 3.0
# The model is smoother than the table that it stands for, and so are the tables of the replays: the more so, the more
# attributes a question narrows, for of single ones every value was counted.
WIDENING = {1: 1.25, 2: 1.3, 3: 1.35}
# The variance of a squared deviate of Laplace noise, in squared variances; and how many standard deviations what is
# left of all cells must be beyond that of replays to count, for there are so many cells that luck looks like error.
KURTOSIS_OF_LAPLACE = 5.0
DOUBT_OF_CELLS = 1.5


@dataclass(frozen=True, eq=False)
class Kinds:
    """Questions as the error model sees them: how many attributes each narrows, which, and its expected count."""

    narrowed: Integers
    is_narrowed: Floats
    counts: Floats

    @classmethod
    def of(cls, is_narrowed: Floats, counts: Floats, rows: float) -> "Kinds":
        """Describe questions by which attributes they narrow, 1 or 0, and their counts among so many rows."""
        number = np.clip(is_narrowed.sum(axis=1).astype(np.int64), 1, MOST_NARROWED)
        return cls(number, is_narrowed, np.maximum(np.minimum(counts, rows - counts), 0.5))

    def features(self) -> Floats:
        """Return what the logarithm of the squared error is regressed on."""
        is_of = (self.narrowed[:, np.newaxis] == np.arange(1, MOST_NARROWED + 1)).astype(np.float64)
        size = np.log(self.counts)[:, np.newaxis]
        shares = self.is_narrowed / np.maximum(self.is_narrowed.sum(axis=1, keepdims=True), 1.0)
        return np.concatenate([is_of, is_of * size, is_of * np.square(size) / 10.0, shares], axis=1)


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """Standard deviations of the errors of questions, and what was found when they were learned."""

    rows: float
    stddev_of_rows: float
    weights: Floats
    borders: dict[int, Floats]
    scales: dict[int, Floats]
    misfit: dict[int, Finding]
    inflation: dict[int, float]

    def stddevs(self, is_narrowed: Floats, counts: Floats) -> Floats:
        """Return the standard deviation of the error of each question."""
        kinds = Kinds.of(is_narrowed, counts, self.rows)
        plain = np.exp(np.clip(kinds.features() @ self.weights / 2, -5.0, 40.0))
        found = np.full(len(counts), self.stddev_of_rows)
        for number in np.unique(kinds.narrowed).tolist():
            chosen = kinds.narrowed == number
            known = number if number in self.borders else max(self.borders)
            stretch = np.interp(np.log(plain[chosen]), self.borders[known], self.scales[known])
            found[chosen] = self.widening(known) * plain[chosen] * stretch
        found[is_narrowed.sum(axis=1) == 0] = self.stddev_of_rows
        # Whoever holds most rows is also wrong about the number of all.
        of_rows = np.clip(counts / self.rows, 0.0, 1.0) * self.stddev_of_rows
        return np.asarray(np.maximum(np.maximum(found, of_rows), _LEAST_STDDEV))

    def widening(self, narrowed: int) -> float:
        """Return by what errors of replays are multiplied, for questions that narrow so many attributes."""
        known = min(max(narrowed, 1), max(self.inflation))
        return WIDENING[min(known, max(WIDENING))] * sqrt(self.inflation[known])

    def portable(self) -> PlainData:
        """Return what ``stddevs`` computes with, as plain data."""
        numbers = range(1, MOST_NARROWED + 1)
        known = [number if number in self.borders else max(self.borders) for number in numbers]
        return {
            "kind": "errors",
            "rows": self.rows,
            "stddev_of_rows": self.stddev_of_rows,
            "weights": self.weights,
            "borders": [self.borders[number] for number in known],
            "scales": [self.scales[number] for number in known],
            "widening": [self.widening(number) for number in known],
            "least": _LEAST_STDDEV,
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """How well the model explains the tables over each number of attributes."""
        return tuple(self.misfit[order] for order in sorted(self.misfit))


def learn_errors(
    observed: Observations, fits: Sequence[tuple[Mixture, Answering]], replicates: Sequence[Replicate]
) -> ErrorModel:
    """Learn how wrong answers are from replays, and compare these with the release itself."""
    rows, shape = observed.rows, observed.shape
    generator = np.random.default_rng(1)
    parts: list[tuple[Kinds, Floats]] = []
    for replicate in replicates:
        low, high, is_narrowed = _conjunctions(shape, generator)
        counts = replicate.fitted.blocks(low, high)
        parts.append((Kinds.of(is_narrowed, counts, rows), counts - replicate.truth.blocks(low, high)))
    kinds = Kinds(
        np.concatenate([kind.narrowed for kind, _ in parts]),
        np.concatenate([kind.is_narrowed for kind, _ in parts]),
        np.concatenate([kind.counts for kind, _ in parts]),
    )
    errors = np.concatenate([error for _, error in parts])
    weights, borders, scales = _regressed(kinds, errors)
    misfit, inflation = _compared(observed, fits, replicates, max(borders))
    precision = sum(1.0 / (table.variance * table.counts.size) for table in observed.tables)
    return ErrorModel(rows, float(precision**-0.5), weights, borders, scales, misfit, inflation)


def _conjunctions(shape: Sequence[int], generator: np.random.Generator) -> tuple[Integers, Integers, Floats]:
    """Return random conjunctions on one, two and more attributes: half of them of any width, half narrow."""
    several = [axis for axis, size in enumerate(shape) if size > 1] or [0]
    most = min(len(several), MOST_NARROWED)
    last = np.array(shape, dtype=np.int64) - 1
    low, high = np.zeros((most * QUESTIONS, len(shape)), dtype=np.int64), np.tile(last, (most * QUESTIONS, 1))
    is_narrowed = np.zeros(low.shape)
    for row in range(len(low)):
        for axis in generator.choice(several, 1 + row // QUESTIONS, replace=False):
            ends = np.sort(generator.integers(0, shape[axis], 2))
            if row % 2:
                ends[1] = min(ends[0] + generator.integers(0, 1 + shape[axis] // 16), shape[axis] - 1)
            if ends[0] == 0 and ends[1] == last[axis]:
                ends = np.repeat(generator.integers(0, shape[axis]), 2)
            low[row, axis], high[row, axis] = ends
            is_narrowed[row, axis] = 1.0
    return low, high, is_narrowed


def _regressed(kinds: Kinds, errors: Floats) -> tuple[Floats, dict[int, Floats], dict[int, Floats]]:
    """Regress, then scale each stretch of predicted errors of each number of attributes to the errors seen."""
    features, target = kinds.features(), np.log(np.maximum(np.square(errors), _LEAST_SQUARE))
    normal = features.T @ features + _RIDGE * np.eye(features.shape[1])
    weights: Floats = np.linalg.solve(normal, features.T @ target).astype(np.float64)
    predicted = np.exp(np.clip(features @ weights / 2, -5.0, 40.0))
    borders: dict[int, Floats] = {}
    scales: dict[int, Floats] = {}
    for number in np.unique(kinds.narrowed).tolist():
        chosen = np.flatnonzero(kinds.narrowed == number)
        order = chosen[np.argsort(predicted[chosen], kind="stable")]
        stretches = np.array_split(order, min(STRETCHES, max(1, order.size // 50)))
        borders[number] = np.log([np.median(predicted[one]) for one in stretches])
        ratios = [np.abs(errors[one]) / predicted[one] for one in stretches]
        scales[number] = np.array(
            [
                max(np.quantile(one, 0.95) / DEVIATIONS_OF_95_PERCENT, float(np.sqrt(np.mean(np.square(one)))))
                for one in ratios
            ]
        )
    return weights, borders, scales


def _compared(
    observed: Observations,
    fits: Sequence[tuple[Mixture, Answering]],
    replicates: Sequence[Replicate],
    most: int,
) -> tuple[dict[int, Finding], dict[int, float]]:
    """Compare what is left unexplained, by number of attributes, and return by what variances are to be widened."""
    findings, widened = {}, {}
    for order in sorted({len(table.axes) for table in observed.tables}):
        left = np.mean([_left(observed, model, order) for model, _ in fits], axis=0)
        replayed = np.array([_left(one.observed, one.model, order) for one in replicates])
        cells, unexplained, usual = left[0], left[1], replayed[:, 1].mean()
        missed = np.mean([_missed(one, order) for one in replicates])
        spread = usual * np.sqrt(2.0 / cells) + replayed[:, 1].std() / np.sqrt(len(replicates))
        excess = max(0.0, unexplained - usual - spread)
        widened[order] = 1.0 + excess / max(missed, 1e-9)
        kind = "tables over one attribute" if order == 1 else f"tables over {order} attributes"
        findings[order] = Finding(kind, int(cells), 1.0 + float(excess / max(usual, 1e-9)), 0.0, is_widened=True)
    inflation = {number: widened.get(number, max(widened.values())) for number in range(1, most + 1)}
    if observed.cells is not None:
        several = min(len(observed.cells.axes), most)
        findings[len(observed.shape) + 1], excess = _compared_cells(observed.cells, fits, replicates)
        inflation[several] = max(inflation[several], excess)
    return findings, inflation


def _compared_cells(
    cells: ObservedTable, fits: Sequence[tuple[Mixture, Answering]], replicates: Sequence[Replicate]
) -> tuple[Finding, float]:
    """Compare what models leave unexplained of all cells; noise hides most, so only what is beyond doubt widens."""
    left = np.mean([_left_of_cells(cells, model) for model, _ in fits])
    usual = np.mean(
        [_left_of_cells(one.observed.cells, one.model) for one in replicates if one.observed.cells is not None]
    )
    missed = np.mean([_left_of_cells(replace(cells, counts=_values_of(one.truth)), one.model) for one in replicates])
    doubt = DOUBT_OF_CELLS * sqrt(KURTOSIS_OF_LAPLACE * cells.counts.size * (1 + 1 / len(replicates)))
    excess = max(0.0, float(left - usual) - doubt)
    finding = Finding("all cells", cells.counts.size, 1.0 + excess / cells.counts.size, 0.0, is_widened=True)
    return finding, 1.0 + excess / max(float(missed), 1e-9)


def _left_of_cells(cells: ObservedTable, model: Mixture) -> float:
    return float(np.square(cells.counts.ravel() - model.cells().ravel()).sum()) / cells.variance


def _values_of(answering: Answering) -> Floats:
    if not isinstance(answering, CellSums):
        raise TypeError("where cells were measured, answers are sums of cells")
    return answering.values


def _left(observed: Observations, model: Mixture, order: int) -> tuple[float, float]:
    """Return how many cells the tables over so many attributes have, and what a model leaves of them, in variances."""
    cells, left = 0, 0.0
    for table in observed.tables:
        if len(table.axes) == order:
            apart = table.counts - model.table(table.axes, table.groups)
            cells, left = cells + apart.size, left + float(np.square(apart).sum()) / table.variance
    return cells, left


def _missed(replicate: Replicate, order: int) -> float:
    """Return the squared error of a replay's model about tables over so many attributes, in variances of noise."""
    missed = 0.0
    for table, exact in zip(replicate.observed.tables, replicate.exact, strict=True):
        if len(table.axes) == order:
            apart = exact - replicate.model.table(table.axes, table.groups)
            missed += float(np.square(apart).sum()) / table.variance
    return missed
