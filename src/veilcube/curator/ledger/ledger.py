"""The ledger: budgets by dataset, charged durably before any noise is drawn.

A crash may waste budget, never give it away: the receipt that mechanisms demand exists only after the charge is on
disk. Whoever puts back an old copy of the file also takes back the charges made since; only people can prevent that.
"""

import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from veilcube.curator.ledger.account import (
    Charge,
    DamagedRowError,
    DatasetAccount,
    account_names,
    add_account,
    add_charge,
    next_id,
    read_account,
    read_charges,
    read_statement,
    write_statement,
)
from veilcube.curator.ledger.answers import StoredAnswer, add_answer, can_be_kept, read_answers, read_schemas
from veilcube.curator.ledger.history import LedgerHistory
from veilcube.curator.ledger.receipt import Receipt, issue_receipt
from veilcube.curator.ledger.refusals import (
    charge_stands,
    over_budget,
    refuse_more_than_all,
    refuse_other_promise,
    refuse_other_terms,
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
from veilcube.errors import BudgetExceededError, LedgerError, PrivacyError, VeilcubeError
from veilcube.privacy import (
    LARGEST_EPSILON,
    Budget,
    Currency,
    EpsilonLike,
    Neighbours,
    PrivacyStatement,
    PrivacyUnit,
    read_epsilon,
    show_fraction,
)
from veilcube.schema import Schema

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
        """Give a dataset its total budget, once; doing the same again changes nothing. Makes the file if there is none.

        A ledger that was there and is lost is refused here too, because programs begin with this call every time.

        What is not said here about neighbours and person (the column that names them) the first charge decides.
        """
        asked = _read_terms(dataset, epsilon, neighbours, person)
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
        self, dataset: str, epsilon: EpsilonLike, *, neighbours: str | None = None, person: str | None = None
    ) -> Budget:
        """Return the budget of a dataset, created unless it exists; an existing one must not contradict the terms.

        A ledger file that was lost or emptied is not made anew, and a new one in a place where none was is made with a
        warning.
        """
        asked = _read_terms(dataset, epsilon, neighbours, person)
        is_new = self._file.is_unused_place()
        with self._sound(), self._file.writing(create=is_new) as connection:
            budget = _find_or_add(connection, asked).budget
        if is_new:
            warnings.warn(
                f"there was no ledger at {self.path}, so a new one was made with a budget of epsilon "
                f"{show_fraction(budget.total)} for '{dataset}'; if that dataset has a ledger elsewhere, use that one",
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
            self._account(connection, dataset)
            return Currency.EPSILON

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

    def allow(self, dataset: str, analyst: str, epsilon: EpsilonLike) -> Budget:
        """Set what an analyst may spend in all of a dataset's budget; a later word replaces an earlier one."""
        share = _read_share_terms(dataset, analyst, epsilon)
        with self._sound(), self._file.writing() as connection:
            refuse_more_than_all(self._account(connection, dataset), share)
            found = read_share(connection, dataset, analyst)
            if found is not None and found.budget.total == share.budget.total:
                return found.budget
            add_share(connection, share, _now())
            return _share_of(connection, share).budget

    def ensure_allowed(self, dataset: str, analyst: str, epsilon: EpsilonLike) -> Budget:
        """Return an analyst's share, set unless there is one; an existing one must not contradict."""
        share = _read_share_terms(dataset, analyst, epsilon)
        with self._sound(), self._file.writing() as connection:
            refuse_more_than_all(self._account(connection, dataset), share)
            found = read_share(connection, dataset, analyst)
            if found is None:
                add_share(connection, share, _now())
                found = _share_of(connection, share)
            if found.budget.total != share.budget.total:
                raise LedgerError(
                    f"analyst '{analyst}' may spend epsilon {short_and_exact(found.budget.total)} on dataset "
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
    ) -> Receipt:
        """Write a charge down for good and return its receipt, or refuse the whole of it and write nothing.

        ``within`` names the nested parts, outermost first, of partitions that the measurement stays inside: it then
        costs only what it adds to the dearest part, which may be nothing.
        """
        _check_statement(statement)
        _check_text("the purpose of a charge", purpose, LONGEST_PURPOSE)
        if analyst is not None:
            _check_text("the analyst of a charge", analyst, LONGEST_NAME)
        with self._sound(), self._file.writing() as connection:
            account = self._account(connection, dataset)
            refuse_other_promise(account, statement)
            price, spent = price_within(connection, dataset, within, statement.epsilon)
            _refuse_beyond_budget(connection, account, analyst, price)
            number, at = next_id(connection, "charges") if price else None, _now()
            charged = statement.charged(_where_charged(dataset, number, price, statement.epsilon))
            if number is not None:
                add_charge(connection, Charge(number, dataset, price, charged, purpose, analyst, at))
            add_part_charges(connection, dataset, spent, number, at)
        # The transaction is on disk from here on, and not a line earlier.
        return issue_receipt(number, dataset, charged)

    @contextmanager
    def paying(
        self,
        dataset: str,
        statement: PrivacyStatement,
        *,
        purpose: str,
        analyst: str | None = None,
        within: Sequence[PartOf] = (),
    ) -> Iterator[Receipt]:
        """Charge for what the block does; whatever cuts the block short carries a note that the charge stands."""
        receipt = None
        try:
            receipt = self.charge(dataset, statement, purpose=purpose, analyst=analyst, within=within)
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
        scales: Sequence[Fraction],
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
            tuple(scales),
            receipt.statement,
            analyst,
            _now(),
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
            raise self.damaged() from problem


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
    refuse_other_terms(account, asked)
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


def _read_share_terms(dataset: str, analyst: str, epsilon: EpsilonLike) -> Share:
    _check_name(dataset)
    _check_text("the name of an analyst", analyst, LONGEST_NAME)
    total = read_epsilon(epsilon)
    _check_epsilon(total)
    return Share(dataset, analyst, Budget(total))


def _share_of(connection: sqlite3.Connection, share: Share) -> Share:
    return read_share(connection, share.dataset, share.analyst) or share


def _refuse_beyond_budget(
    connection: sqlite3.Connection, account: DatasetAccount, analyst: str | None, price: Fraction
) -> None:
    if price == 0:
        return
    _check_epsilon(price)
    if not account.budget.allows(price):
        raise BudgetExceededError(over_budget(f"dataset '{account.name}'", account.budget, price))
    share = None if analyst is None else read_share(connection, account.name, analyst)
    if share is not None and not share.budget.allows(price):
        whose = f"the share of analyst '{analyst}' in dataset '{account.name}'"
        raise BudgetExceededError(over_budget(whose, share.budget, price))


def _where_charged(dataset: str, number: int | None, price: Fraction, epsilon: Fraction) -> str:
    if number is None:
        return f"the budget of '{dataset}' already, with what was spent on another part of its partition"
    whole = f"the budget of '{dataset}' as charge {number}"
    return whole if price == epsilon else f"{whole} of epsilon {show_fraction(price)}, the rest with another part"
