"""Accounts and charges as data, read exactly from their rows."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from veilcube.errors import VeilcubeError
from veilcube.privacy import Budget, Currency, Neighbours, PrivacyStatement, write_fraction


class DamagedRowError(Exception):
    """A row holds what no ledger writes; the caller, who knows the file, says so."""


@dataclass(frozen=True)
class DatasetAccount:
    """A dataset's budget, and the neighbours and unit that all of its charges share (None until the first one)."""

    name: str
    budget: Budget
    neighbours: Neighbours | None
    unit: str | None
    created: str

    @property
    def currency(self) -> Currency:
        """What the budget is kept in and charges are priced in."""
        return self.budget.currency


@dataclass(frozen=True)
class ChargeDetails:
    """What people want to know about a charge later on; all of it public, and none of it needed to add up budgets.

    ``output`` is the file that the release went to, as its maker named it, ``schema`` the fingerprint of the schema,
    ``strategy`` how the budget was spent, as plain data, and ``note`` what the maker wanted to remember.
    """

    output: str | None = None
    schema: str | None = None
    strategy: Mapping[str, object] | None = None
    note: str | None = None


@dataclass(frozen=True)
class Charge:
    """One row of the ledger: what was spent, on which promise, for what and whom, and when (UTC, ISO 8601).

    ``amount`` is in the currency of the account. It is less than what the statement costs where a part of a partition
    was measured and what was spent on other parts covers the rest.
    """

    id: int
    dataset: str
    amount: Fraction
    statement: PrivacyStatement
    purpose: str
    analyst: str | None
    at: str
    currency: Currency = Currency.EPSILON
    details: ChargeDetails = ChargeDetails()

    @property
    def epsilon(self) -> Fraction | None:
        """What was spent of a budget in epsilon; None if the budget is in rho."""
        return self.amount if self.currency is Currency.EPSILON else None

    @property
    def rho(self) -> Fraction | None:
        """What was spent of a budget in rho; None if the budget is in epsilon."""
        return self.amount if self.currency is Currency.RHO else None


def write_statement(statement: PrivacyStatement) -> str:
    """Return a statement as the text that its row holds."""
    return json.dumps(statement.to_dict(), allow_nan=False)


def read_statement(written: str) -> PrivacyStatement:
    """Return the statement that a row holds."""
    return PrivacyStatement.from_dict(json.loads(written))


def read_account(connection: sqlite3.Connection, dataset: str) -> DatasetAccount | None:
    """Return a dataset's account with the exact sum of its charges, or None if there is none."""
    row = connection.execute(
        "SELECT amount, neighbours, unit, created, currency FROM accounts WHERE dataset = ?", (dataset,)
    ).fetchone()
    if row is None:
        return None
    total, neighbours, unit, created, currency = row
    groups = connection.execute(
        "SELECT neighbours, unit, amount, COUNT(*) FROM charges WHERE dataset = ? GROUP BY neighbours, unit, amount",
        (dataset,),
    ).fetchall()
    promises = {(group[0], group[1]) for group in groups} or {(neighbours, unit)}
    try:
        ((charged_neighbours, charged_unit),) = promises
        if neighbours not in (None, charged_neighbours) or unit not in (None, charged_unit):
            raise DamagedRowError
        spent = sum((Fraction(amount) * times for _, _, amount, times in groups), Fraction(0))
        relation = None if charged_neighbours is None else Neighbours(charged_neighbours)
        budget = Budget(Fraction(total), spent, Currency(currency))
        return DatasetAccount(dataset, budget, relation, charged_unit, created)
    except (ValueError, TypeError, ZeroDivisionError) as problem:
        raise DamagedRowError from problem


def account_names(connection: sqlite3.Connection) -> list[str]:
    """Return the datasets in the order of their names."""
    return [name for (name,) in connection.execute("SELECT dataset FROM accounts ORDER BY dataset")]


def next_id(connection: sqlite3.Connection, table: str) -> int:
    """Return the number of a table's next row; numbers have no gaps, so one that is lacking tells of lost rows."""
    how_many, last = connection.execute(f"SELECT COUNT(*), COALESCE(MAX(id), 0) FROM {table}").fetchone()
    if how_many != last:
        raise DamagedRowError
    return int(last) + 1


def add_account(connection: sqlite3.Connection, account: DatasetAccount) -> None:
    """Write an account down."""
    neighbours = None if account.neighbours is None else str(account.neighbours)
    connection.execute(
        "INSERT INTO accounts (dataset, amount, neighbours, unit, created, currency) VALUES (?, ?, ?, ?, ?, ?)",
        (
            account.name,
            write_fraction(account.budget.total),
            neighbours,
            account.unit,
            account.created,
            str(account.currency),
        ),
    )


def add_charge(connection: sqlite3.Connection, charge: Charge) -> None:
    """Write a charge down."""
    statement, details = charge.statement, charge.details
    connection.execute(
        "INSERT INTO charges (id, dataset, amount, neighbours, unit, statement, purpose, analyst, at, output, schema, "
        "strategy, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            charge.id,
            charge.dataset,
            write_fraction(charge.amount),
            str(statement.neighbours),
            statement.unit.identity,
            write_statement(statement),
            charge.purpose,
            charge.analyst,
            charge.at,
            details.output,
            details.schema,
            None if details.strategy is None else json.dumps(details.strategy, allow_nan=False),
            details.note,
        ),
    )


def read_charges(connection: sqlite3.Connection, dataset: str | None) -> list[Charge]:
    """Return the charges of one dataset, or of all, in the order in which they were made."""
    next_id(connection, "charges")
    rows = connection.execute(
        "SELECT id, dataset, amount, neighbours, unit, statement, purpose, analyst, at, "
        "(SELECT currency FROM accounts WHERE accounts.dataset = charges.dataset), "
        "EXISTS (SELECT 1 FROM part_charges WHERE charge = charges.id), output, schema, strategy, note FROM charges "
        "WHERE ? IS NULL OR dataset = ? ORDER BY id",
        (dataset, dataset),
    )
    return [_read_charge(row) for row in rows]


def _read_charge(row: tuple[Any, ...]) -> Charge:
    number, dataset, amount, neighbours, unit, written, purpose, analyst, at, currency, is_for_part, *details = row
    try:
        statement, told = read_statement(written), _read_details(*details)
        charge = Charge(number, dataset, Fraction(amount), statement, purpose, analyst, at, Currency(currency), told)
        cost = statement.cost(charge.currency)
    except (ValueError, TypeError, ZeroDivisionError, RecursionError, VeilcubeError) as problem:
        raise DamagedRowError from problem
    texts = all(isinstance(text, str) for text in (dataset, purpose, analyst or "", at))
    right_price = charge.amount <= cost if is_for_part else charge.amount == cost
    if not texts or not right_price or (neighbours, unit) != (statement.neighbours, statement.unit.identity):
        raise DamagedRowError
    return charge


def _read_details(output: object, schema: object, strategy: object, note: object) -> ChargeDetails:
    if not all(text is None or isinstance(text, str) for text in (output, schema, strategy, note)):
        raise DamagedRowError
    how = None if strategy is None else json.loads(str(strategy))
    return ChargeDetails(output, schema, how, note)  # type: ignore[arg-type]
