"""Non-negative estimates: least squares, then the walk from the root that keeps every total (``walk``).

No cell is below zero and all answers add up, which least squares alone cannot promise; on sparse tables the error is
usually smaller as well, though it is no longer zero on average. The walk only post-processes what is public. Intervals
are those of least squares, cut at zero (``adjusted``).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.adjusted import AdjustedEstimate
from veilcube.analyst.estimate.least_squares import LeastSquares
from veilcube.analyst.estimate.walk import walk_halves, walk_tree
from veilcube.operators import Operator, ProductOperator, TreeAxis
from veilcube.operators.matched import MatchedAxis
from veilcube.release import ReleaseRecord

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Nonnegative:
    """Least squares made non-negative from the root down; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "nonnegative"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether least squares can read the release, and totals are known better than cells.

        Rows matched to a workload may leave the total, from which the walk starts, with enormous noise.
        """
        operator = record.measurements[0].operator
        is_matched = isinstance(operator, ProductOperator) and any(
            isinstance(axis, MatchedAxis) for axis in operator.axes
        )
        return LeastSquares().can_read(record) and not is_matched

    def fit(self, record: ReleaseRecord) -> AdjustedEstimate:
        """Return its answers about this release."""
        unbiased = LeastSquares().fit(record)
        cells = walked_cells(record.measurements[0].operator, unbiased.cells())
        return AdjustedEstimate(unbiased, cells, least=0.0)


def walked_cells(operator: Operator, cells: Floats) -> Floats:
    """Return least-squares cells made non-negative, along the measured tree of one axis or else by halves."""
    if isinstance(operator, ProductOperator) and len(operator.axes) == 1 and isinstance(operator.axes[0], TreeAxis):
        return walk_tree(operator.axes[0].shape, cells)
    return walk_halves(cells)
