"""What exports need of a release."""

from typing import Protocol

from veilcube.analyst.estimate import Estimate
from veilcube.query import Answer, Answers, Query
from veilcube.record import ReleaseRecord
from veilcube.schema import Schema


class Exporting(Protocol):
    """A release, or what answers as one does."""

    @property
    def record(self) -> ReleaseRecord:
        """The plain public data behind the release."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    def count(
        self, query: Query | None = None, *, estimator: str = "best", confidence: float = 0.95
    ) -> Answer | Answers:
        """Estimate how many rows meet a condition."""

    def marginal(
        self, *names: str, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answers:
        """Estimate the counts of every combination of the named attributes' cells."""

    def _estimate(self, name: str) -> Estimate: ...
