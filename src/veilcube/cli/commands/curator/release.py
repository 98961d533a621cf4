"""``veilcube release``: turn a table into a release file, once, for the price of epsilon."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any

import typer

from veilcube.analyst import Release
from veilcube.cli.shared import (
    Asked,
    Confidence,
    Delta,
    EpsilonOrNone,
    Force,
    JsonFlag,
    MaxGroups,
    MaxRows,
    MeasureCap,
    MostRows,
    NeighboursOrNone,
    Person,
    Queries,
    Rho,
    Strategy,
    StrategyCommand,
    WantedError,
    expected_size,
    note_on,
    print_json,
    program,
    progress_bar,
    read_max_groups,
    read_workload,
    require_whole_unit,
    reserve_room,
    say,
    say_exactly,
    show_size,
    warning_on,
)
from veilcube.curator import Ledger, charge_stands, find_files
from veilcube.errors import LedgerError, PlanError, PrivacyError, PublicNote, ReleaseFileError, VeilcubeError
from veilcube.planner import Comparison, Plan, StrategyLike, compare_with, make_plan, plan as make_plan_for
from veilcube.privacy import Neighbours, PrivacyStatement, PrivacyUnit, write_fraction
from veilcube.schema import Schema
from veilcube.session import promise_for, release as make_release

SETTINGS = {"cls": StrategyCommand}


def release(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="The private table: a CSV or Parquet file, a glob of them, or a database URL."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to save the release (.veil).")],
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="The schema file (.toml) of the table; a plan brings its own."),
    ] = None,
    ready: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Carry out this plan (.plan), which veilcube plan --out has saved; what it says need not be repeated.",
        ),
    ] = None,
    epsilon: EpsilonOrNone = None,
    delta: Delta = None,
    rho: Rho = None,
    ledger: Annotated[
        str | None, typer.Option("--ledger", metavar="URL", help="Charge this ledger; goes with --dataset.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="The dataset in the ledger that is charged.")
    ] = None,
    neighbours: NeighboursOrNone = None,
    person: Person = None,
    max_rows: MaxRows = None,
    strategy: Strategy = "auto",
    queries: Queries = None,
    asked: Asked = None,
    error: WantedError = None,
    confidence: Confidence = 0.95,
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
    account = _account(ledger, dataset)
    wish = _Wish(epsilon, delta, rho, strategy, neighbours, queries or [], asked, error, confidence, person, max_rows)
    plan = _plan_from(wish, schema, account, dataset) if ready is None else _plan_as_saved(ready, wish, schema)
    plan.require_memory()
    _require_another_file(table, out)
    beside = wish.beside_plan if ready is not None else {}
    with _noting_what_was_spent(account, dataset):
        room = reserve_room(out, expected_size(plan), overwrite=force)
        with room, progress_bar("Counting", hidden=as_json) as progress:
            made = make_release(
                table,
                schema=plan.schema,
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
                **beside,
            )
        save_what_was_paid_for(made, out)
        may_fit = plan.workload.recipe is None
        _report(made, compare_with(plan, made, confidence, may_fit=may_fit), out, as_json)


@dataclass(frozen=True)
class _Wish:
    """What the options say about what to measure, for whom, and at which price."""

    epsilon: str | None
    delta: str | None
    rho: str | None
    strategy: StrategyLike
    neighbours: Neighbours | None
    queries: Sequence[str]
    asked: str | None
    error: float | None
    confidence: float
    person: str | None
    max_rows: int | None

    @property
    def beside_plan(self) -> dict[str, Any]:
        """What a plan must not contradict."""
        named = None if self.neighbours is None else str(self.neighbours)
        price = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {**price, "strategy": self.strategy, "neighbours": named}


def _plan_from(wish: _Wish, schema: Path | None, account: Ledger | None, dataset: str | None) -> Plan:
    """Plan as ``veilcube plan`` does with the same options."""
    if schema is None:
        raise PlanError("a release needs --schema FILE, or --plan FILE, which brings its own")
    facts = Schema.from_toml(schema)
    workload = read_workload(facts, wish.asked, wish.queries)
    neighbours = wish.neighbours or Neighbours.ADD_REMOVE
    if wish.error is not None:
        budget = {} if wish.epsilon is None else {"epsilon": wish.epsilon}
        return make_plan_for(
            facts, strategy=wish.strategy, workload=workload, neighbours=str(neighbours), person=wish.person,
            max_rows=wish.max_rows, error=wish.error, confidence=wish.confidence, delta=wish.delta, rho=wish.rho,
            **budget,
        )  # fmt: skip
    paying = None if account is None or dataset is None else (account, dataset)
    promise = promise_for(paying, wish.epsilon, wish.delta, wish.rho)
    if promise is None:
        raise PrivacyError(
            "name the budget to spend: --epsilon 1, --epsilon 1 with --delta 1e-9, --rho 0.1, or --error 30"
        )
    return make_plan(facts, promise, wish.strategy, workload, neighbours, PrivacyUnit.read(wish.person, wish.max_rows))


def _plan_as_saved(ready: Path, wish: _Wish, schema: Path | None) -> Plan:
    """Read the plan; refuses another schema beside it, or other questions."""
    if wish.error is not None or wish.asked is not None or wish.queries:
        raise PlanError("a plan was made for its own questions and error; leave out --error, --workload and --query")
    plan = Plan.read(ready)
    if schema is not None and Schema.from_toml(schema) != plan.schema:
        raise PlanError(f"{ready} is for another schema than {schema}; plan with that schema, or leave --schema out")
    return plan


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


def _report(made: Release, kept: Comparison, out: Path, as_json: bool) -> None:
    size = out.stat().st_size
    note, warning = note_on(made.privacy), warning_on(made.privacy)
    if as_json:
        facts = {"out": str(out), "bytes": size, "cells": made.schema.cells}
        cost = {**_cost(made.privacy), "charged_to": made.privacy.charged_to}
        advice = {"note": note, "warning": warning}
        measured = {"cap": None if made.record.cap is None else made.record.cap.to_dict()}
        print_json(
            facts
            | cost
            | advice
            | measured
            | {"comparison": kept.to_dict()}
            | {"privacy": made.privacy.to_dict(), "plan": made.plan}
        )
        return
    say(f"Wrote {out}: {made.schema.cells:,} cells, {show_size(size)}; {_noise_of(made)}.", "", str(made.privacy))
    say(str(kept))
    if made.plan.get("reason"):
        say(f"{str(made.plan['reason'])[0].upper()}{str(made.plan['reason'])[1:]}.")
    # The share of rows is of the rows that are estimated, and a model of the whole table takes long to fit.
    if made.record.cap is not None:
        later = "How many rows are beyond the cap was measured: 'veilcube info' tells, and --all-rows counts them too."
        say(later if made.has_model else str(made.beyond_cap()))
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
