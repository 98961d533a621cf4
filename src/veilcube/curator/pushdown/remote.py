"""Tables that are counted where they lie: what is asked of them, and what the results mean. PRIVATE."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

import numpy as np

from veilcube.curator.placing import CellRule
from veilcube.curator.pushdown.database import DatabaseTable
from veilcube.curator.pushdown.dialect import Declared, Dialect
from veilcube.curator.pushdown.statement import ABSENT, REASONS, Cap, Wanted, counting, grouped_axes, missing_person
from veilcube.curator.tables import require_columns
from veilcube.errors import TableError
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Schema
from veilcube.system import Integers


class RemoteTable(Protocol):
    """A table that counts by itself: it says how its SQL is written, what its columns are, and carries out SQL once."""

    dialect: Dialect
    relation: str

    @property
    def called(self) -> str:
        """What to call it in messages."""

    def columns(self) -> list[Declared]:
        """Return the columns as they are declared; reads no row."""

    def results(self, statement: str, columns: int) -> Iterator[Integers]:
        """Carry out a statement whose columns are whole numbers, and stream its rows."""

    def __enter__(self) -> "RemoteTable": ...

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_remote(source: object, table: str | None) -> RemoteTable:
    """Open a source that is counted where it lies."""
    return DatabaseTable(str(source), table)


@dataclass(frozen=True)
class Found:
    """Some rows of the result: the keys that were asked for, ``ABSENT`` where another set was, and how many rows.

    ``persons`` are numbers of rows, each with how many persons have so many, kept or not.
    """

    keys: Integers
    rows: Integers
    persons: Integers | None = None


def count_remotely(remote: RemoteTable, schema: Schema, unit: PrivacyUnit, wanted: Wanted) -> Iterator[Found]:
    """Count in one statement; refuses what a policy refuses."""
    statement, columns = statement_for(remote, schema, unit, wanted)
    for batch in remote.results(statement, columns):
        keys, rows = batch[:, :-1], batch[:, -1]
        _require_placed(keys, schema, unit)
        if unit.kind == "row":
            yield Found(keys, rows)
            continue
        about = keys[:, -1] != ABSENT
        yield Found(keys[~about, :-1], rows[~about], np.column_stack([keys[about, -1], rows[about]]))


def statement_for(remote: RemoteTable, schema: Schema, unit: PrivacyUnit, wanted: Wanted) -> tuple[str, int]:
    """Return the statement that counts a table, and how many columns its result has."""
    columns = declared_columns(remote, [attribute.column for attribute in schema] + _person_column(unit))
    person = None if unit.column is None else columns[-1]
    cap = None if person is None else Cap(unit.max_rows, grouped_axes(schema, unit))
    text = counting(remote.dialect, remote.relation, schema, columns[: len(schema)], wanted, person, cap)
    return text, len(wanted.columns(with_persons=person is not None))


def declared_columns(remote: RemoteTable, wanted: list[str]) -> list[Declared]:
    """Return the wanted columns as they are declared."""
    found = remote.columns()
    require_columns([column.name for column in found], wanted, remote.called)
    by_name = {column.name: column for column in found}
    return [by_name[name] for name in wanted]


def _person_column(unit: PrivacyUnit) -> list[str]:
    return [] if unit.column is None else [unit.column]


def _require_placed(keys: Integers, schema: Schema, unit: PrivacyUnit) -> None:
    refused = keys[(keys < 0) & (keys != ABSENT)]
    if refused.size == 0:
        return
    axis, reason = divmod(-int(np.max(refused)), REASONS)
    if axis == len(schema):
        raise TableError(missing_person(unit))
    raise TableError(CellRule(schema.attributes[axis]).refusal(reason))
