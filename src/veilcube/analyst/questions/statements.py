"""Whole SQL statements: several statistics at once, of all rows or of every group."""

from veilcube.analyst.questions.asking import Asking
from veilcube.analyst.questions.contrasts import share_of
from veilcube.analyst.questions.groups import GroupedQuestion, Statistic
from veilcube.analyst.questions.quantile import DateAnswer
from veilcube.analyst.questions.spread import variance_of
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers, Asked, read_confidence, read_statement
from veilcube.schema import Region


def ask_statement(
    release: Asking, text: str, estimator: str, confidence: float
) -> dict[str, Answer | DateAnswer | Answers]:
    """Return what a statement asks for, each statistic under its name."""
    read = read_statement(release.schema, text)
    level = read_confidence(confidence)
    found: dict[str, Answer | DateAnswer | Answers] = {}
    for asked in read.asked:
        if read.group_by:
            statistic = Statistic.read(release.schema, asked.statistic, asked.column, asked.rank, asked.condition)
            question = GroupedQuestion(release, statistic, read.region, estimator, level)
            found[asked.name] = question.answers(read.group_by)
        else:
            found[asked.name] = _single(release, asked, read.region, estimator, level)
    return found


def _single(
    release: Asking, asked: Asked, region: Region, estimator: str, confidence: float
) -> Answer | DateAnswer | Answers:
    """Return one statistic of the rows of a region."""
    if asked.statistic == "count":
        return release.count(region, estimator=estimator, confidence=confidence)
    if asked.statistic == "share":
        if asked.condition is None:
            raise QueryError("SHARE(*) is the share of each group, so it needs GROUP BY; SHARE(condition) does not")
        return share_of(release, asked.condition, region, estimator, confidence)
    column = str(asked.column)
    if asked.statistic == "variance":
        return variance_of(release, column, region, estimator, confidence)
    if asked.statistic in ("median", "quantile"):
        rank = 0.5 if asked.rank is None else asked.rank
        return release.quantile(column, rank, where=region, estimator=estimator, confidence=confidence)
    ask = release.sum if asked.statistic == "sum" else release.mean
    return ask(column, where=region, estimator=estimator, confidence=confidence)
