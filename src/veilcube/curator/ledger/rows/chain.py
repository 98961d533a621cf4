"""The chain: a link for every row of a ledger, sealed with a keyed hash over the row, what it brought the balance to,
and the seal before it. So a row that was changed is noticed, and the balance of an account is that of its last link.

Each *holder* has a chain of its own: a dataset (whose first link seals its terms), an analyst in it, a partition and
each of its parts, the shares, the answers. Links are numbered from 0 without gaps. A charge looks at the last two links
of its holders and at their rows, however many there are; ``verify`` looks at all.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from veilcube.curator.ledger.rows.balance import Balance
from veilcube.curator.ledger.rows.book import Book, DamagedRowError

Content = Sequence[object]
_SEAL_BYTES = 16
# Longer ones, such as parts of many values, go by their digest: an index takes no long texts.
_LONGEST_HOLDER = 500
_PERSON = b"veilcube ledger"
# The last link and the one before it are checked, for which the seal of a third is needed.
_LOOKED_AT = 3
ADD_LINK = "INSERT INTO chain (holder, number, row_id, balance, seal) VALUES (?, ?, ?, ?, ?)"


def of_dataset(dataset: str) -> str:
    """Return the holder of a dataset's budget."""
    return _holder("dataset", dataset)


def of_analyst(dataset: str, analyst: str) -> str:
    """Return the holder of what one analyst spent on a dataset."""
    return _holder("analyst", dataset, analyst)


def of_partition(dataset: str, partition: str) -> str:
    """Return the holder of what the dearest part of a partition cost."""
    return _holder("partition", dataset, partition)


def of_part(dataset: str, partition: str, part: str) -> str:
    """Return the holder of what one part of a partition cost."""
    return _holder("part", dataset, partition, part)


def _holder(kind: str, *names: str) -> str:
    written = json.dumps([kind, *names])
    if len(written) <= _LONGEST_HOLDER:
        return written
    return json.dumps([kind, hashlib.blake2b(written.encode("ascii"), digest_size=2 * _SEAL_BYTES).hexdigest()])


SHARES, ANSWERS, KEY = (json.dumps([name]) for name in ("shares", "answers", "key"))


@dataclass(frozen=True)
class Link:
    """One link: which row it seals, and the balance of the holder after it."""

    holder: str
    number: int
    row_id: int
    balance: str
    seal: str

    @property
    def spent(self) -> Balance:
        """The balance after this link."""
        try:
            return Balance.read(self.balance)
        except (ValueError, TypeError, AttributeError, ZeroDivisionError) as problem:
            raise DamagedRowError(self.holder) from problem

    @property
    def row(self) -> tuple[object, ...]:
        """The row of the chain that it is."""
        return self.holder, self.number, self.row_id, self.balance, self.seal


def next_link(key: bytes, before: Link | None, holder: str, row_id: int, balance: Balance, content: Content) -> Link:
    """Return the link that follows another."""
    number, text = 0 if before is None else before.number + 1, balance.text
    seal = _seal(key, "" if before is None else before.seal, holder, number, row_id, text, content)
    return Link(holder, number, row_id, text, seal)


def add_link(book: Book, before: Link | None, holder: str, row_id: int, balance: Balance, content: Content) -> None:
    """Write the next link of a chain down."""
    link = next_link(_key_of(book), before, holder, row_id, balance, content)
    book.execute(ADD_LINK, *link.row)


def check_link(book: Book, before: Link | None, link: Link, content: Content | None) -> None:
    """Raise DamagedRowError unless a link follows another and seals this row."""
    number = 0 if before is None else before.number + 1
    if link.number != number or content is None:
        raise DamagedRowError(link.holder)
    if book.key is None:
        return
    try:
        seal = _seal(
            book.key, "" if before is None else before.seal, link.holder, number, link.row_id, link.balance, content
        )
    except (TypeError, ValueError) as problem:  # a column holds what is no text
        raise DamagedRowError(link.holder) from problem
    if seal != link.seal:
        raise DamagedRowError(link.holder)


def last_links(book: Book, holder: str, read: Callable[[int], Content | None]) -> list[Link]:
    """Return the last links of a holder, checked with the rows that they seal; ``read`` gets a row by its number."""
    rows = book.execute(
        "SELECT holder, number, row_id, balance, seal FROM chain WHERE holder = ? ORDER BY number DESC LIMIT ?",
        holder,
        _LOOKED_AT,
    ).fetchall()
    links = [Link(*row) for row in reversed(rows)]
    if len(links) < _LOOKED_AT and links:
        check_link(book, None, links[0], read(links[0].row_id))
    for before, link in pairwise(links):
        check_link(book, before, link, read(link.row_id))
    return links


def last_link(book: Book, holder: str, read: Callable[[int], Content | None]) -> Link | None:
    """Return the last link of a holder, checked; None if it has none."""
    links = last_links(book, holder, read)
    return links[-1] if links else None


def link_at(book: Book, holder: str, number: int) -> Link | None:
    """Return one link, unchecked."""
    row = book.execute(
        "SELECT holder, number, row_id, balance, seal FROM chain WHERE holder = ? AND number = ?", holder, number
    ).fetchone()
    return None if row is None else Link(*row)


def check_numbered(book: Book, holder: str, number: int, content: Content | None) -> None:
    """Check the row of a holder whose links are numbered as its rows are, counted from 1."""
    link = link_at(book, holder, number - 1)
    if link is None or link.row_id != number:
        raise DamagedRowError(holder)
    check_link(book, link_at(book, holder, number - 2) if number > 1 else None, link, content)


def has_key_of(book: Book) -> bool:
    """Whether the key is the one that this ledger was begun with."""
    link = link_at(book, KEY, 0)
    try:
        check_link(book, None, link or Link(KEY, 0, 0, "", ""), ())
    except DamagedRowError:
        return False
    return True


def seal_of(key: bytes, facts: object) -> str:
    """Return a keyed digest of plain data."""
    written = json.dumps(facts, allow_nan=False).encode("ascii")
    return hashlib.blake2b(written, key=key, digest_size=_SEAL_BYTES, person=_PERSON).hexdigest()


def _seal(key: bytes, before: str, holder: str, number: int, row_id: int, balance: str, content: Content) -> str:
    return seal_of(key, [before, holder, number, row_id, balance, *content])


def _key_of(book: Book) -> bytes:
    if book.key is None:
        raise DamagedRowError("key")
    return book.key
