"""The file in which the service keeps its own affairs: one SQLite database, shared with the workers of jobs."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from veilcube.service.base import ServiceError
from veilcube.service.store.layout import STEPS

_PATIENCE = 10.0


class Database:
    """A connection to read and one to write, shared by threads in turns; what ``writing`` wrote is on disk at its end.

    Readers see what was written before, and never wait for a disk.
    """

    def __init__(self, path: Path) -> None:
        self._turn, self._reading = threading.RLock(), threading.Lock()
        try:
            if not path.exists():
                path.touch(mode=0o600)
            self._connection, self._reader = _connected(path), _connected(path)
            self._lay_out()
        except (sqlite3.Error, OSError) as problem:
            raise ServiceError(f"{path} cannot be used as the database of a service; restore a backup") from problem

    @property
    def mark(self) -> str:
        """What tells this service from others that charge the same ledger."""
        return str(self.row("SELECT mark FROM service")["mark"])  # type: ignore[index]

    def rows(self, text: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Return what a query finds."""
        with self._reading:
            cursor = self._reader.execute(text, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def row(self, text: str, values: Sequence[object] = ()) -> dict[str, Any] | None:
        """Return the first row that a query finds."""
        found = self.rows(text, values)
        return found[0] if found else None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write with everybody else kept out; an error takes all of it back."""
        with self._turn:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        with self._turn, self._reading:
            self._connection.close()
            self._reader.close()

    def _lay_out(self) -> None:
        with self.writing() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > len(STEPS):
                raise ServiceError("the folder was used by a newer veilcube; upgrade this one")
            for step in STEPS[version:]:
                for statement in step:
                    connection.execute(statement)
            if version == 0:
                created = connection.execute("SELECT strftime('%Y-%m-%dT%H:%M:%SZ','now')").fetchone()[0]
                connection.execute("INSERT INTO service VALUES (1, ?, ?)", (token_hex(8), created))
            connection.execute(f"PRAGMA user_version={len(STEPS)}")


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON"):
        connection.execute(f"PRAGMA {setting}")
    return connection
