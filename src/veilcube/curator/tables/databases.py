"""Databases by URL that are read here: DuckDB files. Others count by themselves (``curator.pushdown``)."""

import re
from collections.abc import Sequence

from veilcube.curator.tables.engine import Engine
from veilcube.curator.tables.paths import find_file
from veilcube.curator.tables.table import (
    Part,
    always,
    part_of,
    quoted,
    require_columns,
    require_declared_types,
    shielded,
)
from veilcube.errors import TableError

_URL = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*)://(.*)$", re.DOTALL)
_SELECT = re.compile(r"^\s*(select|with|from)\s", re.IGNORECASE)
_DUCKDB_PREFIX = "duckdb:///"
_NOT_A_SELECT = "the text given as table= is not one SELECT that DuckDB understands; correct it, or give a table's name"


def is_url(source: object) -> bool:
    """Tell whether a source is written as a URL."""
    return isinstance(source, str) and _URL.match(source) is not None


def open_database(engine: Engine, url: str, table: str | None, wanted: Sequence[str] | None) -> Part:
    """Open a table, or the result of a SELECT, in the DuckDB file that a URL names."""
    if not url.startswith(_DUCKDB_PREFIX):
        scheme = url.partition(":")[0]
        raise TableError(
            f"'{scheme}' URLs are not supported, only postgresql:// and duckdb:///; export the table to Parquet and "
            "count that file"
        )
    if not table:
        raise TableError('a database URL needs table="name" or table="SELECT ..." beside it')
    path = find_file(url.removeprefix(_DUCKDB_PREFIX))
    unopened = f"the file {path} cannot be opened as a DuckDB database; check that it is one and that nobody writes it"
    shielded(lambda: engine.attach(str(path)), always(unopened))
    return _open_query(engine, _query_of(engine, table), wanted)


def _query_of(engine: Engine, table: str) -> str:
    """Return the SELECT that a table's name, perhaps with its schema, or a SELECT stands for."""
    if not _SELECT.match(table):
        return f"SELECT * FROM {'.'.join(quoted(name) for name in table.split('.'))}"
    if not shielded(lambda: engine.is_select(table), always(_NOT_A_SELECT)):
        raise TableError(_NOT_A_SELECT)
    return table


def _open_query(engine: Engine, sql: str, wanted: Sequence[str] | None) -> Part:
    called = "the table"
    unknown = always("the database lacks such a table, or the SELECT names what it does not have; correct table=")
    relation = shielded(lambda: engine.query(sql), unknown)
    require_declared_types(shielded(lambda: str(relation.explain()), unknown), called)
    require_columns(relation.columns, relation.columns if wanted is None else wanted, called)
    failed = always("the database could not deliver the rows; run the SELECT in DuckDB to see why")
    return part_of(relation, relation.columns, called, failed)
