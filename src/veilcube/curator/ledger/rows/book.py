"""An open ledger: one transaction on one of the stores, and the key that its rows are sealed with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class DamagedRowError(Exception):
    """A row holds what no ledger writes; the caller, who knows the file, says so. ``where`` says which, for people."""

    def __init__(self, where: str = "") -> None:
        super().__init__(where)
        self.where = where


class Rows(Protocol):
    """What a statement returned."""

    def __iter__(self) -> Iterator[Any]:
        """Give the rows one after another."""

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""


class Connection(Protocol):
    """Whatever runs statements, with ``?`` where parameters go."""

    def execute(self, statement: str, parameters: Sequence[object] = (), /) -> Rows:
        """Run one statement."""

    def executemany(self, statement: str, parameters: Sequence[Sequence[object]], /) -> object:
        """Run one statement for each of many rows."""


@dataclass(frozen=True)
class Book:
    """A ledger inside one transaction.

    Without ``key`` nothing is written, and what is read is not checked for changes: so is it read by somebody who may
    read the ledger and not its key.
    """

    connection: Connection
    key: bytes | None

    def __repr__(self) -> str:
        return "Book(key not shown)"

    def execute(self, statement: str, *parameters: object) -> Rows:
        """Run one statement."""
        return self.connection.execute(statement, parameters)

    def one(self, statement: str, *parameters: object) -> Any:
        """Return the first value of the first row, None if there is none."""
        row = self.execute(statement, *parameters).fetchone()
        return None if row is None else row[0]
