"""Browser sessions: a random token in a cookie that scripts cannot read; the file knows its digest only."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from secrets import token_urlsafe

from veilcube.service.store import Database

# A session that begins later than this from now was begun under another clock, and ends here.
_SKEW = 300.0
_IDLE_SHARE = 0.5
_SEEN_EVERY = 60.0


@dataclass(frozen=True)
class Session:
    """A browser that somebody signed in with: its key, and the token that its forms carry."""

    digest: str
    key: str
    csrf: str

    def is_own_form(self, token: str) -> bool:
        """Whether a form was written by this service for this session."""
        return hmac.compare_digest(self.csrf.encode(), token.encode())


class Sessions:
    """The sessions of a service: they end after a time, or after half of it without a request."""

    def __init__(self, database: Database, seconds: float) -> None:
        self._database, self._seconds = database, seconds

    def begin(self, key: str, now: datetime) -> tuple[str, Session]:
        """Begin a session and return its token, for the cookie, and what is known of it."""
        token, session = token_urlsafe(32), Session("", key, token_urlsafe(32))
        at = now.timestamp()
        with self._database.writing() as connection:
            connection.execute("DELETE FROM sessions WHERE begun < ?", (at - self._seconds,))
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", (_digest(token), key, session.csrf, at, at)
            )
        return token, Session(_digest(token), key, session.csrf)

    def find(self, token: str, now: datetime) -> Session | None:
        """Return the session of a cookie, if it has not ended by the service's own clock."""
        row = self._database.row("SELECT * FROM sessions WHERE digest = ?", (_digest(token),))
        if row is None:
            return None
        at = now.timestamp()
        is_over = at - row["begun"] > self._seconds or at - row["seen"] > self._seconds * _IDLE_SHARE
        if is_over or row["begun"] > at + _SKEW or row["seen"] > at + _SKEW:
            self.end(row["digest"])
            return None
        if at - row["seen"] > _SEEN_EVERY:
            with self._database.writing() as connection:
                connection.execute("UPDATE sessions SET seen = ? WHERE digest = ?", (at, row["digest"]))
        return Session(row["digest"], row["key"], row["csrf"])

    def end(self, digest: str) -> None:
        """End a session."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM sessions WHERE digest = ?", (digest,))


def _digest(token: str) -> str:
    return hashlib.blake2b(token.encode(errors="replace"), digest_size=32).hexdigest()
