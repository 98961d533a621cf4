"""Answers that were given: the question, the noisy integers that came out, and the promise. Never an exact value."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from veilcube.curator.ledger.rows.account import read_statement, write_statement
from veilcube.curator.ledger.rows.balance import Balance
from veilcube.curator.ledger.rows.book import Book, DamagedRowError
from veilcube.curator.ledger.rows.chain import ANSWERS, Content, add_link, check_numbered, last_link
from veilcube.errors import VeilcubeError
from veilcube.laws import DiscreteGaussian, DiscreteLaplace, Noise, read_ratio
from veilcube.privacy import PrivacyStatement, write_fraction
from veilcube.schema import Schema

# Larger numbers are no answers about a table of people; a longer text would only burden who reads it.
LONGEST_INTEGER = 60
ANSWER_COLUMNS = "id, dataset, charge, schema, key, question, outcome, parameters, statement, analyst, at, family"
_LAWS: Mapping[str, Callable[[Fraction], Noise]] = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}


@dataclass(frozen=True)
class StoredAnswer:
    """One answered question.

    ``question`` is plain data that says all about what was asked, ``key`` its digest together with the schema and the
    unit. ``values`` are integers after the noise, ``noise`` is the law of the noise on each (None where the mechanism
    adds none). ``charge`` is None where what was paid for other parts of a partition covers it.
    """

    id: int
    dataset: str
    charge: int | None
    schema: str
    key: str
    question: Mapping[str, object]
    values: tuple[int, ...]
    noise: Noise | None
    statement: PrivacyStatement
    analyst: str | None
    at: str


def can_be_kept(values: Sequence[int]) -> bool:
    """Whether answers are short enough to be read back; a longer one would make its ledger look damaged."""
    return all(abs(value) < 10 ** (LONGEST_INTEGER - 1) for value in values)


def add_answer(book: Book, schema: Schema, answer: StoredAnswer) -> StoredAnswer:
    """Write an answer down under the next number, which it is returned with, and its schema unless it is there."""
    if book.one("SELECT 1 FROM schemas WHERE fingerprint = ?", answer.schema) is None:
        described = json.dumps(schema.to_dict(), allow_nan=False)
        book.execute("INSERT INTO schemas (fingerprint, described) VALUES (?, ?)", answer.schema, described)
    last = last_link(book, ANSWERS, lambda number: read_answer_row(book, number))
    newest = book.one("SELECT MAX(id) FROM answers") or 0
    if newest != (0 if last is None else last.row_id):
        raise DamagedRowError("answers")
    numbered = replace(answer, id=newest + 1)
    row = (
        numbered.id,
        numbered.dataset,
        numbered.charge,
        numbered.schema,
        numbered.key,
        json.dumps(numbered.question, allow_nan=False),
        json.dumps(numbered.values),
        json.dumps([] if numbered.noise is None else [write_fraction(numbered.noise.parameter)]),
        write_statement(numbered.statement),
        numbered.analyst,
        numbered.at,
        "laplace" if numbered.noise is None else numbered.noise.family,
    )
    book.execute(f"INSERT INTO answers ({ANSWER_COLUMNS}) VALUES ({', '.join('?' * len(row))})", *row)
    add_link(book, last, ANSWERS, numbered.id, Balance.zero(), row)
    return numbered


def read_answer_row(book: Book, number: int) -> Content | None:
    """Return the columns of one answer as they are stored."""
    row = book.execute(f"SELECT {ANSWER_COLUMNS} FROM answers WHERE id = ?", number).fetchone()
    return None if row is None else tuple(row)


def read_answers(
    book: Book, dataset: str | None, key: str | None = None, charges: Collection[int] | None = None
) -> list[StoredAnswer]:
    """Return the answers on a dataset, or on all, or to one question, or that some charges paid for, in their order."""
    if key is None:
        how_many, newest = book.execute("SELECT COUNT(*), COALESCE(MAX(id), 0) FROM answers").fetchone()
        if how_many != newest:
            raise DamagedRowError("answers")
    wanted: dict[str, object] = {"dataset": dataset, "key": key}
    named = {column: value for column, value in wanted.items() if value is not None}
    if charges is not None:
        named |= {"charge >": min(charges, default=0) - 1, "charge <": max(charges, default=-2) + 1}
    conditions = " AND ".join(f"{column} {'' if column[-1] in '<>' else '='} ?" for column in named)
    rows = book.execute(
        f"SELECT {ANSWER_COLUMNS} FROM answers {'WHERE' if named else ''} {conditions} ORDER BY id", *named.values()
    )
    return [_read_answer(book, tuple(row)) for row in rows.fetchall()]


def read_schemas(book: Book) -> dict[str, Schema]:
    """Return the schemas that questions were asked under, by fingerprint."""
    rows = book.execute("SELECT fingerprint, described FROM schemas")
    return {fingerprint: _read_schema(fingerprint, described) for fingerprint, described in rows}


def is_schema(fingerprint: object, described: object) -> bool:
    """Whether a schema is the one that its fingerprint tells."""
    try:
        _read_schema(fingerprint, described)
    except DamagedRowError:
        return False
    return True


def _read_schema(fingerprint: object, described: object) -> Schema:
    try:
        schema = Schema.from_dict(json.loads(described))  # type: ignore[arg-type]
        if schema.fingerprint() == fingerprint:
            return schema
    except (ValueError, TypeError, AttributeError, RecursionError, VeilcubeError) as problem:
        raise DamagedRowError("schemas") from problem
    raise DamagedRowError("schemas")


def _read_answer(
    book: Book, row: tuple[int, str, int | None, str, str, str, str, str, str, str | None, str, str]
) -> StoredAnswer:
    check_numbered(book, ANSWERS, row[0], row)
    number, dataset, charge, schema, key, question, outcome, parameters, statement, analyst, at, family = row
    try:
        asked, values = json.loads(question), json.loads(outcome, parse_int=_read_integer)
        if not isinstance(asked, dict) or not all(type(value) is int for value in values):
            raise DamagedRowError
        noise, promise = _read_noise(family, json.loads(parameters)), read_statement(statement)
    except (KeyError, ValueError, TypeError, RecursionError, VeilcubeError) as problem:
        raise DamagedRowError from problem
    return StoredAnswer(number, dataset, charge, schema, key, asked, tuple(values), noise, promise, analyst, at)


def _read_noise(family: str, parameters: Sequence[object]) -> Noise | None:
    """Return the law of the noise; of several parameters, which no ledger writes any more, that of the largest."""
    exact = [read_ratio(parameter) for parameter in parameters]
    return _LAWS[family](max(exact)) if exact else None


def _read_integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise DamagedRowError
    return int(text)
