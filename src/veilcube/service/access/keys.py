"""API keys: ``vc_<id>_<secret>``, shown once. The id finds the row, whose hash (argon2id) is all that is kept.

A hash takes milliseconds on purpose, so a key that was right is remembered in memory, by a digest under a key that
lives and dies with the process; whether it was revoked or has expired is looked up every time.
"""

import hashlib
import hmac
import re
import threading
from base64 import b32encode
from dataclasses import dataclass
from datetime import datetime
from secrets import token_bytes, token_urlsafe

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from veilcube.service.base import ConflictError, NotFoundError, read_name
from veilcube.service.store import Database

_KEY = re.compile(r"vc_([a-z2-7]{16})_([A-Za-z0-9_-]{43})")
_SECRET_BYTES = 32
_COLUMNS = "id, name, role, created, expires, revoked, made_by"


@dataclass(frozen=True)
class StoredKey:
    """What is known of a key, without its secret."""

    id: str
    name: str
    role: str
    created: str
    expires: str | None
    revoked: str | None
    made_by: str

    def is_good(self, now: datetime) -> bool:
        """Whether it opens anything at this moment."""
        return self.revoked is None and (self.expires is None or now < datetime.fromisoformat(self.expires))


@dataclass(frozen=True)
class MadeKey:
    """A new key with its text, which is shown once."""

    text: str
    stored: StoredKey

    def __repr__(self) -> str:
        return f"MadeKey({self.stored.id!r}, not shown)"


class Keys:
    """The keys of a service."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # 19 MiB and two passes, the least that OWASP recommends; secrets of 256 bits need no more.
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
        self._one_hash = threading.Lock()
        self._seen: dict[str, bytes] = {}
        self._own = token_bytes(_SECRET_BYTES)

    def make(self, name: str, role: str, now: datetime, made_by: str, expires: datetime | None = None) -> MadeKey:
        """Make a key. A name has one role for good: whoever reads the log must know who it was."""
        read_name(name, "a person")
        number, secret = b32encode(token_bytes(10)).decode().lower(), token_urlsafe(_SECRET_BYTES)
        ends = None if expires is None else expires.isoformat()
        stored = StoredKey(number, name, role, now.isoformat(timespec="seconds"), ends, None, made_by)
        hashed = self._hasher.hash(secret)
        with self._database.writing() as connection:
            other = connection.execute("SELECT role FROM keys WHERE name = ? AND role <> ?", (name, role)).fetchone()
            if other is not None:
                raise ConflictError(f"'{name}' has keys as {other[0]}, and a name has one role; choose another name")
            connection.execute(
                "INSERT INTO keys (id, name, role, hash, created, expires, made_by) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, name, role, hashed, stored.created, ends, made_by),
            )
        return MadeKey(f"vc_{number}_{secret}", stored)

    def find(self, text: str, now: datetime) -> StoredKey | None:
        """Return what is known of a key that is right; None for any other text."""
        parts = _KEY.fullmatch(text)
        if parts is None:
            return None
        number, secret = parts[1], parts[2]
        row = self._database.row(f"SELECT {_COLUMNS}, hash FROM keys WHERE id = ?", (number,))
        if row is None:
            return None
        hashed = row.pop("hash")
        stored = StoredKey(**row)
        if not stored.is_good(now) or not self._is_right(number, secret, hashed):
            return None
        return stored

    def is_remembered(self, text: str) -> bool:
        """Whether a key was right before, so that looking at it again takes no time."""
        parts = _KEY.fullmatch(text)
        return parts is not None and parts[1] in self._seen

    def by_id(self, number: str) -> StoredKey | None:
        """Return what is known of a key by its id."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM keys WHERE id = ?", (number,))
        return None if row is None else StoredKey(**row)

    def all(self) -> list[StoredKey]:
        """Return every key, revoked ones too, in the order in which they were made."""
        return [StoredKey(**row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM keys ORDER BY rowid")]

    def revoke(self, number: str, now: datetime) -> StoredKey:
        """Let a key open nothing from now on; the last good curator's key stays."""
        stored = self.by_id(number)
        if stored is None:
            raise NotFoundError("there is no such key")
        others = [one for one in self.all() if one.id != number and one.role == "curator" and one.is_good(now)]
        if stored.role == "curator" and stored.is_good(now) and not others:
            raise ConflictError("this is the last curator's key; make another one before it is revoked")
        with self._database.writing() as connection:
            at = now.isoformat(timespec="seconds")
            connection.execute("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (at, number))
        self._seen.pop(number, None)
        return stored

    def _is_right(self, number: str, secret: str, hashed: str) -> bool:
        digest = hashlib.blake2b(f"{secret}{hashed}".encode(), key=self._own).digest()
        if hmac.compare_digest(self._seen.get(number, b""), digest):
            return True
        try:
            with self._one_hash:  # a flood of wrong secrets takes the time and memory of one
                self._hasher.verify(hashed, secret)
        except (Argon2Error, InvalidHashError):
            return False
        self._seen[number] = digest
        return True
