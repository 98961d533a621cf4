"""The record of a release: plain public data, with no questions on it (those live on the analyst's side)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.privacy import PrivacyStatement, epsilon_of
from veilcube.privacy.event import laplace_events
from veilcube.release.measurement import NoisyMeasurement, sensitivity_of
from veilcube.schema import Schema

LARGEST_SUM = 2**62
MOST_MEASUREMENTS = 1_000
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
        if len(self.measurements) > MOST_MEASUREMENTS:
            raise ReleaseFileError(f"a release has at most {MOST_MEASUREMENTS} measurements")
        trees = {part.operator.tree for part in self.measurements if isinstance(part.operator, NodeCounts)}
        if trees and trees != {HalvingTree.of(self.schema)}:
            raise ReleaseFileError("a measurement of the release is of another tree than its schema's")
        if self.statement.epsilon <= 0 or epsilon_of(self.statement.event) <= 0:
            raise ReleaseFileError("a release must state an epsilon above 0 and the event that spends it")
        declared = {event.scale for event in laplace_events(self.statement.event)}
        if not declared.issuperset(measurement.noise.scale for measurement in self.measurements):
            raise ReleaseFileError("a measurement of the release has other noise than its privacy statement declares")
        if not self._declares_enough:
            raise ReleaseFileError("the privacy statement of the release declares less than its strategy reveals")
        if not _sums_fit([measurement.values for measurement in self.measurements]):
            raise ReleaseFileError("the measured values of the release are so large that their sums leave 64 bits")

    @property
    def _declares_enough(self) -> bool:
        """Whether a release of one measurement states no smaller sensitivity than its strategy has."""
        if len(self.measurements) != 1 or isinstance(self.measurements[0].operator, NodeCounts):
            return True
        least = sensitivity_of(self.measurements[0].operator, self.statement.unit, self.statement.neighbours)
        return all(event.sensitivity >= least for event in laplace_events(self.statement.event))


def _sums_fit(arrays: Sequence[NDArray[np.int64]]) -> bool:
    """Whether the sum of any of the values fits in 64 bits, with room to spare for the rounding of this check."""
    if sum(max(-int(values.min()), int(values.max())) * values.size for values in arrays if values.size) < LARGEST_SUM:
        return True
    flat = [values.reshape(-1) for values in arrays]
    blocks = (values[start : start + _BLOCK] for values in flat for start in range(0, values.size, _BLOCK))
    return sum(float(np.abs(block.astype(np.float64)).sum()) for block in blocks) < LARGEST_SUM
