"""What a workload asks of each attribute: its queries along one axis, and their matrix of second moments.

The expected squared error of least squares over queries q_1..q_m with weights u is Σ_i u_i q_i'X q_i = tr(X G), with
X = (A'A)^-1 and G = Σ_i u_i q_i q_i': the strategy needs to know G alone, whatever the number of queries. The search
asks for the diagonal of G and for H = C E G E. Where the queries are not many more than the cells, H comes from their
sums over prefixes and G is never written out.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import AxisOperator
from veilcube.planner.design import Family
from veilcube.planner.matched.loops import COLUMNS_AT_ONCE, Columns, fill_spread, fill_spread_of_ranges
from veilcube.query import Workload
from veilcube.system import Floats, Integers, share_out


class SecondMoments(Protocol):
    """G, a matrix over the cells of one axis."""

    @property
    def diagonal(self) -> Floats:
        """The weight of the queries that hold each cell."""

    @property
    def both_ends(self) -> float:
        """The weight of the queries that hold the first cell and the last."""

    def spread(self, own: Floats, columns: Columns, shared: int) -> Floats:
        """Return H' = (C E G E)', of shape (cells, shared rows), for E = diag(own)^-2 and C given by columns."""


@dataclass(frozen=True, eq=False)
class DenseMoments:
    """G written out."""

    gram: Floats

    @cached_property
    def diagonal(self) -> Floats:
        """The weight of the queries that hold each cell."""
        return np.ascontiguousarray(np.diagonal(self.gram))

    @property
    def both_ends(self) -> float:
        """The weight of the queries that hold the first cell and the last."""
        return float(self.gram[0, -1])

    def spread(self, own: Floats, columns: Columns, shared: int) -> Floats:
        """Return H', in time proportional to the cells times the entries of C."""
        found = np.empty((len(own), shared))
        share_out(
            lambda first, last: fill_spread(self.gram, own, columns, found, first, last),
            -(-len(own) // COLUMNS_AT_ONCE),
            len(own) * len(columns[2]),
        )
        return found


@dataclass(frozen=True, eq=False)
class RangeMoments:
    """G of ranges from ``start`` up to, not including, ``stop``, with weights."""

    size: int
    start: Integers
    stop: Integers
    weights: Floats

    @cached_property
    def diagonal(self) -> Floats:
        """The weight of the queries that hold each cell."""
        opened = np.bincount(self.start, self.weights, self.size + 1)
        closed = np.bincount(self.stop, self.weights, self.size + 1)
        # Rounding may leave a trace below 0 where no query reaches.
        return np.maximum(np.cumsum(opened - closed)[:-1], 0.0)

    @property
    def both_ends(self) -> float:
        """The weight of the queries that hold the first cell and the last."""
        return float(self.weights[(self.start == 0) & (self.stop == self.size)].sum())

    def spread(self, own: Floats, columns: Columns, shared: int) -> Floats:
        """Return H', in time proportional to the shared rows times the cells and queries."""
        found = np.empty((self.size, shared))
        share_out(
            lambda first, last: fill_spread_of_ranges(
                self.start, self.stop, self.weights, own, columns, found, first, last
            ),
            shared,
            shared * (self.size + len(self.start)),
        )  # fmt: skip
        return found


MOST_RANGES_PER_CELL = 16


@dataclass(frozen=True, eq=False)
class AxisQueries:
    """One axis of every block of cells in a workload: a range each, or where it has gaps one of the ``sets``.

    ``set_of`` is the position in ``sets`` of a block's set, -1 for a range.
    """

    size: int
    low: Integers
    high: Integers
    sets: NDArray[np.bool_]
    set_of: Integers

    @cached_property
    def _distinct(self) -> tuple[Integers, Integers]:
        """The distinct ranges, as low times size plus high, and which of them each range is."""
        plain = self.set_of < 0
        return np.unique(self.low[plain] * self.size + self.high[plain], return_inverse=True)

    def moments(self, weights: Floats) -> SecondMoments:
        """Return G = Σ_i u_i q_i q_i' for weights u scaled to sum to 1, in the form that is faster to search with."""
        ranges, which = self._distinct
        if len(self.sets) or len(ranges) > MOST_RANGES_PER_CELL * self.size:
            return DenseMoments(self.gram(weights))
        low, high = np.divmod(ranges, self.size)
        shares = np.bincount(which, weights / weights.sum(), len(ranges)).astype(np.float64)
        return RangeMoments(self.size, low, high + 1, shares)

    def gram(self, weights: Floats) -> Floats:
        """Return Σ_i u_i q_i q_i' for weights u scaled to sum to 1, in O(queries + size²).

        A range holds cells a <= b if it starts at or before a and ends at or after b: a sum over a quadrant of the
        table of ranges by start and end.
        """
        shares = weights / weights.sum()
        plain = self.set_of < 0
        table = np.zeros((self.size, self.size))
        table.ravel()[self._distinct[0]] = np.bincount(self._distinct[1], shares[plain], len(self._distinct[0]))
        np.cumsum(table, axis=0, out=table)
        np.cumsum(table[:, ::-1], axis=1, out=table[:, ::-1])
        gram: Floats = np.triu(table)
        gram += np.triu(table, 1).T
        if len(self.sets):
            masks = self.sets.astype(np.float64)
            gram += (masks.T * np.bincount(self.set_of[~plain], shares[~plain], len(masks))) @ masks
        return gram

    def variances(self, axis: AxisOperator, family: Family = "laplace") -> Floats:
        """Return the variance of each block's factor on this axis, at columns of norm 1, for Gaussian noise L2."""
        plain = self.set_of < 0
        found = np.empty(len(self.low))
        low, high = np.divmod(self._distinct[0], self.size)
        found[plain] = axis.variance_of_ranges(low, high)[self._distinct[1]]
        found[~plain] = axis.moments_of_query(self.sets.astype(np.float64)).second[self.set_of[~plain]]
        squared = float(axis.column_sums().max()) ** 2 if family == "laplace" else float(axis.largest_square)
        return found * squared

    def distinct_sets(self, most: int) -> NDArray[np.bool_] | None:
        """Return the distinct sets of more than one cell, one a row, or None if there are more than ``most``."""
        low, high = np.divmod(self._distinct[0], self.size)
        low, high = low[high > low], high[high > low]
        if len(low) + len(self.sets) > most:
            return None
        cells = np.arange(self.size)
        ranges = (cells >= low[:, np.newaxis]) & (cells <= high[:, np.newaxis])
        return np.concatenate([ranges, self.sets])


@dataclass(frozen=True, eq=False)
class WorkloadBlocks:
    """A workload as blocks of cells, each a product of one set per axis.

    A query that is no block is several: the search then minimises the sum of their errors, a stand-in for the query's
    own, which the plan computes exactly. ``weights`` are those of the blocks' queries.
    """

    axes: tuple[AxisQueries, ...]
    weights: Floats

    @classmethod
    def of(cls, workload: Workload) -> "WorkloadBlocks":
        """Split a workload by axis."""
        regular: NDArray[np.bool_] = np.all(workload.high >= workload.low, axis=1)
        regular[list(workload.regions)] = False
        boxes = [box for region in workload.regions.values() for box in region.boxes]
        axes = []
        for axis, size in enumerate(workload.schema.shape):
            masks = np.array([box.mask(axis) for box in boxes], dtype=np.bool_).reshape(-1, size)
            low, high = masks.argmax(axis=1), size - 1 - masks[:, ::-1].argmax(axis=1)
            gaps = masks.sum(axis=1) != high - low + 1
            sets, position = np.unique(masks[gaps], axis=0, return_inverse=True)
            set_of = np.full(len(boxes), -1, dtype=np.int64)
            set_of[gaps] = position.ravel()
            axes.append(
                AxisQueries(
                    size,
                    np.concatenate([workload.low[regular, axis], low]).astype(np.int64),
                    np.concatenate([workload.high[regular, axis], high]).astype(np.int64),
                    sets,
                    np.concatenate([np.full(np.count_nonzero(regular), -1), set_of]).astype(np.int64),
                )
            )
        of_boxes = [workload.weights[row] for row, region in workload.regions.items() for _ in region.boxes]
        return cls(tuple(axes), np.concatenate([workload.weights[regular], np.array(of_boxes, dtype=np.float64)]))

    def __len__(self) -> int:
        return len(self.axes[0].low)
