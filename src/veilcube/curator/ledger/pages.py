"""Charges a page at a time: what somebody wants of a long history, and a walk through all of it in little memory."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeAlias

from veilcube.curator.ledger.history import LedgerHistory
from veilcube.curator.ledger.rows import (
    Book,
    Charge,
    DamagedRowError,
    next_charge,
    read_answers,
    read_charges,
    read_schemas,
)
from veilcube.errors import LedgerError
from veilcube.system import read_whole

_Read: TypeAlias = Callable[[Callable[[Book], Sequence[Charge]]], Sequence[Charge]]
_AT_ONCE = 1000
_LARGEST = 2**60


@dataclass(frozen=True)
class Page:
    """Which charges are wanted: ``limit`` of them (None for all), after the first ``offset``."""

    limit: int | None
    offset: int

    def read(self, book: Book, names: Sequence[str], dataset: str | None) -> LedgerHistory:
        """Return the charges of the datasets named, and the answers: on all pages all, on one those it paid for."""
        is_whole = self.limit is None and self.offset == 0
        if len(names) == 1:
            charges = read_charges(book, names[0], 1 + self.offset, self.limit)
        else:
            walk = charges_in_pages(lambda action: action(book), names)
            charges = list(islice(walk, self.offset, None if self.limit is None else self.offset + self.limit))
        if is_whole and dataset is None and len(charges) != next_charge(book) - 1:
            raise DamagedRowError("charges")
        numbers = None if is_whole else [charge.id for charge in charges]
        answers = read_answers(book, dataset, charges=numbers)
        if numbers is not None:
            answers = [answer for answer in answers if answer.charge in set(numbers)]
        schemas = read_schemas(book)
        if any(answer.schema not in schemas for answer in answers):
            raise DamagedRowError("schemas")
        return LedgerHistory(charges, answers, schemas)


def read_page(limit: int | None, offset: int) -> Page:
    """Return the page that somebody asks for."""
    most = None if limit is None else min(read_whole(limit, "limit", 0, error=LedgerError), _LARGEST)
    return Page(most, min(read_whole(offset, "offset", 0, error=LedgerError), _LARGEST))


def charges_in_pages(
    read: _Read,
    names: Sequence[str],
    at_once: int = _AT_ONCE,
) -> Iterator[Charge]:
    """Yield the charges of several datasets in the order in which they were made, with a read for each page."""
    return heapq.merge(*(_walk(read, name, at_once) for name in names), key=lambda charge: charge.id)


def _walk(read: _Read, name: str, at_once: int) -> Iterator[Charge]:
    first = 1
    while page := read(partial(read_charges, dataset=name, first=first, most=at_once)):
        yield from page
        first += len(page)
