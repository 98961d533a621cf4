"""The file of a ledger: one SQLite database, opened anew for each operation, and every way in which that may fail.

Durability: a rollback journal with ``synchronous=EXTRA``, so COMMIT returns only after the file, and the folder that
loses the journal, are on disk. Exclusion: ``BEGIN IMMEDIATE``, so of all processes only one reads, checks and writes.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from veilcube.curator.ledger.layout import APPLICATION_ID, STEPS, VERSION
from veilcube.errors import LedgerError
from veilcube.system import is_writable

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
_BEGUN = ".begun"
_NOTE = (
    "A veilcube ledger was begun beside this note. If it is missing or empty, put it back from a backup: a new one "
    "would know nothing of what was spent, and grant every budget again.\n"
)

_BUSY = "the ledger {path} is held by another program, so nothing was charged; wait until that is done and try again"
_DISK = (
    "the disk failed while the ledger {path} was in use, so no noise may be drawn; repair the disk and look at the "
    "history before trying again, because the charge may stand"
)
_DAMAGED = "the ledger {path} is damaged; restore a backup and charge again what was spent since then"
_NO_LEDGER = "{path} is not a veilcube ledger and was left alone; name another file"
_REASONS = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_READONLY: "the ledger {path} is read-only, so nothing was charged; let this user write to the file "
    "and its folder",
    sqlite3.SQLITE_READONLY_DBMOVED: "the ledger {path} was moved or deleted while it was in use, so nothing was "
    "charged; put it back and try again",
    sqlite3.SQLITE_CANTOPEN: "the ledger {path} cannot be opened, so nothing was charged; let this user read and write "
    "the file and its folder",
    sqlite3.SQLITE_PERM: "the ledger {path} may not be used by this user; let this user write to the file",
    sqlite3.SQLITE_FULL: "the disk that holds the ledger {path} is full, so nothing was charged; free some space and "
    "try again",
    sqlite3.SQLITE_NOTADB: _NO_LEDGER,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_IOERR: _DISK,
}

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

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read an existing ledger as it is at one moment."""
        with self._transaction("BEGIN", create=False) as connection:
            yield connection

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Read and write with everybody else kept out; what was written is on disk when this ends without an error."""
        with self._transaction("BEGIN IMMEDIATE", create=create) as connection:
            yield connection
        self._leave_note()
        if create:
            self._sync_folder()

    def damaged(self) -> LedgerError:
        """Return the error for content that no ledger can have."""
        return LedgerError(_DAMAGED.format(path=self.path))

    def is_unused_place(self) -> bool:
        """Whether no ledger ever was here, as far as anybody can tell; a file that is just being made is waited for."""
        with self._reachable():
            if self.path.exists():
                self._await_content()
                return False
            return not self._is_known()

    def is_lost(self) -> bool:
        """Whether a ledger was here and is gone or empty."""
        with self._reachable():
            return self._is_known() and not (self.path.exists() and self.path.stat().st_size)

    def _await_content(self) -> None:
        deadline = time.monotonic() + min(_BIRTH, self.timeout)
        while self.path.stat().st_size == 0 and not self._beside(_BEGUN).exists() and time.monotonic() < deadline:
            time.sleep(_PACE)

    def _beside(self, ending: str) -> Path:
        whole = Path(os.path.realpath(self.path))  # unlike resolve, also of a link to itself
        return whole.with_name(whole.name + ending)

    def _leave_note(self) -> None:
        """Leave a trace of the ledger beside it, so that nobody takes a ledger that was lost for one that never was."""
        note = self._beside(_BEGUN)
        # A ledger is no worse without it, so that a place that cannot take it, or a name too long, is no error.
        with suppress(OSError):
            if not note.exists():
                note.write_text(_NOTE, encoding="utf-8")

    @contextmanager
    def _transaction(self, begin: str, *, create: bool) -> Iterator[sqlite3.Connection]:
        with _gate:
            pass
        with _one_operation:
            try:
                self._check_place(create)
                with closing(self._connect(create)) as connection:
                    self._begin(connection, begin)
                    self._check_content(connection, create)
                    yield connection
                    # Without this line, after any error, closing takes back what was written.
                    connection.execute("COMMIT")
            except sqlite3.Error as problem:
                raise LedgerError(self._explain(problem)) from problem
            except UnicodeDecodeError as problem:
                raise self.damaged() from problem

    def _check_place(self, create: bool) -> None:
        with self._reachable():
            if self.path.exists():
                if not self.path.is_file():
                    raise LedgerError(_NO_LEDGER.format(path=self.path))
            elif not create:
                raise self.missing()
            elif not self.path.parent.is_dir():
                raise LedgerError(f"the folder {self.path.parent} for the ledger does not exist; make it first")

    def _connect(self, create: bool) -> sqlite3.Connection:
        # Nothing but SQLite may open the file: closing any other handle on it would drop this process's locks.
        address = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
        return sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)

    def _begin(self, connection: sqlite3.Connection, begin: str) -> None:
        # SQLite asks for a lock ever more rarely, down to ten times a second: too rarely to find the short gaps that a
        # program leaves which charges without a pause. Asking at a steady pace gives everybody a fair chance.
        deadline = time.monotonic() + self.timeout
        while not _try_to_begin(connection, begin, last_try=time.monotonic() >= deadline):
            time.sleep(_PACE)
        # From here on only readers can be in the way, and those are soon done.
        connection.execute(f"PRAGMA busy_timeout={round(1000 * self.timeout)}")

    def _check_content(self, connection: sqlite3.Connection, create: bool) -> None:
        version, application = _pragma(connection, "user_version"), _pragma(connection, "application_id")
        if application == 0 and version == 0 and _is_blank(connection):
            if not create:
                raise self.missing()
            _lay_out(connection, 0)
        elif application != APPLICATION_ID:
            raise LedgerError(_NO_LEDGER.format(path=self.path))
        elif not isinstance(version, int) or version > VERSION:
            raise LedgerError(
                f"the ledger {self.path} is of version {version} and this veilcube knows versions up to {VERSION}; "
                "upgrade veilcube"
            )
        elif version < 1:
            raise self.damaged()
        elif version < VERSION:
            self._upgrade(connection)
        if _pragma(connection, "journal_mode") != "delete":
            raise LedgerError(
                f"another program changed how the ledger {self.path} keeps its journal; "
                "set it back with 'PRAGMA journal_mode=DELETE' in the sqlite3 shell"
            )

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Take the steps that an older ledger lacks, with everybody else kept out, also where it was only to be read.

        Another program may have taken them while this one waited for its turn, so the version is read again.
        """
        connection.execute("ROLLBACK")
        self._begin(connection, "BEGIN IMMEDIATE")
        version = _pragma(connection, "user_version")
        if isinstance(version, int):
            _lay_out(connection, version)

    def missing(self) -> LedgerError:
        """Return the refusal of a place without a ledger; where one was, with what would begin a new one."""
        if self._is_known():
            return LedgerError(
                f"the ledger {self.path} is lost: one was there, and the file is missing or empty; put it back from a "
                f"backup, or, to grant every budget again, delete what is left of it ({self._traces()}) and create a "
                "new one"
            )
        what = "is empty, so there is no ledger in it" if self.path.exists() else "does not exist"
        return LedgerError(f"there is no ledger at {self.path}, which {what}; create it with 'veilcube ledger create'")

    def _is_known(self) -> bool:
        """Whether a note or, where the file is missing, SQLite's own left-overs tell of a ledger."""
        return bool(self._traces())

    def _traces(self) -> str:
        endings = [_BEGUN] if self.path.exists() else [_BEGUN, "-journal", "-wal"]
        return ", ".join(trace.name for trace in map(self._beside, endings) if trace.exists())

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise LedgerError(_REASONS[sqlite3.SQLITE_CANTOPEN].format(path=self.path)) from problem

    def _explain(self, problem: sqlite3.Error) -> str:
        primary = _primary_code(problem)
        if primary is None:
            return _DAMAGED.format(path=self.path)
        reason = _REASONS.get(problem.sqlite_errorcode) or _REASONS.get(primary)
        if reason is None:
            return f"the ledger {self.path} cannot be used ({problem.sqlite_errorname}); nothing was charged"
        return reason.format(path=self.path)

    def _sync_folder(self) -> None:
        try:
            folder = os.open(Path(os.path.realpath(self.path)).parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as problem:
            raise LedgerError(_DISK.format(path=self.path)) from problem


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
        if _primary_code(problem) != sqlite3.SQLITE_BUSY or last_try:
            raise
        connection.rollback()
        return False
    return True


def _primary_code(problem: sqlite3.Error) -> int | None:
    code: int | None = getattr(problem, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _is_blank(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _lay_out(connection: sqlite3.Connection, version: int) -> None:
    for step in STEPS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={VERSION}")
