"""What every source becomes: relations on the counting engine's own connection, with the columns that were asked for.

Also the two guards that all readers share: a missing column is named together with those that exist, and an exception
of a foreign library, whose text may quote the table, never gets past ``shielded``.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import duckdb

from veilcube.errors import CapacityError, TableError, VeilcubeError
from veilcube.system import did_you_mean

Result = TypeVar("Result")

MAX_NAMES_SHOWN, MAX_LENGTH_SHOWN = 30, 60
_INTERRUPTED = "Query interrupted"
# How DuckDB and polars name, in their plans, what reads values without types of their own; the types of a pandas
# column of objects are guessed by DuckDB too.
_GUESSED_TYPES = re.compile(r"read_(csv|json|ndjson)|(csv|json) scan|pandas_scan", re.IGNORECASE)
# What projections raise in the engine where a float cannot be trusted; it says nothing about the row.
LOST_DIGITS = (
    "a column of floating-point numbers holds ids or codes of 2^53 and more, which have lost digits; give them as "
    "whole numbers or as text"
)


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
            hint = did_you_mean(name, _tellable(found))
            raise TableError(
                f"{called} has no column '{name}'; {hint}it has {shown(found)}; correct the name, or set column= in "
                "the schema if it is an attribute's"
            )
        if found.count(name) > 1:
            raise TableError(f"{called} has the column '{name}' twice; give each column its own name")


def _tellable(names: Sequence[str]) -> list[str]:
    return [name for name in names if name.isprintable() and len(name) <= MAX_LENGTH_SHOWN]


def shown(names: Sequence[str]) -> str:
    """List column names, shortened if there are very many; a quote left open may have made a name of private rows."""
    tellable = set(_tellable(names))
    listed = [name if name in tellable else "(a long name)" for name in names]
    return ", ".join(listed[:MAX_NAMES_SHOWN]) + (", ..." if len(listed) > MAX_NAMES_SHOWN else "")


def require_declared_types(plan: str, called: str) -> None:
    """Refuse a query whose plan guesses types, where one row may change the type, and so the meaning, of all others."""
    if _GUESSED_TYPES.search(plan):
        raise TableError(
            f"{called} is a query on CSV, JSON or pandas objects, whose types are guessed from rows, so that one row "
            "can change what others mean; give the CSV path or the frame itself, or make a table with types of yours"
        )


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
        sentence = LOST_DIGITS if LOST_DIGITS in str(problem) else explain(problem)
        refusal = KeyboardInterrupt() if interrupted else TableError(sentence)
    raise refusal


def always(sentence: str) -> Callable[[Exception], str]:
    """Explain every failure with the same sentence."""
    return lambda _: sentence
