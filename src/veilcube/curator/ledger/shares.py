"""What single analysts may spend of a dataset's budget, and what was spent on the parts of partitions.

An analyst's share is a rule between people, inside the budget that protects. Parts of a partition share no row, so the
dearest one is the price of all, in epsilon as in rho: each row of ``part_charges`` is what one measurement spent on one
part, a partition costs the largest of its parts' sums, and a measurement costs what it adds to that. A partition inside
a part passes on what it adds as spent on that part. docs/proofs/protected-tables.md proves that the charges so made
bound the privacy loss.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from veilcube.curator.ledger.account import DamagedRowError, next_id
from veilcube.privacy import Budget, Currency, write_fraction


@dataclass(frozen=True)
class PartOf:
    """A part of a partition, both as canonical JSON: an object for the partition, a list of cells for the part."""

    partition: str
    part: str


@dataclass(frozen=True)
class PartCharge:
    """What a measurement spends on one part."""

    place: PartOf
    amount: Fraction


def price_within(
    connection: sqlite3.Connection, dataset: str, within: Sequence[PartOf], cost: Fraction
) -> tuple[Fraction, list[PartCharge]]:
    """Return what a measurement inside nested parts (outermost first) adds to the dataset's cost, and to each part's.

    The first is 0 where what was spent on other parts covers it.
    """
    price, spent = cost, []
    for place in reversed(within):
        if price == 0:
            break
        spent.append(PartCharge(place, price))
        price = _rise_of_largest(connection, dataset, spent[-1])
    return price, spent


def add_part_charges(
    connection: sqlite3.Connection, dataset: str, spent: Sequence[PartCharge], charge: int | None, at: str
) -> None:
    """Write down what was spent on parts, with the charge, if any, that paid for it."""
    for entry in spent:
        connection.execute(
            "INSERT INTO part_charges (id, dataset, partition, part, amount, charge, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                next_id(connection, "part_charges"),
                dataset,
                entry.place.partition,
                entry.place.part,
                write_fraction(entry.amount),
                charge,
                at,
            ),
        )


def _rise_of_largest(connection: sqlite3.Connection, dataset: str, entry: PartCharge) -> Fraction:
    next_id(connection, "part_charges")
    groups = connection.execute(
        "SELECT part, amount, COUNT(*) FROM part_charges WHERE dataset = ? AND partition = ? GROUP BY part, amount",
        (dataset, entry.place.partition),
    )
    sums: dict[str, Fraction] = {}
    try:
        for part, amount, times in groups:
            sums[part] = sums.get(part, Fraction(0)) + Fraction(amount) * times
    except (ValueError, TypeError, ZeroDivisionError) as problem:
        raise DamagedRowError from problem
    largest = max(sums.values(), default=Fraction(0))
    return max(sums.get(entry.place.part, Fraction(0)) + entry.amount - largest, Fraction(0))


@dataclass(frozen=True)
class Share:
    """What an analyst may spend on a dataset in all, and what they spent of it."""

    dataset: str
    analyst: str
    budget: Budget

    @property
    def currency(self) -> Currency:
        """What it is in: that of the dataset's budget."""
        return self.budget.currency


def add_share(connection: sqlite3.Connection, share: Share, at: str) -> None:
    """Write a share down; the latest one counts."""
    connection.execute(
        "INSERT INTO shares (id, dataset, analyst, amount, at) VALUES (?, ?, ?, ?, ?)",
        (next_id(connection, "shares"), share.dataset, share.analyst, write_fraction(share.budget.total), at),
    )


def read_share(connection: sqlite3.Connection, dataset: str, analyst: str) -> Share | None:
    """Return an analyst's share with the exact sum of their charges; None if nobody set one."""
    next_id(connection, "shares")
    row = connection.execute(
        "SELECT amount, (SELECT currency FROM accounts WHERE accounts.dataset = shares.dataset) FROM shares "
        "WHERE dataset = ? AND analyst = ? ORDER BY id DESC LIMIT 1",
        (dataset, analyst),
    ).fetchone()
    if row is None:
        return None
    groups = connection.execute(
        "SELECT amount, COUNT(*) FROM charges WHERE dataset = ? AND analyst = ? GROUP BY amount", (dataset, analyst)
    ).fetchall()
    try:
        spent = sum((Fraction(amount) * times for amount, times in groups), Fraction(0))
        return Share(dataset, analyst, Budget(Fraction(row[0]), spent, Currency(row[1])))
    except (ValueError, TypeError, ZeroDivisionError) as problem:
        raise DamagedRowError from problem


def analysts_with_shares(connection: sqlite3.Connection, dataset: str) -> list[str]:
    """Return the analysts of a dataset who have a share, by name."""
    rows = connection.execute("SELECT DISTINCT analyst FROM shares WHERE dataset = ? ORDER BY analyst", (dataset,))
    return [analyst for (analyst,) in rows]
