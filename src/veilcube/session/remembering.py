"""What a ledger remembers of a release beside its price: details that people look up, and which table it was made from.

The second is private and stays beside the ledger (``SeenTables``); all that anybody hears of it is a warning to whoever
holds the table.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from veilcube.curator import ChargeDetails, Cube, Ledger, RowList, SeenTables, Sight, Tally
from veilcube.errors import LedgerError
from veilcube.planner import Plan
from veilcube.system import read_path, read_text


def read_details(has_ledger: bool, note: object, output: object) -> ChargeDetails:
    """Return what is to be kept beside the charge; a note without a ledger would be lost and is refused."""
    if note is not None:
        read_text(note, "the note", LedgerError)
        if not has_ledger:
            raise LedgerError(
                "a note is kept in the ledger; name the ledger and the dataset too, or leave the note out"
            )
    name = (
        None
        if output is None
        else str(read_path(output, "output", LedgerError)).encode(errors="backslashreplace").decode()
    )
    return ChargeDetails(output=name, note=note)  # type: ignore[arg-type]


def details_of(told: ChargeDetails, chosen: Plan) -> ChargeDetails:
    """Add what a plan says."""
    return replace(told, schema=chosen.schema.fingerprint(), strategy=chosen.strategy.to_dict())


def note_of_table(account: tuple[Ledger, str] | None, counted: Cube | Tally | RowList) -> Callable[[], None]:
    """Warn if the dataset was last charged for another table; return what notes this one, once it is charged."""
    if account is None:
        return _nothing
    ledger, dataset = account
    ledger.budget(dataset)  # a ledger that refuses the charge is left as it is
    if ledger.path is None:  # what lies beside a ledger is for files: a database is no place for it
        return _nothing
    seen = SeenTables(ledger.path)
    key = seen.key()
    if key is not None and (change := seen.change(_sight(dataset, counted, key))) is not None:
        warnings.warn(change, UserWarning, stacklevel=5)
    elif key is None and seen.is_begun():
        warnings.warn(seen.unusable(), UserWarning, stacklevel=5)

    def note() -> None:
        # Begun once something is charged: a refusal leaves nothing behind. Nothing here may fail what is paid for.
        own = key or seen.key(begin=True)
        if own is not None:
            seen.note(_sight(dataset, counted, own))

    return note


def _sight(dataset: str, counted: Cube | Tally | RowList, key: bytes) -> Sight:
    basis, digest = counted.digest(key)
    return Sight(dataset, basis, digest, datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))


def _nothing() -> None:
    return None
