"""One charge: what it costs within its partitions, whether budget and share allow it, and its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from veilcube.curator.ledger.refusals import over_budget, refuse_other_promise, refuse_without_price
from veilcube.curator.ledger.rows import (
    Book,
    Charge,
    ChargeDetails,
    DatasetAccount,
    PartOf,
    Standing,
    add_charge,
    add_part_charges,
    last_of_analyst,
    next_charge,
    price_within,
    read_kept_share,
    share_allows,
)
from veilcube.curator.ledger.terms import (
    LONGEST_NAME,
    LONGEST_PURPOSE,
    check_amount,
    check_details,
    check_statement,
    check_text,
    now,
)
from veilcube.errors import BudgetExceededError
from veilcube.privacy import Currency, PrivacyStatement, show_fraction


@dataclass(frozen=True)
class Charged:
    """What became of an order: the number of its charge, None where nothing was to pay, and the statement with it."""

    number: int | None
    statement: PrivacyStatement
    currency: Currency


@dataclass(frozen=True)
class Order:
    """What somebody asks a ledger to charge, checked before the ledger is opened."""

    dataset: str
    statement: PrivacyStatement
    purpose: str
    analyst: str | None
    within: Sequence[PartOf]
    details: ChargeDetails

    def __post_init__(self) -> None:
        check_statement(self.statement)
        check_text("the purpose of a charge", self.purpose, LONGEST_PURPOSE)
        check_details(self.details)
        if self.analyst is not None:
            check_text("the analyst of a charge", self.analyst, LONGEST_NAME)

    def charge(self, book: Book, standing: Standing) -> Charged:
        """Write the charge down, or refuse the whole of it; nothing was written that stays where this raises."""
        account = standing.account
        refuse_other_promise(account, self.statement)
        refuse_without_price(account, self.statement)
        price, spent = price_within(book, self.dataset, self.within, self.statement.cost(account.currency))
        share = None if self.analyst is None else last_of_analyst(book, self.dataset, self.analyst)
        if price:
            self._refuse_beyond_budget(book, standing, price)
        number, at = next_charge(book) if price else None, now()
        charged = self.statement.charged(_where_charged(account, number, price, self.statement))
        if number is not None:
            made = Charge(
                number, self.dataset, price, charged, self.purpose, self.analyst, at, account.currency, self.details
            )
            add_charge(book, made, standing, share)
        add_part_charges(book, self.dataset, spent, number, at)
        return Charged(number, charged, account.currency)

    def _refuse_beyond_budget(self, book: Book, standing: Standing, price: Fraction) -> None:
        account = standing.account
        if not standing.allows(book, price):
            raise BudgetExceededError(over_budget(f"dataset '{account.name}'", account.budget, price))
        share = None if self.analyst is None else read_kept_share(book, account.name, self.analyst)
        if share is not None and not share_allows(book, share, price):
            whose = f"the share of analyst '{self.analyst}' in dataset '{account.name}'"
            raise BudgetExceededError(over_budget(whose, share.budget, price))
        check_amount(price, account.currency)


def _where_charged(account: DatasetAccount, number: int | None, price: Fraction, statement: PrivacyStatement) -> str:
    if number is None:
        return f"the budget of '{account.name}' already, with what was spent on another part of its partition"
    whole, currency = f"the budget of '{account.name}' as charge {number}", account.currency
    if price != statement.cost(currency):
        return f"{whole} of {currency} {show_fraction(price)}, the rest with another part"
    return whole if currency is statement.currency else f"{whole} of {currency} {show_fraction(price)}"
