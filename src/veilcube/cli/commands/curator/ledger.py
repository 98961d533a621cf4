"""``veilcube ledger``: give a dataset its budget, see what is left of it, and what it was spent on."""

from dataclasses import asdict
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from veilcube.cli.shared import CommandGroup, JsonFlag, LedgerUrl, Person, print_json, print_json_list, say, show_table
from veilcube.curator import Charge, Checked, DatasetAccount, Ledger, Share
from veilcube.privacy import (
    DELTA_SHOWN,
    Budget,
    Currency,
    Neighbours,
    epsilon_for,
    show_fraction,
    write_fraction,
)

app = CommandGroup(help="Keep account of the privacy budget of datasets.")

# So many rows of a long history are read, and made one table of, at a time.
_ROWS_OF_A_TABLE = 1000

DatasetName = Annotated[str, typer.Argument(metavar="DATASET", help="The name of the dataset in the ledger.")]
AnyDataset = Annotated[str | None, typer.Argument(metavar="DATASET", help="Only this dataset.", show_default=False)]


@app.command()
def create(
    url: LedgerUrl,
    dataset: DatasetName,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="NUMBER", help="The total budget, fixed once: 1, 0.1 or 1/3.")
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option(
            "--rho", metavar="NUMBER", help="The total budget in rho instead, which pays for Gaussian noise too."
        ),
    ] = None,
    neighbours: Annotated[
        Neighbours | None,
        typer.Option("--neighbours", help="What every charge must hide; unset, the first charge decides."),
    ] = None,
    person: Person = None,
    as_json: JsonFlag = False,
) -> None:
    """Give a dataset its total budget; makes the ledger if there is none."""
    relation = None if neighbours is None else str(neighbours)
    budget = Ledger(url).create(dataset, epsilon, rho=rho, neighbours=relation, person=person)
    if as_json:
        print_json({"ledger": url, "dataset": dataset} | _budget_facts(budget))
        return
    say(
        f"Dataset '{dataset}' has a budget of {budget.currency} {show_fraction(budget.total)}, "
        f"of which {show_fraction(budget.left)} is left.{_implied_words(budget)}"
    )


@app.command()
def show(url: LedgerUrl, dataset: AnyDataset = None, as_json: JsonFlag = False) -> None:
    """Show the budget of every dataset and what is left of it."""
    ledger = Ledger(url)
    if dataset is not None:
        ledger.budget(dataset)
    accounts = [account for account in ledger.datasets() if dataset in (None, account.name)]
    if as_json:
        print_json({"ledger": url, "datasets": [_account_facts(account) for account in accounts]})
        return
    columns = ("dataset", "in", "budget", "spent", "left", "neighbours", "unit", "created")
    rows = [
        (
            account.name,
            account.currency,
            show_fraction(account.budget.total),
            show_fraction(account.budget.spent),
            show_fraction(account.budget.left),
            account.neighbours or "-",
            account.unit or "-",
            account.created,
        )
        for account in accounts
    ]
    show_table(columns, rows, numbers=["budget", "spent", "left"])
    for account in accounts:
        if words := _implied_words(account.budget):
            say(f"Dataset '{account.name}':{words}")


@app.command()
def allow(
    url: LedgerUrl,
    dataset: DatasetName,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Who may spend it.")],
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", metavar="NUMBER", help="What the analyst may spend in all: 1, 0.1 or 1/3."),
    ] = None,
    rho: Annotated[
        str | None, typer.Option("--rho", metavar="NUMBER", help="The same of a budget that is kept in rho.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Set what one analyst may spend in all of a dataset's budget; a later word replaces an earlier one."""
    share = Ledger(url).allow(dataset, analyst, epsilon, rho=rho)
    if as_json:
        print_json({"ledger": url, "dataset": dataset, "analyst": analyst} | _budget_facts(share))
        return
    say(
        f"Analyst '{analyst}' may spend {share.currency} {show_fraction(share.total)} of dataset '{dataset}', "
        f"of which {show_fraction(share.left)} is left.{_implied_words(share)}"
    )


@app.command()
def shares(url: LedgerUrl, dataset: AnyDataset = None, as_json: JsonFlag = False) -> None:
    """Show what single analysts may spend, what they spent, and how far the budget still allows it."""
    ledger = Ledger(url)
    found = [share for name in _names(ledger, dataset) for share in ledger.shares(name)]
    left = {share.dataset: ledger.budget(share.dataset).left for share in found}
    if as_json:
        print_json({"ledger": url, "shares": [_share_facts(share, left[share.dataset]) for share in found]})
        return
    columns = ("dataset", "analyst", "in", "share", "spent", "left", "can spend")
    rows = [
        (
            share.dataset,
            share.analyst,
            share.currency,
            show_fraction(share.budget.total),
            show_fraction(share.budget.spent),
            show_fraction(share.budget.left),
            show_fraction(min(share.budget.left, left[share.dataset])),
        )
        for share in found
    ]
    show_table(columns, rows, numbers=["share", "spent", "left", "can spend"])
    for name, rest in left.items():
        promised = sum((share.budget.left for share in found if share.dataset == name), Fraction(0))
        if promised > rest:
            say(
                f"The shares in dataset '{name}' have {show_fraction(promised)} left together, and its budget "
                f"{show_fraction(rest)}: who asks first is served."
            )


def _names(ledger: Ledger, dataset: str | None) -> list[str]:
    return [account.name for account in ledger.datasets()] if dataset is None else [dataset]


def _share_facts(share: Share, left: Fraction) -> dict[str, object]:
    facts = {"dataset": share.dataset, "analyst": share.analyst} | _budget_facts(share.budget)
    return facts | {"can_spend": write_fraction(min(share.budget.left, left))}


@app.command()
def history(
    url: LedgerUrl,
    dataset: AnyDataset = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="NUMBER", help="At most so many charges.", min=0)
    ] = None,
    offset: Annotated[
        int, typer.Option("--offset", metavar="NUMBER", help="Leave out so many of the first charges.", min=0)
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """List the charges in the order in which they were made."""
    charges = islice(Ledger(url).charges(dataset), offset, None if limit is None else offset + limit)
    if as_json:
        print_json_list({"ledger": url}, "charges", (_charge_facts(charge) for charge in charges))
        return
    columns = ("charge", "when", "dataset", "in", "amount", "analyst", "purpose", "file", "note")
    rows = (
        (
            charge.id,
            charge.at,
            charge.dataset,
            charge.currency,
            show_fraction(charge.amount),
            charge.analyst or "-",
            charge.purpose,
            charge.details.output or "-",
            charge.details.note or "-",
        )
        for charge in charges
    )
    page = list(islice(rows, _ROWS_OF_A_TABLE))
    show_table(columns, page, numbers=["charge", "amount"])
    while page := list(islice(rows, _ROWS_OF_A_TABLE)):
        show_table(columns, page, numbers=["charge", "amount"])


@app.command()
def verify(url: LedgerUrl, as_json: JsonFlag = False) -> None:
    """Check every row, every balance and every seal of a ledger."""
    _tell(url, Ledger(url).verify(), "is as it was written", as_json)


@app.command()
def backup(
    url: LedgerUrl,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The new file that the copy goes to.")],
    as_json: JsonFlag = False,
) -> None:
    """Write a copy of a ledger, once all of it was checked; keep its key, which is not in the copy, apart."""
    _tell(url, Ledger(url).backup(target), f"was checked and copied to {target}", as_json)


@app.command()
def restore(
    url: LedgerUrl,
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="A file that 'veilcube ledger backup' wrote.")],
    write_off: Annotated[
        bool,
        typer.Option("--write-off", help="Where charges are lost, count all that is left of every budget as spent."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Put a backup in the place of a damaged ledger, with the later charges that can still be read of it."""
    _tell(url, Ledger(url).restore(source, write_off=write_off), f"was restored from {source}", as_json)


@app.command()
def rekey(url: LedgerUrl, as_json: JsonFlag = False) -> None:
    """Seal a ledger whose key was lost, or seen by others, with a new one, once all of it proved right."""
    _tell(url, Ledger(url).rekey(), "has a new key", as_json)


def _tell(url: str, checked: Checked, what: str, as_json: bool) -> None:
    if as_json:
        print_json({"ledger": url} | asdict(checked))
        return
    say(
        f"The ledger {url} {what}: {_several(checked.datasets, 'dataset')}, "
        f"{_several(checked.charges, 'charge')}, {_several(checked.links, 'seal')}."
    )


def _budget_facts(budget: Budget) -> dict[str, object]:
    facts: dict[str, object] = {
        "currency": str(budget.currency),
        str(budget.currency): write_fraction(budget.total),
        "spent": write_fraction(budget.spent),
        "left": write_fraction(budget.left),
    }
    if budget.currency is Currency.RHO:
        total, spent = _implied(budget)
        implied = {"delta": DELTA_SHOWN, "epsilon": total, "spent": spent}
        facts["implied"] = {name: write_fraction(value) for name, value in implied.items()}
    return facts


def _implied(budget: Budget) -> tuple[Fraction, Fraction]:
    """Return the epsilons that a budget in rho, and what was spent of it, imply at a delta of 1e-9."""
    total, spent = (epsilon_for(rho, DELTA_SHOWN) if rho else Fraction(0) for rho in (budget.total, budget.spent))
    return total, spent


def _implied_words(budget: Budget) -> str:
    if budget.currency is Currency.EPSILON:
        return ""
    total, spent = _implied(budget)
    return (
        f" At delta {show_fraction(DELTA_SHOWN)} that implies epsilon {show_fraction(total)} in all, "
        f"{show_fraction(spent)} for what is spent."
    )


def _account_facts(account: DatasetAccount) -> dict[str, object]:
    terms = {"neighbours": account.neighbours, "unit": account.unit, "created": account.created}
    return {"dataset": account.name} | _budget_facts(account.budget) | terms


def _charge_facts(charge: Charge) -> dict[str, object]:
    return {
        "id": charge.id,
        "at": charge.at,
        "dataset": charge.dataset,
        "currency": str(charge.currency),
        str(charge.currency): write_fraction(charge.amount),
        "analyst": charge.analyst,
        "purpose": charge.purpose,
        **asdict(charge.details),
        "privacy": charge.statement.to_dict(),
    }


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
