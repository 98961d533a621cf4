"""How wrong a maximum entropy model may be: what is left unknown of the counts once the noisy answers are in.

The model p is the centre of a belief about the counts: a cell that p expects x rows in has variance x + ρ² x², of
sampling and of a relative misjudgement ρ. Inside a table that was measured, y = A x + noise turns it into the usual
posterior P = D - D A'(A D A' + Σ)^-1 A D, the total being a row of A. ρ is set so that the errors predicted for past
queries match their estimated risk, which is measured from the noisy answers alone.

A model that the box keeps near its prior misjudges neighbouring cells alike, so sums of thousands of them err by more.
Sums over the corners [0, i] x [0, j] of a measured table show it: with e the error of the model's count X and v the
variance of the noise, the mean square of noisy sum - X is e² + v - 2c. How far the model follows the noise, c, is not
known; with c at most a quarter of e², e² is at most twice what is seen. The common misjudgement κ is fitted to
e² = κ² X²(1 - X/n)² by weighted least squares.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from veilcube.analyst.history.max_entropy.dual import DualProblem
from veilcube.analyst.history.max_entropy.tables import TableGroup
from veilcube.system import Floats, Integers

Marks = NDArray[np.bool_]

_MOST_HIDDEN = 2.0
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class MeasuredCells:
    """A table all of whose cells were measured: expected counts, noisy less expected, variances, held by the box."""

    counts: Floats
    gaps: Floats
    variances: Floats
    held: Marks


def common_rate(tables: Iterable[MeasuredCells]) -> float:
    """Return κ, 0 where noise explains all that is seen."""
    seen = reach = 0.0
    for table in tables:
        if not table.held.any():
            continue
        shares = _corners(table.counts) / table.counts.sum()
        # Noisy cells add up to another total than the known one: what is too much is taken from each by its variance.
        excess = table.gaps - table.gaps.sum() * table.variances / table.variances.sum()
        noise = _given_total(table.variances)
        # Corners are weighed by the noise of all cells: those whose answers are met bear witness that they are.
        told = noise > _ROUNDING * table.variances.sum()
        moved, spread = np.square(table.counts.sum() * shares * (1 - shares)), np.square(_corners(excess))
        weight = moved[told] / np.square(noise[told])
        seen += float((weight * (spread - _given_total(np.where(table.held, table.variances, 0.0)))[told]).sum())
        reach += float((weight * moved[told]).sum())
    return float(np.sqrt(_MOST_HIDDEN * max(seen, 0.0) / reach)) if reach > 0 else 0.0


def _given_total(variances: Floats) -> Floats:
    """Return the variance of the sum of each corner, once the sum of all cells is known."""
    corners = _corners(variances)
    return np.asarray(corners * (1 - corners / variances.sum()))


def _corners(cells: Floats) -> Floats:
    """Return the sum of the cells from the first corner up to each cell."""
    for axis in range(cells.ndim):
        cells = np.cumsum(cells, axis=axis)
    return cells


_HALVINGS = 18
_LARGEST_RATE = 4.0
_NEARLY_EXACT = 1e-6
_MOST_QUERIES = 2048
# A measured count that is fitted below its noise may really be as large as so many standard deviations of it.
_REACH = 2.0


@dataclass(frozen=True, eq=False)
class TableBelief:
    """The posterior covariance of one table's counts: a diagonal, less what measurements removed from it.

    ``prior`` is the diagonal before anything was measured, for the expected ``counts`` and ``wider`` by a factor.
    """

    spread: Floats
    removed: Floats | None = None
    solved: Floats | None = None
    noise: Floats | None = None
    counts: Floats = field(default_factory=lambda: np.empty(0))
    prior: Floats = field(default_factory=lambda: np.empty(0))
    wider: float = 1.0

    def variance(self, weights: Floats) -> Floats:
        """Return g'Pg for each row of weights over the table's cells."""
        if self.removed is None or self.solved is None:
            return _surer(weights, self.spread)
        found = np.square(weights) @ self.spread
        found -= np.einsum("qm,qm->q", weights @ self.removed, weights @ self.solved)
        return np.maximum(found, 0.0)

    def noise_of(self, weights: Floats) -> Floats:
        """Return the variance of the noise of each row of weights; infinite unless every cell was measured alone."""
        return np.full(len(weights), np.inf) if self.noise is None else _surer(weights, self.noise)


@dataclass(frozen=True, eq=False)
class RefinedBelief:
    """A belief about segments, asked of pieces of these: what is known of each whole, and what divides it.

    With ḡ the mean of weights g over the pieces of a segment, weighed by their ``spread``, the variance is that of ḡ
    plus Σ spread (g - ḡ)² (total variance). ``parents`` is each piece's segment.
    """

    whole: TableBelief
    parents: Integers
    spread: Floats

    def variance(self, weights: Floats) -> Floats:
        """Return g'Pg for each row of weights over the pieces."""
        means = self._means(weights)
        return self.whole.variance(means) + np.square(weights - means[:, self.parents]) @ self.spread

    def noise_of(self, weights: Floats) -> Floats:
        """Return the variance of the noise of each row of weights; infinite where it cuts a segment."""
        means = self._means(weights)
        is_cut = (np.abs(weights - means[:, self.parents]) > _ROUNDING).any(axis=1)
        return np.where(is_cut, np.inf, self.whole.noise_of(means))

    def _means(self, weights: Floats) -> Floats:
        pieces = np.arange(self.parents.size)
        summing = scipy.sparse.csr_array(
            (self.spread, (pieces, self.parents)), shape=(self.parents.size, self.whole.spread.size)
        )
        return np.asarray((weights @ summing) / np.bincount(self.parents, self.spread, self.whole.spread.size))


def _surer(weights: Floats, spread: Floats) -> Floats:
    """Return the variance of weighted sums; with the total known, a sum and its complement are one question."""
    return np.minimum(np.square(weights) @ spread, np.square(1 - weights) @ spread)


def spread_given_total(weights: Floats, spread: Floats) -> Floats:
    """Return the variance of weighted sums of cells with these variances, once the sum of all cells is known."""
    found = np.square(weights) @ spread - np.square(weights @ spread) / spread.sum()
    return np.asarray(np.maximum(found, 0.0))


@dataclass(frozen=True)
class TableShape:
    """The attributes of a table and how many cells each has."""

    axes: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """Beliefs about every measured table, and the relative misjudgements, each cell's own and common, that they share.

    ``doubt`` is a factor of all variances: above 1 where the fit did not converge. ``likeness`` of some attributes is
    Σ p² over (Σ p)² of what stands for one cell each; None where that is 1.
    """

    tables: tuple[TableShape, ...]
    beliefs: tuple[TableBelief | RefinedBelief, ...]
    rate: float
    common: float = 0.0
    doubt: float = 1.0
    likeness: Callable[[tuple[int, ...]], Floats] | None = None

    def common_error(self, variances: Floats, reaches: Floats, total: float, attributes: int) -> Floats:
        """Return the variance of counts for what their cells are misjudged together, one part for each pair.

        For a query that counts, variance over reach is s(1 - s), s its share of the rows; others are in their own unit.
        """
        pairs = max(1, attributes * (attributes - 1) // 2)
        moved = np.divide(variances, reaches, out=np.zeros_like(variances), where=reaches > 0)
        return pairs * np.square(self.common * total * moved)

    def prior_spread(self, counts: Floats, axes: tuple[int, ...] | None = None) -> Floats:
        """Return the variance of cells of which nothing was measured, from their expected counts."""
        likeness = 1.0 if axes is None or self.likeness is None else self.likeness(axes)
        return np.asarray(counts + self.rate**2 * np.square(counts) * likeness)


class Merged(Protocol):
    """What the cells of tables stand for, where they are segments of several cells."""

    def cells(self, axes: tuple[int, ...]) -> Floats:
        """Return how many cells each has."""

    def likeness(self, axes: tuple[int, ...]) -> Floats:
        """Return Σ p² over (Σ p)² of the cells of each."""


def learn_errors(
    problem: DualProblem,
    tables: Sequence[Floats],
    weights: Floats,
    total: float,
    doubt: float = 1.0,
    merged: Merged | None = None,
) -> ErrorModel:
    """Find the rate at which predicted errors match the estimated risk of the past queries.

    Where even the largest rate predicts too little, because the box is too narrow for the data, all is widened.
    ``merged`` tells how many cells each cell of a table stands for, and how alike they are.
    """
    expected, deviation = problem.expectations(tables), problem.noise * total
    noisy = deviation > 0
    risk = problem.risk(weights, expected)[noisy] * total**2
    target = float(np.mean(risk / np.square(deviation[noisy]))) if noisy.any() else 0.0
    held, gaps = problem.held(weights, expected), (problem.shares - expected) * total
    parts = [
        _Part(
            group,
            table.ravel() * total,
            deviation[group.members],
            held[group.members],
            gaps[group.members],
            np.ones(group.size) if merged is None else merged.cells(group.axes),
            np.ones(group.size) if merged is None else merged.likeness(group.axes),
        )
        for group, table in zip(problem.groups, tables, strict=True)
    ]

    def predicted(rate: float) -> float:
        return float(np.mean(np.concatenate([part.predicted(rate) for part in parts])))

    low, high = 0.0, _LARGEST_RATE
    for _ in range(_HALVINGS if noisy.any() else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if predicted(middle) < target else (low, middle)
    wider = max(1.0, target / predicted(high)) if noisy.any() else 1.0
    shapes = tuple(TableShape(group.axes, group.shape) for group in problem.groups)
    common = common_rate(filter(None, (part.measured_cells() for part in parts)))
    return ErrorModel(shapes, tuple(part.belief(high, wider, raised=True) for part in parts), high, common, doubt)


@dataclass(frozen=True, eq=False)
class _Part:
    """One measured table: expected counts, and of its queries the noise, whether the box holds them, the misfit."""

    group: TableGroup
    counts: Floats
    deviation: Floats
    held: Marks
    gaps: Floats
    cells: Floats
    likeness: Floats

    def spread(self, rate: float) -> Floats:
        """Return the variance of each cell of the table, or of the cells that it stands for, before it was measured."""
        return np.asarray(self.counts + rate**2 * np.square(self.counts) * self.likeness)

    def measured_cells(self) -> MeasuredCells | None:
        """Return the cells of the table if each of them was measured, once and with noise."""
        cells, shape = self.group.cells, self.group.shape
        if cells is None or (self.deviation <= 0).any():
            return None
        order = np.argsort(cells)
        if not np.array_equal(cells[order], np.arange(self.group.size)):
            return None
        variances, held = np.square(self.deviation[order]), self.held[order]
        return MeasuredCells(
            self.counts.reshape(shape), self.gaps[order].reshape(shape), variances.reshape(shape), held.reshape(shape)
        )

    def belief(self, rate: float, wider: float, *, raised: bool = False) -> TableBelief:
        """Return the posterior under a rate, its variances widened, and raised where noise hides what is there."""
        group = self.group
        prior = np.maximum(self.spread(rate), 1e-12)
        noise = np.maximum(np.square(self.deviation), np.square(_NEARLY_EXACT * max(float(self.deviation.max()), 1.0)))
        if group.cells is not None:
            spread = wider * prior
            trust = prior[group.cells] / (prior[group.cells] + noise)
            # What is met exactly is as wrong as its noise; what the box holds may be wronger, as its misfit suggests.
            biased = np.square(trust * self.gaps) + trust * noise
            measured = np.where(self.held, np.maximum(biased, noise), noise)
            spread[group.cells] = np.inf
            np.minimum.at(spread, group.cells, wider * measured)
            alone = np.full(group.size, np.inf)
            np.minimum.at(alone, group.cells, noise)
            told = alone if np.isfinite(alone).all() else None
            return TableBelief(spread, noise=told, counts=self.counts, prior=wider * prior, wider=wider)
        if group.dense is None or group.members.size > _MOST_QUERIES or not group.axes:
            return TableBelief(wider * prior, counts=self.counts, prior=wider * prior, wider=wider)
        if raised:
            prior = self._raised(prior, group.dense)
        measured = np.vstack([group.dense, np.ones(group.size)])
        crossed = measured * prior
        noise = np.append(noise, _NEARLY_EXACT * max(1.0, float(prior.sum())))
        gram = crossed @ measured.T
        # Exact answers that tell the total twice would leave nothing to divide by.
        gram[np.diag_indices(len(gram))] += noise + _NEARLY_EXACT**2 * np.diagonal(gram).max()
        factor = cho_factor(gram, lower=True)
        spread, solved = wider * prior, wider * cho_solve(factor, crossed).T
        return TableBelief(spread, crossed.T, solved, counts=self.counts, prior=spread, wider=wider)

    def _raised(self, prior: Floats, weights: Floats) -> Floats:
        """Return the variances of cells, those under answers near 0 raised to what their noise could hide.

        Noise that pushes a fitted count to 0 would else be taken for certainty that nothing is there.
        """
        low = (self.deviation > 0) & (np.abs(weights @ self.counts) < self.deviation)
        squared = np.square(weights[low])
        missing = np.maximum(np.square(_REACH * self.deviation[low]) - squared @ prior, 0.0)
        each = missing / np.maximum(squared @ self.cells, np.finfo(np.float64).tiny)
        return np.asarray(prior + self.cells * np.max((squared > 0) * each[:, np.newaxis], axis=0, initial=0.0))

    def predicted(self, rate: float) -> Floats:
        """Return the squared error predicted for each noisy query, its own misfit unseen, in units of its noise."""
        noisy, group = self.deviation > 0, self.group
        if group.cells is not None:
            alone = self.spread(rate)[group.cells][noisy] / np.square(self.deviation[noisy])
            return np.where(self.held[noisy], alone, 1.0)
        if group.dense is None or not group.axes:
            return np.ones(int(noisy.sum()))
        return self.belief(rate, 1.0).variance(group.dense[noisy]) / np.square(self.deviation[noisy])
