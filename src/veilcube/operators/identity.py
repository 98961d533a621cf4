"""The identity: every cell is measured on its own.

A = I, so least squares is the measurement itself, a row touches one cell, and the noise variance of a sum of m cells
is m times that of one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.base import Moments, NeighbourName, OperatorDefaults, queries_of_products
from veilcube.query import LinearQueries
from veilcube.schema import Region, Schema
from veilcube.system import Floats, Integers

ROWS_AT_ONCE = 2**20


@dataclass(frozen=True)
class IdentityOperator(OperatorDefaults):
    """One measurement per cell."""

    cell_shape: tuple[int, ...]
    dimensions: tuple[str, ...]

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """The shape of the cube."""
        return self.cell_shape

    @property
    def words_to_apply(self) -> int:
        """None: it returns the counts themselves."""
        return 0

    def apply(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact counts themselves."""
        return cells

    def apply_to_rows(self, rows: Sequence[NDArray[np.integer[Any]]]) -> NDArray[np.int64]:
        """Return the exact counts from rows: the value of each row, one array for each attribute."""
        counts = np.zeros(prod(self.cell_shape), dtype=np.int64)
        for start in range(0, len(rows[0]), ROWS_AT_ONCE):
            values = [column[start : start + ROWS_AT_ONCE].astype(np.int64) for column in rows]
            counts += np.bincount(np.ravel_multi_index(values, self.cell_shape), minlength=counts.size)
        return counts.reshape(self.cell_shape)

    def adjoint(self, measurements: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the measurements themselves: the identity is its own transpose."""
        return measurements

    def solve(self, measurements: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the measurements themselves: nothing relates one to another."""
        return measurements.astype(np.float64)

    @property
    def answers(self) -> "IdentityOperator":
        """Itself: every answer is a sum of noisy cells."""
        return self

    def noise_weights(self, query: Floats) -> Floats:
        """Return the query itself: the noise of a cell enters by the cell's weight."""
        return query

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return that each block sums up the noises of its cells."""
        return Moments.of_sums(np.prod(high - low + 1, axis=1, dtype=np.int64))

    def moments_of_region(self, region: Region) -> Moments:
        """Return that a region sums up the noises of its cells."""
        return Moments.of_sums(np.asarray(region.cells, dtype=np.int64))

    def queries(self, schema: Schema) -> tuple[LinearQueries, Floats]:
        """Return a query for each cell."""
        found = queries_of_products(schema, [np.eye(size) for size in schema.shape])
        return found, np.ones(len(found))

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return 1 for a row more or less; 2 for an exchanged row, which leaves one cell and enters another."""
        return 1 if neighbours == "add-remove" else 2

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the same: each of these cells changes by 1."""
        return self.sensitivity(neighbours)

    def variance_of_rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many cells each block holds."""
        cells: NDArray[np.float64] = np.prod((high - low + 1).astype(np.float64), axis=1)
        return cells

    def variance_of_region(self, region: Region) -> float:
        """Return how many cells the region holds."""
        return float(region.cells)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "identity", "shape": list(self.cell_shape), "dimensions": list(self.dimensions)}


def read_identity(data: Mapping[str, object]) -> IdentityOperator:
    """Rebuild from ``to_dict``."""
    shape, dimensions = data["shape"], data["dimensions"]
    if not isinstance(shape, list) or not isinstance(dimensions, list) or len(shape) != len(dimensions):
        raise ValueError("shape and dimensions must be lists of one length")
    if not all(isinstance(size, int) and size > 0 for size in shape):
        raise ValueError("sizes must be whole numbers above 0")
    return IdentityOperator(tuple(shape), tuple(str(name) for name in dimensions))
