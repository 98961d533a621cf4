"""What single analysts may spend of a dataset's budget, and what was spent on the parts of partitions.

An analyst's share is a rule between people, inside the budget that protects. Parts of a partition share no row, so the
dearest one is the price of all, in epsilon as in rho: each row of ``part_charges`` is what one measurement spent on one
part, a partition costs the largest of its parts' sums, and a measurement costs what it adds to that. A partition inside
a part passes on what it adds as spent on that part. docs/proofs/protected-tables.md proves that the charges so made
bound the privacy loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from veilcube.curator.ledger.rows.account import read_charge_row, sum_of_groups
from veilcube.curator.ledger.rows.balance import Balance
from veilcube.curator.ledger.rows.book import Book, DamagedRowError
from veilcube.curator.ledger.rows.chain import (
    SHARES,
    Content,
    Link,
    add_link,
    check_numbered,
    last_link,
    of_analyst,
    of_part,
    of_partition,
)
from veilcube.privacy import Budget, Currency, write_fraction

SHARE_COLUMNS = "id, dataset, analyst, amount, at"
PART_COLUMNS = "id, dataset, partition, part, amount, charge, at"


@dataclass(frozen=True)
class PartOf:
    """A part of a partition, both as canonical JSON: an object for the partition, a list of cells for the part."""

    partition: str
    part: str


# What is spent on this part tells that charges to parts of the dataset were lost.
_LOST = PartOf('{"lost": true}', "[]")


@dataclass(frozen=True)
class PartCharge:
    """What a measurement spends on one part, with the last links of the part and of its partition before that."""

    place: PartOf
    amount: Fraction
    part: Link | None
    partition: Link | None


def price_within(
    book: Book, dataset: str, within: Sequence[PartOf], cost: Fraction
) -> tuple[Fraction, list[PartCharge]]:
    """Return what a measurement inside nested parts (outermost first) adds to the dataset's cost, and to each part's.

    The first is 0 where what was spent on other parts covers it.
    """
    if within and _spent(_last_of_part(book, dataset, _LOST, cost).part).high:
        return cost, []  # what its part has spent already is not known
    price, spent = cost, []
    for place in reversed(within):
        if price == 0:
            break
        entry = _last_of_part(book, dataset, place, price)
        spent.append(entry)
        price = _rise_of_largest(book, dataset, entry)
    return price, spent


def add_part_charges(book: Book, dataset: str, spent: Sequence[PartCharge], charge: int | None, at: str) -> None:
    """Write down what was spent on parts, with the charge, if any, that paid for it."""
    for number, entry in enumerate(spent, start=int(book.one("SELECT MAX(id) FROM part_charges") or 0) + 1):
        partition, part = entry.place.partition, entry.place.part
        row = (number, dataset, partition, part, write_fraction(entry.amount), charge, at)
        book.execute(f"INSERT INTO part_charges ({PART_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
        own = _spent(entry.part).plus(entry.amount)
        add_link(book, entry.part, of_part(dataset, partition, part), number, own, row)
        dearest = _spent(entry.partition).largest(own)
        add_link(book, entry.partition, of_partition(dataset, partition), number, dearest, row)


def lose_parts(book: Book, dataset: str, at: str) -> None:
    """Note that charges to parts were lost: from here on nothing that was spent on one part pays for another."""
    add_part_charges(book, dataset, [_last_of_part(book, dataset, _LOST, Fraction(1))], None, at)


def read_part_row(book: Book, number: int) -> Content | None:
    """Return the columns of what was spent on a part, as they are stored."""
    row = book.execute(f"SELECT {PART_COLUMNS} FROM part_charges WHERE id = ?", number).fetchone()
    return None if row is None else tuple(row)


def _last_of_part(book: Book, dataset: str, place: PartOf, price: Fraction) -> PartCharge:
    partition, part = place.partition, place.part
    own, dearest = (
        last_link(book, holder, lambda number: read_part_row(book, number))
        for holder in (of_part(dataset, partition, part), of_partition(dataset, partition))
    )
    # A link that is lacking at the end of the partition's chain would make the price too high, of the part's too low.
    newest = book.one(
        "SELECT MAX(id) FROM part_charges WHERE dataset = ? AND partition = ? AND part = ?", dataset, partition, part
    )
    if newest != (None if own is None else own.row_id):
        raise DamagedRowError("part_charges")
    return PartCharge(place, price, own, dearest)


def _rise_of_largest(book: Book, dataset: str, entry: PartCharge) -> Fraction:
    own, dearest = _spent(entry.part), _spent(entry.partition)
    if own.exact is not None and dearest.exact is not None:
        return max(own.exact + entry.amount - dearest.exact, Fraction(0))
    sums = _exact_sums(book, dataset, entry.place.partition)
    return max(sums.get(entry.place.part, Fraction(0)) + entry.amount - max(sums.values()), Fraction(0))


def _exact_sums(book: Book, dataset: str, partition: str) -> dict[str, Fraction]:
    groups = book.execute(
        "SELECT part, amount, COUNT(*) FROM part_charges WHERE dataset = ? AND partition = ? GROUP BY part, amount",
        dataset,
        partition,
    )
    of_parts: dict[str, list[tuple[str, int]]] = {}
    for part, amount, times in groups:
        of_parts.setdefault(part, []).append((amount, times))
    return {part: sum_of_groups(found) for part, found in of_parts.items()}


def _spent(link: Link | None) -> Balance:
    return Balance.zero() if link is None else link.spent


@dataclass(frozen=True)
class Share:
    """What an analyst may spend on a dataset in all, and what they spent of it."""

    dataset: str
    analyst: str
    budget: Budget
    balance: Balance = field(default=Balance.zero(), compare=False, repr=False)

    @property
    def currency(self) -> Currency:
        """What it is in: that of the dataset's budget."""
        return self.budget.currency


def add_share(book: Book, share: Share, at: str) -> None:
    """Write a share down; the latest one counts."""
    last = last_link(book, SHARES, lambda number: read_share_row(book, number))
    newest = book.one("SELECT MAX(id) FROM shares") or 0
    if newest != (0 if last is None else last.row_id):
        raise DamagedRowError("shares")
    row = (newest + 1, share.dataset, share.analyst, write_fraction(share.budget.total), at)
    book.execute(f"INSERT INTO shares ({SHARE_COLUMNS}) VALUES (?, ?, ?, ?, ?)", *row)
    add_link(book, last, SHARES, newest + 1, Balance.zero(), row)


def read_share_row(book: Book, number: int) -> Content | None:
    """Return the columns of one share as they are stored."""
    row = book.execute(f"SELECT {SHARE_COLUMNS} FROM shares WHERE id = ?", number).fetchone()
    return None if row is None else tuple(row)


def last_of_analyst(book: Book, dataset: str, analyst: str) -> Link | None:
    """Return the last link of what an analyst spent on a dataset."""
    return last_link(book, of_analyst(dataset, analyst), lambda number: read_charge_row(book, number))


def read_share(book: Book, dataset: str, analyst: str) -> Share | None:
    """Return an analyst's share with the exact sum of their charges; None if nobody set one."""
    share = read_kept_share(book, dataset, analyst)
    if share is None or share.balance.exact is not None:
        return share
    return replace(share, budget=replace(share.budget, spent=_exact_spent_by(book, share)))


def read_kept_share(book: Book, dataset: str, analyst: str) -> Share | None:
    """Return an analyst's share with what they spent as it is kept; of two bounds its budget tells the upper one."""
    row = book.execute(
        f"SELECT {SHARE_COLUMNS} FROM shares WHERE dataset = ? AND analyst = ? ORDER BY id DESC LIMIT 1",
        dataset,
        analyst,
    ).fetchone()
    if row is None:
        return None
    check_numbered(book, SHARES, row[0], tuple(row))
    currency = book.one("SELECT currency FROM accounts WHERE dataset = ?", dataset)
    balance = _spent(last_of_analyst(book, dataset, analyst))
    try:
        return Share(dataset, analyst, Budget(Fraction(row[3]), balance.high, Currency(currency)), balance)
    except (ValueError, TypeError, ZeroDivisionError) as problem:
        raise DamagedRowError("shares") from problem


def share_allows(book: Book, share: Share, price: Fraction) -> bool:
    """Whether a charge fits into a share, to the last bit."""
    fits = share.balance.fits(price, share.budget.total)
    return _exact_spent_by(book, share) + price <= share.budget.total if fits is None else fits


def _exact_spent_by(book: Book, share: Share) -> Fraction:
    """Return the sum of an analyst's charges, which takes longer the more there are."""
    groups = book.execute(
        "SELECT amount, COUNT(*) FROM charges WHERE dataset = ? AND analyst = ? GROUP BY amount",
        share.dataset,
        share.analyst,
    )
    return sum_of_groups(groups)


def analysts_with_shares(book: Book, dataset: str) -> list[str]:
    """Return the analysts of a dataset who have a share, by name."""
    return sorted(name for (name,) in book.execute("SELECT DISTINCT analyst FROM shares WHERE dataset = ?", dataset))
