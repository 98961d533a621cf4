"""A noisy measurement: what was published, how it relates to the cells, and the law of its noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.laws import DiscreteLaplace
from veilcube.operators import Operator
from veilcube.privacy import Neighbours, PrivacyUnit, unit_sensitivity


def sensitivity_of(operator: Operator, unit: PrivacyUnit, neighbours: Neighbours) -> int:
    """Return the largest L1 change of an operator's measurements when one unit changes."""
    added = operator.sensitivity("add-remove")
    # Exchanges take longer to compare, and matter to nobody whose rows only come and go.
    exchanged = operator.sensitivity("replace") if neighbours is Neighbours.REPLACE else 2 * added
    return unit_sensitivity(added, exchanged, unit, neighbours)


@dataclass(frozen=True, eq=False)
class NoisyMeasurement:
    """Integers ``operator.apply(exact counts) + noise``, every entry with noise of one law.

    The noises are independent, unless the law says that they were drawn jointly.
    """

    operator: Operator
    values: NDArray[np.int64]
    noise: DiscreteLaplace

    def __post_init__(self) -> None:
        if self.values.shape != self.operator.measurement_shape or self.values.dtype != np.int64:
            raise ReleaseFileError("the measured values do not have the shape that their strategy asks for")
        self.values.setflags(write=False)
