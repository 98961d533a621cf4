"""``veilcube query``: ask a release file, any number of times, at no cost in privacy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, TypeAlias, TypedDict

import typer

from veilcube.analyst import IMPUTED, DateAnswer, Release
from veilcube.cli.shared import (
    Confidence,
    JsonFlag,
    ReleaseFile,
    attributes_of_option,
    open_release_file,
    print_json,
    say,
    show_confidence,
    show_interval,
    show_number,
    show_table,
)
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers, read_statement
from veilcube.schema import Calendar, Ordinal

Names: TypeAlias = list[str] | None
Ranked: TypeAlias = tuple[str, float]
Queries: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="QUERY",
        help="SQL: a condition such as \"age >= 30 AND sex = 'Female'\", or SELECT COUNT(*), AVG(age), SHARE(age > 64) "
        "with WHERE and GROUP BY.",
        show_default=False,
    ),
]


# Where nobody can be there is no mean.
_NOBODY = "-"


def _read_ranked(given: Sequence[str]) -> Ranked:
    """Return an attribute and the rank of a quantile of it."""
    name, rank = given
    try:
        return name, float(rank)
    except ValueError:
        raise typer.BadParameter(f"the rank '{rank}' is not a number; 0.5 is the median") from None


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
    statistic: str | None = None

    def show(self, value: object) -> str:
        """Return a value for people: a month or a year by its name, as GROUP BY labels it, not by one of its days."""
        if value is None:
            return _NOBODY
        if self.calendar is None or not isinstance(value, date):
            return show_number(value)
        return self.calendar.label(self.calendar.number_of(value) - self.calendar.first_number)


@dataclass(frozen=True)
class Options:
    """The statistics that options ask for, and of which rows."""

    sums: Sequence[str]
    means: Sequence[str]
    quantiles: Sequence[Ranked]
    shares: Sequence[str]
    where: str | None
    group_by: Sequence[str] | None

    def __bool__(self) -> bool:
        return bool(self.sums or self.means or self.quantiles or self.shares)

    def require_questions(self, queries: Sequence[str]) -> None:
        """Refuse options that would be passed over, and a call that asks nothing."""
        if self.where is not None and not (self or self.group_by):
            raise QueryError(
                "--where needs --mean, --sum or --quantile, --share or --group-by; for a count give the condition alone"
            )
        if self.group_by and queries and not self:
            raise QueryError("--group-by is for --mean, --sum, --quantile and --share; write GROUP BY into the query")
        if not (queries or self or self.group_by):
            raise QueryError('there is nothing to answer; write a query such as "SELECT COUNT(*)"')

    def statistics(self) -> Iterator[tuple[str, str, dict[str, object]]]:
        """Yield each statistic with its words and what ``release.group`` takes for it."""
        if self.group_by and not self:
            yield "count", "count", {}
        for name in self.sums:
            yield f"sum of {name}", "sum", {"column": name}
        for name in self.means:
            yield f"mean of {name}", "mean", {"column": name}
        for name, rank in self.quantiles:
            yield f"quantile {rank:g} of {name}", "quantile", {"column": name, "rank": rank}
        for condition in self.shares:
            yield f"share of {condition}", "share", {"condition": condition}


def query(
    file: ReleaseFile,
    queries: Queries = None,
    sums: Annotated[Names, typer.Option("--sum", metavar="ATTRIBUTE", help="Estimate a sum; may be repeated.")] = None,
    means: Annotated[
        Names, typer.Option("--mean", metavar="ATTRIBUTE", help="Estimate a mean; may be repeated.")
    ] = None,
    quantiles: Annotated[
        list[Any] | None,
        typer.Option(
            "--quantile",
            metavar="ATTRIBUTE RANK",
            parser=_read_ranked,
            help="Estimate a quantile; rank 0.5 is the median; may be repeated.",
        ),
    ] = None,
    shares: Annotated[
        Names,
        typer.Option("--share", metavar="SQL", help="Estimate the share that meets it; may be repeated."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Which rows --sum, --mean, --quantile and --share are about."),
    ] = None,
    group_by: Annotated[
        Names,
        typer.Option(
            "--group-by",
            metavar="ATTRIBUTES",
            help="Answer them for each value of attributes, or level: sex,job:Level 1. Alone: counts.",
        ),
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

    Counts, sums, means, quantiles and shares, of all rows or by group, any number of them, at no cost in privacy.
    """
    options = Options(sums or [], means or [], quantiles or [], shares or [], where, group_by)
    options.require_questions(queries or [])
    if all_rows and (options or group_by):
        raise QueryError(
            "--all-rows is for counts; ask --sum, --mean and --quantile, --share and --group-by without it, about the "
            "kept rows"
        )
    release = open_release_file(file)
    how = _Manner(estimator=estimator, confidence=confidence)
    rows = "all" if all_rows else "kept"
    if guaranteed or all_rows or spread is not None:
        interval = "guaranteed" if guaranteed else "calibrated"
        found = [
            Found(text, release.count(text, interval=interval, rows=rows, spread=spread, **how), statistic="COUNT(*)")
            for text in queries or []
        ]
    else:
        found = [row for text in queries or [] for row in _answers(release, text, how)]
    found += _statistics(release, options, how)
    check = release.check(estimator=estimator)
    if as_json:
        results = [{"query": row.question, "statistic": row.statistic} | _facts(row.answer) for row in found]
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


def _answers(release: Release, text: str, how: _Manner) -> list[Found]:
    """Answer one query: a count, or every statistic of a statement."""
    read = read_statement(release.schema, text)
    columns = {asked.name: asked.column for asked in read.asked}
    answers = release.ask(text, **how)
    return [
        Found(
            text if len(answers) == 1 else f"{name}: {text}",
            answer,
            _calendar(release, columns[name]),
            name,
        )
        for name, answer in answers.items()
    ]


def _statistics(release: Release, options: Options, how: _Manner) -> list[Found]:
    # A count beside them may have a condition of its own, so each says which rows it is about.
    where = options.where
    rows = "(all rows)" if where is None else f"where {where}"
    groups = None if options.group_by is None else attributes_of_option(release.schema, options.group_by)
    found = []
    for words, statistic, settings in options.statistics():
        answer: Answer | DateAnswer | Answers
        if groups is not None:
            answer = release.group(groups, statistic, where=where, **settings, **how)  # type: ignore[arg-type]
        elif statistic == "share":
            answer = release.share(str(settings["condition"]), where=where, **how)
        elif statistic == "quantile":
            answer = release.quantile(*settings.values(), where=where, **how)  # type: ignore[arg-type]
        else:
            ask = release.sum if statistic == "sum" else release.mean
            answer = ask(str(settings["column"]), where=where, **how)
        calendar = _calendar(release, settings.get("column"))
        found.append(Found(f"{words} {rows}", answer, calendar, words))
    return found


def _calendar(release: Release, name: object) -> Calendar | None:
    attribute = None if name is None else release.schema[str(name)]
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
    grouped = [row for row in found if isinstance(row.answer, Answers)]
    for position, row in enumerate(grouped):
        if single or position:
            say("")
        if len(found) > 1:
            say(row.question)
        _show_groups(row, interval)


def _show_groups(row: Found, interval: str) -> None:
    """Print one row for each group: its labels, the estimate and the interval; a dash where nobody can be."""
    answers = row.answer
    if not isinstance(answers, Answers):
        raise TypeError("groups are shown for many answers")
    columns = answers.columns()
    labels = [columns[name] for name in answers.axes]
    estimates = [row.show(value) for value in columns["value"]]
    ends = zip(columns["low"], columns["high"], strict=True)
    intervals = [
        _NOBODY if row.show(low) == _NOBODY else show_interval(row.show(low), row.show(high)) for low, high in ends
    ]
    rows = list(zip(*labels, estimates, intervals, strict=True))
    show_table((*answers.axes, "estimate", interval), rows, numbers=["estimate", interval])
