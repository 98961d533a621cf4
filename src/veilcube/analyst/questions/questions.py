"""What can be asked of a release beyond single counts; all of it is free."""

from collections.abc import Sequence

from veilcube.analyst.questions.asking import Asking
from veilcube.analyst.questions.contrasts import (
    contrast_of,
    ratio_of,
    read_contrast,
    read_either,
    read_where,
    share_of,
)
from veilcube.analyst.questions.groups import GroupedQuestion, Statistic
from veilcube.analyst.questions.ordinals import OrdinalQuestions
from veilcube.analyst.questions.parts import parts_of
from veilcube.analyst.questions.quantile import DateAnswer
from veilcube.analyst.questions.spread import correlation_of, variance_of
from veilcube.analyst.questions.statements import ask_statement
from veilcube.query import Answer, Answers, Query, read_confidence, read_query


class Questions(OrdinalQuestions):
    """Questions by group, about parts of rows, and about several counts at once."""

    def group(
        self: Asking,
        by: Sequence[str] | str,
        statistic: str = "count",
        column: str | None = None,
        *,
        where: Query | None = None,
        rank: float | None = None,
        condition: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answers:
        """Estimate a statistic of every group: values of attributes, or levels such as ``"job:Level 1"``.

        ``count``, ``sum``, ``mean``, ``variance``, ``median``, ``quantile`` (with ``rank``) or ``share``: of the rows
        of each group that meet ``condition``, or without one, of all rows that are in each group. Where nobody can be,
        there is no mean: its value is NaN.
        """
        asked = Statistic.read(self.schema, statistic, column, rank, condition)
        among = read_where(self, where)
        return GroupedQuestion(self, asked, among, estimator, read_confidence(confidence)).answers(by)

    def ask(
        self: Asking, statement: str, *, estimator: str = "best", confidence: float = 0.95
    ) -> dict[str, Answer | DateAnswer | Answers]:
        """Answer a SQL statement of several statistics, each under its name or its alias.

        ``SELECT COUNT(*), AVG(age), MEDIAN(age), SHARE(age >= 65) FROM t GROUP BY LEVEL(job, 1)``
        """
        return ask_statement(self, statement, estimator, confidence)

    def share(
        self: Asking,
        query: Query | None = None,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
        **conditions: object,
    ) -> Answer:
        """Estimate the share of the rows (of those in ``where``) that meet a condition, given as in ``count``."""
        inside, among = read_either(self, query, conditions), read_where(self, where)
        return share_of(self, inside, among, estimator, read_confidence(confidence))

    def ratio(
        self: Asking,
        first: Query,
        second: Query,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer:
        """Estimate the count of one condition over that of another.

        The interval has no upper end where the noise hides whether the second count is 0.
        """
        among = read_where(self, where)
        above, below = (read_query(self.schema, query).intersect(among) for query in (first, second))
        return ratio_of(self, above, below, estimator, read_confidence(confidence))

    def difference(
        self: Asking,
        first: Query,
        second: Query,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer:
        """Estimate by how much one count is larger than another, with the noise of their difference."""
        weighted = read_contrast(self, [(1.0, first), (-1.0, second)], read_where(self, where))
        return contrast_of(self, weighted, estimator, read_confidence(confidence))

    def contrast(
        self: Asking,
        weighted: Sequence[tuple[float, Query]],
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer:
        """Estimate a weighted sum of counts: ``[(1, "age < 30"), (-0.5, "age >= 30")]``."""
        read = read_contrast(self, weighted, read_where(self, where))
        return contrast_of(self, read, estimator, read_confidence(confidence))

    def parts(self: Asking, *, estimator: str = "best", confidence: float = 0.95) -> Answers:
        """Estimate the total of every part of an adaptive release; each label says where the part lies."""
        return parts_of(self, estimator, read_confidence(confidence))

    def variance(
        self: Asking,
        attribute: str,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer:
        """Estimate the variance of an ordinal attribute among the rows that have a value.

        A bin counts as its middle, and the interval also covers where in their bins the values may lie.
        """
        return variance_of(self, attribute, read_where(self, where), estimator, read_confidence(confidence))

    def correlation(
        self: Asking,
        first: str,
        second: str,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer:
        """Estimate the correlation of two ordinal attributes among the rows that have a value of both."""
        rows = read_where(self, where)
        return correlation_of(self, (first, second), rows, estimator, read_confidence(confidence))
