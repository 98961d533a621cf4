"""Ledgers with very many charges, written at once: each row and link as the ledger itself would have written it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from pathlib import Path

from veilcube.curator.ledger import Ledger
from veilcube.curator.ledger.rows import Book, write_statement
from veilcube.curator.ledger.rows.account import CHARGE_COLUMNS
from veilcube.curator.ledger.rows.balance import Balance
from veilcube.curator.ledger.rows.chain import ADD_LINK, Link, link_at, next_link, of_dataset
from veilcube.curator.ledger.stores.beside import Beside
from veilcube.privacy import LaplaceEvent, Neighbours, PrivacyStatement, PrivacyUnit

MOMENT = "2026-01-02T03:04:05.678Z"


def statement_of(epsilon: Fraction) -> PrivacyStatement:
    """Return the promise of a count with Laplace noise."""
    event = LaplaceEvent(sensitivity=1, scale=1 / epsilon)
    return PrivacyStatement(epsilon, Neighbours.ADD_REMOVE, PrivacyUnit.row(), event, "a benchmark")


def add_many_charges(ledger: Ledger, dataset: str, amounts: list[Fraction]) -> None:
    """Charge a dataset that was not charged yet with many different amounts, in one transaction without waiting."""
    path = Path(str(ledger.path))
    key = Beside(path).key()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        book = Book(connection, key)
        opening = link_at(book, of_dataset(dataset), 0)
        found = _rows(key or b"", opening, dataset, amounts)
        while batch := list(islice(found, 10_000)):
            columns = ", ".join("?" * 13)
            connection.executemany(
                f"INSERT INTO charges ({CHARGE_COLUMNS}) VALUES ({columns})", [one[0] for one in batch]
            )
            connection.executemany(ADD_LINK, [one[1].row for one in batch])
        connection.commit()


def _rows(
    key: bytes, before: Link | None, dataset: str, amounts: list[Fraction]
) -> Iterator[tuple[tuple[object, ...], Link]]:
    spent = Balance.zero()
    for number, amount in enumerate(amounts, start=1):
        text = f"{amount.numerator}/{amount.denominator}" if amount.denominator != 1 else str(amount)
        charged = _written(dataset, amount).replace("as charge 0", f"as charge {number}")
        row = (number, dataset, text, "add-remove", "row", charged, "many", None, MOMENT, *[None] * 4)
        spent = spent.plus(amount)
        before = next_link(key, before, of_dataset(dataset), number, spent, row)
        yield row, before


@lru_cache(maxsize=10_000)
def _written(dataset: str, amount: Fraction) -> str:
    return write_statement(statement_of(amount).charged(f"the budget of '{dataset}' as charge 0"))
