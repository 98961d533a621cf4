"""What a ledger says when it refuses: what is wrong, what it has, and what would be accepted."""

import math
import shlex
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from pathlib import Path

from veilcube.curator.ledger.rows import DatasetAccount, Share
from veilcube.errors import LedgerError, PublicNote
from veilcube.privacy import (
    SMALLEST_RHO,
    Budget,
    Currency,
    PrivacyStatement,
    is_pure,
    pure_epsilon_within,
    show_fraction,
    write_fraction,
)

# A fraction of more digits is told as a decimal: people type it back.
DIGITS_TO_TYPE = 20


def refuse_other_terms(account: DatasetAccount, asked: DatasetAccount) -> None:
    """Refuse terms that contradict those of an existing account."""
    kept = f"dataset '{account.name}' exists already in the ledger with"
    total, currency = account.budget.total, account.currency
    if (total, currency) != (asked.budget.total, asked.currency):
        other = "" if currency is asked.currency else f"{asked.currency} "
        raise LedgerError(
            f"{kept} a budget of {currency} {short_and_exact(total)}, not {other}"
            f"{short_and_exact(asked.budget.total)}; a budget is fixed once, so use that one"
        )
    if asked.neighbours and account.neighbours not in (None, asked.neighbours):
        raise LedgerError(f"{kept} neighbours='{account.neighbours}', not '{asked.neighbours}'; use those")
    if asked.unit and account.unit not in (None, asked.unit):
        raise LedgerError(f"{kept} the privacy unit '{account.unit}', not '{asked.unit}'; use that one")


def refuse_other_share(account: DatasetAccount, share: Share) -> None:
    """Refuse a share in another currency than the budget's, and one of more than there is: nobody could use it."""
    total, currency = account.budget.total, account.currency
    if share.currency is not currency:
        raise LedgerError(
            f"dataset '{account.name}' has its budget in {currency}, and a share of it is counted in the same: give "
            f"the share of analyst '{share.analyst}' as {currency}, not as {share.currency}"
        )
    if share.budget.total > total:
        raise LedgerError(
            f"{currency} {short_and_exact(share.budget.total)} for analyst '{share.analyst}' is more than the whole "
            f"budget of {short_and_exact(total)} of dataset '{account.name}'; allow at most that"
        )


def beyond_what_is_left(share: Share, account: DatasetAccount) -> str:
    """Say that an analyst may meet the end of the budget before that of their share."""
    return (
        f"analyst '{share.analyst}' may spend another {share.currency} {short_and_exact(share.budget.left)} of dataset "
        f"'{account.name}', and its budget has only {short_and_exact(account.budget.left)} left for everybody; a "
        "question beyond that is refused, so allow less, or tell them"
    )


def refuse_other_promise(account: DatasetAccount, statement: PrivacyStatement) -> None:
    """Refuse a charge for other neighbours or another unit than the account's."""
    if account.neighbours not in (None, statement.neighbours):
        raise LedgerError(
            f"dataset '{account.name}' is charged for neighbours='{account.neighbours}', and costs for "
            f"'{statement.neighbours}' do not add up with those; nothing was charged, use '{account.neighbours}'"
        )
    if account.unit not in (None, statement.unit.identity):
        raise LedgerError(
            f"dataset '{account.name}' is charged for the privacy unit '{account.unit}', and costs for "
            f"'{statement.unit.identity}' do not add up with those; nothing was charged, use '{account.unit}'"
        )


def refuse_without_price(account: DatasetAccount, statement: PrivacyStatement) -> None:
    """Refuse Gaussian noise to an account in epsilon, which has no price for it."""
    if account.currency is Currency.EPSILON and not is_pure(statement.event):
        raise LedgerError(
            f"dataset '{account.name}' has its budget in epsilon, in which Gaussian noise has no price, because at "
            "every epsilon some output remains that tells more; nothing was charged, so ask without delta and rho, or "
            "create a dataset with a budget in rho"
        )


def over_budget(what: str, budget: Budget, amount: Fraction) -> str:
    """Say why a charge was refused, what is left, and what would fit."""
    total, left, currency = budget.total, budget.left, budget.currency
    refused = f"the charge of {currency} {short_and_exact(amount)} to {what} was refused and nothing charged"
    if left <= 0:
        return (
            f"{refused}: the whole budget of {short_and_exact(total)} is spent; earlier releases still answer "
            "queries at no cost"
        )
    fits = f"ask for {currency} '{_largest_that_fits(left)}' or less"
    if currency is Currency.RHO and left >= SMALLEST_RHO:
        fits += f", or for pure epsilon '{_largest_that_fits(pure_epsilon_within(left))}' or less"
    return f"{refused}: {short_and_exact(left)} is left of {short_and_exact(total)}; {fits}"


def charge_stands(path: str | Path, dataset: str, charge: int | None) -> PublicNote:
    """Say what became of the budget when the work was cut short after a charge; None: while it was being written."""
    where = f"'veilcube ledger history {shlex.quote(str(path))} {shlex.quote(dataset)}'"
    if charge is None:
        return PublicNote(
            f"dataset '{dataset}' may have been charged, and that stands: {where} shows it, and asking again charges "
            "again"
        )
    return PublicNote(
        f"charge {charge} to dataset '{dataset}' stands, so its budget is spent: {where} shows it, and asking again "
        "charges again"
    )


def short_and_exact(value: Fraction) -> str:
    """Return an amount for people, and exactly beside it where that differs."""
    short, exact = show_fraction(value), _largest_that_fits(value)
    if short == exact:
        return short
    if Fraction(short) == value:
        return f"{short} ({exact})"
    return f"about {short} (exactly {exact})" if Fraction(exact) == value else f"about {short}"


def _largest_that_fits(left: Fraction) -> str:
    """Return the fraction itself, or if it is long to read, a decimal just below it."""
    if math.log10(left.denominator) + math.log10(max(left.numerator, 1)) < DIGITS_TO_TYPE:
        return write_fraction(left)
    with localcontext() as context:
        context.prec, context.rounding = 6, ROUND_FLOOR
        return str(Decimal(left.numerator) / Decimal(left.denominator))
