"""All of a ledger at once: the chain that its rows ought to have, to begin it for old rows and to check it whole."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any

from veilcube.curator.ledger.rows.account import ACCOUNT_COLUMNS, CHARGE_COLUMNS, read_charge
from veilcube.curator.ledger.rows.answers import ANSWER_COLUMNS, is_schema, read_schemas
from veilcube.curator.ledger.rows.balance import Balance
from veilcube.curator.ledger.rows.book import Book, DamagedRowError
from veilcube.curator.ledger.rows.chain import (
    ADD_LINK,
    ANSWERS,
    KEY,
    SHARES,
    Content,
    Link,
    link_at,
    next_link,
    of_analyst,
    of_dataset,
    of_part,
    of_partition,
)
from veilcube.curator.ledger.rows.shares import PART_COLUMNS, SHARE_COLUMNS

_AT_ONCE = 1000
_SCHEMA = ANSWER_COLUMNS.split(", ").index("schema")


@dataclass(frozen=True)
class Checked:
    """How much of a ledger was checked, all of it public."""

    datasets: int
    charges: int
    links: int


@dataclass
class _Chains:
    """The last link of every holder, on the way through the rows."""

    key: bytes
    last: dict[str, Link] = field(default_factory=dict)
    currencies: dict[str, str] = field(default_factory=dict)
    promises: dict[str, tuple[str, str]] = field(default_factory=dict)

    def spent(self, holder: str) -> Balance:
        return self.last[holder].spent if holder in self.last else Balance.zero()

    def add(self, holder: str, number: int, balance: Balance, row: Content) -> Link:
        link = next_link(self.key, self.last.get(holder), holder, number, balance, row)
        self.last[holder] = link
        return link


def begin_for_all(book: Book) -> None:
    """Write the chain of a ledger that has none."""
    links = (link.row for _, link in expected_links(book))
    while batch := list(islice(links, _AT_ONCE)):
        book.connection.executemany(ADD_LINK, batch)


def check_whole(book: Book, *, seals: bool = True) -> Checked:
    """Raise DamagedRowError unless every row, every balance and every seal is as it was written."""
    compared, count = 5 if seals else 4, 0
    for where, link in expected_links(book):
        stored = link_at(book, link.holder, link.number)
        if stored is None or stored.row[:compared] != link.row[:compared]:
            raise DamagedRowError(where)
        count += 1
    if book.one("SELECT COUNT(*) FROM chain") != count:
        raise DamagedRowError("the chain")
    read_schemas(book)
    datasets, charges = (int(book.one(f"SELECT COUNT(*) FROM {table}")) for table in ("accounts", "charges"))
    return Checked(datasets, charges, count)


def expected_links(book: Book) -> Iterator[tuple[str, Link]]:
    """Yield the links that the rows of a ledger ought to have, each with the row that it is for, in words."""
    chains = _Chains(book.key or b"")
    yield "the key", chains.add(KEY, 0, Balance.zero(), ())
    for row in book.execute(f"SELECT {ACCOUNT_COLUMNS} FROM accounts ORDER BY dataset").fetchall():
        yield f"dataset '{row[0]}'", chains.add(of_dataset(row[0]), 0, Balance.zero(), tuple(row))
    for table, (columns, _) in _NUMBERED.items():
        for row in _numbered(book, table, columns):
            where = f"row {row[0]} of {table}"
            yield from ((where, link) for link in _links_for(book, chains, table, row))


def bring_over(old: Book, new: Book) -> None:
    """Add to a whole ledger what can be read of a damaged one beyond it: up to the first row that its seal denies."""
    schemas = _bring_terms(old, new)
    chains = _Chains(new.key or b"", _last_links(new))
    chains.currencies |= dict(new.execute("SELECT dataset, currency FROM accounts").fetchall())
    for table, (columns, _) in _NUMBERED.items():
        number = int(new.one(f"SELECT COALESCE(MAX(id), 0) FROM {table}")) + 1
        while row := old.execute(f"SELECT {columns} FROM {table} WHERE id = ?", number).fetchone():
            links = _links_for(old, chains, table, tuple(row))
            if any(link_at(old, link.holder, link.number) != link for link in links):
                return
            if table == "answers" and row[_SCHEMA] not in schemas:  # nobody could tell what was asked
                return
            new.execute(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", *row)
            new.connection.executemany(ADD_LINK, [link.row for link in links])
            number += 1


def _bring_terms(old: Book, new: Book) -> Collection[str]:
    """Add the datasets and the whole schemas that were new since; return the schemas that there are."""
    chains = _Chains(new.key or b"")
    for row in old.execute(f"SELECT {ACCOUNT_COLUMNS} FROM accounts ORDER BY dataset").fetchall():
        link = chains.add(of_dataset(row[0]), 0, Balance.zero(), tuple(row))
        if link_at(new, link.holder, 0) is None and link_at(old, link.holder, 0) == link:
            new.execute(f"INSERT INTO accounts ({ACCOUNT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", *row)
            new.execute(ADD_LINK, *link.row)
    known = read_schemas(new)
    for fingerprint, described in old.execute("SELECT fingerprint, described FROM schemas").fetchall():
        if fingerprint not in known and is_schema(fingerprint, described):
            new.execute("INSERT INTO schemas (fingerprint, described) VALUES (?, ?)", fingerprint, described)
    return read_schemas(new)


def _last_links(book: Book) -> dict[str, Link]:
    rows = book.execute("SELECT holder, MAX(number), row_id, balance, seal FROM chain GROUP BY holder")
    return {row[0]: Link(*row) for row in rows}


def _links_for(book: Book, chains: _Chains, table: str, row: tuple[Any, ...]) -> list[Link]:
    try:
        return _NUMBERED[table][1](book, chains, row)
    except (ValueError, TypeError, ZeroDivisionError, DamagedRowError) as problem:
        raise DamagedRowError(f"row {row[0]} of {table}") from problem


def _numbered(book: Book, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table, whose numbers have no gaps: one that is lacking tells of lost rows."""
    last = 0
    while True:
        page = book.execute(
            f"SELECT {columns} FROM {table} WHERE id > ? ORDER BY id LIMIT ?", last, _AT_ONCE
        ).fetchall()
        for row in page:
            if row[0] != last + 1:
                raise DamagedRowError(f"row {last + 1} of {table}")
            last = row[0]
            yield tuple(row)
        if len(page) < _AT_ONCE:
            return


def _of_charge(book: Book, chains: _Chains, row: tuple[Any, ...]) -> list[Link]:
    holder, analyst = of_dataset(row[1]), row[7]
    if holder not in chains.last:
        raise DamagedRowError
    if row[1] not in chains.currencies:
        chains.currencies[row[1]] = book.one("SELECT currency FROM accounts WHERE dataset = ?", row[1])
    is_for_part = book.one("SELECT 1 FROM part_charges WHERE charge = ?", row[0]) is not None
    charge = read_charge(row, chains.currencies[row[1]], is_for_part)
    promise = (charge.statement.neighbours, charge.statement.unit.identity)
    if chains.promises.setdefault(charge.dataset, promise) != promise:
        raise DamagedRowError
    holders = [holder] if analyst is None else [holder, of_analyst(row[1], analyst)]
    return [chains.add(one, row[0], chains.spent(one).plus(charge.amount), row) for one in holders]


def _of_part(_: Book, chains: _Chains, row: tuple[Any, ...]) -> list[Link]:
    number, dataset, partition, part, amount = row[:5]
    own = of_part(dataset, partition, part)
    spent = chains.spent(own).plus(Fraction(amount))
    dearest = chains.spent(of_partition(dataset, partition)).largest(spent)
    return [chains.add(own, number, spent, row), chains.add(of_partition(dataset, partition), number, dearest, row)]


def _of_share(_: Book, chains: _Chains, row: tuple[Any, ...]) -> list[Link]:
    return [chains.add(SHARES, row[0], Balance.zero(), row)]


def _of_answer(_: Book, chains: _Chains, row: tuple[Any, ...]) -> list[Link]:
    return [chains.add(ANSWERS, row[0], Balance.zero(), row)]


_NUMBERED: dict[str, tuple[str, Callable[[Book, _Chains, tuple[Any, ...]], list[Link]]]] = {
    "charges": (CHARGE_COLUMNS, _of_charge),
    "part_charges": (PART_COLUMNS, _of_part),
    "shares": (SHARE_COLUMNS, _of_share),
    "answers": (ANSWER_COLUMNS, _of_answer),
}
