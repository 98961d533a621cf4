"""The record of a release: plain public data, with no questions on it (those live on the analyst's side)."""

from collections.abc import Mapping
from dataclasses import dataclass

from veilcube.errors import ReleaseFileError
from veilcube.privacy import PrivacyStatement
from veilcube.release.measurement import NoisyMeasurement
from veilcube.schema import Schema


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
