"""The counting engine: an in-memory DuckDB with its own settings, and a private folder that goes when it closes."""

import tempfile
from types import TracebackType

import duckdb
import pyarrow as pa

MEMORY_LIMIT = "1GB"
THREADS = 2


class Engine:
    """A connection that shares nothing with the caller's: no settings, no variables, no extensions from a network."""

    def __init__(self) -> None:
        # mkdtemp gives the folder to its owner alone; rows may be spilled there while persons are capped.
        self._folder = tempfile.TemporaryDirectory(prefix="veilcube-", ignore_cleanup_errors=True)
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "threads": THREADS,
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": self._folder.name,
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
                # What a value is must never depend on what a file's statistics claim about it.
                "disabled_optimizers": "statistics_propagation",
            },
        )
        # Slow queries would draw a bar of their own into the output of commands.
        self._connection.execute("SET enable_progress_bar = false")
        # An instant is a day in UTC, whatever zone this machine is in.
        self._connection.execute("SET TimeZone = 'UTC'")
        self._enumerations: dict[tuple[str, ...], str] = {}

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._folder.cleanup()

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        """Return the relation of a SELECT."""
        return self._connection.sql(sql)

    def stream(self, reader: pa.RecordBatchReader) -> duckdb.DuckDBPyRelation:
        """Return a relation that reads Arrow batches once, as they come."""
        return self._connection.from_arrow(reader)

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
