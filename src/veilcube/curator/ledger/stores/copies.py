"""Copies of a ledger's file: a checked backup, a ledger restored from one, and a new key for one that lost its own."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from veilcube.curator.ledger.rows import (
    Book,
    Checked,
    DamagedRowError,
    begin_for_all,
    bring_over,
    check_whole,
    has_key_of,
)
from veilcube.curator.ledger.stores.file import LedgerFile
from veilcube.curator.ledger.stores.layout import APPLICATION_ID, CHAIN_GUARDS, VERSION
from veilcube.curator.ledger.stores.reasons import CANNOT_OPEN, IS_THERE, NO_BACKUP, OLDER, reason_of
from veilcube.errors import LedgerError
from veilcube.system import sync_folder


def back_up(ledger: LedgerFile, target: Path) -> Checked:
    """Write a copy of a ledger, all of which was checked, and return how much that was. The key is not in it."""
    ledger.require_key()
    with ledger.reading() as book:
        checked = ledger.check(book)
        with _unfinished(target) as unfinished:
            if target.exists():
                raise LedgerError(IS_THERE.format(target=target))
            with closing(sqlite3.connect(unfinished)) as copy:
                book.connection.backup(copy)  # type: ignore[attr-defined]
            unfinished.replace(target)
            sync_folder(target.parent)
    return checked


def restore(ledger: LedgerFile, source: Path, settle: Callable[[Book, bool], None]) -> Checked:
    """Put a backup in the place of a ledger, with what can still be read there of later rows.

    ``settle`` is told whether that is all that the note beside the ledger knows of, and may refuse. The ledger that was
    there stays beside the new one, under another name.
    """
    ledger.require_key()
    place = Path(os.path.realpath(ledger.path))
    with ledger.alone(), _unfinished(place) as unfinished:
        _copy(ledger, source, unfinished)
        with _opened(ledger, unfinished, source) as book:
            with suppress(sqlite3.Error, DamagedRowError, UnicodeDecodeError, OSError):
                _bring_over_from(ledger, book)
            settle(book, ledger.beside.is_reached_by(book))
            checked = check_whole(book)
        _put_aside(place)
        unfinished.replace(place)
        with _opened(ledger, place, source) as book:
            ledger.beside.leave_note(book)
        sync_folder(place.parent)
    return checked


def give_new_key(ledger: LedgerFile) -> Checked:
    """Seal a ledger with a new key, once all of it, or without its old key all but the seals, proved right."""
    beside = ledger.beside
    with ledger.alone(), _database(ledger, ledger.path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        _require_version(connection, ledger, ledger.path)
        old = Book(connection, beside.key())
        try:
            check_whole(old, seals=old.key is not None and has_key_of(old))
        except DamagedRowError as problem:
            raise ledger.damaged(problem.where) from problem
        if beside.seems_ahead_of(old):
            raise LedgerError(OLDER.format(path=ledger.path))
        if beside.key_file.exists():
            beside.key_file.replace(_free_name(beside.key_file))
        book = Book(connection, beside.begin_key())
        for name in CHAIN_GUARDS:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM chain")
        begin_for_all(book)
        for statement in CHAIN_GUARDS.values():
            connection.execute(statement)
        checked = check_whole(book)
        connection.execute("COMMIT")
        beside.leave_note(book)
    return checked


def _copy(ledger: LedgerFile, source: Path, target: Path) -> None:
    if not source.is_file():
        raise LedgerError(NO_BACKUP.format(source=source, path=ledger.path))
    try:
        address = f"{source.as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as backup, closing(sqlite3.connect(target)) as copy:
            backup.backup(copy)
    except sqlite3.Error as problem:
        raise LedgerError(NO_BACKUP.format(source=source, path=ledger.path)) from problem


@contextmanager
def _opened(ledger: LedgerFile, path: Path, source: Path) -> Iterator[Book]:
    """Open a copy, which must be whole and sealed with the ledger's key; what is written in it is kept."""
    with _database(ledger, path) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            _require_version(connection, ledger, source)
            book = Book(connection, ledger.beside.key())
            if not has_key_of(book):
                raise LedgerError(NO_BACKUP.format(source=source, path=ledger.path))
            check_whole(book)
        except (sqlite3.Error, DamagedRowError, UnicodeDecodeError) as problem:
            raise LedgerError(NO_BACKUP.format(source=source, path=ledger.path)) from problem
        yield book
        connection.execute("COMMIT")


def _bring_over_from(ledger: LedgerFile, book: Book) -> None:
    address = f"{ledger.path.absolute().as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as damaged:
        damaged.execute("BEGIN IMMEDIATE")
        bring_over(Book(damaged, book.key), book)


@contextmanager
def _database(ledger: LedgerFile, path: Path) -> Iterator[sqlite3.Connection]:
    try:
        address = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=ledger.timeout, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=EXTRA")
            yield connection
    except sqlite3.Error as problem:
        raise LedgerError(reason_of(problem).format(path=path)) from problem


def _require_version(connection: sqlite3.Connection, ledger: LedgerFile, source: Path) -> None:
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    if found != [APPLICATION_ID, VERSION]:
        raise LedgerError(NO_BACKUP.format(source=source, path=ledger.path))


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Give the name of a file in the same folder, which is gone when this ends unless it got another."""
    unfinished = target.with_name(f".{os.getpid()}-{target.name}.tmp")
    try:
        with suppress(FileNotFoundError):
            unfinished.unlink()
        yield unfinished
    except OSError as problem:
        raise LedgerError(CANNOT_OPEN.format(path=target)) from problem
    finally:
        for left in (unfinished, unfinished.with_name(f"{unfinished.name}-journal")):
            with suppress(OSError):
                left.unlink(missing_ok=True)


def _put_aside(place: Path) -> None:
    """Give what was damaged another name; its journal first, which must not be applied to what comes in its place."""
    for ending in ("-journal", "-wal", ""):
        left = place.with_name(place.name + ending)
        if left.exists():
            left.replace(_free_name(left))


def _free_name(path: Path) -> Path:
    number = 1
    while (found := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return found
