"""What every strategy's linear map offers: one truth for mechanisms, planner and estimators.

An operator A maps the exact counts x (integers, one per cell) to measurements A x (integers as well, so that discrete
noise stays exact). Noise of one law is added to every measurement; ``variance_*`` are in units of that law's variance.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError, QueryError, ReleaseFileError
from veilcube.operators.base.moments import LinearAnswers
from veilcube.query import LinearQueries
from veilcube.schema import Region, Schema
from veilcube.system import Floats

NeighbourName: TypeAlias = Literal["add-remove", "replace"]


class Operator(Protocol):
    """An implicit linear map from cells to measurements."""

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """The shape of the cube that it measures."""

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """The shape of what it returns."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """A name for each axis of the measurements, for readers of the file."""

    @property
    def words_to_apply(self) -> int:
        """How many 64-bit words ``apply`` holds at most beside the counts, its result included."""

    def apply(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact measurements A x of exact counts x."""

    def apply_to_tables(self, tables: Sequence[tuple[int, ...]], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact measurements from the exact counts of some tables of attributes, one after the other.

        An operator refuses tables from which it cannot tell what it measures.
        """

    def apply_to_rows(self, rows: Sequence[NDArray[np.integer[Any]]]) -> NDArray[np.int64]:
        """Return the exact measurements from rows: the cell of each row along each attribute.

        An operator that needs every cell refuses.
        """

    def adjoint(self, measurements: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the transposed map applied to measurements."""

    def solve(self, measurements: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the least-squares estimate of the cells from noisy measurements."""

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return the largest L1 change of A x when one row is added or removed, or when one is exchanged."""

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the largest squared L2 change of A x when one row is added or removed, or when one is exchanged."""

    def variance_of_rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the variance of the least-squares estimate of each block, inclusive indices (queries, attributes)."""

    def variance_of_region(self, region: Region) -> float:
        """Return the variance of the least-squares estimate of the count in a region."""

    @property
    def answers(self) -> LinearAnswers | None:
        """What answers from this measurement alone, with the noise of each answer; None if it determines none."""

    @property
    def weights_of_queries(self) -> int:
        """How many weights of cells ``queries`` writes out."""

    def queries(self, schema: Schema) -> tuple[LinearQueries, Floats]:
        """Return the query that each measurement answers, and the whole number that it was multiplied by."""

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""

    @property
    def array_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The name and shape of each array that is too long for plain data: a file keeps it beside the values."""

    @property
    def array_dimensions(self) -> Mapping[str, tuple[str, ...]]:
        """The axes of those arrays that have others than the measured values."""

    def arrays(self) -> Mapping[str, NDArray[np.int64]]:
        """Return the arrays by name."""

    def with_arrays(self, arrays: Mapping[str, NDArray[np.int64]]) -> Self:
        """Return the operator with the arrays that a file kept."""


def other_tables() -> PlanError:
    """Return the refusal of tables from which an operator cannot tell what it measures."""
    return PlanError("other tables were counted than the plan measures; count for this plan")


def unknown_kind() -> ReleaseFileError:
    """Return the refusal of a kind that has no reader: later versions may have one, and so must every kind of ours."""
    return ReleaseFileError("the release uses a strategy that this version does not know; upgrade veilcube")


class OperatorDefaults:
    """What an operator says that needs every cell, has no arrays, and answers nothing alone."""

    def apply_to_tables(self, tables: Sequence[tuple[int, ...]], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Refuse: no tables are enough."""
        raise other_tables()

    def apply_to_rows(self, rows: Sequence[NDArray[np.integer[Any]]]) -> NDArray[np.int64]:
        """Refuse: it is applied to the cube."""
        raise PlanError("this strategy measures the cube of a table, not its rows; count the cube")

    @property
    def answers(self) -> LinearAnswers | None:
        """None: other measurements are needed as well."""
        return None

    @property
    def weights_of_queries(self: Operator) -> int:
        """One for each cell of each attribute in each measurement."""
        return prod(self.measurement_shape) * sum(self.cell_shape)

    def queries(self, schema: Schema) -> tuple[LinearQueries, Floats]:
        """Refuse: its rows are not written out."""
        raise QueryError("the measurements of this strategy cannot be read as history; ask the release itself")

    @property
    def array_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """None: plain data tells it all."""
        return {}

    @property
    def array_dimensions(self) -> Mapping[str, tuple[str, ...]]:
        """None: arrays have the axes of the measured values."""
        return {}

    def arrays(self) -> Mapping[str, NDArray[np.int64]]:
        """Return no arrays."""
        return {}

    def with_arrays(self, arrays: Mapping[str, NDArray[np.int64]]) -> Self:
        """Return the operator itself."""
        return self


class OperatorReader(Protocol):
    """Rebuilds one kind of operator from the plain data of ``to_dict``."""

    def __call__(self, data: Mapping[str, object]) -> Operator:
        """Return the operator; raises KeyError, TypeError or ValueError on data that is not well formed."""
