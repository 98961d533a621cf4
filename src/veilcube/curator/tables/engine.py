"""The counting engine: an in-memory DuckDB with its own settings, and a private folder that goes when it closes."""

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import cast

import duckdb
import pyarrow as pa

from veilcube.system import hold, remove_leftovers

MEMORY_LIMIT = "1GB"
THREADS = 2
_PREFIX = "veilcube-engine-"
_FOLDERS = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]+")


class Engine:
    """A connection that shares nothing with the caller's: no settings, no variables, no extensions from a network."""

    def __init__(self) -> None:
        self._folder, self._lock = _private_folder()
        try:
            remove_leftovers(Path(self._folder.name).parent, _FOLDERS)
            self._connection = _connect(self._folder.name)
        except BaseException:
            self._give_back()
            raise
        self._enumerations: dict[tuple[str, ...], str] = {}

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._give_back()

    def _give_back(self) -> None:
        self._folder.cleanup()
        os.close(self._lock)

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        """Return the relation of a SELECT."""
        return self._connection.sql(sql)

    def stream(self, reader: pa.RecordBatchReader) -> duckdb.DuckDBPyRelation:
        """Return a relation that reads Arrow batches once, as they come."""
        return self._connection.from_arrow(reader)

    def query_stream(self, reader: pa.RecordBatchReader, name: str, sql: str) -> duckdb.DuckDBPyRelation:
        """Return the relation of a SELECT from Arrow batches that may come from another query of this engine."""
        beside = self._connection.cursor()
        beside.execute("SET enable_progress_bar = false")
        found = beside.from_arrow(reader).query(name, sql)
        return cast(duckdb.DuckDBPyRelation, found)  # None only for statements that return nothing

    def attach(self, path: str) -> None:
        """Open a DuckDB file for reading and look names up there."""
        self._connection.execute(f"ATTACH '{path.replace(chr(39), chr(39) * 2)}' AS source (READ_ONLY)")
        self._connection.execute("USE source")

    def is_select(self, sql: str) -> bool:
        """Tell whether a text is one statement that only reads."""
        statements = self._connection.extract_statements(sql)
        return len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT

    def enumerate_values(self, values: tuple[str, ...]) -> str:
        """Make an enumeration of texts and return its type's name; its codes are the positions of the texts."""
        if values in self._enumerations:
            return self._enumerations[values]
        number = len(self._enumerations)
        name, listing = f"veilcube_values_{number}", f"veilcube_listing_{number}"
        self._connection.register(listing, pa.table({"text": values, "position": range(len(values))}))
        self._connection.execute(f"CREATE TEMP TYPE {name} AS ENUM (SELECT text FROM {listing} ORDER BY position)")
        self._connection.unregister(listing)
        self._enumerations[values] = name
        return name


def _connect(folder: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": THREADS,
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": folder,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            # What a value is must never depend on what a file's statistics claim about it.
            "disabled_optimizers": "statistics_propagation",
        },
    )
    # Slow queries would draw a bar of their own into the output of commands.
    connection.execute("SET enable_progress_bar = false")
    # An instant is a day in UTC, whatever zone this machine is in.
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _private_folder() -> tuple["tempfile.TemporaryDirectory[str]", int]:
    """Make a folder for its owner alone, where rows may be spilled while persons are capped, and lock it."""
    while True:
        folder = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        # It may be taken for a leftover, and be gone, before it is locked: then another one is made.
        with suppress(FileNotFoundError):
            lock = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if hold(lock, Path(folder.name)):
                return folder, lock
            os.close(lock)
        folder.cleanup()
