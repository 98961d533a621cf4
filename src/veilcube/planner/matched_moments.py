"""The second moments G = Σ u q q' of the queries that a strategy is matched to, as the search needs them.

The search asks for the diagonal of G and for H = C E G E. Where the queries are not many more than the cells, H comes
from their sums over prefixes and G is never written out.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from veilcube.operators.axis import Floats, Integers
from veilcube.operators.parallel import share_out
from veilcube.planner.matched_kernels import COLUMNS_AT_ONCE, Columns, fill_spread, fill_spread_of_ranges


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
