"""``veilcube ledger``: give a dataset its budget, see what is left of it, and what it was spent on."""

from typing import Annotated

import typer

from veilcube.cli.shared import CommandGroup, JsonFlag, LedgerUrl, Person, print_json, say, show_table
from veilcube.curator import Charge, DatasetAccount, Ledger
from veilcube.privacy import Budget, Neighbours, show_fraction, write_fraction

app = CommandGroup(help="Keep account of the privacy budget of datasets.")

DatasetName = Annotated[str, typer.Argument(metavar="DATASET", help="The name of the dataset in the ledger.")]
AnyDataset = Annotated[str | None, typer.Argument(metavar="DATASET", help="Only this dataset.", show_default=False)]


@app.command()
def create(
    url: LedgerUrl,
    dataset: DatasetName,
    epsilon: Annotated[
        str, typer.Option("--epsilon", metavar="NUMBER", help="The total budget, fixed once: 1, 0.1 or 1/3.")
    ],
    neighbours: Annotated[
        Neighbours | None,
        typer.Option("--neighbours", help="What every charge must hide; unset, the first charge decides."),
    ] = None,
    person: Person = None,
    as_json: JsonFlag = False,
) -> None:
    """Give a dataset its total budget; makes the ledger if there is none."""
    relation = None if neighbours is None else str(neighbours)
    budget = Ledger(url).create(dataset, epsilon, neighbours=relation, person=person)
    if as_json:
        print_json({"ledger": url, "dataset": dataset} | _budget_facts(budget))
        return
    say(
        f"Dataset '{dataset}' has a budget of epsilon {show_fraction(budget.total)}, "
        f"of which {show_fraction(budget.left)} is left."
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
    columns = ("dataset", "budget", "spent", "left", "neighbours", "unit", "created")
    rows = [
        (
            account.name,
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


@app.command()
def allow(
    url: LedgerUrl,
    dataset: DatasetName,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Who may spend it.")],
    epsilon: Annotated[
        str, typer.Option("--epsilon", metavar="NUMBER", help="What the analyst may spend in all: 1, 0.1 or 1/3.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Set what one analyst may spend in all of a dataset's budget; a later word replaces an earlier one."""
    share = Ledger(url).allow(dataset, analyst, epsilon)
    if as_json:
        print_json({"ledger": url, "dataset": dataset, "analyst": analyst} | _budget_facts(share))
        return
    say(
        f"Analyst '{analyst}' may spend epsilon {show_fraction(share.total)} of dataset '{dataset}', "
        f"of which {show_fraction(share.left)} is left."
    )


@app.command()
def history(url: LedgerUrl, dataset: AnyDataset = None, as_json: JsonFlag = False) -> None:
    """List the charges in the order in which they were made."""
    charges = Ledger(url).history(dataset)
    if as_json:
        print_json({"ledger": url, "charges": [_charge_facts(charge) for charge in charges]})
        return
    columns = ("charge", "when", "dataset", "epsilon", "analyst", "purpose")
    rows = [
        (charge.id, charge.at, charge.dataset, show_fraction(charge.epsilon), charge.analyst or "-", charge.purpose)
        for charge in charges
    ]
    show_table(columns, rows, numbers=["charge", "epsilon"])


def _budget_facts(budget: Budget) -> dict[str, object]:
    return {
        "epsilon": write_fraction(budget.total),
        "spent": write_fraction(budget.spent),
        "left": write_fraction(budget.left),
    }


def _account_facts(account: DatasetAccount) -> dict[str, object]:
    terms = {"neighbours": account.neighbours, "unit": account.unit, "created": account.created}
    return {"dataset": account.name} | _budget_facts(account.budget) | terms


def _charge_facts(charge: Charge) -> dict[str, object]:
    return {
        "id": charge.id,
        "at": charge.at,
        "dataset": charge.dataset,
        "epsilon": write_fraction(charge.epsilon),
        "analyst": charge.analyst,
        "purpose": charge.purpose,
        "privacy": charge.statement.to_dict(),
    }
