"""Which dataset of which ledger pays, and the receipt for it: charged first, or without a ledger left to the caller."""

from contextlib import AbstractContextManager, nullcontext

from veilcube.curator import ChargeDetails, Ledger, Receipt
from veilcube.errors import LedgerError
from veilcube.privacy import PrivacyStatement

_NOTHING_TOLD = ChargeDetails()


def open_account(ledger: Ledger | str | None, dataset: str | None) -> tuple[Ledger, str] | None:
    """Return the ledger and the name of the dataset that pays; None if nobody keeps account."""
    if ledger is None and dataset is None:
        return None
    if ledger is None or dataset is None:
        raise LedgerError("ledger and dataset go together: name the ledger and the dataset in it that is charged")
    return (ledger if isinstance(ledger, Ledger) else Ledger(ledger)), dataset


def paying(
    account: tuple[Ledger, str] | None,
    statement: PrivacyStatement,
    purpose: str,
    analyst: str | None,
    details: ChargeDetails = _NOTHING_TOLD,
) -> AbstractContextManager[Receipt]:
    """Charge for what a statement promises, and give the receipt for it."""
    if account is None:
        return nullcontext(Receipt.uncharged(statement))
    ledger, dataset = account
    return ledger.paying(dataset, statement, purpose=purpose, analyst=analyst, details=details)
