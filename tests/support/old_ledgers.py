"""Ledger files as earlier versions of the layout had them, written statement by statement."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import veilcube as vc
from support.statements import laplace_statement
from veilcube.curator.ledger.rows import write_statement
from veilcube.curator.ledger.stores.layout import APPLICATION_ID, STEPS
from veilcube.privacy import PrivacyUnit
from veilcube.record import Moment
from veilcube.schema import Region

MOMENT = "2026-01-02T03:04:05.678Z"
SCHEMA = vc.Schema([vc.Ordinal("age", 1, 6), vc.Nominal("sex", ["Female", "Male"]), vc.Ordinal("pay", edges=[0, 1, 4])])


def old_ledger(path: Path, version: int) -> vc.Ledger:
    """Write a ledger of an earlier version: one charge and, from the second on, answers to it and a share."""
    with closing(sqlite3.connect(path)) as connection:
        for step in STEPS[:version]:
            for statement in step:
                connection.execute(statement)
        currency = ", 'epsilon'" if version > 2 else ""
        connection.execute(f"INSERT INTO accounts VALUES ('people', '1', NULL, NULL, ?{currency})", (MOMENT,))
        connection.execute(
            "INSERT INTO charges VALUES (1, 'people', '1/4', 'add-remove', 'row', ?, 'long ago', 'Ada', ?"
            f"{', NULL' * 4 if version > 3 else ''})",
            (write_statement(laplace_statement("1/4")), MOMENT),
        )
        if version > 1:
            _add_answers(connection, version)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={version}")
        connection.commit()
    return vc.Ledger(path)


def _add_answers(connection: sqlite3.Connection, version: int) -> None:
    """Write an answer of 97 rows in all, a draw without noise, a part that was paid for, and two words on a share."""
    fingerprint = SCHEMA.fingerprint()
    connection.execute("INSERT INTO schemas VALUES (?, ?)", (fingerprint, json.dumps(SCHEMA.to_dict())))
    question = Moment.ask(SCHEMA, Region.everything(SCHEMA.shape), {}).question
    promise = write_statement(laplace_statement("1/4").charged("the budget of 'people' as charge 1"))
    asked = {
        question.key(PrivacyUnit.row()): (question.data, "[97]", '["4"]'),
        "0" * 64: ({"kind": "rank"}, "[2]", "[]"),
    }
    family = ", 'laplace'" if version > 2 else ""
    for number, (key, (data, outcome, scales)) in enumerate(asked.items(), start=1):
        connection.execute(
            f"INSERT INTO answers VALUES (?, 'people', 1, ?, ?, ?, ?, ?, ?, 'Ada', ?{family})",
            (number, fingerprint, key, json.dumps(data), outcome, scales, promise, MOMENT),
        )
    connection.execute("INSERT INTO part_charges VALUES (1, 'people', '{}', '[0]', '1/4', 1, ?)", (MOMENT,))
    for number, total in ((1, "1/8"), (2, "1/2")):
        connection.execute("INSERT INTO shares VALUES (?, 'people', 'Ada', ?, ?)", (number, total, MOMENT))
