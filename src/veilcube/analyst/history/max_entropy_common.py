"""By how much sums of many cells are misjudged together: what cells that err alone do not show.

A model that the box keeps near its prior misjudges neighbouring cells alike, so a sum of thousands of them errs by more
than independent cells would. Where every cell of a table was measured, sums over its corners [0, i] x [0, j] can be
compared: with e the error of the model's count X and v the variance of the noise of those cells that the box holds, the
mean square of noisy sum - X is e² + v - 2c, where c says how far the model follows the noise of these sums. c is not
known; with c at most a quarter of e², e² is at most twice what is seen. The common misjudgement κ is fitted to
e² = κ² X²(1 - X/n)², by least squares with weights 1/v²: a sum and its complement are one question, since n is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]

_MOST_HIDDEN = 2.0


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
        shares = _corners(table.counts) / table.counts.sum()
        noise = np.where(table.held, table.variances, 0.0)
        # Noisy cells add up to another total than the known one: what is too much is taken from each by its variance.
        excess = table.gaps - table.gaps.sum() * table.variances / table.variances.sum()
        corners, size = _corners(noise), noise.sum()
        left = corners * (1 - corners / size) if size > 0 else corners
        moved, spread = np.square(table.counts.sum() * shares * (1 - shares)), np.square(_corners(excess))
        told = left > 0
        weight = moved[told] / np.square(left[told])
        seen += float((weight * (spread - left)[told]).sum())
        reach += float((weight * moved[told]).sum())
    return float(np.sqrt(_MOST_HIDDEN * max(seen, 0.0) / reach)) if reach > 0 else 0.0


def _corners(cells: Floats) -> Floats:
    """Return the sum of the cells from the first corner up to each cell."""
    for axis in range(cells.ndim):
        cells = np.cumsum(cells, axis=axis)
    return cells
