"""The log of who did what: rows are added and never changed, and each carries a digest of all before it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from veilcube.service.store.database import Database

_COLUMNS = "id, at, who, role, action, what, outcome"
MOST_ENTRIES = 1000


@dataclass(frozen=True)
class AuditEntry:
    """One line of the log: ``what`` is plain data, without keys and without private values."""

    id: int
    at: str
    who: str
    role: str
    action: str
    what: Mapping[str, object]
    outcome: str

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return asdict(self)


class Audit:
    """The log of a service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(
        self,
        at: datetime,
        who: str,
        role: str,
        action: str,
        what: Mapping[str, object] | None = None,
        outcome: str = "done",
    ) -> None:
        """Add a line, on disk when this returns."""
        told = json.dumps(dict(what or {}), sort_keys=True, default=str)
        with self._database.writing() as connection:
            last = connection.execute("SELECT id, chain FROM audit ORDER BY id DESC LIMIT 1").fetchone() or (0, "")
            row = (last[0] + 1, at.isoformat(timespec="milliseconds"), who, role, action, told, outcome)
            connection.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, _link(last[1], row)))

    def entries(self, before: int | None = None, limit: int = 100) -> list[AuditEntry]:
        """Return the latest lines, the latest first."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM audit WHERE ? IS NULL OR id < ? ORDER BY id DESC LIMIT ?",
            (before, before, min(limit, MOST_ENTRIES)),
        )
        return [AuditEntry(**{**row, "what": json.loads(row["what"])}) for row in rows]

    def first_broken(self) -> int | None:
        """Return the first line that was changed, or before which lines are missing; None if the log is whole."""
        chain, number = "", 0
        while rows := self._database.rows(
            f"SELECT {_COLUMNS}, chain FROM audit WHERE id > ? ORDER BY id LIMIT ?", (number, MOST_ENTRIES)
        ):
            for row in rows:
                number, told = number + 1, row.pop("chain")
                chain = _link(chain, tuple(row.values()))
                if row["id"] != number or told != chain:
                    return number
        return None


def _link(before: str, row: tuple[object, ...]) -> str:
    return hashlib.blake2b(json.dumps([before, *row]).encode(), digest_size=16).hexdigest()
