"""SQL text read as a count query: a condition, a WHERE clause, or a whole ``SELECT COUNT(*)``.

sqlglot parses the text; nothing of it is ever run. Whatever the tree holds beyond what is read here is refused by
name, because an answer to a question that was read only in part would look like an answer to the whole.
"""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlglot
from sqlglot import ParseError, Token, TokenError, TokenType, exp

from veilcube.errors import QueryError, quoted
from veilcube.query.aggregates import Asked, read_aggregate
from veilcube.query.conditions import region_where
from veilcube.query.unsupported import refuse, refuse_extras
from veilcube.schema import Region, Schema, level_name, read_groupings, split_level

DIALECT = "duckdb"
MAX_CHARACTERS = 100_000
MAX_NESTING = 32
MAX_MESSAGE = 400

_STATEMENT_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM)
_OTHER_STATEMENTS = re.compile(
    "ALTER|ATTACH|CALL|COPY|CREATE|DELETE|DESCRIBE|DROP|EXPLAIN|EXPORT|INSERT|INSTALL|LOAD|MERGE|PRAGMA|SET|SHOW"
    "|SUMMARIZE|TRUNCATE|UPDATE|USE|VALUES"
)


@dataclass(frozen=True)
class SqlQuery:
    """What a piece of SQL asks: the count over ``region``, for each cell of the ``group_by`` attributes if any."""

    region: Region
    group_by: tuple[str, ...]


@dataclass(frozen=True)
class SqlStatement:
    """What a whole statement asks: ``asked`` of the rows of ``region``, in all or for each group."""

    region: Region
    group_by: tuple[str, ...]
    asked: tuple[Asked, ...]


def read_sql(schema: Schema, text: str) -> SqlQuery:
    """Read a condition, a WHERE clause or a whole ``SELECT COUNT(*)`` against the attributes of a schema.

    >>> from veilcube.schema import Nominal, Ordinal
    >>> schema = Schema([Ordinal("age", 17, 90), Nominal("sex", ["Female", "Male"])])
    >>> read_sql(schema, "30 <= age AND age < 40 AND NOT sex = 'Male'").region.cells
    10
    >>> read_sql(schema, "SELECT sex, COUNT(*) FROM adult WHERE age IN (30, 31) GROUP BY sex").group_by
    ('sex',)
    """
    found = read_statement(schema, text)
    others = [asked.text for asked in found.asked if asked.statistic != "count"]
    if others:
        raise QueryError(
            f"not supported: {quoted(others[0])} here, where counts are asked for; ask a release with release.ask, "
            "release.group, release.mean, release.sum or release.quantile, or with 'veilcube query'"
        )
    if len(found.asked) != 1:
        raise QueryError("a query selects COUNT(*) exactly once, beside the attributes after GROUP BY")
    return SqlQuery(found.region, found.group_by)


def read_statement(schema: Schema, text: str) -> SqlStatement:
    """Read a condition or a whole statement, whose columns are counts, sums, means, quantiles and shares.

    >>> from veilcube.schema import Nominal, Ordinal
    >>> schema = Schema([Ordinal("age", 17, 90), Nominal("sex", ["Female", "Male"])])
    >>> [asked.statistic for asked in read_statement(schema, "SELECT AVG(age), COUNT(*) FROM t GROUP BY sex").asked]
    ['mean', 'count']
    """
    try:
        select = _parse(text)
        _check_select(select)
        group_by = _read_group_by(schema, select)
        asked = _read_columns(schema, select, group_by)
        where = select.args.get("where")
        region = Region.everything(schema.shape) if where is None else region_where(schema, where.this)
        return SqlStatement(region, group_by, asked)
    except RecursionError:
        raise QueryError("the condition is nested too deeply; write it with fewer parentheses and NOTs") from None
    except QueryError as problem:
        message = " ".join(str(problem).split())
        if message == str(problem) and len(message) <= MAX_MESSAGE:
            raise
        raise QueryError(_shortened(message)) from None


def _parse(text: str) -> exp.Select:
    if not isinstance(text, str):
        raise QueryError('a SQL query is a text such as "age BETWEEN 30 AND 39"')
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"the SQL text is longer than {MAX_CHARACTERS:,} characters; split it into several queries")
    tokens = _tokenize(text)
    if tokens[0].token_type in _STATEMENT_STARTS:
        whole = text
    elif tokens[0].token_type == TokenType.WHERE:
        whole = f"SELECT COUNT(*) FROM data {text}"
    else:
        whole = f"SELECT COUNT(*) FROM data WHERE {text}"
    try:
        with _quiet_parser():
            (statement,) = [found for found in sqlglot.parse(whole, dialect=DIALECT) if found is not None]
    except ParseError as problem:
        raise _unreadable(problem, tokens[0].text.upper()) from None
    if not isinstance(statement, exp.Select):
        raise refuse(statement)
    return statement


def _tokenize(text: str) -> list[Token]:
    try:
        tokens = list(sqlglot.tokenize(text, dialect=DIALECT))
    except TokenError:
        raise QueryError("cannot read the SQL: a quotation mark or a comment is not closed") from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise QueryError('the SQL text is empty; write a condition such as "age BETWEEN 30 AND 39"')
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise QueryError("not supported: several statements; send one query at a time")
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth > MAX_NESTING:
            raise QueryError(f"the condition has more than {MAX_NESTING} parentheses inside one another; use fewer")
    return tokens


@contextmanager
def _quiet_parser() -> Iterator[None]:
    """Drop what sqlglot logs about this text, in this thread only: the error that is raised says it all."""
    logger, thread = logging.getLogger("sqlglot"), threading.get_ident()

    def from_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger.addFilter(from_elsewhere)
    try:
        yield
    finally:
        logger.removeFilter(from_elsewhere)


def _unreadable(problem: ParseError, first_word: str) -> QueryError:
    if _OTHER_STATEMENTS.fullmatch(first_word):
        return QueryError(f"not supported: {first_word}; ask with a condition or SELECT COUNT(*) ... WHERE ...")
    near = str(problem.errors[0].get("highlight") or "") if problem.errors else ""
    place = f" near '{_shortened(near, 40)}'" if near.strip() else ""
    return QueryError(
        f"cannot read the SQL{place}; check the spelling there, put text into single quotes "
        "and unusual names into double quotes"
    )


def _check_select(select: exp.Select) -> None:
    refuse_extras(select, "expressions", "from_", "where", "group")
    source = select.args.get("from_")
    if source is not None:
        if not isinstance(source.this, exp.Table):
            raise refuse(source.this)
        refuse_extras(source.this, "this", "db", "catalog", "alias")
        if source.this.args.get("alias"):
            refuse_extras(source.this.args["alias"], "this")


def _read_group_by(schema: Schema, select: exp.Select) -> tuple[str, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    refuse_extras(group, "expressions")
    names: dict[str, None] = {}  # keeps the order and drops repeats, as SQL does
    for entry in group.expressions:
        column = entry.unnest()
        if isinstance(column, exp.Literal):
            raise QueryError(f"not supported: GROUP BY {column.name}; name the attribute instead of its position")
        names[_group_name(schema, column)] = None
    return tuple(names)


def _group_name(schema: Schema, column: exp.Expr) -> str:
    """Return the name of an attribute or of a level of one: ``job``, ``LEVEL(job, 1)`` or ``"job:Level 1"``."""
    if isinstance(column, exp.Column) and not isinstance(column.this, exp.Star):
        return _known_level(schema, *split_level(schema, column.name))
    if not is_level(column):
        raise refuse(column.this if isinstance(column, exp.Column) else column)
    named, *levels = column.expressions or [None]
    is_number = len(levels) == 1 and isinstance(levels[0], exp.Literal) and re.fullmatch(r"\d{1,4}", levels[0].name)
    if not isinstance(named, exp.Column) or not is_number or levels[0].is_string:
        raise QueryError("LEVEL takes an attribute and the number of a level, such as LEVEL(job, 1)")
    return _known_level(schema, schema.axis(named.name), int(levels[0].name))


def _known_level(schema: Schema, axis: int, level: int | None) -> str:
    name = level_name(schema, axis, level)
    if level is not None:
        read_groupings(schema, [name])  # refuses a level that is not there
    return name


def is_level(column: exp.Expr) -> bool:
    """Whether a part of SQL asks for a level of a hierarchy."""
    return isinstance(column, exp.Anonymous) and column.name.upper() == "LEVEL"


def _read_columns(schema: Schema, select: exp.Select, group_by: tuple[str, ...]) -> tuple[Asked, ...]:
    found: list[Asked] = []
    for entry in select.expressions:
        column = entry.unalias()
        asked = read_aggregate(schema, column, entry.alias if isinstance(entry, exp.Alias) else None)
        if asked is not None:
            found.append(asked)
            continue
        name = _group_name(schema, column)
        if name not in group_by:
            raise QueryError(f"'{name}' is selected but not grouped; add GROUP BY {name} or select COUNT(*) alone")
    if not found:
        raise QueryError("a query selects COUNT(*), or sums, means, quantiles and shares, beside the groups")
    names = [asked.name for asked in found]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated and repeated[0] != "COUNT(*)":
        raise QueryError(f"'{quoted(repeated[0])}' is selected twice; select it once, or name both with AS")
    return tuple(found)


def _shortened(text: str, length: int = MAX_MESSAGE) -> str:
    return text if len(text) <= length else f"{text[: length // 2]} ... {text[-length // 2 :]}"
