"""The receipt: what a mechanism asks for before it draws noise, so that no answer exists without its charge."""

import os
import threading
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from typing import NoReturn, SupportsIndex, final

from veilcube.errors import LedgerError
from veilcube.privacy import Currency, PrivacyStatement, SequentialEvent

_SEAL = object()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Receipt:
    """Proof that a charge is on disk (or that the caller chose to have no ledger); pays for one measurement only.

    ``charge_id`` and ``dataset`` are None on a receipt without a ledger; ``charge_id`` alone is None where what was
    paid for other parts of a partition, or for a whole, covers this measurement too. Receipts cannot be copied or
    pickled, and count only in the process that got them: a second redemption anywhere would be noise that nobody paid
    for.
    """

    charge_id: int | None
    dataset: str | None
    statement: PrivacyStatement
    currency: Currency
    seal: InitVar[object]
    _process: int = field(init=False, repr=False)
    _unspent: threading.Lock = field(init=False, repr=False)

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise LedgerError("only a ledger issues receipts; use Ledger.charge, or Receipt.uncharged without a ledger")
        object.__setattr__(self, "_process", os.getpid())
        object.__setattr__(self, "_unspent", threading.Lock())

    @classmethod
    def uncharged(cls, statement: PrivacyStatement) -> "Receipt":
        """Return a receipt for a caller who keeps no ledger; its statement says so."""
        return cls(None, None, replace(statement, charged_to=None), statement.currency, _SEAL)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that is promised."""
        return self.statement.epsilon

    @property
    def cost(self) -> Fraction:
        """What the promise costs in the currency of the account."""
        return self.statement.cost(self.currency)

    def redeem(self) -> PrivacyStatement:
        """Use the receipt up and return what it pays for; to be called once, right before noise is drawn."""
        if os.getpid() != self._process:
            raise LedgerError("this receipt belongs to the process that made the charge; charge again in this one")
        # Taken and never given back: of all threads that try, one gets it.
        if not self._unspent.acquire(blocking=False):
            raise LedgerError("this receipt is used up, since one charge pays for one measurement; charge again")
        return self.statement

    def divided(self, *parts: PrivacyStatement) -> tuple["Receipt", ...]:
        """Use the receipt up for one of each part of what it pays for: parts that together are its whole event."""
        paid = self.statement
        same = all((part.unit, part.neighbours) == (paid.unit, paid.neighbours) for part in parts)
        if not same or paid.event != SequentialEvent(tuple(part.event for part in parts)):
            raise LedgerError("the receipt pays for other parts than these; charge for the parts together")
        self.redeem()
        return tuple(Receipt(None, self.dataset, part, self.currency, _SEAL) for part in parts)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise LedgerError("a receipt cannot be copied or pickled, since one charge pays for one measurement")


def issue_receipt(charge_id: int | None, dataset: str, statement: PrivacyStatement, currency: Currency) -> Receipt:
    """Return the receipt of a committed charge. For the ledger alone."""
    return Receipt(charge_id, dataset, statement, currency, _SEAL)
