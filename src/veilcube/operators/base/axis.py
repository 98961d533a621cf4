"""One-axis operators: the factors of a product strategy.

An axis operator A maps the cells of one attribute to integer measurements; every entry of A is a whole number >= 0
(wavelets have signs as well: they work ``inside`` and tell their ``column_pairs``), and A has full column rank. Arrays
are worked on along their LAST axis, whatever axes stand before it. A query q is a vector of weights on the cells; its
least-squares estimate is q'(A'A)^-1 A' y, so each measurement's noise enters the answer with the ``noise_weights`` A
(A'A)^-1 q. The sum of their squares is the variance of the answer in units of the noise's; the sums of their fourth
and sixth powers tell how far the answer's law is from the normal law (``Moments``). All three
multiply over the axes of a product.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.operators.base.exchange import ColumnPair
from veilcube.operators.base.inside import InsideAxis
from veilcube.operators.base.moments import Moments
from veilcube.operators.base.squares import ColumnProducts, products_of_columns
from veilcube.system import Floats, Integers

Mask: TypeAlias = NDArray[np.bool_]

# A file that claims more cells on one axis than this is not believed; no machine could hold them.
LARGEST_AXIS = 2**48
_ENTRIES_AT_ONCE = 1 << 22


class AxisOperator(Protocol):
    """An implicit integer matrix over the cells of one attribute."""

    @property
    def size(self) -> int:
        """How many cells the attribute has."""

    @property
    def rows(self) -> int:
        """How many measurements it takes."""

    def apply(self, cells: Integers) -> Integers:
        """Return the exact measurements A x: (..., size) to (..., rows)."""

    def adjoint(self, measurements: Floats) -> Floats:
        """Return A' y: (..., rows) to (..., size)."""

    def solve(self, measurements: Floats | Integers) -> Floats:
        """Return the least-squares estimate (A'A)^-1 A' y: (..., rows) to (..., size)."""

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^-1 q, the transpose of ``solve``: (..., size) to (..., rows)."""

    def column_sums(self) -> Integers:
        """Return the L1 norm of each column: what one row of the table adds to all measurements together."""

    @property
    def largest_column(self) -> int:
        """The largest L1 norm of a column."""

    def column_pairs(self) -> tuple[ColumnPair, ...] | None:
        """Return how the columns of two cells may stand to each other (``exchange``), None if that is not told."""

    def least_shared(self) -> int:
        """Return the least, over pairs of different cells i and j, of the sum over rows of min(A_ri, A_rj).

        What is shared stays put when a row moves from one cell to the other. An axis of one cell has no such pair: it
        shares its whole column sum. Too small a number only wastes budget; too large a one breaks the promise.
        """

    @property
    def largest_square(self) -> int:
        """The largest squared L2 norm of a column."""

    def column_products(self) -> tuple[ColumnProducts, ...]:
        """Return the inner products of two cells' columns, of all pairs that may be farthest apart (``squares``)."""

    def moments_of_steps(self, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of the noise weights of step functions.

        Query k weighs the cells from ``cuts[k, j - 1]`` up to, not including, ``cuts[k, j]`` by ``values[k, j]``; the
        first step starts at cell 0, the last one ends at the last cell, and equal cuts make an empty step.
        """

    def moments_of_query(self, query: Floats) -> Moments:
        """Return the moments of queries that weigh each cell: (..., size) to (...)."""

    def variance_of_ranges(self, low: Integers, high: Integers) -> Floats:
        """Return q'(A'A)^-1 q for each inclusive range."""

    def variance_of_cells(self, chosen: Mask) -> float:
        """Return q'(A'A)^-1 q for one set of cells."""

    def fourth_powers_of_ranges(self, low: Integers, high: Integers) -> Floats:
        """Return the sum of the fourth powers of the noise weights of each inclusive range."""

    def fourth_powers_of_cells(self, chosen: Mask) -> float:
        """Return the sum of the fourth powers of the noise weights of one set of cells."""

    @property
    def is_flat(self) -> bool:
        """Whether it is the identity: each cell on its own."""

    @property
    def inside(self) -> InsideAxis | None:
        """Itself, if it works inside a cube along any axis of it; None if cubes must be turned around first."""

    @property
    def has_bands(self) -> bool:
        """Whether the rows are wavelets, told without listing them."""

    @property
    def bands(self) -> Integers | None:
        """The band of each row of a wavelet, the total's first; None if the rows are no wavelets."""

    @property
    def keeps_totals(self) -> bool:
        """Whether the total of the attribute is known about as well as its parts are."""

    def range_weights(self, low: Integers, high: Integers) -> "scipy.sparse.csr_array | None":
        """Return the noise weights of inclusive ranges as sparse rows; None where they are not sparse."""

    def range_reader(self, measurements: Integers) -> "RangeReader | None":
        """Return what answers ranges from a vector of measurements; None where the cells must be written out."""

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""


class RangeReader(Protocol):
    """Least-squares answers of inclusive ranges, in the time of the paths to their ends."""

    def __call__(self, low: Integers, high: Integers) -> Floats:
        """Return the estimate of each range."""


class AxisReader(Protocol):
    """Rebuilds one kind of axis from the plain data of ``to_dict``."""

    def __call__(self, data: Mapping[str, object]) -> AxisOperator:
        """Return the axis; raises KeyError, TypeError or ValueError on data that is not well formed."""


class AxisMoments:
    """Moments, variances and fourth powers from one method alone: ``noise_weights``; L2 norms from ``apply``.

    A new kind of axis inherits this, writes the other methods of ``AxisOperator`` that are missing here, and registers
    its reader in ``operators.product``. It overrides ``moments_of_steps`` and ``column_products`` where it knows better
    than dense vectors, which take time for each cell in each query, and ``largest_column``, so that huge attributes
    are planned at once.
    """

    size: int

    def apply(self, cells: Integers) -> Integers:
        """Return the exact measurements: each kind of axis has its own way."""
        raise NotImplementedError

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^-1 q: each kind of axis has its own way."""
        raise NotImplementedError

    def column_sums(self) -> Integers:
        """Return the L1 norm of each column: each kind of axis has its own way."""
        raise NotImplementedError

    @property
    def largest_column(self) -> int:
        """The largest L1 norm of a column; overridden where it can be told without listing them all."""
        return int(self.column_sums().max())

    @property
    def largest_square(self) -> int:
        """The largest squared L2 norm of a column; overridden where it can be told without comparing them all."""
        return max(pair.left for pair in self.column_products())

    def column_products(self) -> tuple[ColumnProducts, ...]:
        """Return the farthest pairs of columns, each written out: for axes of at most some thousand cells."""
        return products_of_columns(self.apply(np.eye(self.size, dtype=np.int64)))

    @property
    def is_flat(self) -> bool:
        """False: most axes relate cells to each other."""
        return False

    @property
    def inside(self) -> InsideAxis | None:
        """None: cubes are turned around first."""
        return None

    @property
    def has_bands(self) -> bool:
        """False: no wavelets."""
        return False

    @property
    def bands(self) -> Integers | None:
        """None: no wavelets."""
        return None

    @property
    def keeps_totals(self) -> bool:
        """True: rows are counts of many cells, or of one each."""
        return True

    def range_weights(self, low: Integers, high: Integers) -> "scipy.sparse.csr_array | None":
        """Return None: weights are dense."""
        return None

    def range_reader(self, measurements: Integers) -> RangeReader | None:
        """Return None: the cells are written out."""
        return None

    def column_pairs(self) -> tuple[ColumnPair, ...] | None:
        """Return None: kinds of pairs are told by axes that may stand beside factors with signs."""
        return None

    def moments_of_steps(self, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of step functions, each written out as a dense query, a block of them at a time."""
        found = Moments(*np.empty((3, len(cuts))))
        cells = np.arange(self.size)
        at_once = max(1, _ENTRIES_AT_ONCE // self.size)
        for start in range(0, len(cuts), at_once):
            part = slice(start, start + at_once)
            step = (cells[np.newaxis, :, np.newaxis] >= cuts[part, np.newaxis, :]).sum(axis=2)
            block = Moments.of_weights(self.noise_weights(np.take_along_axis(values[part], step, axis=1)))
            found.second[part], found.fourth[part], found.sixth[part] = block.second, block.fourth, block.sixth
        return found

    def variance_of_ranges(self, low: Integers, high: Integers) -> Floats:
        """Return q'(A'A)^-1 q for each inclusive range."""
        return self.moments_of_steps(*range_steps(low, high)).second

    def fourth_powers_of_ranges(self, low: Integers, high: Integers) -> Floats:
        """Return the sum of the fourth powers of the noise weights of each inclusive range."""
        return self.moments_of_steps(*range_steps(low, high)).fourth

    def variance_of_cells(self, chosen: Mask) -> float:
        """Return q'(A'A)^-1 q for one set of cells."""
        return float(self.moments_of_query(chosen.astype(np.float64)).second)

    def fourth_powers_of_cells(self, chosen: Mask) -> float:
        """Return the sum of the fourth powers of the noise weights of one set of cells."""
        return float(self.moments_of_query(chosen.astype(np.float64)).fourth)

    def moments_of_query(self, query: Floats) -> Moments:
        """Return the moments of queries that weigh each cell: (..., size) to (...)."""
        return Moments.of_weights(self.noise_weights(query))


@dataclass(frozen=True)
class FlatAxis(AxisMoments):
    """The identity on one attribute: each cell on its own.

    >>> FlatAxis(5).variance_of_ranges(np.array([0, 2]), np.array([4, 2]))
    array([5., 1.])
    """

    size: int

    @property
    def is_flat(self) -> bool:
        """True."""
        return True

    @property
    def rows(self) -> int:
        """One measurement per cell."""
        return self.size

    def apply(self, cells: Integers) -> Integers:
        """Return the exact counts themselves."""
        return cells

    def adjoint(self, measurements: Floats) -> Floats:
        """Return the measurements themselves: the identity is its own transpose."""
        return measurements

    def solve(self, measurements: Floats | Integers) -> Floats:
        """Return the measurements themselves: nothing relates one to another."""
        return measurements.astype(np.float64, copy=False)

    def noise_weights(self, query: Floats) -> Floats:
        """Return the query itself."""
        return query

    def column_sums(self) -> Integers:
        """Return ones."""
        return np.ones(self.size, dtype=np.int64)

    @property
    def largest_column(self) -> int:
        """Each column holds a single 1."""
        return 1

    def column_pairs(self) -> tuple[ColumnPair, ...]:
        """Return a cell with itself, and two cells, which have no measurement in common."""
        one = ColumnPair(same=1)
        return (one, ColumnPair(same=0, left=1, right=1)) if self.size > 1 else (one,)

    @property
    def largest_square(self) -> int:
        """Each column holds a single 1."""
        return 1

    def column_products(self) -> tuple[ColumnProducts, ...]:
        """Return a cell with itself, and two cells, which have no measurement in common."""
        one = ColumnProducts(1, 1, 1)
        return (one, ColumnProducts(1, 1, 0)) if self.size > 1 else (one,)

    def least_shared(self) -> int:
        """Return 0, for two cells have no measurement in common; 1 if there is but one cell."""
        return 0 if self.size > 1 else 1

    def moments_of_steps(self, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of step functions: a step's length times the power of its value."""
        lengths = np.diff(cuts, axis=1, prepend=0, append=self.size).astype(np.float64)
        return Moments(*((lengths * values**power).sum(axis=1) for power in (2, 4, 6)))

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "flat", "size": self.size}


def read_flat_axis(data: Mapping[str, object]) -> FlatAxis:
    """Rebuild from ``to_dict``."""
    return FlatAxis(read_size(data["size"]))


def read_size(value: object) -> int:
    """Read the number of cells of an axis from untrusted data."""
    if type(value) is not int or not 1 <= value <= LARGEST_AXIS:
        raise ValueError(f"the size of an axis must be a whole number from 1 to {LARGEST_AXIS}")
    return value


def range_steps(low: Integers, high: Integers) -> tuple[Integers, Floats]:
    """Return inclusive ranges as step functions of values 0, 1, 0."""
    cuts = np.stack([np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64) + 1], axis=-1)
    return cuts, np.broadcast_to(np.array([0.0, 1.0, 0.0]), (len(cuts), 3))
