"""Tables in databases, by URL: one connection, one transaction that only reads and sees one state, one statement.

Nothing of a URL but the kind of database reaches an error: it may hold a password.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import sqlglot
from sqlglot import expressions

from veilcube.curator.pushdown.dialect import Declared, Dialect
from veilcube.curator.pushdown.postgres import Postgres, columns_in_postgres, copied_from_postgres
from veilcube.curator.pushdown.sources import URL
from veilcube.curator.tables import always, shielded
from veilcube.errors import TableError
from veilcube.system import Integers

_SELECT = re.compile(r"^\s*(select|with)\s", re.IGNORECASE)
_SECONDS_TO_CONNECT = 20


@dataclass(frozen=True)
class _Kind:
    """A kind of database: its dialect, its driver, what to install, and its name in words."""

    dialect: Dialect
    driver: str
    install: str
    words: str


_POSTGRES = _Kind(Postgres(), "postgresql+psycopg", "veilcube[database]", "PostgreSQL")
_KINDS: Mapping[str, _Kind] = {"postgresql": _POSTGRES, "postgres": _POSTGRES}


def _kind_of(url: str) -> _Kind:
    scheme, driver = URL.match(url).groups()  # type: ignore[union-attr]
    kind = _KINDS[scheme.lower()]
    if driver is not None and f"{scheme.lower()}{driver.lower()}" != kind.driver:
        raise TableError(f"a {kind.words} URL begins with {scheme}://, without a driver; correct it")
    return kind


class DatabaseTable:
    """A table, a view or a SELECT in a database, opened for one statement."""

    def __init__(self, url: str, table: str | None) -> None:
        self._kind = _kind_of(url)
        self.dialect = self._kind.dialect
        address, name = _read_url(url, self._kind, table)
        self.relation = _relation(self.dialect, name, self._kind.words)
        self._engine: Any = shielded(lambda: _engine_of(address, self._kind), self._explain)
        self._connection: Any = shielded(self._engine.connect, self._explain)
        self._cursor: Any = self._connection.connection.driver_connection.cursor()

    def __repr__(self) -> str:
        return f"DatabaseTable({self._kind.words}, not shown)"

    def __enter__(self) -> "DatabaseTable":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(Exception):  # what is lost already needs no end
            self._connection.invalidate()
            self._connection.close()
            self._engine.dispose()

    @property
    def called(self) -> str:
        """What to call it in messages."""
        return "the table"

    def columns(self) -> list[Declared]:
        """Begin the one transaction and return the columns; reads no row."""
        return shielded(self._columns, self._explain)

    def _columns(self) -> list[Declared]:
        for command in self.dialect.opening:
            self._cursor.execute(command)
        return columns_in_postgres(self._cursor, self.relation)

    def results(self, statement: str, columns: int) -> Iterator[Integers]:
        """Carry out a statement whose columns are whole numbers, and stream its rows."""
        batches = copied_from_postgres(self._cursor, statement, columns)
        while (batch := shielded(lambda: next(batches, None), self._explain)) is not None:
            yield batch

    def _explain(self, problem: Exception) -> str:
        """Say what went wrong in words of ours: those of the database may quote the table, or the URL."""
        origin = getattr(problem, "orig", None) or problem
        state = str(getattr(origin, "sqlstate", None) or "")
        words = self._kind.words
        for beginning, sentence in _BY_STATE.items():
            if state.startswith(beginning):
                return sentence.format(database=words)
        if state:
            return f"{words} could not count the table (SQLSTATE {state}); run the SELECT in {words} to see why"
        return (
            f"no connection to {words}, or it was lost: check that the server runs and that host, port, user, password "
            "and the database's name in the URL are right; then count again"
        )


# By the first letters of SQLSTATE, the longest first.
_BY_STATE = {
    "28": "{database} refuses the user or the password; correct them (in the URL, PGPASSWORD or ~/.pgpass)",
    "42P01": "the database lacks such a table or view; correct table=, with its schema if need be: table=clinic.visits",
    "3F000": "the database lacks such a schema; correct table=",
    "42501": "the user may not read the table; ask for the right to SELECT from it",
    "42": "the SELECT given as table= cannot be carried out; run it in {database} to see why",
    "57014": "{database} cancelled the statement, perhaps for a time limit (statement_timeout); raise it, count again",
    "57": "{database} was shut down meanwhile; count again when it runs",
    "53": "{database} has no memory, disk or connections left for this; free some, or count fewer attributes",
    "40": "{database} ended the transaction because of others; count again",
    "08": "the connection to {database} was lost; count again",
}


def _read_url(url: str, kind: _Kind, table: str | None) -> tuple[Any, str]:
    """Return the URL without ``table``, which is of ours, and the table that it or the argument names."""
    try:
        from sqlalchemy import make_url  # noqa: PLC0415
    except ImportError:
        raise TableError(_missing(kind)) from None
    wrong = always(f"the URL cannot be read; write it as {url.partition(':')[0]}://user@host/database?table=name")
    address = shielded(lambda: make_url(url).set(drivername=kind.driver), wrong)
    named = address.query.get("table")
    if named is not None and table is not None and named != table:
        raise TableError("the URL and table= name two tables; name one")
    chosen = named if table is None else table
    if not isinstance(chosen, str) or not chosen.strip():
        raise TableError('a database URL needs ?table=name at its end, or table="name" or table="SELECT ..." beside it')
    return address.difference_update_query(["table"]), chosen


def _relation(dialect: Dialect, table: str, words: str) -> str:
    """Write a table's name, perhaps with its schema, or a SELECT in brackets."""
    if not _SELECT.match(table):
        return ".".join(dialect.quoted(name) for name in table.split("."))
    wrong = f"the text given as table= is not one SELECT that {words} understands; correct it, or give a table's name"
    parsed = shielded(lambda: sqlglot.parse(table, read=dialect.name), always(wrong))
    if len([one for one in parsed if one is not None]) != 1 or not isinstance(parsed[0], expressions.Query):
        raise TableError(wrong)
    return f"(\n{table.strip().rstrip(';')}\n)"


def _engine_of(address: Any, kind: _Kind) -> Any:
    from sqlalchemy import create_engine  # noqa: PLC0415
    from sqlalchemy.pool import NullPool  # noqa: PLC0415

    try:
        timeout = {} if "connect_timeout" in address.query else {"connect_timeout": _SECONDS_TO_CONNECT}
        return create_engine(address, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=timeout)
    except ImportError:
        raise TableError(_missing(kind)) from None


def _missing(kind: _Kind) -> str:
    return f"counting in {kind.words} needs two more packages: pip install '{kind.install}'"
