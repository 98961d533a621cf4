"""Jobs, each a release that a curator confirmed: queued, running, and then done or failed for good."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from veilcube.service.base import ConflictError, NotFoundError
from veilcube.service.store import Database

_COLUMNS = "id, dataset, result, wish, owner, state, step, share, message, charge, created, begun, ended"
MOST_LISTED = 200


@dataclass(frozen=True)
class Job:
    """A release on its way. ``share`` is how much of ``step`` is done, ``charge`` what the ledger was charged."""

    id: int
    dataset: str
    result: str
    wish: Mapping[str, object]
    owner: str
    state: str
    step: str
    share: float | None
    message: str | None
    charge: Mapping[str, object] | None
    created: str
    begun: str | None
    ended: str | None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in ("done", "failed")

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return asdict(self) | {"is_over": self.is_over}


class Jobs:
    """The jobs of a service, shared with the processes that carry them out."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, dataset: str, result: str, wish: Mapping[str, object], owner: str, now: str) -> Job:
        """Queue a job; one release at a time is made under a name."""
        told = json.dumps(wish, allow_nan=False)
        try:
            with self._database.writing() as connection:
                cursor = connection.execute(
                    "INSERT INTO jobs (dataset, result, wish, owner, state, step, created) "
                    "VALUES (?, ?, ?, ?, 'queued', 'waiting', ?)",
                    (dataset, result, told, owner, now),
                )
                number = cursor.lastrowid or 0
        except sqlite3.IntegrityError:
            raise ConflictError(f"a release called '{result}' is being made already; choose another name") from None
        return self.find(number)

    def find(self, number: int) -> Job:
        """Return a job."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (number,))
        if row is None:
            raise NotFoundError("there is no such job")
        return _read(row)

    def latest(self, limit: int = MOST_LISTED) -> list[Job]:
        """Return the latest jobs, the latest first."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM jobs ORDER BY id DESC LIMIT ?", (min(limit, MOST_LISTED),))
        return [_read(row) for row in rows]

    def in_state(self, state: str) -> list[Job]:
        """Return the jobs in a state, in the order in which they were queued."""
        return [
            _read(row)
            for row in self._database.rows(f"SELECT {_COLUMNS} FROM jobs WHERE state = ? ORDER BY id", (state,))
        ]

    def claim(self, number: int) -> bool:
        """Begin a job; False if somebody else did."""
        with self._database.writing() as connection:
            cursor = connection.execute(
                "UPDATE jobs SET state = 'running', step = 'planning', begun = ? WHERE id = ? AND state = 'queued'",
                (_now(), number),
            )
            return cursor.rowcount == 1

    def tell(self, number: int, step: str, share: float | None = None) -> None:
        """Say how far a job is."""
        with self._database.writing() as connection:
            connection.execute("UPDATE jobs SET step = ?, share = ? WHERE id = ?", (step, share, number))

    def end(self, number: int, state: str, message: str | None, charge: Mapping[str, object] | None) -> None:
        """Say for good what became of a job and what it was charged."""
        told = None if charge is None else json.dumps(charge)
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, step = ?, share = NULL, message = ?, charge = ?, ended = ? "
                "WHERE id = ? AND state IN ('queued', 'running')",
                (state, state, message, told, _now(), number),
            )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(row: dict[str, Any]) -> Job:
    charge = None if row["charge"] is None else json.loads(row["charge"])
    return Job(**{**row, "wish": json.loads(row["wish"]), "charge": charge})
