"""``veilcube query``: ask a release file, any number of times, at no cost in privacy."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from veilcube.analyst import DateAnswer, open_release
from veilcube.cli.options import Confidence, JsonFlag, ReleaseFile
from veilcube.cli.output import print_json, say, show_confidence, show_interval, show_number, show_table
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers

Question: TypeAlias = str
Found: TypeAlias = Answer | DateAnswer | Answers

Names: TypeAlias = list[str] | None
Queries: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="QUERY",
        help="SQL: a condition such as \"age >= 30 AND sex = 'Female'\", or SELECT COUNT(*) with WHERE and GROUP BY.",
        show_default=False,
    ),
]


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
        str, typer.Option("--estimator", metavar="NAME", help="How to estimate: best picks the preferred way.")
    ] = "best",
    as_json: JsonFlag = False,
) -> None:
    """Ask a release; every answer comes with an interval.

    Counts, sums, means and quantiles, any number of them, at no cost in privacy.
    """
    if not (queries or sums or means or quantile):
        raise QueryError('there is nothing to answer; write a query such as "SELECT COUNT(*)"')
    if where is not None and not (sums or means or quantile):
        raise QueryError("--where is for --sum, --mean and --quantile; write a count's condition as the query itself")
    release = open_release(file)
    found: list[tuple[Question, Found]] = [
        (text, release.count(text, estimator=estimator, confidence=confidence)) for text in queries or []
    ]
    suffix = "" if where is None else f" where {where}"
    for name in sums or []:
        answer = release.sum(name, where=where, estimator=estimator, confidence=confidence)
        found.append((f"sum of {name}{suffix}", answer))
    for name in means or []:
        answer = release.mean(name, where=where, estimator=estimator, confidence=confidence)
        found.append((f"mean of {name}{suffix}", answer))
    if quantile is not None:
        name, rank = quantile
        place = release.quantile(name, rank, where=where, estimator=estimator, confidence=confidence)
        found.append((f"quantile {rank:g} of {name}{suffix}", place))
    if as_json:
        results = [{"query": text} | _facts(answer) for text, answer in found]
        privacy = release.privacy.to_dict()
        print_json({"file": str(file), "confidence": confidence, "results": results, "privacy": privacy})
        return
    _show(found, confidence)
    say("", str(release.privacy))


def _facts(found: Found) -> dict[str, object]:
    facts = found.to_dict()
    if isinstance(found, Answers):
        return {"groups": facts["answers"]}
    return {name: facts[name] for name in ("value", "low", "high", "stddev") if name in facts}


def _show(found: Sequence[tuple[Question, Found]], confidence: float) -> None:
    interval = f"{show_confidence(confidence)} interval"
    single = [
        (text, show_number(answer.value), show_interval(answer.low, answer.high))
        for text, answer in found
        if not isinstance(answer, Answers)
    ]
    if single:
        show_table(("query", "estimate", interval), single, numbers=["estimate", interval])
    grouped = [(text, answers) for text, answers in found if isinstance(answers, Answers)]
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
