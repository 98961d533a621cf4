"""The file of a ledger: one SQLite database, opened anew for each operation, and every way in which that may fail.

Durability: a rollback journal with ``synchronous=EXTRA``, so COMMIT returns only after the file, and the folder that
loses the journal, are on disk. Exclusion: ``BEGIN IMMEDIATE``, so of all processes only one reads, checks and writes;
those who wait for it do so in the order in which they came (``queue.py``).
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from veilcube.curator.ledger.rows import (
    Book,
    Checked,
    Connection,
    DamagedRowError,
    begin_for_all,
    check_whole,
    has_key_of,
)
from veilcube.curator.ledger.stores.beside import Beside
from veilcube.curator.ledger.stores.layout import APPLICATION_ID, SEALED, STEPS, VERSION
from veilcube.curator.ledger.stores.queue import NoTurnError, turn
from veilcube.curator.ledger.stores.reasons import (
    BUSY,
    CANNOT_OPEN,
    DAMAGED,
    DISK,
    NO_LEDGER,
    OLDER,
    OTHER_KEY,
    primary_code,
    reason_of,
)
from veilcube.errors import LedgerError
from veilcube.system import is_writable, sync_folder

Result = TypeVar("Result")
_SETTINGS = (
    "PRAGMA synchronous=EXTRA",
    "PRAGMA fullfsync=ON",
    "PRAGMA foreign_keys=ON",
    "PRAGMA recursive_triggers=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
)
_EXTRA = 3
_PACE = 0.002
# How long a file without content may be one that another program is just making.
_BIRTH = 2.0

# SQLite keeps the file locks of a process in its memory: a child forked in the middle of an operation would believe
# that it holds the locks of its parent. So a fork waits for the operation at hand, and operations take turns. The
# gate lets a waiting fork go first, where threads that charge without a pause would starve it.
_gate = threading.RLock()
_one_operation = threading.RLock()


def _before_fork() -> None:
    _gate.acquire()
    _one_operation.acquire()


def _after_fork() -> None:
    _one_operation.release()
    _gate.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def read_location(url: str | Path) -> Path:
    """Return the file that ``sqlite:///name.db``, ``sqlite:////folder/name.db`` or a plain path names."""
    if isinstance(url, Path):
        return url.absolute()
    if isinstance(url, str):
        is_address = url.startswith("sqlite:") or "://" in url
        name = url.removeprefix("sqlite:///")
        well_formed = name not in ("", ":memory:") and is_writable(name)
        if well_formed and not (is_address and (name == url or "?" in name)):
            return Path(name).absolute()
    raise LedgerError(
        "a ledger is a file on this machine: use 'sqlite:///budget.db', 'sqlite:////folder/budget.db' or a path"
    )


@dataclass(frozen=True)
class LedgerFile:
    """Where a ledger is and how many seconds to wait for other programs that use it."""

    path: Path
    timeout: float

    @property
    def beside(self) -> Beside:
        """The files beside it."""
        return Beside(self.path)

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path)

    def require_key(self) -> None:
        """Refuse what cannot be done without the key."""
        self.beside.require_key()

    def check(self, book: Book) -> Checked:
        """Check all of it, also as SQLite does."""
        if book.one("PRAGMA integrity_check") != "ok":
            raise DamagedRowError("the file")
        checked = check_whole(book)
        with closing(sqlite3.connect(":memory:")) as new:
            for statement in (statement for step in STEPS for statement in step):
                new.execute(statement)
            if _layout_of(new) != _layout_of(book.connection):
                raise DamagedRowError("the layout")
        return checked

    @contextmanager
    def reading(self) -> Iterator[Book]:
        """Read an existing ledger as it is at one moment."""
        with self._transaction("BEGIN", create=False) as book:
            yield book

    def write(self, action: Callable[[Book], Result], *, create: bool = False) -> Result:
        """Read and write with everybody else kept out; what was written is on disk when this returns."""
        with self._transaction("BEGIN IMMEDIATE", create=create) as book:
            result = action(book)
        if create:
            self._sync_folder()
        return result

    def damaged(self, where: str = "") -> LedgerError:
        """Return the error for content that no ledger can have."""
        told = f"; it is not as it was written at {where}" if where else ""
        return LedgerError(DAMAGED.format(path=self.path) + told)

    def is_unused_place(self) -> bool:
        """Whether no ledger ever was here, as far as anybody can tell; a file that is just being made is waited for."""
        with self._reachable():
            if self.path.exists():
                self._await_content()
                return False
            return not self.beside.traces()

    def is_lost(self) -> bool:
        """Whether a ledger was here and is gone or empty."""
        with self._reachable():
            return bool(self.beside.traces()) and not (self.path.exists() and self.path.stat().st_size)

    def _await_content(self) -> None:
        deadline = time.monotonic() + min(_BIRTH, self.timeout)
        while self.path.stat().st_size == 0 and not self.beside.note.exists() and time.monotonic() < deadline:
            time.sleep(_PACE)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep out whoever else wants to write, without opening the file; for what replaces it."""
        with _one_operation:
            try:
                with turn(self.beside.key_file, time.monotonic() + self.timeout):
                    yield
            except NoTurnError as problem:
                raise LedgerError(BUSY.format(path=self.path)) from problem

    @contextmanager
    def _transaction(self, begin: str, *, create: bool) -> Iterator[Book]:
        with _gate:
            pass
        is_writing = begin != "BEGIN"
        with _one_operation:
            deadline = time.monotonic() + self.timeout
            try:
                self._check_place(create)
                with closing(self._connect(create)) as connection, self._turn(is_writing, deadline):
                    self._begin(connection, begin, deadline)
                    book = self._checked(connection, create, is_writing, deadline)
                    yield book
                    # Without this line, after any error, closing takes back what was written.
                    connection.execute("COMMIT")
                    if is_writing:
                        self.beside.leave_note(book)
            except NoTurnError as problem:
                raise LedgerError(BUSY.format(path=self.path)) from problem
            except sqlite3.Error as problem:
                raise LedgerError(reason_of(problem).format(path=self.path)) from problem
            except UnicodeDecodeError as problem:
                raise self.damaged() from problem

    def _turn(self, is_writing: bool, deadline: float) -> AbstractContextManager[None]:
        return turn(self.beside.key_file, deadline) if is_writing else nullcontext()

    def _check_place(self, create: bool) -> None:
        with self._reachable():
            if self.path.exists():
                if not self.path.is_file():
                    raise LedgerError(NO_LEDGER.format(path=self.path))
            elif not create:
                raise self.missing()
            elif not self.path.parent.is_dir():
                raise LedgerError(f"the folder {self.path.parent} for the ledger does not exist; make it first")

    def _connect(self, create: bool) -> sqlite3.Connection:
        # Nothing but SQLite may open the file: closing any other handle on it would drop this process's locks.
        address = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
        return sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)

    def _begin(self, connection: sqlite3.Connection, begin: str, deadline: float) -> None:
        # Whoever writes is at the head of the queue, and waits for readers and for programs that do not queue: at a
        # steady pace, since SQLite itself would ask ever more rarely.
        while not _try_to_begin(connection, begin, last_try=time.monotonic() >= deadline):
            time.sleep(_PACE)
        # From here on only readers can be in the way, and those are soon done.
        connection.execute(f"PRAGMA busy_timeout={round(1000 * self.timeout)}")

    def _checked(self, connection: sqlite3.Connection, create: bool, is_writing: bool, deadline: float) -> Book:
        """Return the ledger with its key, once its layout is right; an older layout is brought up to date."""
        version, application = _pragma(connection, "user_version"), _pragma(connection, "application_id")
        if application == 0 and version == 0 and _is_blank(connection):
            if not create:
                raise self.missing()
            self._lay_out(connection, 0)
        elif application != APPLICATION_ID:
            raise LedgerError(NO_LEDGER.format(path=self.path))
        elif not isinstance(version, int) or version > VERSION:
            raise LedgerError(
                f"the ledger {self.path} is of version {version} and this veilcube knows versions up to {VERSION}; "
                "upgrade veilcube"
            )
        elif version < 1:
            raise self.damaged()
        elif version < VERSION:
            self._upgrade(connection, deadline)
        if _pragma(connection, "journal_mode") != "delete":
            raise LedgerError(
                f"another program changed how the ledger {self.path} keeps its journal; "
                "set it back with 'PRAGMA journal_mode=DELETE' in the sqlite3 shell"
            )
        return self._with_key(connection, is_writing)

    def _with_key(self, connection: sqlite3.Connection, is_writing: bool) -> Book:
        book = Book(connection, self.beside.key())
        if is_writing and book.key is None:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")  # is refused where nothing can be written
            self.require_key()
        if book.key is not None and not has_key_of(book):
            raise LedgerError(OTHER_KEY.format(key=self.beside.key_file, path=self.path))
        if self.beside.is_ahead_of(book):
            raise LedgerError(OLDER.format(path=self.path))
        return book

    def _upgrade(self, connection: sqlite3.Connection, deadline: float) -> None:
        """Take the steps that an older ledger lacks, with everybody else kept out, also where it was only to be read.

        Another program may have taken them while this one waited for its turn, so the version is read again.
        """
        connection.execute("ROLLBACK")
        self._begin(connection, "BEGIN IMMEDIATE", deadline)
        version = _pragma(connection, "user_version")
        if isinstance(version, int):
            self._lay_out(connection, version)

    def _lay_out(self, connection: sqlite3.Connection, version: int) -> None:
        """Take the steps from a version on; the key is on disk before anything that was sealed with it."""
        for step in STEPS[version:]:
            for statement in step:
                connection.execute(statement)
        if version < SEALED:
            begin_for_all(Book(connection, self.beside.begin_key()))
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")

    def missing(self) -> LedgerError:
        """Return the refusal of a place without a ledger; where one was, with what would begin a new one."""
        if self.beside.traces():
            return LedgerError(
                f"the ledger {self.path} is lost: one was there, and the file is missing or empty; put it back from a "
                f"backup, or, to grant every budget again, delete what is left of it ({self.beside.traces()}) and "
                "create a new one"
            )
        what = "is empty, so there is no ledger in it" if self.path.exists() else "does not exist"
        return LedgerError(f"there is no ledger at {self.path}, which {what}; create it with 'veilcube ledger create'")

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise LedgerError(CANNOT_OPEN.format(path=self.path)) from problem

    def _sync_folder(self) -> None:
        try:
            sync_folder(Path(os.path.realpath(self.path)).parent)
        except OSError as problem:
            raise LedgerError(DISK.format(path=self.path)) from problem


def _try_to_begin(connection: sqlite3.Connection, begin: str, last_try: bool) -> bool:
    try:
        for setting in _SETTINGS:
            connection.execute(setting)
        if _pragma(connection, "synchronous") != _EXTRA:
            raise LedgerError("this SQLite is too old to keep a ledger safely; use version 3.25 or newer")
        connection.execute(begin)
        # A plain BEGIN takes its lock with the first read.
        _is_blank(connection)
    except sqlite3.OperationalError as problem:
        if primary_code(problem) != sqlite3.SQLITE_BUSY or last_try:
            raise
        connection.rollback()
        return False
    return True


def _layout_of(connection: Connection) -> list[tuple[str, ...]]:
    return sorted(map(tuple, connection.execute("SELECT type, name, COALESCE(sql, '') FROM sqlite_master").fetchall()))


def _pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _is_blank(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
