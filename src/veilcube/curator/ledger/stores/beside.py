"""What lies beside the file of a ledger: its key, and a note that a ledger was begun here and how far it had come."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from veilcube.curator.ledger.rows import Book, seal_of
from veilcube.curator.ledger.stores.reasons import CANNOT_OPEN, KEY_LOST, KEY_UNREADABLE
from veilcube.errors import LedgerError
from veilcube.system import begin_key_file, read_key_file

_NOTE = (
    "A veilcube ledger was begun beside this note. If it is missing or empty, put it back from a backup: a new one "
    "would know nothing of what was spent, and grant every budget again.\n"
)
_COUNTED = ("charges", "part_charges")


@dataclass(frozen=True)
class Beside:
    """The files beside one ledger, which are found by its name."""

    path: Path

    def _named(self, ending: str) -> Path:
        whole = Path(os.path.realpath(self.path))  # unlike resolve, also of a link to itself
        return whole.with_name(whole.name + ending)

    @property
    def note(self) -> Path:
        """The note."""
        return self._named(".begun")

    @property
    def key_file(self) -> Path:
        """The key, which only its owner may read."""
        return self._named(".key")

    def traces(self) -> str:
        """Return the names of what tells of a ledger: the note and, where the file is missing, SQLite's left-overs."""
        endings = [] if self.path.exists() else ["-journal", "-wal"]
        return ", ".join(trace.name for trace in (self.note, *map(self._named, endings)) if trace.exists())

    def key(self) -> bytes | None:
        """Return the key; None for somebody who may not read it, or where it is missing."""
        try:
            return read_key_file(self.key_file)
        except OSError:
            return None

    def begin_key(self) -> bytes:
        """Return the key, made if there is none."""
        try:
            if not self.key_file.exists():
                begin_key_file(self.key_file)
        except OSError as problem:
            raise LedgerError(CANNOT_OPEN.format(path=self.path)) from problem
        return self.require_key()

    def require_key(self) -> bytes:
        """Return the key, or say why there is none."""
        key = self.key()
        if key is None:
            words = KEY_UNREADABLE if self.key_file.exists() else KEY_LOST
            raise LedgerError(words.format(key=self.key_file, path=self.path))
        return key

    def leave_note(self, book: Book) -> None:
        """Note how far the ledger has come, so that nobody takes an older copy of it, or none, for the ledger.

        It is written once a charge is on disk, and so never ahead of it. A ledger is no worse without: a place that
        cannot take it is no error.
        """
        if book.key is None:
            return
        reached = _reached(book)
        line = json.dumps({"reached": reached, "seal": seal_of(book.key, reached)})
        with suppress(OSError):
            descriptor = os.open(self.note, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                written = os.pwrite(descriptor, f"{_NOTE}{line}\n".encode("ascii"), 0)
                os.ftruncate(descriptor, written)
            finally:
                os.close(descriptor)

    def is_ahead_of(self, book: Book) -> bool:
        """Whether the note knows of charges that the ledger lacks."""
        return book.key is not None and _lacks(book, self._noted(book.key))

    def seems_ahead_of(self, book: Book) -> bool:
        """Whether the note says so, with whatever key it was sealed: for who has another key, or lost theirs."""
        return _lacks(book, self._noted(None))

    def is_reached_by(self, book: Book) -> bool:
        """Whether there is a note, and the ledger has all that it knows of."""
        return book.key is not None and self._noted(book.key) is not None and not self.is_ahead_of(book)

    def _noted(self, key: bytes | None) -> dict[str, int] | None:
        """Return how far the ledger had come; None if nobody noted it, or by its key it is not whole."""
        try:
            told = json.loads(self.note.read_bytes().splitlines()[1])
            reached = told["reached"]
            whole = isinstance(reached, Mapping) and (key is None or told["seal"] == seal_of(key, reached))
            return {table: int(reached[table]) for table in _COUNTED} if whole else None
        except (OSError, ValueError, LookupError, TypeError):
            return None


def _lacks(book: Book, noted: Mapping[str, int] | None) -> bool:
    reached = _reached(book)
    return noted is not None and any(reached[table] < noted[table] for table in _COUNTED)


def _reached(book: Book) -> dict[str, int]:
    return {table: int(book.one(f"SELECT MAX(id) FROM {table}") or 0) for table in _COUNTED}
