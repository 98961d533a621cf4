"""``veilcube cap``: how many rows persons have, and what each choice of ``--max-rows`` keeps of them."""

from pathlib import Path
from typing import Annotated

import typer

from veilcube.cli.shared import (
    Confidence,
    JsonFlag,
    NeighboursChoice,
    print_json,
    progress_bar,
    say,
    show_confidence,
    show_table,
)
from veilcube.privacy import Neighbours
from veilcube.session import measure_cap


def cap(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="The private table: a CSV or Parquet file, a glob of them, or a database URL."
        ),
    ],
    schema: Annotated[Path, typer.Option("--schema", metavar="FILE", help="The schema file (.toml) of the table.")],
    person: Annotated[str, typer.Option("--person", metavar="COLUMN", help="The column that names the person.")],
    epsilon: Annotated[
        str, typer.Option("--epsilon", metavar="NUMBER", help="What to spend on it: 0.05 or a fraction such as 1/20.")
    ],
    largest: Annotated[
        int,
        typer.Option(
            "--largest",
            metavar="N",
            help="Persons with N rows and more are not told apart; choose it without looking at the table.",
        ),
    ] = 100,
    ledger: Annotated[
        str | None, typer.Option("--ledger", metavar="URL", help="Charge this ledger; goes with --dataset.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="The dataset in the ledger that is charged.")
    ] = None,
    neighbours: NeighboursChoice = Neighbours.ADD_REMOVE,
    from_table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="Which table of a database URL, or a SELECT; else leave out."),
    ] = None,
    analyst: Annotated[
        str | None, typer.Option("--analyst", metavar="NAME", help="For whom it is made; written into the ledger.")
    ] = None,
    confidence: Confidence = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Measure how many rows persons have, and recommend how many to keep of each.

    The answer is private like every other: it has noise, costs epsilon, and says how wrong it may be.
    """
    with progress_bar("Counting", hidden=as_json) as progress:
        measured = measure_cap(
            table,
            schema,
            person,
            epsilon,
            ledger=ledger,
            dataset=dataset,
            largest=largest,
            neighbours=neighbours,
            confidence=confidence,
            table=from_table,
            analyst=analyst,
            progress=progress,
        )
    if as_json:
        charged = {"charged_to": measured.privacy.charged_to}
        print_json({"table": table, "person": person} | measured.to_dict() | charged)
        return
    columns = ("max-rows", "rows kept", "persons kept whole")
    show_table(columns, measured.shown, numbers=columns)
    say("", f"Shares with their {show_confidence(confidence)} intervals.", measured.words, "", str(measured.privacy))
    if measured.privacy.charged_to is None:
        say(f"Note: keep account of this {measured.privacy.short_cost} yourself, or name --ledger URL --dataset NAME.")
