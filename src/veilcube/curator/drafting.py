"""Draft a schema from a table's column names and declared types, and from nothing else: people fill in the rest.

A CSV file declares no types, and to guess them would be to read its rows, so its columns are drafted by name alone.
"""

import os
from collections.abc import Mapping

import tomli_w

from veilcube.curator.placing import DATES, INTEGERS, TEXTS, WIDE_NUMBERS
from veilcube.curator.pushdown import is_remote, open_remote
from veilcube.curator.tables import Column, Engine, draft_names, find_files, is_csv, is_parquet, open_table

_PREFACE = """\
# Draft of a schema: column names, and types where the table declares them. No row was read. Complete each attribute,
# remove those you do not need, and run 'veilcube schema check' on this file.
#
# Bounds, edges and values are left open on purpose. Reading them off the table would leak it: the largest income or
# the rarest diagnosis belongs to somebody. Take them from public knowledge: a codebook, a form, a law, a calendar.
#
# A column that names a person (patient_id, say) is no attribute: remove it here and name it when you count.
# Optional in every attribute: missing = "cell" counts missing values, outside = "other" counts values outside the
# domain, and outside = "clip" (ordinal only) moves them to the nearest end; otherwise such tables are refused.
"""

_ANY_KIND = [
    '# kind = ...    # "ordinal" for numbers, bins and dates, "nominal" for names',
    "# low = ...     # ordinal: low and high,",
    "# high = ...",
    "# edges = [..., ..., ...]    # or edges of bins [a, b), the last one closed",
    '# values = ["...", "..."]    # nominal: values, or a hierarchy: groups with lists of values',
]
_WHOLE_NUMBERS = ['kind = "ordinal"', "# low = ...", "# high = ..."]
_REAL_NUMBERS = ['kind = "ordinal"', "# edges = [..., ..., ...]    # bins [a, b), the last one closed"]
_CALENDAR = ['kind = "ordinal"', '# low = "..."', '# high = "..."', '# unit = "..."    # "day", "month" or "year"']
_VALUES = ['kind = "nominal"', '# values = ["...", "..."]    # or a hierarchy: groups with lists of values']


# A kind of column in a database, and a type of the counting engine that says the same to whoever completes the draft.
_ALIKE: dict[str | None, str] = {
    "whole number": "bigint",
    "decimal": "decimal",
    "float": "double",
    "boolean": "boolean",
    "text": "varchar",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp with time zone": "timestamptz",
}


def draft_schema(source: object, *, table: str | None = None) -> str:
    """Return a schema file to complete: each column with the kind that its type suggests, every bound left open.

    >>> import pyarrow as pa
    >>> print(draft_schema(pa.table({"age": [40]})).splitlines()[-5])
    [[attribute]]
    """
    if is_remote(source):
        columns: Mapping[str, str | None] = _remote_kinds(source, table)
    else:
        with Engine() as engine:
            found = _columns_of(engine, source, table)
        columns = {name: None if column is None else column.type_name for name, column in found.items()}
    return "\n".join([_PREFACE, *(_draft(name, column) for name, column in columns.items())])


def _remote_kinds(source: object, table: str | None) -> dict[str, str | None]:
    """Return the columns of a table that is counted where it lies, with the type here that is most like theirs."""
    with open_remote(source, table) as remote:
        return {column.name: _ALIKE.get(column.kind, column.type_name) for column in remote.columns()}


def _columns_of(engine: Engine, source: object, table: str | None) -> Mapping[str, Column | None]:
    if table is None and isinstance(source, str | os.PathLike | list | tuple) and "://" not in str(source):
        first = find_files(source)[0]
        if is_csv(first) and not is_parquet(first):
            return dict.fromkeys(draft_names(first))
    return open_table(engine, source, None, table).parts[0].columns


def _draft(name: str, kind: str | None) -> str:
    # A name never breaks out of its line: line ends in it are escaped by the writer, and comments hold types only.
    title = tomli_w.dumps({"name": name}).rstrip("\n")
    if kind is None:
        return "\n".join(["[[attribute]]", title, *_ANY_KIND, ""])
    facts = _facts_for(kind)
    # The type's name without what it may carry: the values of an enumeration, the fields of a structure.
    if facts is None:
        return f"# A column of type {kind.upper()} cannot be an attribute; this is its name:\n# {title}\n"
    return "\n".join(["[[attribute]]", f"{title}    # {kind.upper()}", *facts, ""])


def _facts_for(type_name: str) -> list[str] | None:
    if type_name in INTEGERS:
        return _WHOLE_NUMBERS
    if type_name in WIDE_NUMBERS:
        return _REAL_NUMBERS
    if type_name in DATES:
        return _CALENDAR
    return _VALUES if type_name in TEXTS or type_name == "boolean" else None
