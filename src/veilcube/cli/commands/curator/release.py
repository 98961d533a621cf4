"""``veilcube release``: turn a table into a release file, once, for the price of epsilon."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

import typer

from veilcube.analyst import Release
from veilcube.cli.shared import (
    Delta,
    EpsilonOrNone,
    Force,
    JsonFlag,
    MaxGroups,
    MaxRows,
    MeasureCap,
    MostRows,
    NeighboursChoice,
    Person,
    Rho,
    Strategy,
    expected_size,
    note_on,
    print_json,
    program,
    progress_bar,
    read_max_groups,
    require_whole_unit,
    reserve_room,
    say,
    say_exactly,
    show_size,
    warning_on,
)
from veilcube.curator import Ledger, charge_stands, find_files
from veilcube.errors import LedgerError, PrivacyError, PublicNote, ReleaseFileError, VeilcubeError
from veilcube.planner import make_plan
from veilcube.privacy import Neighbours, PrivacyStatement, PrivacyUnit, write_fraction
from veilcube.schema import Schema
from veilcube.session import promise_for, release as make_release
from veilcube.system import require_memory

# The exact counts, the noise, their sum, and room for one copy: 64 bits each.
BYTES_WHILE_RELEASING = 4 * 8


def release(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="The private table: a CSV or Parquet file, a glob of them, or a database URL."
        ),
    ],
    schema: Annotated[Path, typer.Option("--schema", metavar="FILE", help="The schema file (.toml) of the table.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to save the release (.veil).")],
    epsilon: EpsilonOrNone = None,
    delta: Delta = None,
    rho: Rho = None,
    ledger: Annotated[
        str | None, typer.Option("--ledger", metavar="URL", help="Charge this ledger; goes with --dataset.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="The dataset in the ledger that is charged.")
    ] = None,
    neighbours: NeighboursChoice = Neighbours.ADD_REMOVE,
    person: Person = None,
    max_rows: MaxRows = None,
    strategy: Strategy = "auto",
    from_table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="Which table of a database URL, or a SELECT; else leave out."),
    ] = None,
    analyst: Annotated[
        str | None, typer.Option("--analyst", metavar="NAME", help="For whom it is made; written into the ledger.")
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="What to remember; written into the ledger.")
    ] = None,
    max_groups: MaxGroups = None,
    measured_cap: MeasureCap = None,
    most_rows: MostRows = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Turn a private table into a release file that anyone may read.

    Everything that can be checked is checked before the budget is charged, and the charge is on disk before any noise
    is drawn. The release answers any number of queries at no further cost.
    """
    require_whole_unit(person, max_rows)
    groups = read_max_groups(max_groups)
    facts, account = Schema.from_toml(schema), _account(ledger, dataset)
    promise = promise_for(None if account is None or dataset is None else (account, dataset), epsilon, delta, rho)
    if promise is None:
        raise PrivacyError("name the budget to spend: --epsilon 1, --epsilon 1 with --delta 1e-9, or --rho 0.1")
    plan = make_plan(facts, promise, strategy, None, neighbours, PrivacyUnit.read(person, max_rows))
    cells = prod(plan.operator.measurement_shape) if plan.strategy.counts_tables else facts.cells
    require_memory(BYTES_WHILE_RELEASING * cells, f"releasing {cells:,} cells")
    _require_another_file(table, out)
    with _noting_what_was_spent(account, dataset):
        room = reserve_room(out, expected_size(plan), overwrite=force)
        with room, progress_bar("Counting", hidden=as_json) as progress:
            made = make_release(
                table,
                schema=facts,
                plan=plan,
                ledger=account,
                dataset=dataset,
                person=person,
                max_rows=max_rows,
                table=from_table,
                analyst=analyst,
                progress=progress,
                note=note,
                output=out,
                measure_cap=measured_cap,
                most_rows=most_rows,
                max_groups=groups,
            )
        save_what_was_paid_for(made, out)
        _report(made, out, as_json)


def _require_another_file(table: str, out: Path) -> None:
    """Refuse to write the release over the private table, also where files may be overwritten."""
    if out.exists() and "://" not in table and any(out.samefile(path) for path in find_files(table)):
        raise ReleaseFileError(f"{out} is the private table itself; save the release under another name")


def _account(url: str | None, dataset: str | None) -> Ledger | None:
    """Open the ledger and find the dataset, so that a wrong name is told before a long table is counted."""
    if url is None and dataset is None:
        return None
    if url is None or dataset is None:
        raise LedgerError("--ledger and --dataset go together: name the ledger and the dataset in it that is charged")
    ledger = Ledger(url)
    ledger.budget(dataset)
    return ledger


@contextmanager
def _noting_what_was_spent(account: Ledger | None, dataset: str | None) -> Iterator[None]:
    """Note on what cuts the command short that a charge was made meanwhile, unless that is noted already."""
    before = None if account is None or dataset is None else account.budget(dataset).spent
    try:
        yield
    except VeilcubeError:
        raise
    except BaseException as problem:
        noted = any(isinstance(note, PublicNote) for note in getattr(problem, "__notes__", []))
        if account is not None and dataset is not None and not noted and account.budget(dataset).spent != before:
            problem.add_note(charge_stands(account.name, dataset, None))
        raise


def save_what_was_paid_for(made: Release, out: Path) -> None:
    """Save the release, elsewhere if need be, and also if interrupted: its budget is spent, so it must not be lost."""
    try:
        made.save(out)
    except (KeyboardInterrupt, SystemExit) as interruption:
        made.save(out)
        interruption.add_note(PublicNote(f"the release had been made and paid for, and was saved as {out}"))
        raise
    except ReleaseFileError as problem:
        spare = Path(mkdtemp(prefix="veilcube-")) / "saved.veil"
        made.save(spare)
        raise ReleaseFileError(f"{problem} What was made is kept as {spare}; move it where you want it.") from problem


def _cost(statement: PrivacyStatement) -> dict[str, str]:
    """Return the numbers that are promised: epsilon, or with Gaussian noise its delta and rho as well."""
    cost = {"epsilon": write_fraction(statement.epsilon)}
    if statement.rho is None:
        return cost
    return cost | {"delta": write_fraction(statement.delta), "rho": write_fraction(statement.rho)}


def _noise_of(made: Release) -> str:
    """Return what was measured, and with which noise, in few words."""
    family = made.record.measurements[0].noise.family
    return f"{made.record.plan['strategy']['name']}, {family.capitalize()} noise"  # type: ignore[index]


def _report(made: Release, out: Path, as_json: bool) -> None:
    size = out.stat().st_size
    note, warning = note_on(made.privacy), warning_on(made.privacy)
    if as_json:
        facts = {"out": str(out), "bytes": size, "cells": made.schema.cells}
        cost = {**_cost(made.privacy), "charged_to": made.privacy.charged_to}
        advice = {"note": note, "warning": warning}
        measured = {"cap": None if made.record.cap is None else made.record.cap.to_dict()}
        print_json(facts | cost | advice | measured | {"privacy": made.privacy.to_dict(), "plan": made.plan})
        return
    say(f"Wrote {out}: {made.schema.cells:,} cells, {show_size(size)}; {_noise_of(made)}.", "", str(made.privacy))
    # A model of the whole table takes long to fit; those who ask the release see the share of rows soon enough.
    if made.record.cap is not None and not made.has_model:
        say(str(made.beyond_cap()))
    if warning is not None:
        say(f"Warning: {warning}")
    if note is not None:
        say(f"Note: {note}")
    if made.privacy.charged_to is None:
        say(
            f"Note: keep account of this {made.privacy.short_cost} yourself, or let a ledger do it with --ledger URL "
            "--dataset NAME."
        )
    say("", "Try next:")
    say_exactly(f'  {program()} query {shlex.quote(str(out))} "SELECT COUNT(*)"')
