"""``veilcube synthesize``: synthetic rows from a release or from a ledger's past answers, and how good they are."""

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from veilcube.analyst import MaxEntropy, MaxEntropyModel, Quality, Release, format_for, judge_rows
from veilcube.cli.pages import write_quality_report
from veilcube.cli.shared import (
    Force,
    JsonFlag,
    open_release_file,
    print_json,
    progress_bar,
    require_free,
    say,
    show_number,
    show_table,
)
from veilcube.curator import Ledger
from veilcube.errors import QueryError
from veilcube.record import History
from veilcube.schema import Schema
from veilcube.system import load_extras

_SQLITE_BEGINS = b"SQLite format 3\x00"
# Rows that are judged: drawn like those in the file, and more would tell nothing more.
_MOST_JUDGED = 1 << 20

Rows: TypeAlias = Annotated[
    int | None,
    typer.Option("--rows", metavar="N", help="How many rows to draw; as many as the table has, unless said."),
]


class Engine(StrEnum):
    """How the distribution is found."""

    AUTO = "auto"
    EXACT = "exact"
    GIBBS = "gibbs"


def synthesize(
    *,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A release file (.veil), or a ledger with --dataset.")
    ] = None,
    learned_from: Annotated[
        str | None, typer.Option("--from", metavar="RELEASE|LEDGER", help="The same as FILE.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The .csv, .csv.gz or .parquet file to write.")],
    rows: Rows = None,
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="The dataset of the ledger.")] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="Use the ledger's answers under this schema, if it has several."),
    ] = None,
    total: Annotated[
        float | None,
        typer.Option("--total", metavar="ROWS", help="The number of rows of the table, if public; else estimated."),
    ] = None,
    engine: Annotated[Engine, typer.Option("--engine", help="How the distribution is found.")] = Engine.AUTO,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Also write a page about the quality of the rows.")
    ] = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Draw synthetic rows that follow what was measured.

    Only public things are read: noisy measurements, never the table. Nothing is charged.
    """
    source = _read_source(file, learned_from)
    format_for(out)
    for path in [out] if report is None else [out, report]:
        require_free(path, overwrite=force)
    if report is not None:
        load_extras()  # what is missing is told before the long work, not after it
    if rows is not None and rows < 1:
        raise QueryError("--rows must be a whole number of 1 or more")
    release = None if _is_ledger(source) else _open(source, dataset, schema)
    if release is not None and release.has_model:
        if report is not None or total is not None or engine is not Engine.AUTO:
            raise QueryError("this release has its own model of all rows; leave out --report, --total and --engine")
        _draw_from(release, rows, out, source, as_json=as_json)
        return
    history, told = _read_ledger(source, dataset, schema) if release is None else _learned_from(release)
    model = _fit(history, told if total is None else total, engine, quiet=as_json)
    count = max(1, round(model.total.value)) if rows is None else rows
    with progress_bar("Drawing rows", hidden=as_json) as advance:
        model.synthesize(count, out, advance)
    quality = judge_rows(history, model.rows(min(count, _MOST_JUDGED)), model.total.value)
    if report is not None:
        write_quality_report(history, model, quality, count, report)
    if as_json:
        facts = {"from": source, "file": str(out), "rows": count, "report": None if report is None else str(report)}
        print_json(facts | _facts(model, quality) | {"privacy": history.privacy})
        return
    _tell(model, quality, count, out, report)


def _draw_from(release: Release, rows: int | None, out: Path, source: str, *, as_json: bool) -> None:
    """Draw rows from the model that answers a release of grouped tables."""
    with progress_bar("Learning and drawing", hidden=as_json) as advance:
        count = max(1, round(float(release.count().value))) if rows is None else rows
        release.synthesize(count, out, advance)
    if as_json:
        print_json({"from": source, "file": str(out), "rows": count, "privacy": str(release.privacy)})
        return
    say(f"Wrote {count:,} synthetic rows to {out}.", release.check().words)
    say("Nothing private was read and nothing charged: only noisy measurements that were published already.")


def _read_source(file: str | None, learned_from: str | None) -> str:
    if (file is None) == (learned_from is None):
        raise QueryError("name one release file, or a ledger with --dataset, to learn from: people.veil")
    return str(file if learned_from is None else learned_from)


def _open(source: str, dataset: str | None, schema: Path | None) -> Release:
    if dataset is not None or schema is not None:
        raise QueryError("--dataset and --schema are for ledgers, and the source is a release; leave them out")
    return open_release_file(Path(source))


def _learned_from(release: Release) -> tuple[History, float | None]:
    """Return what was measured, and the number of rows where the release tells it and its measurements do not."""
    told = max(float(release.count().value), 1.0) if release.record.is_staged else None
    return release.drawn_from, told


def _read_ledger(source: str, dataset: str | None, schema: Path | None) -> tuple[History, None]:
    if dataset is None:
        raise QueryError("a ledger may hold many datasets; name one with --dataset")
    past = Ledger(source).history(dataset)
    return (past if schema is None else past.under(Schema.read(schema))).answered, None


def _is_ledger(source: str) -> bool:
    if "://" in source:
        return True
    path = Path(source)
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_SQLITE_BEGINS)) == _SQLITE_BEGINS


def _fit(history: History, total: float | None, engine: Engine, *, quiet: bool) -> MaxEntropyModel:
    with warnings.catch_warnings(), progress_bar("Learning", hidden=quiet) as advance:
        warnings.simplefilter("ignore")  # no covariances here; facts that do not fit were warned about before
        return MaxEntropy(engine=str(engine)).fit(history, total, advance)


def _facts(model: MaxEntropyModel, quality: Quality) -> dict[str, object]:
    report = model.convergence
    return {
        "total": model.total.value,
        "alpha": report.alpha,
        "engine": report.engine,
        "converged": report.converged,
        "misfit": report.misfit,
        "quality": [
            {
                "attributes": list(row.names),
                "error": row.error,
                "expected from noise": row.noise,
                "queries": row.queries,
            }
            for row in quality.marginals
        ],
    }


def _tell(model: MaxEntropyModel, quality: Quality, count: int, out: Path, report: Path | None) -> None:
    columns = ("attributes", "marginals", "distance from the noisy measurements", "distance that noise alone explains")
    rows = [
        (f"{ways}", f"{many}", show_number(error), show_number(noise)) for ways, many, error, noise in quality.by_ways()
    ]
    if rows:
        show_table(columns, rows, numbers=columns)
    say("", f"Wrote {count:,} synthetic rows to {out}." + (f" Their quality is told in {report}." if report else ""))
    say(str(model.convergence)[:1].upper() + str(model.convergence)[1:] + ".")
    say("Nothing private was read and nothing charged: only noisy measurements that were published already.")
