"""Which store an address names: a file on this machine, or a PostgreSQL database."""

from pathlib import Path

from veilcube.curator.ledger import stores
from veilcube.curator.ledger.stores import LedgerFile, Store, read_location
from veilcube.errors import LedgerError

_POSTGRES = ("postgresql://", "postgres://")


def open_store(url: str | Path, timeout: float) -> Store:
    """Return the place that a ledger is kept in."""
    if isinstance(url, str) and url.startswith(_POSTGRES):
        try:
            kind = stores.PostgresLedger  # loaded by its name: psycopg is an extra
        except ImportError as problem:
            raise LedgerError("a ledger in PostgreSQL needs psycopg: pip install 'veilcube[postgres]'") from problem
        return kind(url, timeout)
    return LedgerFile(read_location(url), timeout)


def require_file(store: Store) -> LedgerFile:
    """Return the file of a ledger, for what is done to files only."""
    if not isinstance(store, LedgerFile):
        raise LedgerError(
            f"{store.name} is copied and restored with the database: use pg_dump and the server's own backups"
        )
    return store
