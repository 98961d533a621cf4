"""The ledger: budgets by dataset, charged durably before any noise is drawn.

A crash may waste budget, never give it away: the receipt that mechanisms demand exists only after the charge is on
disk. Whoever puts back an old copy of the file also takes back the charges made since; only people can prevent that.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from veilcube.curator.ledger.charging import Order
from veilcube.curator.ledger.history import LedgerHistory
from veilcube.curator.ledger.opening import open_store, require_file
from veilcube.curator.ledger.pages import charges_in_pages, read_page
from veilcube.curator.ledger.receipt import Receipt, issue_receipt
from veilcube.curator.ledger.refusals import (
    beyond_what_is_left,
    charge_stands,
    refuse_other_share,
    refuse_other_terms,
    short_and_exact,
)
from veilcube.curator.ledger.restoring import Settling
from veilcube.curator.ledger.rows import (
    Book,
    Charge,
    ChargeDetails,
    Checked,
    DamagedRowError,
    DatasetAccount,
    PartOf,
    Share,
    Standing,
    StoredAnswer,
    account_names,
    add_account,
    add_answer,
    add_share,
    analysts_with_shares,
    can_be_kept,
    read_account,
    read_answers,
    read_share,
    read_standing,
)
from veilcube.curator.ledger.stores import back_up, give_new_key, read_location, restore
from veilcube.curator.ledger.terms import check_name, now, read_budget, read_share_terms, read_terms
from veilcube.errors import LedgerError, VeilcubeError
from veilcube.laws import Noise
from veilcube.privacy import Budget, Currency, EpsilonLike, PrivacyStatement, show_fraction
from veilcube.schema import Schema
from veilcube.system import as_html, did_you_mean, read_flag

Result = TypeVar("Result")
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
        self._store = open_store(url, float(timeout))

    def __repr__(self) -> str:
        return f"Ledger({self._store.name!r})"

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
    def path(self) -> Path | None:
        """The file, made by the first ``create``; None for a ledger in a database."""
        return self._store.path

    @property
    def name(self) -> str:
        """What messages call it: its file, or its database without user and password."""
        return self._store.name

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
        if self._store.is_lost():
            raise self._store.missing()
        with self._sound():
            account = self._store.write(lambda book: _find_or_add(book, asked), create=True)
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
        is_new = self._store.is_unused_place()
        with self._sound():
            budget = self._store.write(lambda book: _find_or_add(book, asked), create=is_new).budget
        if is_new:
            warnings.warn(
                f"there was no ledger at {self._store.name}, so a new one was made with a budget of "
                f"{budget.currency} {show_fraction(budget.total)} for '{dataset}'; if that dataset has a ledger "
                "elsewhere, use that one",
                stacklevel=3,
            )
        return budget

    def datasets(self) -> list[DatasetAccount]:
        """Return all accounts in the order of their names."""
        with self._sound(), self._store.reading() as book:
            return [self._account(book, name) for name in account_names(book)]

    def budget(self, dataset: str) -> Budget:
        """Return a dataset's total and what was spent of it."""
        with self._sound(), self._store.reading() as book:
            return self._account(book, dataset).budget

    def currency(self, dataset: str) -> Currency:
        """Return what a dataset's budget is kept in: epsilon or rho."""
        with self._sound(), self._store.reading() as book:
            return self._account(book, dataset).currency

    def history(self, dataset: str | None = None, *, limit: int | None = None, offset: int = 0) -> LedgerHistory:
        """Return the charges of a dataset, or of all, in the order in which they were made.

        The list also knows the answers that were given: ``.answers``, and as measurements ``.answered``. With ``limit``
        it is a page of so many charges after the first ``offset`` ones, and the answers are those that they paid for.
        """
        page = read_page(limit, offset)
        with self._sound(), self._store.reading() as book:
            names = account_names(book) if dataset is None else [self._account(book, dataset).name]
            return page.read(book, names, dataset)

    def charges(self, dataset: str | None = None) -> Iterator[Charge]:
        """Return what goes through the charges in the order in which they were made, holding a thousand at a time."""
        with self._sound(), self._store.reading() as book:
            names = account_names(book) if dataset is None else [self._account(book, dataset).name]

        def read(action: Callable[[Book], Result]) -> Result:
            with self._sound(), self._store.reading() as book:
                return action(book)

        return charges_in_pages(read, names)

    def verify(self) -> Checked:
        """Check every row, every balance and every seal of the ledger, and return how many there were."""
        self._store.require_key()
        with self._sound(), self._store.reading() as book:
            return self._store.check(book)

    def backup(self, target: str | Path) -> Checked:
        """Write a copy of the ledger to a new file, once all of it was checked; its key is not in the copy."""
        with self._sound():
            return back_up(require_file(self._store), read_location(target))

    def restore(self, source: str | Path, *, write_off: bool = False) -> Checked:
        """Put a backup in the place of this ledger, with the later charges that can still be read of it.

        Where some cannot be read, that is refused, because their budget would be granted again; with ``write_off`` all
        that is left of every budget is counted as spent instead. The damaged file stays beside the new one.
        """
        with self._sound():
            return restore(
                require_file(self._store),
                read_location(source),
                Settling(self._store.name, read_flag(write_off, "write_off", LedgerError)),
            )

    def rekey(self) -> Checked:
        """Seal a ledger whose key was lost, or seen by others, with a new one, once all of it proved right."""
        with self._sound():
            return give_new_key(require_file(self._store))

    def allow(
        self, dataset: str, analyst: str, epsilon: EpsilonLike | None = None, *, rho: EpsilonLike | None = None
    ) -> Budget:
        """Set what an analyst may spend in all of a dataset's budget; a later word replaces an earlier one.

        The share is in the currency of the budget. One that allows more than the budget has left is set with a warning.
        """
        share = read_share_terms(dataset, analyst, read_budget(epsilon, rho))

        def grant(book: Book) -> tuple[Share, DatasetAccount]:
            account = self._account(book, dataset)
            refuse_other_share(account, share)
            found = read_share(book, dataset, analyst)
            if found is None or found.budget.total != share.budget.total:
                add_share(book, share, now())
            return _share_of(book, share), account

        with self._sound():
            granted, account = self._store.write(grant)
        if granted.budget.left > account.budget.left:
            warnings.warn(beyond_what_is_left(granted, account), stacklevel=2)
        return granted.budget

    def ensure_allowed(
        self, dataset: str, analyst: str, epsilon: EpsilonLike | None = None, *, rho: EpsilonLike | None = None
    ) -> Budget:
        """Return an analyst's share, set unless there is one; an existing one must not contradict."""
        share = read_share_terms(dataset, analyst, read_budget(epsilon, rho))

        def grant(book: Book) -> Share:
            refuse_other_share(self._account(book, dataset), share)
            found = read_share(book, dataset, analyst)
            if found is None:
                add_share(book, share, now())
            return found or _share_of(book, share)

        with self._sound():
            found = self._store.write(grant)
        if found.budget.total != share.budget.total:
            raise LedgerError(
                f"analyst '{analyst}' may spend {found.currency} {short_and_exact(found.budget.total)} on dataset "
                f"'{dataset}', not {short_and_exact(share.budget.total)}; change it with Ledger.allow"
            )
        return found.budget

    def shares(self, dataset: str) -> list[Share]:
        """Return what single analysts may spend on a dataset and what they spent, by name."""
        with self._sound(), self._store.reading() as book:
            self._account(book, dataset)
            found = [read_share(book, dataset, analyst) for analyst in analysts_with_shares(book, dataset)]
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
        order = Order(dataset, statement, purpose, analyst, tuple(within), details)
        with self._sound():
            made = self._store.write(lambda book: order.charge(book, self._standing(book, dataset)))
        # The transaction is on disk from here on, and not a line earlier.
        return issue_receipt(made.number, dataset, made.statement, made.currency)

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
                problem.add_note(charge_stands(self._store.name, dataset, None))
            if receipt is not None and receipt.charge_id is not None:
                problem.add_note(charge_stands(self._store.name, dataset, receipt.charge_id))
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
        with self._sound():
            return self._store.write(lambda book: add_answer(book, schema, answer))

    def find_answers(self, dataset: str, key: str) -> list[StoredAnswer]:
        """Return the answers that were given to one question, in their order."""
        with self._sound(), self._store.reading() as book:
            return read_answers(book, dataset, key)

    def damaged(self) -> LedgerError:
        """Return the error for content that no ledger can have."""
        return self._store.damaged()

    def _account(self, book: Book, dataset: str) -> DatasetAccount:
        check_name(dataset)
        return self._found(book, dataset, read_account(book, dataset))

    def _standing(self, book: Book, dataset: str) -> Standing:
        check_name(dataset)
        return self._found(book, dataset, read_standing(book, dataset))

    def _found(self, book: Book, dataset: str, found: Result | None) -> Result:
        if found is None:
            raise LedgerError(
                f"the ledger {self._store.name} has no dataset '{dataset}'; "
                f"{did_you_mean(dataset, account_names(book))}"
                "see 'veilcube ledger show' for those it has, or add it with 'veilcube ledger create'"
            )
        return found

    @contextmanager
    def _sound(self) -> Iterator[None]:
        try:
            yield
        except DamagedRowError as problem:
            raise self._store.damaged(problem.where) from problem


def _find_or_add(book: Book, asked: DatasetAccount) -> DatasetAccount:
    account = read_account(book, asked.name)
    if account is None:
        add_account(book, asked)
        return asked
    refuse_other_terms(account, asked)
    return account


def _share_of(book: Book, share: Share) -> Share:
    return read_share(book, share.dataset, share.analyst) or share
