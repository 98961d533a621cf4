"""What a ledger is told, read and checked before it is written: names, amounts, terms, shares and statements."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction

from veilcube.curator.ledger.rows import ChargeDetails, DatasetAccount, Share, read_statement, write_statement
from veilcube.errors import LedgerError, PrivacyError
from veilcube.privacy import (
    LARGEST_EPSILON,
    LARGEST_RHO,
    Budget,
    Currency,
    EpsilonLike,
    Neighbours,
    PrivacyStatement,
    PrivacyUnit,
    read_epsilon,
    read_rho,
)

# Room for the smallest positive float; beyond it, sums and texts of fractions become a burden that protects nobody.
LONGEST_FRACTION_BITS = 1100
LONGEST_NAME = 200
LONGEST_PURPOSE = 10_000
_LARGEST = {Currency.EPSILON: LARGEST_EPSILON, Currency.RHO: LARGEST_RHO}


def now() -> str:
    """Return this moment as ledgers write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_budget(epsilon: EpsilonLike | None, rho: EpsilonLike | None) -> Budget:
    """Return an unspent budget in epsilon or in rho, whichever was given."""
    if epsilon is not None and rho is not None:
        raise PrivacyError("a budget is kept in epsilon or in rho, not in both; leave one of them out")
    if epsilon is not None:
        budget = Budget(read_epsilon(epsilon))
    elif rho is not None:
        budget = Budget(read_rho(rho), currency=Currency.RHO)
    else:
        raise PrivacyError("the size of the budget is missing; give it as epsilon=1, or as rho=0.1 for Gaussian noise")
    check_amount(budget.total, budget.currency)
    return budget


def read_terms(dataset: str, budget: Budget, neighbours: str | None, person: str | None) -> DatasetAccount:
    """Return the account that somebody asks for."""
    check_name(dataset)
    relation = None if neighbours is None else Neighbours.read(neighbours)
    unit = None
    if person is not None:
        check_text("the column that names a person", person, LONGEST_NAME)
        unit = PrivacyUnit.person(person, 1).identity
    return DatasetAccount(dataset, budget, relation, unit, now())


def read_share_terms(dataset: str, analyst: str, budget: Budget) -> Share:
    """Return the share that somebody grants."""
    check_name(dataset)
    check_text("the name of an analyst", analyst, LONGEST_NAME)
    return Share(dataset, analyst, budget)


def check_name(dataset: str) -> None:
    """Refuse a dataset's name that people could not tell from another."""
    check_text("the name of a dataset", dataset, LONGEST_NAME)
    if not dataset.isprintable() or dataset != dataset.strip():
        raise LedgerError("the name of a dataset must be printable, without spaces at its ends")


def check_text(what: str, text: object, longest: int) -> None:
    """Refuse what is no text, an empty one, one that is too long, and one that SQLite cannot keep."""
    if not isinstance(text, str) or not text.strip() or len(text) > longest or not _is_storable(text):
        raise LedgerError(f"{what} must be a text of 1 to {longest} characters")


def check_details(details: object) -> None:
    """Refuse details of a charge that could not be kept."""
    if not isinstance(details, ChargeDetails):
        raise LedgerError("the details of a charge are a ChargeDetails: output, schema, strategy and note")
    told = {
        "the file that a charge is for": details.output,
        "the fingerprint of a schema": details.schema,
        "the note on a charge": details.note,
    }
    for what, text in told.items():
        if text is not None:
            check_text(what, text, LONGEST_PURPOSE)
    try:
        strategy = {} if details.strategy is None else details.strategy
        readable = isinstance(strategy, Mapping) and json.dumps(strategy, allow_nan=False).startswith("{")
    except (TypeError, ValueError, RecursionError):
        readable = False
    if not readable:
        raise LedgerError("the strategy of a charge is plain data, as strategy.to_dict() gives it")


def _is_storable(text: str) -> bool:
    return "\0" not in text and text == text.encode(errors="replace").decode()


def check_amount(amount: Fraction, currency: Currency) -> None:
    """Refuse an amount that a ledger cannot keep."""
    longest = max(amount.numerator.bit_length(), amount.denominator.bit_length())
    if not 0 < amount <= _LARGEST[currency] or longest > LONGEST_FRACTION_BITS:
        raise PrivacyError(f"a ledger keeps {currency}s above 0 and up to 1e9, as fractions of at most 330 digits")


def check_statement(statement: PrivacyStatement) -> None:
    """Refuse a statement that could not be read back."""
    if not isinstance(statement, PrivacyStatement) or not isinstance(statement.neighbours, Neighbours):
        raise LedgerError("a charge needs a PrivacyStatement with its Neighbours: what is promised and what it costs")
    if statement.unit.column is not None:
        check_text("the column that names a person", statement.unit.column, LONGEST_NAME)
    try:
        readable = read_statement(write_statement(statement)) == statement
    except (AttributeError, TypeError, ValueError, PrivacyError):
        readable = False
    if not readable:
        raise LedgerError("this privacy statement could not be read back from a ledger, so it was not charged")
    check_amount(statement.epsilon, Currency.EPSILON)
