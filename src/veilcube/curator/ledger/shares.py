"""What single analysts may spend of a dataset's budget: a rule between people, inside the budget that protects."""

import sqlite3
from dataclasses import dataclass
from fractions import Fraction

from veilcube.curator.ledger.account import DamagedRowError, next_id
from veilcube.privacy import Budget, write_fraction


@dataclass(frozen=True)
class Share:
    """What an analyst may spend on a dataset in all, and what they spent of it."""

    dataset: str
    analyst: str
    budget: Budget


def add_share(connection: sqlite3.Connection, share: Share, at: str) -> None:
    """Write a share down; the latest one counts."""
    connection.execute(
        "INSERT INTO shares (id, dataset, analyst, epsilon, at) VALUES (?, ?, ?, ?, ?)",
        (next_id(connection, "shares"), share.dataset, share.analyst, write_fraction(share.budget.total), at),
    )


def read_share(connection: sqlite3.Connection, dataset: str, analyst: str) -> Share | None:
    """Return an analyst's share with the exact sum of their charges; None if nobody set one."""
    next_id(connection, "shares")
    row = connection.execute(
        "SELECT epsilon FROM shares WHERE dataset = ? AND analyst = ? ORDER BY id DESC LIMIT 1", (dataset, analyst)
    ).fetchone()
    if row is None:
        return None
    groups = connection.execute(
        "SELECT epsilon, COUNT(*) FROM charges WHERE dataset = ? AND analyst = ? GROUP BY epsilon", (dataset, analyst)
    ).fetchall()
    try:
        spent = sum((Fraction(epsilon) * times for epsilon, times in groups), Fraction(0))
        return Share(dataset, analyst, Budget(Fraction(row[0]), spent))
    except (ValueError, TypeError, ZeroDivisionError) as problem:
        raise DamagedRowError from problem


def analysts_with_shares(connection: sqlite3.Connection, dataset: str) -> list[str]:
    """Return the analysts of a dataset who have a share, by name."""
    rows = connection.execute("SELECT DISTINCT analyst FROM shares WHERE dataset = ? ORDER BY analyst", (dataset,))
    return [analyst for (analyst,) in rows]
