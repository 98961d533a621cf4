"""What a ledger says when it refuses: what is wrong, what it has, and what would be accepted."""

import math
import shlex
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from pathlib import Path

from veilcube.curator.ledger.account import DatasetAccount
from veilcube.curator.ledger.shares import Share
from veilcube.errors import LedgerError, PublicNote
from veilcube.privacy import Budget, PrivacyStatement, show_fraction, write_fraction


def refuse_other_terms(account: DatasetAccount, asked: DatasetAccount) -> None:
    """Refuse terms that contradict those of an existing account."""
    kept = f"dataset '{account.name}' exists already in the ledger with"
    total = account.budget.total
    if total != asked.budget.total:
        raise LedgerError(
            f"{kept} a budget of epsilon {short_and_exact(total)}, not {short_and_exact(asked.budget.total)}; "
            "a budget is fixed once, so use that one"
        )
    if asked.neighbours and account.neighbours not in (None, asked.neighbours):
        raise LedgerError(f"{kept} neighbours='{account.neighbours}', not '{asked.neighbours}'; use those")
    if asked.unit and account.unit not in (None, asked.unit):
        raise LedgerError(f"{kept} the privacy unit '{account.unit}', not '{asked.unit}'; use that one")


def refuse_more_than_all(account: DatasetAccount, share: Share) -> None:
    """Refuse to let one analyst spend more than there is: the share would promise what nobody can use."""
    total = account.budget.total
    if share.budget.total > total:
        raise LedgerError(
            f"epsilon {short_and_exact(share.budget.total)} for analyst '{share.analyst}' is more than the whole "
            f"budget of {short_and_exact(total)} of dataset '{account.name}'; allow at most that"
        )


def refuse_other_promise(account: DatasetAccount, statement: PrivacyStatement) -> None:
    """Refuse a charge for other neighbours or another unit than the account's."""
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


def over_budget(what: str, budget: Budget, epsilon: Fraction) -> str:
    """Say why a charge was refused, what is left, and what would fit."""
    total, left = budget.total, budget.left
    refused = f"the charge of epsilon {short_and_exact(epsilon)} to {what} was refused and nothing charged"
    if left <= 0:
        return (
            f"{refused}: the whole budget of {short_and_exact(total)} is spent; earlier releases still answer "
            "queries at no cost"
        )
    return (
        f"{refused}: {short_and_exact(left)} is left of {short_and_exact(total)}; "
        f"ask for epsilon '{_largest_that_fits(left)}' or less"
    )


def charge_stands(path: Path, dataset: str, charge: int | None) -> PublicNote:
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
    """Return an epsilon for people, and exactly beside it where that differs."""
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
