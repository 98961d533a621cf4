"""By how much sums of many cells are misjudged together: what cells that err alone do not show.

A model that the box keeps near its prior misjudges neighbouring cells alike, so a sum of thousands of them errs by more
than independent cells would. Where every cell of a table was measured, sums over its corners [0, i] x [0, j] can be
compared: with e the error of the model's count X and v the variance of the noise of those cells that the box holds, the
mean square of noisy sum - X is e² + v - 2c, where c says how far the model follows the noise of these sums. c is not
known; with c at most a quarter of e², e² is at most twice what is seen. The common misjudgement κ is fitted to
e² = κ² X²(1 - X/n)², by least squares, weighted by the noise of all cells of the corner: a sum and its complement are
one question, since n is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
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
