"""Questions that were asked, with what came out: who lost the connection after the charge finds the answer here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex

from veilcube.service.base import ConflictError, NotFoundError
from veilcube.service.store import Database

_COLUMNS = "id, dataset, analyst, request, asked, outcome, status, created"
ANSWERED, UNDER_WAY = 200, 102
MOST_LISTED = 500


@dataclass(frozen=True)
class AskedQuestion:
    """A question that somebody asked; ``outcome`` is None while it is answered, and after a crash."""

    id: str
    dataset: str
    analyst: str
    request: str
    asked: Mapping[str, object]
    outcome: Mapping[str, object] | None
    status: int | None
    created: str

    @property
    def is_answered(self) -> bool:
        """Whether an answer was drawn or found for it."""
        return self.status == ANSWERED

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        state = "answered" if self.is_answered else "open" if self.status in (None, UNDER_WAY) else "refused"
        facts = {"id": self.id, "dataset": self.dataset, "analyst": self.analyst, "state": state}
        return facts | {"asked": dict(self.asked), "outcome": self.outcome, "created": self.created}


class Questions:
    """The questions of a service, each kept before it is answered."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self, dataset: str, analyst: str, request: str | None, asked: Mapping[str, object], now: str
    ) -> AskedQuestion:
        """Keep a question, or find the one that was asked under the same request."""
        told, name = json.dumps(asked, sort_keys=True, allow_nan=False), request or token_hex(16)
        with self._database.writing() as connection:
            connection.execute(
                f"INSERT OR IGNORE INTO questions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, NULL, NULL, ?)",
                (token_hex(8), dataset, analyst, name, told, now),
            )
        found = self._one("analyst = ? AND request = ?", (analyst, name))
        if found.dataset != dataset or json.dumps(found.asked, sort_keys=True) != told:
            raise ConflictError(f"the request '{name}' was another question; choose another name for this one")
        return found

    def end(self, question: AskedQuestion, status: int, outcome: Mapping[str, object]) -> AskedQuestion:
        """Keep what came out."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE questions SET outcome = ?, status = ? WHERE id = ?",
                (json.dumps(outcome, allow_nan=False), status, question.id),
            )
        return self.find(question.id)

    def find(self, number: str) -> AskedQuestion:
        """Return a question."""
        return self._one("id = ?", (number,))

    def latest(self, analyst: str | None, dataset: str | None = None, limit: int = 100) -> list[AskedQuestion]:
        """Return the latest questions of somebody, or of all, the latest first."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM questions WHERE (? IS NULL OR analyst = ?) AND (? IS NULL OR dataset = ?) "
            "ORDER BY created DESC, rowid DESC LIMIT ?",
            (analyst, analyst, dataset, dataset, min(limit, MOST_LISTED)),
        )
        return [_read(row) for row in rows]

    def pay_once(self, question: AskedQuestion) -> None:
        """Note that a question is about to be paid for anew; refuses one of which that was noted before."""
        if question.status == UNDER_WAY:
            raise ConflictError(
                "this question was cut short, perhaps after it was charged; ask under another request to pay anew, or "
                "leave out fresh"
            )
        with self._database.writing() as connection:
            connection.execute("UPDATE questions SET status = ? WHERE id = ?", (UNDER_WAY, question.id))

    def _one(self, which: str, values: tuple[str, ...]) -> AskedQuestion:
        row = self._database.row(f"SELECT {_COLUMNS} FROM questions WHERE {which}", values)
        if row is None:
            raise NotFoundError("there is no such question")
        return _read(row)


def _read(row: Mapping[str, object]) -> AskedQuestion:
    texts = {name: str(row[name]) for name in ("id", "dataset", "analyst", "request", "created")}
    outcome = None if row["outcome"] is None else json.loads(str(row["outcome"]))
    return AskedQuestion(asked=json.loads(str(row["asked"])), outcome=outcome, status=row["status"], **texts)  # type: ignore[arg-type]
