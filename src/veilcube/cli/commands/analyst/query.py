"""``veilcube query``: ask a release file, any number of times, at no cost in privacy."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, TypeAlias, TypedDict

import typer

from veilcube.analyst import IMPUTED, DateAnswer, Release
from veilcube.cli.shared import (
    Confidence,
    JsonFlag,
    ReleaseFile,
    open_release_file,
    print_json,
    say,
    show_confidence,
    show_interval,
    show_number,
    show_table,
)
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers
from veilcube.schema import Calendar, Ordinal

Names: TypeAlias = list[str] | None
Queries: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="QUERY",
        help="SQL: a condition such as \"age >= 30 AND sex = 'Female'\", or SELECT COUNT(*) with WHERE and GROUP BY.",
        show_default=False,
    ),
]


class _Manner(TypedDict):
    """How every question of one call is estimated."""

    estimator: str
    confidence: float


@dataclass(frozen=True)
class Found:
    """An answer with the question it answers; dates are shown in the units of ``calendar``."""

    question: str
    answer: Answer | DateAnswer | Answers
    calendar: Calendar | None = None

    def show(self, value: float | date) -> str:
        """Return a value for people: a month or a year by its name, as GROUP BY labels it, not by one of its days."""
        if self.calendar is None or not isinstance(value, date):
            return show_number(value)
        return self.calendar.label(self.calendar.number_of(value) - self.calendar.first_number)


def query(
    file: ReleaseFile,
    queries: Queries = None,
    sums: Annotated[Names, typer.Option("--sum", metavar="ATTRIBUTE", help="Estimate a sum; may be repeated.")] = None,
    means: Annotated[
        Names, typer.Option("--mean", metavar="ATTRIBUTE", help="Estimate a mean; may be repeated.")
    ] = None,
    quantile: Annotated[
        tuple[str, float] | None,
        typer.Option("--quantile", metavar="ATTRIBUTE RANK", help="Estimate a quantile; rank 0.5 is the median."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Which rows --sum, --mean and --quantile are about."),
    ] = None,
    confidence: Confidence = 0.95,
    estimator: Annotated[
        str,
        typer.Option(
            "--estimator",
            metavar="NAME",
            help="How to estimate: best, least_squares, nonnegative, posterior, thresholded, shrunken, observed or "
            "max_entropy.",
        ),
    ] = "best",
    guaranteed: Annotated[
        bool, typer.Option("--guaranteed", help="Give counts intervals that hold whatever the data are.")
    ] = False,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all-rows", help="Count all rows of a person, those beyond the cap too, where they were measured."
        ),
    ] = False,
    spread: Annotated[
        float | None,
        typer.Option(
            "--spread",
            metavar="FACTOR",
            help="With --all-rows: take dropped rows to be at most so many times as frequent, or rare, as kept ones.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask a release; every answer comes with an interval.

    Counts, sums, means and quantiles, any number of them, at no cost in privacy.
    """
    if where is not None and not (sums or means or quantile):
        raise QueryError("--where needs --mean, --sum or --quantile; for a count give the condition alone")
    if not (queries or sums or means or quantile):
        raise QueryError('there is nothing to answer; write a query such as "SELECT COUNT(*)"')
    if all_rows and (sums or means or quantile):
        raise QueryError("--all-rows is for counts; ask --sum, --mean and --quantile without it, about the kept rows")
    release = open_release_file(file)
    how = _Manner(estimator=estimator, confidence=confidence)
    interval = "guaranteed" if guaranteed else "calibrated"
    rows = "all" if all_rows else "kept"
    found = [
        Found(text, release.count(text, interval=interval, rows=rows, spread=spread, **how)) for text in queries or []
    ]
    found += _statistics(release, sums or [], means or [], quantile, where, how)
    check = release.check(estimator=estimator)
    if as_json:
        results = [{"query": row.question} | _facts(row.answer) for row in found]
        facts = {"file": str(file), "confidence": confidence, "results": results}
        promise = {"privacy": release.privacy.to_dict(), "counted": release.counted, "rows": rows}
        beyond = release.beyond_cap(estimator=estimator, confidence=confidence)
        cap = {"beyond_cap": None if beyond is None else beyond.to_dict()}
        print_json(facts | promise | cap | {"check": check.to_dict()})
        return
    _show(found, confidence)
    if any(IMPUTED in getattr(row.answer, "estimator", "") for row in found):
        say("", "Imputed by maximum entropy where no measured table holds all the attributes that are asked about.")
    if not check.is_good:
        say("", f"Check: {check.words}")
    say("", str(release.privacy))
    for words in words_on_cap(release, estimator=estimator, confidence=confidence, all_rows=all_rows):
        say(words)
    if release.refinement is not None:
        say("The answers are refined with known facts, which 'veilcube info' lists.")


def words_on_cap(release: Release, *, estimator: str, confidence: float, all_rows: bool = False) -> list[str]:
    """Return what a reader must know about rows beyond the cap, if there is one."""
    beyond = release.beyond_cap(estimator=estimator, confidence=confidence)
    known = [] if beyond is None else [beyond.words]
    if all_rows and beyond is not None:
        return ["Counts are of all rows; their intervals cover those beyond the cap.", *known]
    return known if release.counted is None else [release.counted, *known]


def _statistics(
    release: Release,
    sums: Sequence[str],
    means: Sequence[str],
    quantile: tuple[str, float] | None,
    where: str | None,
    how: _Manner,
) -> list[Found]:
    # A count beside them may have a condition of its own, so each says which rows it is about.
    rows = "(all rows)" if where is None else f"where {where}"
    found = [Found(f"sum of {name} {rows}", release.sum(name, where=where, **how)) for name in sums]
    found += [Found(f"mean of {name} {rows}", release.mean(name, where=where, **how)) for name in means]
    if quantile is not None:
        name, rank = quantile
        answer = release.quantile(name, rank, where=where, **how)
        found.append(Found(f"quantile {rank:g} of {name} {rows}", answer, _calendar(release, name)))
    return found


def _calendar(release: Release, name: str) -> Calendar | None:
    attribute = release.schema[name]
    division = attribute.division if isinstance(attribute, Ordinal) else None
    return division if isinstance(division, Calendar) else None


def _facts(found: Answer | DateAnswer | Answers) -> dict[str, object]:
    facts = found.to_dict()
    if isinstance(found, Answers):
        return {"groups": facts["answers"], "estimator": facts["estimator"]}
    return {name: facts[name] for name in ("value", "low", "high", "stddev", "estimator") if name in facts}


def _show(found: Sequence[Found], confidence: float) -> None:
    interval = f"{show_confidence(confidence)} interval"
    single = [
        (row.question, row.show(answer.value), show_interval(row.show(answer.low), row.show(answer.high)))
        for row in found
        if not isinstance(answer := row.answer, Answers)
    ]
    if single:
        show_table(("query", "estimate", interval), single, numbers=["estimate", interval])
    grouped = [(row.question, row.answer) for row in found if isinstance(row.answer, Answers)]
    for position, (text, answers) in enumerate(grouped):
        if single or position:
            say("")
        if len(found) > 1:
            say(text)
        show_groups(answers, interval)


def show_groups(answers: Answers, interval: str) -> None:
    """Print one row for each group: its labels, the estimate and the interval."""
    columns = answers.columns()
    labels = [columns[name] for name in answers.axes]
    estimates = [show_number(value) for value in columns["value"]]
    intervals = [show_interval(*ends) for ends in zip(columns["low"], columns["high"], strict=True)]
    rows = list(zip(*labels, estimates, intervals, strict=True))
    show_table((*answers.axes, "estimate", interval), rows, numbers=["estimate", interval])
