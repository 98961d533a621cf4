"""A ledger in a PostgreSQL database: the same rows and the same checks, for programs on several machines.

Exclusion: an advisory lock, which PostgreSQL gives in the order of asking, until the end of each transaction.
Durability: that transaction commits without waiting for the disk, so that the lock is free again at once; then a second
one, which writes a mark and waits until all that was written before it is on disk, and only then is anything
acknowledged. So many writers share one wait. What is on disk is always a beginning of what was committed.

A connection that drops before the answer to COMMIT came leaves open what became of it: the next attempt, once it has
the lock, looks for the request's own number, and charges again only if that is not there.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from veilcube.curator.ledger.rows import Book, Checked, Rows, begin_for_all, check_whole, has_key_of
from veilcube.curator.ledger.stores.postgres_layout import SCHEMA, STEPS, VERSION
from veilcube.errors import LedgerError
from veilcube.system import new_key

Result = TypeVar("Result")
_LOCK = int.from_bytes(b"veilcube", "big") >> 1
_PAUSE = 0.05
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# What others committed while the lock was waited for must be seen, whatever the role or database begins with.
_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"
_own = threading.local()

_REASONS: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.LockNotAvailable, "{name} is held by another program, so nothing was charged; wait and try again"),
    (errors.QueryCanceled, "{name} is held by another program, so nothing was charged; wait and try again"),
    (errors.ReadOnlySqlTransaction, "{name} is read-only, so nothing was charged; name the server that takes writes"),
    (
        errors.InsufficientPrivilege,
        "this user may not do that to {name}; grant what the guide to ledgers lists",
    ),
    (errors.DiskFull, "the disk that holds {name} is full, so nothing was charged; free some space and try again"),
    (errors.InvalidPassword, "the server refuses this user or password for {name}; check them"),
)
_UNREACHABLE = "the server of {name} cannot be reached, so nothing was charged; start it, or check the address"
_UNKNOWN = (
    "the connection to {name} dropped, and the charge may stand; look at the history once the server is there again, "
    "before trying again"
)
_DAMAGED = "{name} is damaged; restore a backup of the database"


class _Connection:
    """Runs statements, with ``?`` where parameters go."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw

    def execute(self, statement: str, parameters: Sequence[object] = (), /) -> Rows:
        return self.raw.execute(statement.replace("?", "%s").encode(), parameters)

    def executemany(self, statement: str, parameters: Sequence[Sequence[object]], /) -> object:
        with self.raw.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s").encode(), parameters)
        return None


@dataclass(frozen=True)
class PostgresLedger:
    """Where a ledger is and how many seconds to wait for others."""

    url: str
    timeout: float

    def __repr__(self) -> str:
        return f"PostgresLedger({self.name!r})"

    @property
    def path(self) -> None:
        """No file of this machine."""
        return

    @property
    def name(self) -> str:
        """What messages call it: without user, password and options."""
        try:
            told = psycopg.conninfo.conninfo_to_dict(self.url)
        except psycopg.ProgrammingError as problem:
            raise LedgerError("the address of a ledger is postgresql://user@host/database") from problem
        return f"the ledger in the PostgreSQL database '{told.get('dbname', '')}'"

    @contextmanager
    def reading(self) -> Iterator[Book]:
        """Read an existing ledger as it is at one moment."""
        with self._explained():
            try:
                self._begin(connection := self._connect(), _READING)
            except psycopg.OperationalError:
                self._begin(connection := self._connect(), _READING)
            try:
                yield self._opened(connection)
            finally:
                with suppress(psycopg.Error):
                    connection.raw.rollback()

    def write(self, action: Callable[[Book], Result], *, create: bool = False) -> Result:
        """Read and write with everybody else kept out; what was written is on disk when this returns."""
        request = _Request(self, action, create)
        deadline = time.monotonic() + self.timeout
        with self._explained():
            while True:
                try:
                    done: Result = request.attempt()
                    return done
                except psycopg.OperationalError as problem:
                    if not _is_lost(problem):
                        raise
                    self._forget()
                    if time.monotonic() >= deadline:
                        words = _UNKNOWN if request.is_sent else _UNREACHABLE
                        raise LedgerError(words.format(name=self.name)) from problem
                    time.sleep(_PAUSE)

    def damaged(self, where: str = "") -> LedgerError:
        """Return the error for content that no ledger can have."""
        told = f"; it is not as it was written at {where}" if where else ""
        return LedgerError(_DAMAGED.format(name=self.name) + told)

    def missing(self) -> LedgerError:
        """Return the refusal of a database without a ledger."""
        return LedgerError(
            f"there is no ledger yet in {self.name.removeprefix('the ledger in ')}; create it with "
            "'veilcube ledger create'"
        )

    def is_unused_place(self) -> bool:
        """Whether the database has no ledger."""
        with self._explained():
            connection = self._connect()
            try:
                return _version(connection) is None
            finally:
                connection.raw.rollback()

    def is_lost(self) -> bool:
        """Whether a ledger was here and is gone; a database keeps no note of that."""
        return False

    def require_key(self) -> None:
        """Refuse what cannot be done without the key."""
        with self.reading() as book:
            if book.key is None:
                raise LedgerError(
                    f"this user may not read the key of {self.name}, without which nothing can be checked"
                )

    def check(self, book: Book) -> Checked:
        """Check all of it."""
        return check_whole(book)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as problem:
            for kind, words in _REASONS:
                if isinstance(problem, kind):
                    raise LedgerError(words.format(name=self.name)) from problem
            if isinstance(problem, psycopg.OperationalError):
                raise LedgerError(_UNREACHABLE.format(name=self.name)) from problem
            raise self.damaged() from problem

    def _connect(self) -> _Connection:
        """Return this thread's connection; a child of a fork makes its own."""
        kept: dict[tuple[int, str], _Connection] = _own.__dict__.setdefault("connections", {})
        found = kept.get((os.getpid(), self.url))
        if found is None or found.raw.closed:
            raw = psycopg.connect(self.url, connect_timeout=max(1, round(self.timeout)), autocommit=False)
            raw.autocommit = True  # transactions are begun and ended in words
            found = kept[os.getpid(), self.url] = _Connection(raw)
        return found

    def _forget(self) -> None:
        found = _own.__dict__.get("connections", {}).pop((os.getpid(), self.url), None)
        if found is not None:
            with suppress(psycopg.Error):
                found.raw.close()

    def _begin(self, connection: _Connection, begin: str) -> None:
        milliseconds = max(1, round(1000 * self.timeout))
        try:
            connection.raw.execute(
                f"{begin}; SET LOCAL search_path = {SCHEMA}; SET LOCAL lock_timeout = {milliseconds}; "
                "SET LOCAL synchronous_commit = off"
            )
        except psycopg.OperationalError:
            self._forget()  # a connection that the server closed meanwhile
            raise

    def _opened(self, connection: _Connection, *, create: bool = False) -> Book:
        version = _version(connection)
        if version is None and not create:
            raise self.missing()
        if version is not None and version > VERSION:
            raise LedgerError(
                f"{self.name} is of version {version} and this veilcube knows versions up to {VERSION}; "
                "upgrade veilcube"
            )
        if version is None:
            _lay_out(connection)
        may_read = connection.execute("SELECT has_table_privilege('seal_key', 'SELECT')").fetchone()[0]
        key = bytes.fromhex(connection.execute("SELECT key FROM seal_key").fetchone()[0]) if may_read else None
        book = Book(connection, key)
        if version is None:
            begin_for_all(book)
        if key is not None and not has_key_of(book):
            raise self.damaged("the key")
        return book


class _Request:
    """Something to be written once, however often it has to be tried."""

    def __init__(self, ledger: PostgresLedger, action: Callable[[Book], Any], create: bool) -> None:
        self._ledger, self._action, self._create = ledger, action, create
        self._token, self._results = uuid.uuid4().hex, []  # type: tuple[str, list[Any]]

    @property
    def is_sent(self) -> bool:
        """Whether a COMMIT was sent, so that it may stand."""
        return bool(self._results)

    def attempt(self) -> Any:
        connection = self._ledger._connect()
        try:
            self._ledger._begin(connection, _WRITING)
            connection.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
            if self._results and self._stands(connection):
                connection.raw.execute("ROLLBACK")
            else:
                book = self._ledger._opened(connection, create=self._create)
                result = self._action(book)
                connection.execute("INSERT INTO requests (token) VALUES (?)", (self._token,))
                self._results = [result]
                connection.raw.execute("COMMIT")
            _wait_for_the_disk(connection)
        except BaseException:
            with suppress(psycopg.Error):
                connection.raw.execute("ROLLBACK")
            raise
        return self._results[0]

    def _stands(self, connection: _Connection) -> bool:
        # Whoever held the lock for the earlier attempt is done by now, one way or the other.
        return connection.execute("SELECT 1 FROM requests WHERE token = ?", (self._token,)).fetchone() is not None


def _wait_for_the_disk(connection: _Connection) -> None:
    """Return once all that was committed so far is on disk."""
    connection.raw.execute(
        "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'veilcube', ''); COMMIT"
    )


def _is_lost(problem: psycopg.OperationalError) -> bool:
    """Whether a connection was lost, or could not be made, where trying again may help."""
    return problem.sqlstate is None or problem.sqlstate.startswith(("08", "57P"))


def _version(connection: _Connection) -> int | None:
    found = connection.execute(f"SELECT to_regclass('{SCHEMA}.layout')::text").fetchone()[0]
    if found is None:
        return None
    return int(connection.execute(f"SELECT MAX(version) FROM {SCHEMA}.layout").fetchone()[0])


def _lay_out(connection: _Connection) -> None:
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    for step in STEPS:
        for statement in step:
            connection.raw.execute(statement.encode())
    connection.execute(f"CREATE TABLE {SCHEMA}.layout (version integer PRIMARY KEY)")
    connection.execute(f"INSERT INTO {SCHEMA}.layout VALUES (?)", (VERSION,))
    connection.execute("INSERT INTO seal_key (key) VALUES (?)", (new_key().hex(),))
