"""What every source becomes: relations on the counting engine's own connection, with the columns that were asked for.

Also the two guards that all readers share: a missing column is named together with those that exist, and an exception
of a foreign library, whose text may quote the table, never gets past ``shielded``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import duckdb

from veilcube.errors import CapacityError, TableError, VeilcubeError

Result = TypeVar("Result")

MAX_NAMES_SHOWN = 30
_INTERRUPTED = "Query interrupted"


@dataclass(frozen=True)
class Column:
    """A column of a relation: how SQL names it, and its type there."""

    identifier: str
    type_name: str
    declared: str


@dataclass(frozen=True)
class Part:
    """Rows that share one layout: a relation, its columns by their names in the source, and what to call it."""

    relation: duckdb.DuckDBPyRelation
    columns: Mapping[str, Column]
    called: str
    explain: Callable[[Exception], str]


@dataclass(frozen=True)
class Table:
    """A source, opened. ``rows`` is private and serves to tell how far reading is, as a fraction; None if unknown."""

    parts: tuple[Part, ...]
    rows: int | None = None


def part_of(
    relation: duckdb.DuckDBPyRelation, names: Sequence[str], called: str, explain: Callable[[Exception], str]
) -> Part:
    """Describe a relation whose columns are called ``names`` in the source, in order."""
    columns = {
        name: Column(quoted(identifier), str(kind.id), str(kind))
        for name, identifier, kind in zip(names, relation.columns, relation.types, strict=True)
    }
    return Part(relation, columns, called, explain)


def quoted(identifier: str) -> str:
    """Write an identifier for SQL."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Write a text literal for SQL."""
    return "'" + text.replace("'", "''") + "'"


def require_columns(found: Sequence[str], wanted: Iterable[str], called: str) -> None:
    """Refuse a source that lacks a column or has it twice. Column names are public."""
    for name in wanted:
        if name not in found:
            raise TableError(
                f"{called} has no column '{name}'; it has {shown(found)}; correct the name or set column= in the schema"
            )
        if found.count(name) > 1:
            raise TableError(f"{called} has the column '{name}' twice; give each column its own name")


def shown(names: Sequence[str]) -> str:
    """List column names, shortened if there are very many."""
    return ", ".join(names[:MAX_NAMES_SHOWN]) + (", ..." if len(names) > MAX_NAMES_SHOWN else "")


def shielded(action: Callable[[], Result], explain: Callable[[Exception], str]) -> Result:
    """Run something that may fail with private text, and let only our own sentence out.

    The refusal is raised after the handler has ended, so the foreign exception is neither its cause nor its context:
    no traceback, log or debugger finds it there.
    """
    try:
        return action()
    except VeilcubeError:
        raise
    except (duckdb.OutOfMemoryException, MemoryError):
        refusal: VeilcubeError | KeyboardInterrupt = CapacityError(
            "there is not enough memory or temporary disk space to count this table; free some, or split the table"
        )
    except Exception as problem:
        # The engine turns whatever a signal's handler raises, as after Ctrl-C, into an error with this text.
        interrupted = isinstance(problem, RuntimeError) and str(problem) == _INTERRUPTED
        refusal = KeyboardInterrupt() if interrupted else TableError(explain(problem))
    raise refusal


def always(sentence: str) -> Callable[[Exception], str]:
    """Explain every failure with the same sentence."""
    return lambda _: sentence
