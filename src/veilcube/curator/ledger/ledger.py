"""The ledger: budgets by dataset, charged durably before any noise is drawn.

A crash may waste budget, never give it away: the receipt that mechanisms demand exists only after the charge is on
disk. Whoever puts back an old copy of the file also takes back the charges made since; only people can prevent that.
"""

import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from veilcube.curator.ledger.account import (
    Charge,
    ChargeDetails,
    DamagedRowError,
    DatasetAccount,
    account_names,
    add_account,
    add_charge,
    next_id,
    read_account,
    read_charges,
)
from veilcube.curator.ledger.answers import StoredAnswer, add_answer, can_be_kept, read_answers, read_schemas
from veilcube.curator.ledger.history import LedgerHistory
from veilcube.curator.ledger.receipt import Receipt, issue_receipt
from veilcube.curator.ledger.refusals import (
    beyond_what_is_left,
    charge_stands,
    over_budget,
    refuse_other_promise,
    refuse_other_share,
    refuse_other_terms,
    refuse_without_price,
    short_and_exact,
)
from veilcube.curator.ledger.shares import (
    PartOf,
    Share,
    add_part_charges,
    add_share,
    analysts_with_shares,
    price_within,
    read_share,
)
from veilcube.curator.ledger.store import LedgerFile, read_location
from veilcube.curator.ledger.terms import (
    LONGEST_NAME,
    LONGEST_PURPOSE,
    check_amount,
    check_details,
    check_name,
    check_statement,
    check_text,
    now,
    read_budget,
    read_share_terms,
    read_terms,
)
from veilcube.errors import BudgetExceededError, LedgerError, VeilcubeError
from veilcube.laws import Noise
from veilcube.privacy import Budget, Currency, EpsilonLike, PrivacyStatement, show_fraction
from veilcube.schema import Schema
from veilcube.system import as_html, did_you_mean

NOTHING_TOLD = ChargeDetails()


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

    def _repr_html_(self) -> str:
        try:
            accounts = self.datasets()
        except VeilcubeError:  # a notebook shows an object whatever has become of its file
            accounts = []
        budgets = [(one.name, one.budget) for one in accounts]
        rows = [
            (name, own.currency, show_fraction(own.total), show_fraction(own.spent), show_fraction(own.left))
            for name, own in budgets
        ]
        head = ("dataset", "in", "total", "spent", "left")
        return as_html(repr(self), head, rows, numbers=["total", "spent", "left"])

    @property
    def path(self) -> Path:
        """The file, made by the first ``create``."""
        return self._file.path

    def create(
        self,
        dataset: str,
        epsilon: EpsilonLike | None = None,
        *,
        rho: EpsilonLike | None = None,
        neighbours: str | None = None,
        person: str | None = None,
    ) -> Budget:
        """Give a dataset its total budget, once; doing the same again changes nothing. Makes the file if there is none.

        A ledger that was there and is lost is refused here too, because programs begin with this call every time.

        A budget in ``epsilon`` pays for pure differential privacy. One in ``rho`` pays for Gaussian noise too, and for
        a pure epsilon with its square over 2.

        What is not said here about neighbours and person (the column that names them) the first charge decides.
        """
        asked = read_terms(dataset, read_budget(epsilon, rho), neighbours, person)
        if self._file.is_lost():
            raise self._file.missing()
        with self._sound(), self._file.writing(create=True) as connection:
            account = _find_or_add(connection, asked)
            if (asked.neighbours and not account.neighbours) or (asked.unit and not account.unit):
                raise LedgerError(
                    f"dataset '{dataset}' exists already without neighbours or person, which its first charge will "
                    "decide; leave them out"
                )
        return account.budget

    def ensure(
        self,
        dataset: str,
        epsilon: EpsilonLike | None = None,
        *,
        rho: EpsilonLike | None = None,
        neighbours: str | None = None,
        person: str | None = None,
    ) -> Budget:
        """Return the budget of a dataset, created unless it exists; an existing one must not contradict the terms.

        A ledger file that was lost or emptied is not made anew, and a new one in a place where none was is made with a
        warning.
        """
        asked = read_terms(dataset, read_budget(epsilon, rho), neighbours, person)
        is_new = self._file.is_unused_place()
        with self._sound(), self._file.writing(create=is_new) as connection:
            budget = _find_or_add(connection, asked).budget
        if is_new:
            warnings.warn(
                f"there was no ledger at {self.path}, so a new one was made with a budget of "
                f"{budget.currency} {show_fraction(budget.total)} for '{dataset}'; if that dataset has a ledger "
                "elsewhere, use that one",
                stacklevel=3,
            )
        return budget

    def datasets(self) -> list[DatasetAccount]:
        """Return all accounts in the order of their names."""
        with self._sound(), self._file.reading() as connection:
            return [self._account(connection, name) for name in account_names(connection)]

    def budget(self, dataset: str) -> Budget:
        """Return a dataset's total and what was spent of it."""
        with self._sound(), self._file.reading() as connection:
            return self._account(connection, dataset).budget

    def currency(self, dataset: str) -> Currency:
        """Return what a dataset's budget is kept in: epsilon or rho."""
        with self._sound(), self._file.reading() as connection:
            return self._account(connection, dataset).currency

    def history(self, dataset: str | None = None) -> LedgerHistory:
        """Return the charges of a dataset, or of all, in the order in which they were made.

        The list also knows the answers that were given: ``.answers``, and as measurements ``.answered``.
        """
        with self._sound(), self._file.reading() as connection:
            if dataset is not None:
                self._account(connection, dataset)
            charges, answers = read_charges(connection, dataset), read_answers(connection, dataset)
            schemas = read_schemas(connection)
            if any(answer.schema not in schemas for answer in answers):
                raise DamagedRowError
            return LedgerHistory(charges, answers, schemas)

    def allow(
        self, dataset: str, analyst: str, epsilon: EpsilonLike | None = None, *, rho: EpsilonLike | None = None
    ) -> Budget:
        """Set what an analyst may spend in all of a dataset's budget; a later word replaces an earlier one.

        The share is in the currency of the budget. One that allows more than the budget has left is set with a warning.
        """
        share = read_share_terms(dataset, analyst, read_budget(epsilon, rho))
        with self._sound(), self._file.writing() as connection:
            account = self._account(connection, dataset)
            refuse_other_share(account, share)
            found = read_share(connection, dataset, analyst)
            if found is None or found.budget.total != share.budget.total:
                add_share(connection, share, now())
            granted = _share_of(connection, share)
        if granted.budget.left > account.budget.left:
            warnings.warn(beyond_what_is_left(granted, account), stacklevel=2)
        return granted.budget

    def ensure_allowed(
        self, dataset: str, analyst: str, epsilon: EpsilonLike | None = None, *, rho: EpsilonLike | None = None
    ) -> Budget:
        """Return an analyst's share, set unless there is one; an existing one must not contradict."""
        share = read_share_terms(dataset, analyst, read_budget(epsilon, rho))
        with self._sound(), self._file.writing() as connection:
            refuse_other_share(self._account(connection, dataset), share)
            found = read_share(connection, dataset, analyst)
            if found is None:
                add_share(connection, share, now())
                found = _share_of(connection, share)
            if found.budget.total != share.budget.total:
                raise LedgerError(
                    f"analyst '{analyst}' may spend {found.currency} {short_and_exact(found.budget.total)} on dataset "
                    f"'{dataset}', not {short_and_exact(share.budget.total)}; change it with Ledger.allow"
                )
            return found.budget

    def shares(self, dataset: str) -> list[Share]:
        """Return what single analysts may spend on a dataset and what they spent, by name."""
        with self._sound(), self._file.reading() as connection:
            self._account(connection, dataset)
            found = [read_share(connection, dataset, analyst) for analyst in analysts_with_shares(connection, dataset)]
            return [share for share in found if share is not None]

    def charge(
        self,
        dataset: str,
        statement: PrivacyStatement,
        *,
        purpose: str,
        analyst: str | None = None,
        within: Sequence[PartOf] = (),
        details: ChargeDetails = NOTHING_TOLD,
    ) -> Receipt:
        """Write a charge down for good and return its receipt, or refuse the whole of it and write nothing.

        ``within`` names the nested parts, outermost first, of partitions that the measurement stays inside: it then
        costs only what it adds to the dearest part, which may be nothing.
        """
        check_statement(statement)
        check_text("the purpose of a charge", purpose, LONGEST_PURPOSE)
        check_details(details)
        if analyst is not None:
            check_text("the analyst of a charge", analyst, LONGEST_NAME)
        with self._sound(), self._file.writing() as connection:
            account = self._account(connection, dataset)
            refuse_other_promise(account, statement)
            refuse_without_price(account, statement)
            cost = statement.cost(account.currency)
            price, spent = price_within(connection, dataset, within, cost)
            _refuse_beyond_budget(connection, account, analyst, price)
            number, at = next_id(connection, "charges") if price else None, now()
            charged = statement.charged(_where_charged(account, number, price, statement))
            if number is not None:
                made = Charge(number, dataset, price, charged, purpose, analyst, at, account.currency, details)
                add_charge(connection, made)
            add_part_charges(connection, dataset, spent, number, at)
        # The transaction is on disk from here on, and not a line earlier.
        return issue_receipt(number, dataset, charged, account.currency)

    @contextmanager
    def paying(
        self,
        dataset: str,
        statement: PrivacyStatement,
        *,
        purpose: str,
        analyst: str | None = None,
        within: Sequence[PartOf] = (),
        details: ChargeDetails = NOTHING_TOLD,
    ) -> Iterator[Receipt]:
        """Charge for what the block does; whatever cuts the block short carries a note that the charge stands."""
        receipt = None
        try:
            receipt = self.charge(dataset, statement, purpose=purpose, analyst=analyst, within=within, details=details)
            yield receipt
        except BaseException as problem:
            if receipt is None and not isinstance(problem, VeilcubeError):
                problem.add_note(charge_stands(self.path, dataset, None))
            if receipt is not None and receipt.charge_id is not None:
                problem.add_note(charge_stands(self.path, dataset, receipt.charge_id))
            raise

    def keep(
        self,
        receipt: Receipt,
        schema: Schema,
        key: str,
        question: Mapping[str, object],
        values: Sequence[int],
        noise: Noise | None,
        *,
        analyst: str | None = None,
    ) -> StoredAnswer:
        """Write a noisy answer down for good, beside the charge that paid for it, and return it as it is kept."""
        dataset = receipt.dataset
        if dataset is None:
            raise LedgerError("an answer that was charged to no ledger cannot be kept in one; charge it first")
        if not can_be_kept(values):
            raise LedgerError("a ledger keeps answers of less than 60 digits; ask for smaller numbers")
        answer = StoredAnswer(
            0,
            dataset,
            receipt.charge_id,
            schema.fingerprint(),
            key,
            question,
            tuple(values),
            noise,
            receipt.statement,
            analyst,
            now(),
        )
        with self._sound(), self._file.writing() as connection:
            return add_answer(connection, schema, answer)

    def find_answers(self, dataset: str, key: str) -> list[StoredAnswer]:
        """Return the answers that were given to one question, in their order."""
        with self._sound(), self._file.reading() as connection:
            return read_answers(connection, dataset, key)

    def damaged(self) -> LedgerError:
        """Return the error for content that no ledger can have."""
        return self._file.damaged()

    def _account(self, connection: sqlite3.Connection, dataset: str) -> DatasetAccount:
        check_name(dataset)
        account = read_account(connection, dataset)
        if account is None:
            raise LedgerError(
                f"the ledger {self.path} has no dataset '{dataset}'; {did_you_mean(dataset, account_names(connection))}"
                "see 'veilcube ledger show' for those it has, or add it with 'veilcube ledger create'"
            )
        return account

    @contextmanager
    def _sound(self) -> Iterator[None]:
        try:
            yield
        except DamagedRowError as problem:
            raise self.damaged() from problem


def _find_or_add(connection: sqlite3.Connection, asked: DatasetAccount) -> DatasetAccount:
    account = read_account(connection, asked.name)
    if account is None:
        add_account(connection, asked)
        return asked
    refuse_other_terms(account, asked)
    return account


def _share_of(connection: sqlite3.Connection, share: Share) -> Share:
    return read_share(connection, share.dataset, share.analyst) or share


def _refuse_beyond_budget(
    connection: sqlite3.Connection, account: DatasetAccount, analyst: str | None, price: Fraction
) -> None:
    if price == 0:
        return
    if not account.budget.allows(price):
        raise BudgetExceededError(over_budget(f"dataset '{account.name}'", account.budget, price))
    share = None if analyst is None else read_share(connection, account.name, analyst)
    if share is not None and not share.budget.allows(price):
        whose = f"the share of analyst '{analyst}' in dataset '{account.name}'"
        raise BudgetExceededError(over_budget(whose, share.budget, price))
    check_amount(price, account.currency)


def _where_charged(account: DatasetAccount, number: int | None, price: Fraction, statement: PrivacyStatement) -> str:
    if number is None:
        return f"the budget of '{account.name}' already, with what was spent on another part of its partition"
    whole, currency = f"the budget of '{account.name}' as charge {number}", account.currency
    if price != statement.cost(currency):
        return f"{whole} of {currency} {show_fraction(price)}, the rest with another part"
    return whole if currency is statement.currency else f"{whole} of {currency} {show_fraction(price)}"
