"""``veilcube history``: what a dataset was asked and answered, and what all of these answers together teach."""

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import typer

from veilcube.analyst import KernelPCA, KernelPCAModel, MaxEntropy, MaxEntropyModel
from veilcube.cli.shared import (
    CommandGroup,
    Confidence,
    Force,
    JsonFlag,
    LedgerUrl,
    print_json,
    progress_bar,
    require_free,
    say,
    show_confidence,
    show_interval,
    show_number,
    show_table,
)
from veilcube.curator import Ledger, LedgerHistory, StoredAnswer
from veilcube.errors import QueryError, VeilcubeError
from veilcube.privacy import PrivacyStatement, show_fraction, write_fraction
from veilcube.query import Answers, Workload, grouped_regions, read_sql
from veilcube.record import History, Question, region_from_data, shortened
from veilcube.schema import Ordinal, Schema, read_groupings
from veilcube.system import atomic_file

app = CommandGroup(help="See the answers that a dataset gave, and learn from them at no cost in privacy.")

Model: TypeAlias = KernelPCAModel | MaxEntropyModel
MOST_VALUES_SHOWN = 3
LONGEST_QUESTION_SHOWN = 100


class Method(StrEnum):
    """How to learn from past answers."""

    KERNEL_PCA = "kernel-pca"
    MAX_ENTROPY = "max-entropy"


DatasetName = Annotated[str, typer.Argument(metavar="DATASET", help="The name of the dataset in the ledger.")]
MethodChoice = Annotated[Method, typer.Option("--method", help="How to learn from past answers.")]
SchemaChoice = Annotated[
    Path | None,
    typer.Option(
        "--schema", metavar="FILE", help="Use answers under this schema; needed where there are several schemas."
    ),
]
Total = Annotated[
    float | None,
    typer.Option("--total", metavar="ROWS", help="The number of rows, if it is public; else it is estimated."),
]


@dataclass(frozen=True)
class Asked:
    """A query with the values of its groups, if it has any."""

    text: str
    labels: tuple[str, ...]


@app.command()
def show(url: LedgerUrl, dataset: DatasetName, as_json: JsonFlag = False) -> None:
    """List the noisy answers that were given, in their order."""
    ledger = Ledger(url)
    past = ledger.history(dataset)
    if as_json:
        print_json({"ledger": url, "dataset": dataset, "answers": [_facts(answer) for answer in past.answers]})
        return
    columns = ("answer", "when", "analyst", "price", "question", "noisy values")
    asked = [_question(ledger, past, answer) for answer in past.answers]
    rows = [
        (
            answer.id,
            answer.at,
            answer.analyst or "-",
            _price(answer.statement),
            shortened(question.words, LONGEST_QUESTION_SHOWN),
            _shown_values(question, answer),
        )
        for question, answer in zip(asked, past.answers, strict=True)
    ]
    show_table(columns, rows, numbers=["answer"])


@app.command()
def integrate(
    url: LedgerUrl,
    dataset: DatasetName,
    method: MethodChoice = Method.KERNEL_PCA,
    schema: SchemaChoice = None,
    total: Total = None,
    confidence: Confidence = 0.95,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save the improved answers as JSON.")
    ] = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Learn from all answers together, and tell how much better the past ones become."""
    if out is not None:
        require_free(out, overwrite=force)
    past = _past(url, dataset, schema)
    model = _fit(past, method, total, quiet=as_json)
    improved = model.answer(past.queries, confidence)
    facts = _diagnostics(model, past, improved, method)
    if out is not None:
        saved = {"dataset": dataset} | facts | {"answers": _improved(past, improved)}
        with atomic_file(out) as file:
            file.write(json.dumps(saved, allow_nan=False).encode())
    if as_json:
        print_json({"ledger": url, "dataset": dataset} | facts)
        return
    show_table(("learned", "value"), [(name, show_number(value)) for name, value in facts.items()], numbers=["value"])
    if isinstance(model, MaxEntropyModel):
        say("", str(model.convergence))
    say("", "Nothing private was read and nothing charged: only answers that were given already.")


@app.command()
def answer(
    url: LedgerUrl,
    dataset: DatasetName,
    queries: Annotated[
        list[str], typer.Argument(metavar="SQL", help="A condition, or SELECT COUNT(*) ... with GROUP BY.")
    ],
    method: MethodChoice = Method.KERNEL_PCA,
    schema: SchemaChoice = None,
    total: Total = None,
    confidence: Confidence = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Answer count queries from past answers, each with an interval, at no cost in privacy."""
    past = _past(url, dataset, schema)
    asked, workload = _read_queries(past.schema, queries)
    found = _fit(past, method, total, quiet=as_json).answer(workload, confidence)
    if as_json:
        results = [
            {"query": row.text, "group": list(row.labels)} | _one(found, place) for place, row in enumerate(asked)
        ]
        facts = {"ledger": url, "dataset": dataset, "method": str(method), "confidence": confidence}
        print_json(facts | {"past answers": len(past), "results": results, "privacy": past.privacy})
        return
    interval = f"{show_confidence(confidence)} interval"
    rows = [
        (" ".join([row.text, *row.labels]), show_number(estimate.value), show_interval(estimate.low, estimate.high))
        for row, estimate in zip(asked, found, strict=True)
    ]
    show_table(("query", "estimate", interval), rows, numbers=["estimate", interval])
    say("", f"Learned from {len(past):,} past answers by {method}; nothing was charged.")


def _past(url: str, dataset: str, schema: Path | None) -> History:
    past = Ledger(url).history(dataset)
    return (past if schema is None else past.under(Schema.read(schema))).answered


def _fit(past: History, method: Method, total: float | None, *, quiet: bool) -> Model:
    if method is Method.KERNEL_PCA:
        return KernelPCA().fit(past, total)
    with warnings.catch_warnings(), progress_bar("Learning", hidden=quiet) as advance:
        warnings.simplefilter("ignore")  # what it would say is about histories with covariances, which no ledger has
        return MaxEntropy().fit(past, total, advance)


def _diagnostics(model: Model, past: History, improved: Answers, method: Method) -> dict[str, object]:
    before, after = float(past.variances.mean() ** 0.5), float((improved.stddev**2).mean() ** 0.5)
    return {
        "method": str(method),
        "past answers": len(past),
        "alpha": float(model.alpha) if isfinite(model.alpha) else "infinite",
        "total": model.total.value,
        "noise of past answers": before,
        "expected error now": after,
    }


def _improved(past: History, improved: Answers) -> list[dict[str, object]]:
    queries = past.queries.to_dict()["queries"]
    assert isinstance(queries, list)  # what ``to_dict`` promises and its type cannot say
    return [
        {"query": query, "noisy": float(past.values[place])} | _one(improved, place)
        for place, query in enumerate(queries)
    ]


def _one(found: Answers, place: int) -> dict[str, object]:
    single = found[place]
    return {"value": single.value, "low": single.low, "high": single.high, "stddev": single.stddev}


def _read_queries(schema: Schema, texts: Sequence[str]) -> tuple[list[Asked], Workload]:
    asked, regions = [], []
    for text in texts:
        parsed = read_sql(schema, text)
        regions += grouped_regions(schema, parsed.region, parsed.group_by)
        asked += [Asked(text, labels) for labels in _labels(schema, parsed.group_by)]
    if not regions:
        raise QueryError('there is nothing to answer; write a query such as "SELECT COUNT(*)"')
    return asked, Workload(schema, regions)


def _labels(schema: Schema, group_by: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return product(*(grouping.labels for grouping in read_groupings(schema, group_by)))


def _facts(stored: StoredAnswer) -> dict[str, object]:
    law = stored.noise
    return {
        "answer": stored.id,
        "charge": stored.charge,
        "at": stored.at,
        "analyst": stored.analyst,
        "question": dict(stored.question),
        "schema": stored.schema,
        "values": list(stored.values),
        # Older programs read the scales of Laplace noise; the noise tells the law, whichever it is.
        "scales": [write_fraction(law.parameter)] if law is not None and law.family == "laplace" else [],
        "noise": None if law is None else law.to_json(),
        "privacy": stored.statement.to_dict(),
    }


def _price(statement: PrivacyStatement) -> str:
    currency = statement.currency
    return f"{currency} {show_fraction(statement.cost(currency))}"


def _question(ledger: Ledger, past: LedgerHistory, stored: StoredAnswer) -> Question:
    schema = past.schemas[stored.schema]
    details = {name: value for name, value in stored.question.items() if name not in ("kind", "where")}
    try:
        region = region_from_data(schema, stored.question.get("where"))
    except VeilcubeError:
        raise ledger.damaged() from None
    return Question(schema, region, str(stored.question.get("kind")), details)


def _shown_values(question: Question, stored: StoredAnswer) -> str:
    values = [f"{value:,}" for value in stored.values[:MOST_VALUES_SHOWN]]
    number = len(stored.values)
    if question.kind in ("rank", "quantiles") and question.details.get("attribute") in question.schema.names:
        asked = question.details.get("quantiles")
        # Behind the answers stand the ends of their intervals.
        number = len(asked) if isinstance(asked, list) else 1
        values = _drawn_values(question, stored.values[: min(number, MOST_VALUES_SHOWN)])
    return ", ".join(values) + (", ..." if number > MOST_VALUES_SHOWN else "")


def _drawn_values(question: Question, places: Sequence[int]) -> list[str]:
    """Return the values at places among those in view, counted from the end that the question counts from."""
    ordinal = question.schema[str(question.details["attribute"])]
    cells = np.flatnonzero(question.region.reached(question.schema.axis(ordinal.name))[: ordinal.regular_size])
    if question.details.get("of") == "smallest":
        cells = cells[::-1]
    if not isinstance(ordinal, Ordinal) or not all(0 <= place < cells.size for place in places):
        return [f"{value:,}" for value in places]
    return [str(ordinal.labels()[cells[place]]) for place in places]
