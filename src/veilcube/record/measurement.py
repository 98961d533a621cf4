"""A noisy measurement: what was published, how it relates to the cells, and the law of its noise."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.laws import Noise
from veilcube.operators import (
    GroupedTablesOperator,
    IdentityOperator,
    MarginalsOperator,
    NodeCounts,
    Operator,
    ProductOperator,
    RegionCounts,
    flat_product,
)
from veilcube.privacy import (
    GaussianEvent,
    Neighbours,
    NoiseKey,
    PrivacyUnit,
    unit_sensitivity,
    unit_sensitivity_l2_squared,
)

Family = TypeVar("Family", bound=Operator)


def sensitivity_of(operator: Operator, unit: PrivacyUnit, neighbours: Neighbours) -> int:
    """Return the largest L1 change of an operator's measurements when one unit changes."""
    added = operator.sensitivity("add-remove")
    # Exchanges take longer to compare, and matter to nobody whose rows only come and go.
    exchanged = operator.sensitivity("replace") if neighbours is Neighbours.REPLACE else 2 * added
    return unit_sensitivity(added, exchanged, unit, neighbours)


def sensitivity_l2_squared_of(operator: Operator, unit: PrivacyUnit, neighbours: Neighbours) -> int:
    """Return the largest squared L2 change of an operator's measurements when one unit changes."""
    added = operator.sensitivity_l2_squared("add-remove")
    exchanged = operator.sensitivity_l2_squared("replace") if neighbours is Neighbours.REPLACE else 4 * added
    return unit_sensitivity_l2_squared(added, exchanged, unit, neighbours)


@dataclass(frozen=True, eq=False)
class NoisyMeasurement:
    """Integers ``operator.apply(exact counts) + noise``, every entry with noise of one law.

    The noises are independent, unless the law says that they were drawn jointly.
    """

    operator: Operator
    values: NDArray[np.int64]
    noise: Noise

    def __post_init__(self) -> None:
        if self.values.shape != self.operator.measurement_shape or self.values.dtype != np.int64:
            raise ReleaseFileError("the measured values do not have the shape that their strategy asks for")
        self.values.setflags(write=False)

    def needed(self, unit: PrivacyUnit, neighbours: Neighbours) -> NoiseKey:
        """Return the least that a privacy statement has to declare for it."""
        of = sensitivity_l2_squared_of if self.noise.family == GaussianEvent.family else sensitivity_of
        return NoiseKey(self.noise.family, self.noise.charged, of(self.operator, unit, neighbours))

    # Estimators and readers of files need more of a family than every operator has. They ask here, and nowhere else.

    @property
    def nodes(self) -> NodeCounts | None:
        """The nodes of a halving tree that were counted: a step of a staged tree."""
        return self._of_family(NodeCounts)

    @property
    def parts(self) -> RegionCounts | None:
        """The parts of a partition that were counted."""
        return self._of_family(RegionCounts)

    @property
    def tables(self) -> MarginalsOperator | None:
        """The tables of attributes that were counted."""
        return self._of_family(MarginalsOperator)

    @property
    def grouped(self) -> GroupedTablesOperator | None:
        """The tables of grouped values that were counted."""
        return self._of_family(GroupedTablesOperator)

    @property
    def cells(self) -> IdentityOperator | None:
        """The cells, where each was counted on its own."""
        return self._of_family(IdentityOperator)

    @property
    def product(self) -> ProductOperator | None:
        """The product of one-axis maps that was measured; cells on their own are one of flat axes."""
        if self.cells is not None:
            return flat_product(self.cells.cell_shape, self.cells.dimensions)
        return self._of_family(ProductOperator)

    def _of_family(self, family: type[Family]) -> Family | None:
        return self.operator if isinstance(self.operator, family) else None
