"""Sums, means, quantiles and distributions of ordinal attributes, read off counts at no cost."""

from numbers import Real

import numpy as np

from veilcube.analyst.estimate import (
    GroupedCounts,
    distribution_of_groups,
    mean_of_groups,
    quantile_of_groups,
)
from veilcube.analyst.questions.asking import Asking
from veilcube.analyst.questions.quantile import DateAnswer, answer_distributive, locate_quantile
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers, DistributiveQuery, Query, read_confidence, read_query
from veilcube.schema import Bins, Ordinal, Region


class OrdinalQuestions:
    """Questions about the values of an ordinal attribute."""

    def sum(
        self: Asking, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer:
        """Estimate the sum of an ordinal attribute, missing and other values aside.

        A bin counts as its middle, and the interval also covers where in their bins the values may lie.
        """
        ordinal, groups = self._ordinal_groups(attribute, where, estimator, may_be_empty=True)
        centres = ordinal.centres()
        value, stddev = float((centres * groups.counts).sum()), float(np.sqrt(groups.variance_of(centres)))
        least, largest = ordinal.spans()
        low = float((least * groups.counts).sum()) - groups.half_width_of(least, read_confidence(confidence))
        high = float((largest * groups.counts).sum()) + groups.half_width_of(largest, confidence)
        return Answer(value, min(low, value), max(high, value), confidence, stddev, self._words)

    def mean(
        self: Asking, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer:
        """Estimate the mean of an ordinal attribute, missing and other values aside.

        A bin counts as its middle, and the interval also covers where in their bins the values may lie.
        """
        ordinal, groups = self._ordinal_groups(attribute, where, estimator)
        found = mean_of_groups(groups, ordinal.centres(), read_confidence(confidence))
        low, high = found.low, found.high
        if isinstance(ordinal.division, Bins):
            least, largest = ordinal.spans()
            low = min(low, mean_of_groups(groups, least, confidence).low)
            high = max(high, mean_of_groups(groups, largest, confidence).high)
        return Answer(found.value, low, high, confidence, found.stddev, self._words)

    def quantile(
        self: Asking,
        attribute: str,
        rank: float = 0.5,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer | DateAnswer:
        """Estimate the least value of an ordinal attribute that a share ``rank`` of the rows does not exceed."""
        if isinstance(rank, bool) or not isinstance(rank, Real) or not 0.0 <= rank <= 1.0:
            raise QueryError("the rank of a quantile lies between 0 and 1, 0.5 being the median")
        ordinal, groups = self._ordinal_groups(attribute, where, estimator)
        cells = quantile_of_groups(groups, rank, read_confidence(confidence))
        return locate_quantile(ordinal, cells, confidence, self._words)

    def cdf(
        self: Asking, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answers:
        """Estimate, for every cell of an ordinal attribute, the share of rows at or below it."""
        ordinal, groups = self._ordinal_groups(attribute, where, estimator)
        found = distribution_of_groups(groups, read_confidence(confidence))
        labels = {ordinal.name: tuple(ordinal.labels()[: ordinal.regular_size])}
        return self._many(found, confidence, estimator, labels)

    def distributive(
        self: Asking,
        query: DistributiveQuery,
        attribute: str,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer:
        """Estimate a distributive query whose parts add up, such as a clipped sum, over an attribute's values."""
        axis = self.schema.axis(attribute)
        asked = self.schema.attributes[axis]

        def read_groups() -> GroupedCounts:
            region = read_query(self.schema, where if where is not None else {})
            return self._estimate(estimator).grouped(region, [axis]).first(asked.regular_size)

        return answer_distributive(query, asked, read_groups, read_confidence(confidence), self._words)

    def _ordinal_groups(
        self: Asking, attribute: str, where: Query | None, estimator: str, *, may_be_empty: bool = False
    ) -> tuple[Ordinal, GroupedCounts]:
        axis = self.schema.axis(attribute)
        ordinal = self.schema.attributes[axis]
        if not isinstance(ordinal, Ordinal):
            raise QueryError(f"'{attribute}' has no order, so it has no sum, mean or quantile; ask for its marginal")
        region = read_query(self.schema, where if where is not None else {})
        regular = Region.on_axis(self.schema.shape, axis, ordinal.mask(0, ordinal.regular_size))
        region = region.intersect(regular)
        if not region.cells and not may_be_empty:
            raise QueryError(
                f"the condition selects no cell of '{attribute}', so there is nobody to take a mean or a quantile of; "
                "widen the condition"
            )
        groups = self._estimate(estimator).grouped(region, [axis])
        return ordinal, groups.first(ordinal.regular_size)
