"""Answers that were given: the question, the noisy integers that came out, and the promise. Never an exact value."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from veilcube.curator.ledger.account import DamagedRowError, next_id, read_statement, write_statement
from veilcube.errors import VeilcubeError
from veilcube.laws import DiscreteGaussian, DiscreteLaplace, Noise, read_ratio
from veilcube.privacy import PrivacyStatement, write_fraction
from veilcube.schema import Schema

# Larger numbers are no answers about a table of people; a longer text would only burden who reads it.
LONGEST_INTEGER = 60
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


def add_answer(connection: sqlite3.Connection, schema: Schema, answer: StoredAnswer) -> StoredAnswer:
    """Write an answer down under the next number, which it is returned with, and its schema unless it is there."""
    connection.execute(
        "INSERT INTO schemas (fingerprint, described) SELECT ?, ? "
        "WHERE NOT EXISTS (SELECT 1 FROM schemas WHERE fingerprint = ?)",
        (answer.schema, json.dumps(schema.to_dict(), allow_nan=False), answer.schema),
    )
    numbered = replace(answer, id=next_id(connection, "answers"))
    connection.execute(
        "INSERT INTO answers (id, dataset, charge, schema, key, question, outcome, parameters, statement, analyst, at, "
        "family) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
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
        ),
    )
    return numbered


def read_answers(connection: sqlite3.Connection, dataset: str | None, key: str | None = None) -> list[StoredAnswer]:
    """Return the answers on a dataset, or on all, or to one question, in the order in which they were given."""
    next_id(connection, "answers")
    wanted = {"dataset": dataset, "key": key}
    conditions = " AND ".join(f"{column} = :{column}" for column, value in wanted.items() if value is not None)
    rows = connection.execute(
        "SELECT id, dataset, charge, schema, key, question, outcome, parameters, statement, analyst, at, family "
        f"FROM answers WHERE {conditions or 'TRUE'} ORDER BY id",
        wanted,
    )
    return [_read_answer(row) for row in rows]


def read_schemas(connection: sqlite3.Connection) -> dict[str, Schema]:
    """Return the schemas that questions were asked under, by fingerprint."""
    try:
        return {
            fingerprint: Schema.from_dict(json.loads(described))
            for fingerprint, described in connection.execute("SELECT fingerprint, described FROM schemas")
        }
    except (ValueError, TypeError, AttributeError, RecursionError, VeilcubeError) as problem:
        raise DamagedRowError from problem


def _read_answer(row: tuple[int, str, int | None, str, str, str, str, str, str, str | None, str, str]) -> StoredAnswer:
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
