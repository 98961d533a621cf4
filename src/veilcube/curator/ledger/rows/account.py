"""Accounts and charges as data, read exactly from their rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from veilcube.curator.ledger.rows.balance import Balance, exact_sum
from veilcube.curator.ledger.rows.book import Book, DamagedRowError
from veilcube.curator.ledger.rows.chain import (
    Content,
    Link,
    add_link,
    check_link,
    last_links,
    link_at,
    of_analyst,
    of_dataset,
)
from veilcube.errors import VeilcubeError
from veilcube.privacy import Budget, Currency, Neighbours, PrivacyStatement, write_fraction

ACCOUNT_COLUMNS = "dataset, amount, neighbours, unit, created, currency"
CHARGE_COLUMNS = (
    "id, dataset, amount, neighbours, unit, statement, purpose, analyst, at, output, schema, strategy, note"
)
_ID, _NEIGHBOURS, _UNIT = 0, 3, 4


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
    data = json.loads(written)
    if not isinstance(data, dict) or "charged_to" not in data:
        return PrivacyStatement.from_dict(data)
    # Most charges of a ledger promise the same and differ in where they were charged.
    charged_to, _ = data.pop("charged_to"), data.pop("words", None)
    promise = _read_promise(json.dumps(data))
    return promise if charged_to is None else promise.charged(str(charged_to))


@lru_cache(maxsize=256)
def _read_promise(written: str) -> PrivacyStatement:
    return PrivacyStatement.from_dict(json.loads(written) | {"charged_to": None})


@dataclass(frozen=True)
class Standing:
    """An account as charges need it: with its balance as it is kept, and the last link of its chain.

    Of a balance that is only known between bounds, the account tells the upper one.
    """

    account: DatasetAccount
    balance: Balance
    last: Link

    def allows(self, book: Book, price: Fraction) -> bool:
        """Whether a charge fits, to the last bit."""
        fits = self.balance.fits(price, self.account.budget.total)
        if fits is None:
            return exact_spent(book, self.account.name) + price <= self.account.budget.total
        return fits


def read_standing(book: Book, dataset: str) -> Standing | None:
    """Return an account as it stands after its last charge, or None if there is none."""
    terms = book.execute(f"SELECT {ACCOUNT_COLUMNS} FROM accounts WHERE dataset = ?", dataset).fetchone()
    found: dict[int, Content | None] = {0: terms}

    def read(number: int) -> Content | None:
        if number not in found:
            found[number] = read_charge_row(book, number)
        return found[number]

    links = last_links(book, of_dataset(dataset), read)
    if terms is None and not links:
        return None
    opening = links[0] if links and links[0].number == 0 else link_at(book, of_dataset(dataset), 0)
    newest = book.one("SELECT MAX(id) FROM charges WHERE dataset = ?", dataset) or 0
    if terms is None or opening is None or newest != links[-1].row_id:
        raise DamagedRowError(f"dataset {dataset}")
    check_link(book, None, opening, terms)
    charge = found[links[-1].row_id] if links[-1].row_id else None
    account = _read_terms(terms, charge, links[-1].spent.high)
    return Standing(account, links[-1].spent, links[-1])


def read_account(book: Book, dataset: str) -> DatasetAccount | None:
    """Return a dataset's account with the exact sum of its charges, or None if there is none."""
    standing = read_standing(book, dataset)
    if standing is None or standing.balance.exact is not None:
        return None if standing is None else standing.account
    budget = replace(standing.account.budget, spent=exact_spent(book, dataset))
    return replace(standing.account, budget=budget)


def exact_spent(book: Book, dataset: str) -> Fraction:
    """Return the sum of all charges, which takes longer the more there are."""
    groups = book.execute("SELECT amount, COUNT(*) FROM charges WHERE dataset = ? GROUP BY amount", dataset)
    return sum_of_groups(groups)


def sum_of_groups(groups: Iterable[tuple[str, int]]) -> Fraction:
    """Return the sum of amounts that were read with how often each occurs."""
    try:
        return exact_sum(Fraction(amount) * times for amount, times in groups)
    except (ValueError, TypeError, ZeroDivisionError) as problem:
        raise DamagedRowError from problem


def _read_terms(terms: Content, charge: Content | None, spent: Fraction) -> DatasetAccount:
    dataset, total, neighbours, unit, created, currency = terms
    charged = (neighbours, unit) if charge is None else (charge[_NEIGHBOURS], charge[_UNIT])
    try:
        if neighbours not in (None, charged[0]) or unit not in (None, charged[1]):
            raise DamagedRowError(f"dataset {dataset}")
        relation = None if charged[0] is None else Neighbours(str(charged[0]))
        budget = Budget(Fraction(str(total)), spent, Currency(str(currency)))
    except (ValueError, TypeError, ZeroDivisionError) as problem:
        raise DamagedRowError(f"dataset {dataset}") from problem
    return DatasetAccount(str(dataset), budget, relation, charged[1], str(created))  # type: ignore[arg-type]


def account_names(book: Book) -> list[str]:
    """Return the datasets in the order of their names."""
    return sorted(name for (name,) in book.execute("SELECT dataset FROM accounts"))


def add_account(book: Book, account: DatasetAccount) -> None:
    """Write an account down."""
    neighbours, currency = None if account.neighbours is None else str(account.neighbours), str(account.currency)
    row = (account.name, write_fraction(account.budget.total), neighbours, account.unit, account.created, currency)
    book.execute(f"INSERT INTO accounts ({ACCOUNT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", *row)
    add_link(book, None, of_dataset(account.name), 0, Balance.zero(), row)


def read_charge_row(book: Book, number: int) -> Content | None:
    """Return the columns of one charge as they are stored."""
    row = book.execute(f"SELECT {CHARGE_COLUMNS} FROM charges WHERE id = ?", number).fetchone()
    return None if row is None else tuple(row)


def next_charge(book: Book) -> int:
    """Return the number of the next charge; numbers have no gaps."""
    return int(book.one("SELECT MAX(id) FROM charges") or 0) + 1


def add_charge(book: Book, charge: Charge, standing: Standing, share: Link | None = None) -> None:
    """Write a charge down, with what it brings the balances of its dataset and its analyst to."""
    statement, details = charge.statement, charge.details
    row = (
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
    )
    book.execute(f"INSERT INTO charges ({CHARGE_COLUMNS}) VALUES ({', '.join('?' * len(row))})", *row)
    add_link(book, standing.last, of_dataset(charge.dataset), charge.id, standing.balance.plus(charge.amount), row)
    if charge.analyst is not None:
        spent = Balance.zero() if share is None else share.spent
        add_link(book, share, of_analyst(charge.dataset, charge.analyst), charge.id, spent.plus(charge.amount), row)


def read_charges(book: Book, dataset: str, first: int = 1, most: int | None = None) -> list[Charge]:
    """Return charges of one dataset in the order in which they were made, from its ``first`` on, each checked."""
    before = link_at(book, of_dataset(dataset), first - 1)
    columns = ", ".join(f"charges.{column}" for column in CHARGE_COLUMNS.split(", "))
    rows = book.execute(
        "SELECT chain.holder, chain.number, chain.row_id, chain.balance, chain.seal, "
        "(SELECT currency FROM accounts WHERE accounts.dataset = charges.dataset), "
        f"EXISTS (SELECT 1 FROM part_charges WHERE charge = charges.id), {columns} "
        "FROM chain LEFT JOIN charges ON charges.id = chain.row_id "
        "WHERE chain.holder = ? AND chain.number BETWEEN ? AND ? ORDER BY chain.number",
        of_dataset(dataset),
        first,
        2**62 if most is None else first + most - 1,
    )
    charges = []
    for holder, number, row_id, balance, seal, currency, is_for_part, *content in rows:
        link = Link(holder, number, row_id, balance, seal)
        check_link(book, before, link, None if content[_ID] != row_id or before is None else content)
        charges.append(read_charge(content, currency, bool(is_for_part)))
        before = link
    return charges


def read_charge(row: Sequence[Any], currency: str, is_for_part: bool) -> Charge:
    """Return the charge that a row holds; refuses one that does not cost what it states."""
    number, dataset, amount, neighbours, unit, written, purpose, analyst, at, *details = row
    where = f"charge {number}"
    try:
        statement, told = read_statement(written), _read_details(*details)
        charge = Charge(number, dataset, Fraction(amount), statement, purpose, analyst, at, Currency(currency), told)
        cost = statement.cost(charge.currency)
    except (ValueError, TypeError, ZeroDivisionError, RecursionError, VeilcubeError) as problem:
        raise DamagedRowError(where) from problem
    texts = all(isinstance(text, str) for text in (dataset, purpose, analyst or "", at))
    right_price = charge.amount <= cost if is_for_part else charge.amount == cost
    if not texts or not right_price or (neighbours, unit) != (statement.neighbours, statement.unit.identity):
        raise DamagedRowError(where)
    return charge


def _read_details(output: object, schema: object, strategy: object, note: object) -> ChargeDetails:
    if not all(text is None or isinstance(text, str) for text in (output, schema, strategy, note)):
        raise DamagedRowError
    how = None if strategy is None else json.loads(str(strategy))
    return ChargeDetails(output, schema, how, note)  # type: ignore[arg-type]
