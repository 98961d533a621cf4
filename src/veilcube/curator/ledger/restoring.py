"""What a restored ledger does about charges that cannot be read any more: it refuses, or counts all as spent."""

from dataclasses import dataclass
from fractions import Fraction

from veilcube.curator.ledger.charging import Order
from veilcube.curator.ledger.rows import Book, ChargeDetails, account_names, lose_parts, read_standing
from veilcube.curator.ledger.terms import now
from veilcube.errors import LedgerError
from veilcube.privacy import (
    ChoiceEvent,
    Currency,
    GaussianEvent,
    Neighbours,
    PrivacyStatement,
    PrivacyUnit,
    Promise,
)

_PURPOSE = "written off: charges since the backup that this ledger was restored from could not be read"
_PROOF = "no release; it counts what cannot be read any more as spent"
# A rest of more digits than a charge may have is written off up to this much of it.
_FINEST = 10**250


@dataclass(frozen=True)
class Settling:
    """What to do where charges are missing."""

    path: str
    write_off: bool

    def __call__(self, book: Book, is_complete: bool) -> None:
        """Refuse to go on without the missing charges, or write off what is left of every budget."""
        if is_complete:
            return
        if not self.write_off:
            raise LedgerError(
                f"charges to the ledger {self.path} may be missing in its backup and cannot be read any more, so "
                "nothing was restored; add --write-off (write_off=True) to count all that is left of every budget as "
                "spent, or use a newer backup"
            )
        for name in account_names(book):
            _write_off(book, name)


def _write_off(book: Book, dataset: str) -> None:
    """Count what is left as spent; and what was spent on one part of a partition pays for no other any more."""
    standing = read_standing(book, dataset)
    if standing is None:
        return
    lose_parts(book, dataset, now())
    account = standing.account
    left = account.budget.left
    if left.denominator > _FINEST:
        left = Fraction(left * _FINEST // 1, _FINEST)
    if left > 0:
        neighbours = account.neighbours or Neighbours.ADD_REMOVE
        statement = _statement(left, account.currency, neighbours, _read_unit(account.unit))
        Order(dataset, statement, _PURPOSE, None, (), ChargeDetails()).charge(book, standing)


def _statement(amount: Fraction, currency: Currency, neighbours: Neighbours, unit: PrivacyUnit) -> PrivacyStatement:
    if currency is Currency.EPSILON:
        return PrivacyStatement(amount, neighbours, unit, ChoiceEvent(amount), _PROOF)
    event = GaussianEvent(sensitivity_squared=1, sigma_squared=1 / (2 * amount))
    return PrivacyStatement.keeping(Promise.of_rho(amount), neighbours, unit, event, _PROOF)


def _read_unit(identity: str | None) -> PrivacyUnit:
    if identity is None or identity == "row":
        return PrivacyUnit.row()
    return PrivacyUnit.person(identity.removeprefix("person:"), 1)
