"""What questions need of a release."""

from collections.abc import Mapping
from typing import Protocol

from veilcube.analyst.estimate import Estimate, Estimates, GroupedCounts
from veilcube.analyst.questions.quantile import DateAnswer
from veilcube.query import Answer, Answers, Query
from veilcube.record import ReleaseRecord
from veilcube.schema import Ordinal, Region, Schema


class Asking(Protocol):
    """A release, or what answers as one does."""

    @property
    def record(self) -> ReleaseRecord:
        """The plain public data behind the release."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    def marginal(
        self, *names: str, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answers:
        """Estimate the counts of every combination of the named attributes' cells."""

    def sum(
        self, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer:
        """Estimate the sum of an ordinal attribute."""

    def mean(
        self, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer:
        """Estimate the mean of an ordinal attribute."""

    def quantile(
        self,
        attribute: str,
        rank: float = 0.5,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer | DateAnswer:
        """Estimate a quantile of an ordinal attribute."""

    def count(
        self, query: Query | None = None, *, estimator: str = "best", confidence: float = 0.95
    ) -> Answer | Answers:
        """Estimate how many rows meet a condition."""

    def share(
        self,
        query: Query | None = None,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer:
        """Estimate the share of the rows that meet a condition."""

    @property
    def _words(self) -> str: ...

    def _estimate(self, name: str) -> Estimate: ...

    def _ordinal_groups(
        self, attribute: str, where: Query | None, estimator: str, *, may_be_empty: bool = False
    ) -> tuple[Ordinal, GroupedCounts]: ...

    def _grouped(self, region: Region, names: tuple[str, ...], estimator: str, confidence: float) -> Answers: ...

    def _many(
        self, found: Estimates, confidence: float, asked: str, axes: Mapping[str, tuple[str, ...]] | None = None
    ) -> Answers: ...
