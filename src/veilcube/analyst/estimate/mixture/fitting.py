"""Fitting a mixture to noisy tables: weighted least squares, by gradient steps on logarithms of its probabilities.

The misfit is Σ_S Σ_c (y_S(c) - N p_S(c))² / (2 σ_S²) over all tables S. Classes begin as the attributes' own counts,
each blurred by itself, so that the first model is near independence, and Adam moves them by ever smaller steps. A fixed
number of steps ends before the noise is followed into every cell; where the tables are not yet met within their noise,
further rounds follow. Several fits from different beginnings are averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import Observations, ObservedTable
from veilcube.operators import Axes
from veilcube.system import Integers

Singles: TypeAlias = NDArray[np.float32]

CLASSES, STEPS, RATE = 320, 300, 0.05
MOST_ROUNDS = 4
# A mean square of what is left, in variances of the noise, that noise explains; and a round that brings less than the
# last one's part ends the fit.
_MET, _WORTH_A_ROUND = 1.1, 0.9
BLUR = 0.7
_FADING = (0.9, 0.99)  # of Adam's means of slopes and of their squares
_LAST_RATE = 0.02
_LEAST_SHARE = 1e-6
_LARGEST_PRECISION, _LEAST_VARIANCE = 1e9, 1e-4


def fit_mixture(observed: Observations, seed: int, classes: int = CLASSES, steps: int = STEPS) -> Mixture:
    """Return a mixture that explains the tables."""
    rows = observed.rows
    logits = _beginning(observed, rows, classes, np.random.default_rng(seed))
    # Single precision holds no squares of the precisions of next to no noise.
    sharpest = max(rows**2 / max(table.variance, _LEAST_VARIANCE) for table in observed.tables)
    tables = [_Table.of(table, rows, max(sharpest / _LARGEST_PRECISION, 1.0)) for table in observed.tables]
    before = np.inf
    for _ in range(MOST_ROUNDS):
        _descend(tables, logits, steps)
        model = _mixture_of(observed, logits, rows)
        left = _left(observed, model)
        if left < _MET or left > _WORTH_A_ROUND * before:
            break
        before = left
    return model


def _descend(tables: "Sequence[_Table]", logits: list[Singles], steps: int) -> None:
    """Move the logarithms, in place, by a round of Adam's steps."""
    means = [np.zeros_like(one) for one in logits]
    squares = [np.zeros_like(one) for one in logits]
    for step in range(steps):
        rate = RATE * (np.sqrt(1 - step / steps) + _LAST_RATE)
        for place, slope in enumerate(_slopes(tables, logits)):
            means[place] += (1 - _FADING[0]) * (slope - means[place])
            squares[place] += (1 - _FADING[1]) * (slope * slope - squares[place])
            mean = means[place] / (1 - _FADING[0] ** (step + 1))
            square = squares[place] / (1 - _FADING[1] ** (step + 1))
            logits[place] -= rate * mean / (np.sqrt(square) + 1e-12)


def _mixture_of(observed: Observations, logits: Sequence[Singles], rows: float) -> Mixture:
    *laws, weights = (_softmax(one).astype(np.float64) for one in logits)
    exact = tuple(law / law.sum(axis=1, keepdims=True) for law in laws)
    return Mixture(observed.axes, weights[0] / weights.sum(), exact, rows)


def _left(observed: Observations, model: Mixture) -> float:
    """Return the mean square of what a model leaves unexplained, in variances of the noise."""
    left, cells = 0.0, 0
    for table in observed.tables:
        apart = table.counts - model.table(table.axes, table.groups)
        left, cells = left + float(np.square(apart).sum()) / table.variance, cells + apart.size
    return left / cells


def _beginning(observed: Observations, rows: float, classes: int, generator: np.random.Generator) -> list[Singles]:
    """Return the logarithms that the fit begins with: one array (classes, places) an axis, the classes' own last."""
    logits = []
    for number, axis in enumerate(observed.axes):
        own = np.full(axis.size, 1.0)
        for table in observed.tables:
            if table.axes == (number,) and table.counts.size == axis.size:
                own = np.maximum(table.counts, _LEAST_SHARE * rows)
        blurred = np.log(own / own.sum()) + BLUR * generator.standard_normal((classes, axis.size))
        logits.append(blurred.astype(np.float32))
    return [*logits, np.zeros((1, classes), dtype=np.float32)]


def _softmax(logits: Singles) -> Singles:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class _Table:
    """A table in the shares of rows that a fit works with; ``joined`` add up places to groups, None where they are."""

    axes: Axes
    joined: tuple[Singles | None, ...]
    keys: tuple[bytes, ...]
    shares: Singles
    precision: np.float32

    @classmethod
    def of(cls, table: ObservedTable, rows: float, unit: float = 1.0) -> "_Table":
        joined = tuple(_joining(labels) for labels in table.groups)
        shares = (table.counts / rows).astype(np.float32)
        keys = tuple(labels.tobytes() for labels in table.groups)
        return cls(table.axes, joined, keys, shares, np.float32(rows**2 / max(table.variance, _LEAST_VARIANCE) / unit))


def _joining(labels: Integers) -> Singles | None:
    groups = int(labels.max()) + 1
    if groups == labels.size:
        return None
    found = np.zeros((labels.size, groups), dtype=np.float32)
    found[np.arange(labels.size), labels] = 1.0
    return found


def _slopes(tables: Sequence[_Table], logits: Sequence[Singles]) -> list[Singles]:
    """Return the slopes of the misfit by all logarithms."""
    *laws, weights = (_softmax(one) for one in logits)
    of_laws, of_weights = [np.zeros_like(law) for law in laws], np.zeros(weights.size, dtype=np.float32)
    grouped: dict[tuple[int, bytes], tuple[Singles, Singles | None, Singles]] = {}
    for table in tables:
        parts = []
        for axis, joined, key in zip(table.axes, table.joined, table.keys, strict=True):
            if (axis, key) not in grouped:
                law = laws[axis] if joined is None else laws[axis] @ joined
                grouped[axis, key] = (law, joined, np.zeros_like(law))
            parts.append(grouped[axis, key])
        of_weights += _add_slopes(table, weights[0], [law for law, *_ in parts], [slope for *_, slope in parts])
    for (axis, _), (_, joined, slope) in grouped.items():
        of_laws[axis] += slope if joined is None else slope @ joined.T
    pairs = [*zip(laws, of_laws, strict=True), (weights, of_weights[np.newaxis])]
    return [law * (slope - (law * slope).sum(axis=1, keepdims=True)) for law, slope in pairs]


def _add_slopes(table: _Table, weights: Singles, laws: Sequence[Singles], slopes: Sequence[Singles]) -> Singles:
    """Add a table's slopes by the laws of its groups, and return those by the weights of the classes.

    With D the slope of the misfit by the table's cells, the slope by P_i[z, c] is w_z Σ D Π_{j≠i} P_j[z], over the
    cells of the table that have c.
    """
    *others, last = laws
    products = np.ones((len(weights), 1), dtype=np.float32)
    for law in others:
        products = (products[:, :, np.newaxis] * law[:, np.newaxis, :]).reshape(len(weights), -1)
    found = (products * weights[:, np.newaxis]).T @ last
    of_cells = (found - table.shares.reshape(found.shape)) * table.precision
    of_last = products @ of_cells
    slopes[-1][...] += of_last * weights[:, np.newaxis]
    back = ((last @ of_cells.T) * weights[:, np.newaxis]).reshape(len(weights), *(law.shape[1] for law in others))
    for place in range(len(others)):
        part = back
        for other in reversed(range(len(others))):
            if other != place:
                ahead = others[other].reshape(
                    -1, *(others[other].shape[1] if i == other else 1 for i in range(len(others)))
                )
                part = (part * ahead).sum(axis=1 + other, keepdims=True)
        slopes[place][...] += part.reshape(len(weights), -1)
    return np.asarray((of_last * last).sum(axis=1))
