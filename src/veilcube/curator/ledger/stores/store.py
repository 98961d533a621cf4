"""What a ledger needs of the place it is kept in."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from veilcube.curator.ledger.rows import Book, Checked
from veilcube.errors import LedgerError

Result = TypeVar("Result")


class Store(Protocol):
    """One place; all of its errors are LedgerErrors but DamagedRowError, which whoever reads rows raises."""

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def reading(self) -> AbstractContextManager[Book]:
        """Read an existing ledger as it is at one moment."""

    def write(self, action: Callable[[Book], Result], *, create: bool = False) -> Result:
        """Carry out an action with everybody else kept out; what it wrote is on disk when this returns.

        Where the outcome of an attempt is not known the action may be carried out again, but only one of them stands.
        """

    def damaged(self, where: str = "") -> LedgerError:
        """Return the error for content that no ledger can have."""

    def missing(self) -> LedgerError:
        """Return the refusal of a place without a ledger."""

    def is_unused_place(self) -> bool:
        """Whether no ledger ever was here, as far as anybody can tell."""

    def is_lost(self) -> bool:
        """Whether a ledger was here and is gone."""

    def require_key(self) -> None:
        """Refuse what cannot be done without the key."""

    def check(self, book: Book) -> Checked:
        """Check all of it."""
