"""``veilcube plan``: what a release would measure and how wrong its answers would be, before any budget is spent.

With ``--useful``: how many rows, which error or which epsilon make a released histogram useful.
"""

import shlex
from collections.abc import Sequence
from math import ceil, prod
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from veilcube import session
from veilcube.cli.pages import Curve, curves_of, require_drawable, text_plot, write_plot
from veilcube.cli.shared import (
    Asked,
    Confidence,
    EpsilonOrNone,
    Force,
    JsonFlag,
    MaxRows,
    NeighboursChoice,
    Person,
    Queries,
    Rho,
    Strategy,
    StrategyCommand,
    WantedError,
    print_json,
    program,
    read_workload,
    require_free,
    require_whole_unit,
    say,
    say_exactly,
    show_confidence,
    show_number,
    show_table,
)
from veilcube.errors import PlanError
from veilcube.planner import DEFAULT_EPSILON, MEANINGS, Plan, Usefulness, plan as make_plan, usefulness
from veilcube.privacy import Neighbours, show_fraction, write_fraction
from veilcube.query import Workload, weights_of
from veilcube.schema import Schema

# Smaller plans fit any machine.
_FEW_CELLS = 2**20


def plan_usefulness(
    file: Path | None,
    cells: int | None,
    epsilon: str | None,
    error: float | None,
    rows: float | None,
    delta: float,
    neighbours: Neighbours,
    as_json: bool,
) -> None:
    """Find the one of rows, error and epsilon that is left out, and show it by each bound."""
    if (file is None) == (cells is None):
        raise PlanError("give either a schema file or --cells, the number of cells of the histogram")
    size = cells if cells is not None else Schema.from_toml(file).cells  # type: ignore[arg-type]
    found = usefulness(cells=size, epsilon=epsilon, error=error, rows=rows, delta=delta, neighbours=str(neighbours))
    if as_json:
        print_json(found.to_dict())
        return
    _show_usefulness(found)


def _show_usefulness(found: Usefulness) -> None:
    values = getattr(found, found.solved)
    # A part of a row is no row.
    shown = {bound: ceil(value) if found.solved == "rows" else value for bound, value in values.items()}
    asked = {"rows": "Rows that are needed", "error": "Error, as a share of the rows", "epsilon": "Epsilon needed"}
    say(f"{asked[found.solved]}, with probability {1 - found.delta:.6g}, {found.cells:,} cells:", "")
    show_table(
        ("bound", found.solved, "holds for"),
        [(bound, show_number(shown[bound]), meaning) for bound, meaning in MEANINGS.items()],
        numbers=[found.solved],
    )
    say("", f"Neighbours: {found.neighbours}. No data was read and no budget spent.")


DEFAULT_DELTA = 0.05


SchemaFileOrNone: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="SCHEMA", help="A schema file (.toml); with --useful, --cells will do.")
]
Useful: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--useful",
        help="Tell how much data is enough: give two of --epsilon, --error and --rows, and the third is found.",
    ),
]
Cells: TypeAlias = Annotated[
    int | None, typer.Option("--cells", metavar="N", help="With --useful: the cells of the histogram.")
]
Rows: TypeAlias = Annotated[
    float | None, typer.Option("--rows", metavar="N", help="With --useful: the rows of the table.")
]
DeltaOrShare: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        help="Beside --epsilon or --error: promise a pair such as 1 and 1e-9, which allows Gaussian noise. With "
        "--useful: how often answers may be further off; 0.05 if left out.",
    ),
]
OutFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Save the plan (.plan), for veilcube release --plan; it is public."),
]
PlotFile: TypeAlias = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw error against epsilon into a file, .html or .svg.")
]


SETTINGS = {"cls": StrategyCommand}


def plan(
    file: SchemaFileOrNone = None,
    epsilon: EpsilonOrNone = None,
    neighbours: NeighboursChoice = Neighbours.ADD_REMOVE,
    person: Person = None,
    max_rows: MaxRows = None,
    strategy: Strategy = "auto",
    queries: Queries = None,
    asked: Asked = None,
    error: WantedError = None,
    confidence: Confidence = 0.95,
    plot: PlotFile = None,
    useful: Useful = False,
    cells: Cells = None,
    rows: Rows = None,
    delta: DeltaOrShare = None,
    rho: Rho = None,
    out: OutFile = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the expected error of a release, or how much data is enough. Reads no data and spends no budget."""
    if useful:
        named = strategy if strategy != "auto" else None
        _require_unset("--useful", person, max_rows, queries, asked, plot, named, rho, out)
        plan_usefulness(file, cells, epsilon, error, rows, _read_share(delta), neighbours, as_json)
        return
    _require_useful(cells, rows)
    if file is None:
        raise PlanError("a plan needs a schema file; write one with 'veilcube schema', or ask with --useful --cells")
    require_whole_unit(person, max_rows)
    _require_one_budget(epsilon, delta, rho, error)
    if plot is not None:
        require_drawable(plot)
    if out is not None:
        require_free(out, overwrite=force)
    schema = Schema.from_toml(file)
    workload = read_workload(schema, asked, queries or [])
    budget = DEFAULT_EPSILON if epsilon is None else epsilon
    chosen = make_plan(
        schema, budget, strategy, workload, str(neighbours),
        person=person, max_rows=max_rows, error=error, confidence=confidence, delta=delta, rho=rho,
    )  # fmt: skip
    _require_releasable(chosen)
    _report(chosen, queries or [], confidence, plot, out, as_json)


def _require_releasable(chosen: Plan) -> None:
    """Refuse what a release would refuse; what carries releases out is loaded only where it could be too much."""
    if max(chosen.schema.cells, prod(chosen.operator.measurement_shape)) > _FEW_CELLS:
        session.require_releasable(chosen)
    else:
        chosen.require_memory()
        chosen.require_range()


def _report(
    chosen: Plan, queries: Sequence[str], confidence: float, plot: Path | None, out: Path | None, as_json: bool
) -> None:
    """Draw the curve and save the plan if files are named, and say what was planned."""
    texts = weights_of(queries)[0]
    stddevs = chosen.stddev(Workload(chosen.schema, texts)).tolist() if texts else []
    per_query = list(zip(texts, stddevs, strict=True))
    curves = curves_of(chosen)
    if plot is not None:
        write_plot(curves, f"Expected error over {chosen.workload.words}", plot)
    if out is not None:
        chosen.save(out)
    if as_json:
        files = {name: None if file is None else str(file) for name, file in (("plot", plot), ("out", out))}
        print_json(_facts(chosen, per_query, curves, confidence) | files)
        return
    _show(chosen, per_query, confidence)
    say("")
    say_exactly(text_plot(curves))
    if plot is not None:
        say("", f"Wrote {plot}.")
    if out is not None:
        say("", f"Wrote {out}. Try next:")
        say_exactly(f"  {program()} release TABLE --plan {shlex.quote(str(out))} --out table.veil")


def _require_unset(flag: str, *others: object) -> None:
    if any(other is not None and other != [] for other in others):
        raise PlanError(f"{flag} goes with --epsilon, --error, --rows, --delta, --cells and --neighbours only")


def _require_useful(*settings: object) -> None:
    if any(setting is not None for setting in settings):
        raise PlanError("--cells and --rows go with --useful; add it or leave them out")


def _require_one_budget(epsilon: str | None, delta: str | None, rho: str | None, error: float | None) -> None:
    """Refuse no budget at all, or one beside the error that it would follow from; what else is wrong the plan tells."""
    has_budget = epsilon is not None or rho is not None or (delta is not None and error is None)
    if has_budget == (error is not None):
        raise PlanError(
            "give either --epsilon or --rho, to see the error, or --error, to see the epsilon that it needs"
        )


def _read_share(delta: str | None) -> float:
    try:
        return DEFAULT_DELTA if delta is None else float(delta)
    except ValueError as problem:
        raise PlanError("--delta is a number with --useful, such as 0.05: how often answers may be off") from problem


def _facts(
    chosen: Plan, per_query: Sequence[tuple[str, float]], curves: Sequence[Curve], confidence: float
) -> dict[str, object]:
    return chosen.to_dict() | {
        "cells": chosen.schema.cells,
        "confidence": confidence,
        "half_width": chosen.half_width(confidence=confidence),
        "queries": [{"query": query, "stddev": stddev} for query, stddev in per_query],
        "curve": [
            {"strategy": curve.name, curve.budget: write_fraction(budget), "expected_error": error}
            for curve in curves
            for budget, error in curve.points
        ],
    }


def _show(chosen: Plan, per_query: Sequence[tuple[str, float]], confidence: float) -> None:
    say(f"Expected error of one count, over {chosen.workload.words}, at {chosen.promise.words}:", "")
    _show_candidates(chosen)
    if per_query:
        say("")
        show_table(("query", "stddev"), [(query, show_number(error)) for query, error in per_query], numbers=["stddev"])
    reach = show_number(chosen.half_width(confidence=confidence))
    say(
        "",
        f"An interval of {show_confidence(confidence)} reaches +-{reach} (root mean square).",
        f"{chosen.schema.cells:,} cells; protects {chosen.unit.words} ({chosen.neighbours}); "
        f"{_noise_words(chosen)}. No data was read and no budget spent.",
    )
    if chosen.reason:
        say(f"{chosen.reason}.")
    if chosen.searched:
        say(f"{chosen.searched[0].upper()}{chosen.searched[1:]}.")


def _show_candidates(chosen: Plan) -> None:
    """Show what was compared; with its noise, where there is a choice of noise."""
    has_choice = not chosen.promise.is_pure
    lines = [
        (option.strategy.name, option.summary, *[option.family] * has_choice, show_number(option.expected_error), mark)
        for option, mark in zip(chosen.candidates, _marks(chosen), strict=True)
    ]
    columns = ("strategy", "measures", *["noise"] * has_choice, "expected error", "")
    show_table(columns, lines, numbers=["expected error"])


def _noise_words(chosen: Plan) -> str:
    """Return the size of the noise in the word that belongs to its law: a scale, or the sigma of Gaussian noise."""
    noise = chosen.noise
    if chosen.family == "gaussian":
        return f"Gaussian noise of sigma {show_number(float(noise.parameter) ** 0.5)}"
    scale = f"noise scale {show_fraction(noise.parameter)}"
    return scale if chosen.promise.is_pure else f"Laplace {scale}"


def _marks(chosen: Plan) -> list[str]:
    """Mark the candidate that was chosen."""
    return [
        "chosen" if option.strategy == chosen.strategy and option.family == chosen.family else ""
        for option in chosen.candidates
    ]
