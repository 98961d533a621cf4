"""The ledger: budgets by dataset, charged durably before any noise is drawn.

A crash may waste budget, never give it away: the receipt that mechanisms demand exists only after the charge is on
disk. Whoever puts back an old copy of the file also takes back the charges made since; only people can prevent that.
"""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from pathlib import Path

from veilcube.curator.ledger.account import (
    Charge,
    DamagedRowError,
    DatasetAccount,
    account_names,
    add_account,
    add_charge,
    next_charge_id,
    read_account,
    read_charges,
    read_statement,
    write_statement,
)
from veilcube.curator.ledger.receipt import Receipt, issue_receipt
from veilcube.curator.ledger.store import LedgerFile, read_location
from veilcube.errors import BudgetExceededError, LedgerError, PrivacyError
from veilcube.privacy import (
    LARGEST_EPSILON,
    Budget,
    EpsilonLike,
    Neighbours,
    PrivacyStatement,
    PrivacyUnit,
    read_epsilon,
    show_fraction,
    write_fraction,
)

# Room for the smallest positive float; beyond it, sums and texts of fractions become a burden that protects nobody.
LONGEST_FRACTION_BITS = 1100
LONGEST_NAME = 200
LONGEST_PURPOSE = 10_000


class Ledger:
    """The budgets of datasets and every charge against them, in one SQLite file that many processes may share.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Ledger(f"sqlite:///{folder}/budget.db").create("adult", epsilon=0.1).left
    Fraction(1, 10)
    """

    def __init__(self, url: str | Path, *, timeout: float = 10.0) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 <= timeout <= 86_400:
            raise LedgerError(
                "timeout must be a number of seconds from 0 to 86400: how long to wait for other programs"
            )
        self._file = LedgerFile(read_location(url), float(timeout))

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The file, made by the first ``create``."""
        return self._file.path

    def create(
        self, dataset: str, epsilon: EpsilonLike, *, neighbours: str | None = None, person: str | None = None
    ) -> Budget:
        """Give a dataset its total budget, once; doing the same again changes nothing.

        What is not said here about neighbours and person (the column that names them) the first charge decides.
        """
        asked = _read_terms(dataset, epsilon, neighbours, person)
        with self._sound(), self._file.writing(create=True) as connection:
            account = _find_or_add(connection, asked)
            if (asked.neighbours and not account.neighbours) or (asked.unit and not account.unit):
                raise LedgerError(
                    f"dataset '{dataset}' exists already without neighbours or person, which its first charge will "
                    "decide; leave them out"
                )
            return account.budget

    def ensure(
        self, dataset: str, epsilon: EpsilonLike, *, neighbours: str | None = None, person: str | None = None
    ) -> Budget:
        """Return the budget of a dataset, created unless it exists; an existing one must not contradict the terms."""
        asked = _read_terms(dataset, epsilon, neighbours, person)
        with self._sound(), self._file.writing(create=True) as connection:
            return _find_or_add(connection, asked).budget

    def datasets(self) -> list[DatasetAccount]:
        """Return all accounts in the order of their names."""
        with self._sound(), self._file.reading() as connection:
            return [self._account(connection, name) for name in account_names(connection)]

    def budget(self, dataset: str) -> Budget:
        """Return a dataset's total and what was spent of it."""
        with self._sound(), self._file.reading() as connection:
            return self._account(connection, dataset).budget

    def history(self, dataset: str | None = None) -> list[Charge]:
        """Return the charges of a dataset, or of all, in the order in which they were made."""
        with self._sound(), self._file.reading() as connection:
            if dataset is not None:
                self._account(connection, dataset)
            return read_charges(connection, dataset)

    def charge(self, dataset: str, statement: PrivacyStatement, *, purpose: str, analyst: str | None = None) -> Receipt:
        """Write a charge down for good and return its receipt, or refuse the whole of it and write nothing."""
        _check_statement(statement)
        _check_text("the purpose of a charge", purpose, LONGEST_PURPOSE)
        if analyst is not None:
            _check_text("the analyst of a charge", analyst, LONGEST_NAME)
        with self._sound(), self._file.writing() as connection:
            account = self._account(connection, dataset)
            _refuse_other_promise(account, statement)
            if not account.budget.allows(statement.epsilon):
                raise BudgetExceededError(_over_budget(account, statement.epsilon))
            number = next_charge_id(connection)
            charged = statement.charged(f"the budget of '{dataset}' as charge {number}")
            add_charge(connection, Charge(number, dataset, charged.epsilon, charged, purpose, analyst, _now()))
        # The transaction is on disk from here on, and not a line earlier.
        return issue_receipt(number, dataset, charged)

    def _account(self, connection: sqlite3.Connection, dataset: str) -> DatasetAccount:
        _check_name(dataset)
        account = read_account(connection, dataset)
        if account is None:
            raise LedgerError(
                f"the ledger {self.path} has no dataset '{dataset}'; see 'veilcube ledger show' for those it has, or "
                "add it with 'veilcube ledger create'"
            )
        return account

    @contextmanager
    def _sound(self) -> Iterator[None]:
        try:
            yield
        except DamagedRowError as problem:
            raise self._file.damaged() from problem


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read_terms(dataset: str, epsilon: EpsilonLike, neighbours: str | None, person: str | None) -> DatasetAccount:
    _check_name(dataset)
    total = read_epsilon(epsilon)
    _check_epsilon(total)
    relation = None if neighbours is None else Neighbours.read(neighbours)
    unit = None
    if person is not None:
        _check_text("the column that names a person", person, LONGEST_NAME)
        unit = PrivacyUnit.person(person, 1).identity
    return DatasetAccount(dataset, Budget(total), relation, unit, _now())


def _find_or_add(connection: sqlite3.Connection, asked: DatasetAccount) -> DatasetAccount:
    account = read_account(connection, asked.name)
    if account is None:
        add_account(connection, asked)
        return asked
    _refuse_other_terms(account, asked)
    return account


def _check_name(dataset: str) -> None:
    _check_text("the name of a dataset", dataset, LONGEST_NAME)
    if not dataset.isprintable() or dataset != dataset.strip():
        raise LedgerError("the name of a dataset must be printable, without spaces at its ends")


def _check_text(what: str, text: object, longest: int) -> None:
    if not isinstance(text, str) or not text.strip() or len(text) > longest or not _is_storable(text):
        raise LedgerError(f"{what} must be a text of 1 to {longest} characters")


def _is_storable(text: str) -> bool:
    return "\0" not in text and text == text.encode(errors="replace").decode()


def _check_epsilon(epsilon: Fraction) -> None:
    longest = max(epsilon.numerator.bit_length(), epsilon.denominator.bit_length())
    if not 0 < epsilon <= LARGEST_EPSILON or longest > LONGEST_FRACTION_BITS:
        raise PrivacyError("a ledger keeps epsilons above 0 and up to 1e9, as fractions of at most 330 digits")


def _check_statement(statement: PrivacyStatement) -> None:
    if not isinstance(statement, PrivacyStatement) or not isinstance(statement.neighbours, Neighbours):
        raise LedgerError("a charge needs a PrivacyStatement with its Neighbours: what is promised and what it costs")
    if statement.unit.column is not None:
        _check_text("the column that names a person", statement.unit.column, LONGEST_NAME)
    try:
        readable = read_statement(write_statement(statement)) == statement
    except (AttributeError, TypeError, ValueError, PrivacyError):
        readable = False
    if not readable:
        raise LedgerError("this privacy statement could not be read back from a ledger, so it was not charged")
    _check_epsilon(statement.epsilon)


def _refuse_other_terms(account: DatasetAccount, asked: DatasetAccount) -> None:
    kept = f"dataset '{account.name}' exists already in the ledger with"
    total = account.budget.total
    if total != asked.budget.total:
        raise LedgerError(
            f"{kept} a budget of epsilon {_short_and_exact(total)}, not {_short_and_exact(asked.budget.total)}; "
            "a budget is fixed once, so use that one"
        )
    if asked.neighbours and account.neighbours not in (None, asked.neighbours):
        raise LedgerError(f"{kept} neighbours='{account.neighbours}', not '{asked.neighbours}'; use those")
    if asked.unit and account.unit not in (None, asked.unit):
        raise LedgerError(f"{kept} the privacy unit '{account.unit}', not '{asked.unit}'; use that one")


def _refuse_other_promise(account: DatasetAccount, statement: PrivacyStatement) -> None:
    if account.neighbours not in (None, statement.neighbours):
        raise LedgerError(
            f"dataset '{account.name}' is charged for neighbours='{account.neighbours}', and epsilons for "
            f"'{statement.neighbours}' do not add up with those; nothing was charged, use '{account.neighbours}'"
        )
    if account.unit not in (None, statement.unit.identity):
        raise LedgerError(
            f"dataset '{account.name}' is charged for the privacy unit '{account.unit}', and epsilons for "
            f"'{statement.unit.identity}' do not add up with those; nothing was charged, use '{account.unit}'"
        )


def _over_budget(account: DatasetAccount, epsilon: Fraction) -> str:
    name, total, left = account.name, account.budget.total, account.budget.left
    refused = f"the charge of epsilon {_short_and_exact(epsilon)} to dataset '{name}' was refused and nothing charged"
    if left <= 0:
        return (
            f"{refused}: the whole budget of {_short_and_exact(total)} is spent; earlier releases still answer "
            "queries at no cost"
        )
    return (
        f"{refused}: {_short_and_exact(left)} is left of {_short_and_exact(total)}; "
        f"ask for epsilon '{_largest_that_fits(left)}' or less"
    )


def _short_and_exact(value: Fraction) -> str:
    short, exact = show_fraction(value), _largest_that_fits(value)
    if short == exact:
        return short
    if Fraction(short) == value:
        return f"{short} ({exact})"
    return f"about {short} (exactly {exact})" if Fraction(exact) == value else f"about {short}"


def _largest_that_fits(left: Fraction) -> str:
    """Return the fraction itself, or if it is long to read, a decimal just below it."""
    if math.log10(left.denominator) + math.log10(max(left.numerator, 1)) < 40:
        return write_fraction(left)
    with localcontext() as context:
        context.prec, context.rounding = 6, ROUND_FLOOR
        return str(Decimal(left.numerator) / Decimal(left.denominator))
