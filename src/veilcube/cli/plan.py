"""``veilcube plan``: what a release would measure and how wrong its answers would be, before any budget is spent."""

from typing import Annotated

import typer

from veilcube.cli.options import Epsilon, JsonFlag, MaxRows, NeighboursChoice, Person, SchemaFile, Strategy
from veilcube.cli.output import print_json, say, show_number, show_table
from veilcube.cli.protection import require_whole_unit
from veilcube.planner import Plan
from veilcube.planner import plan as make_plan
from veilcube.privacy import Neighbours, show_fraction
from veilcube.query import Workload
from veilcube.schema import Schema


def plan(
    file: SchemaFile,
    epsilon: Epsilon,
    neighbours: NeighboursChoice = Neighbours.ADD_REMOVE,
    person: Person = None,
    max_rows: MaxRows = None,
    strategy: Strategy = "auto",
    queries: Annotated[
        list[str] | None,
        typer.Option("--query", metavar="SQL", help="Plan for this query and show its error; may be repeated."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the expected error of a release. Reads no data and spends no budget."""
    require_whole_unit(person, max_rows)
    schema = Schema.from_toml(file)
    workload = Workload(schema, queries) if queries else None
    chosen = make_plan(schema, epsilon, strategy, workload, str(neighbours), person=person, max_rows=max_rows)
    errors = [] if workload is None else chosen.stddev(workload).tolist()
    per_query = list(zip(queries or [], errors, strict=True))
    if as_json:
        stddevs = [{"query": query, "stddev": error} for query, error in per_query]
        print_json(chosen.to_dict() | {"cells": schema.cells, "queries": stddevs})
        return
    _show(chosen, per_query)


def _show(chosen: Plan, per_query: list[tuple[str, float]]) -> None:
    asked = "your queries" if per_query else f"{len(chosen.workload):,} random ranges"
    say(f"Expected error of one count, over {asked}, at epsilon {show_fraction(chosen.epsilon)}:", "")
    show_table(
        ("strategy", "expected error", ""),
        [
            (option.strategy.name, show_number(option.expected_error), _mark(option.strategy.name, chosen))
            for option in chosen.candidates
        ],
        numbers=["expected error"],
    )
    if per_query:
        say("")
        show_table(("query", "stddev"), [(query, show_number(error)) for query, error in per_query], numbers=["stddev"])
    say(
        "",
        f"{chosen.schema.cells:,} cells; protects {chosen.unit.words} ({chosen.neighbours}); "
        f"noise scale {show_fraction(chosen.noise.scale)}. No data was read and no budget spent.",
    )


def _mark(name: str, chosen: Plan) -> str:
    return "chosen" if name == chosen.strategy.name else ""
