"""The record of a release: plain public data, with no questions on it (those live on the analyst's side)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.privacy import PrivacyStatement, epsilon_of
from veilcube.privacy.event import laplace_events
from veilcube.release.measurement import NoisyMeasurement
from veilcube.schema import Schema

LARGEST_SUM = 2**62
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class ReleaseRecord:
    """Everything a release file holds.

    ``plan`` is the plan as plain data (strategy, epsilon, expected error), kept so that a reader can see what was
    promised before the budget was spent. ``created`` is a UTC time in ISO form.
    """

    schema: Schema
    statement: PrivacyStatement
    measurements: tuple[NoisyMeasurement, ...]
    plan: Mapping[str, object]
    created: str
    made_with: str

    def __post_init__(self) -> None:
        if not self.measurements:
            raise ReleaseFileError("a release needs at least one measurement")
        for measurement in self.measurements:
            if measurement.operator.cell_shape != self.schema.shape:
                raise ReleaseFileError("a measurement of the release is for another schema")
        if self.statement.epsilon <= 0 or epsilon_of(self.statement.event) <= 0:
            raise ReleaseFileError("a release must state an epsilon above 0 and the event that spends it")
        declared = {event.scale for event in laplace_events(self.statement.event)}
        if not declared.issuperset(measurement.noise.scale for measurement in self.measurements):
            raise ReleaseFileError("a measurement of the release has other noise than its privacy statement declares")
        if not all(_sums_fit(measurement.values) for measurement in self.measurements):
            raise ReleaseFileError("the measured values of the release are so large that their sums leave 64 bits")


def _sums_fit(values: NDArray[np.int64]) -> bool:
    """Whether the sum of any of the values fits in 64 bits, with room to spare for the rounding of this check."""
    largest = max(-int(values.min()), int(values.max()))
    if largest * values.size < LARGEST_SUM:
        return True
    flat = values.reshape(-1)
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    return sum(float(np.abs(block.astype(np.float64)).sum()) for block in blocks) < LARGEST_SUM
