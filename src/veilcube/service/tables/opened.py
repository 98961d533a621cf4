"""Tables that are open: their rows, read once and kept in this process, and who asks them at which till."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

from veilcube.curator import Ledger, PrivateRows, ProtectedTable, Receipt
from veilcube.errors import VeilcubeError
from veilcube.privacy import PrivacyStatement, Private
from veilcube.service.base import ForbiddenError, NotFoundError, Settings, UnavailableError
from veilcube.service.tables.datasets import Dataset
from veilcube.service.tables.sources import locate
from veilcube.session import put_behind, read_rows


class Till:
    """The ledger as one question sees it: what the question is charged is noted, or nothing may be charged at all."""

    def __init__(self, ledger: Ledger, *, takes_money: bool = True) -> None:
        self._ledger, self._takes_money = ledger, takes_money
        self.charge: int | None = None
        self.cost = Fraction(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    @contextmanager
    def paying(self, dataset: str, statement: PrivacyStatement, **how: Any) -> Iterator[Receipt]:
        """Charge as the ledger does."""
        if not self._takes_money:
            raise NotFoundError("nobody asked this yet, so there is no answer that costs nothing")
        before = self._ledger.budget(dataset) if how.get("within") else None
        with self._ledger.paying(dataset, statement, **how) as receipt:
            self.charge = receipt.charge_id
            if before is not None:
                self.cost = self._ledger.budget(dataset).spent - before.spent
            elif receipt.charge_id is not None:
                self.cost = receipt.cost
            yield receipt


@dataclass(eq=False)
class _Opened(Private):
    """The rows of a dataset, once they were read, and the turn of whoever asks them."""

    rows: PrivateRows | None = None
    turn: threading.RLock = field(default_factory=threading.RLock)


class Tables(Private):
    """The tables behind the datasets of a service. PRIVATE: what leaves it is protected."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._turn = settings, threading.Lock()
        self._opened: dict[str, _Opened] = {}

    @contextmanager
    def turn(self, dataset: Dataset) -> Iterator[None]:
        """Ask one after the other, so that of two who ask the same at once the second finds the first one's answer."""
        with self._of(dataset).turn:
            yield

    def table(self, dataset: Dataset, till: Till, analyst: str | None) -> ProtectedTable:
        """Return the table as somebody asks it; a table that cannot be read says so to curators alone."""
        try:
            rows = self.open(dataset)
        except VeilcubeError:
            raise UnavailableError(
                f"the table of '{dataset.name}' cannot be read now; tell {dataset.made_by}, who can see why"
            ) from None
        see = f"see /tables/{dataset.name}/learned"
        return put_behind(rows, cast(Ledger, till), dataset.name, dataset.neighbours, analyst, see)

    def open(self, dataset: Dataset) -> PrivateRows:
        """Read the table, unless it was read before; refuses, for curators to see, a row that does not fit. PRIVATE."""
        opened = self._of(dataset)
        with opened.turn:
            if opened.rows is None:
                place, how = (
                    locate(self._settings, dataset.place),
                    {"person": dataset.person, "table": dataset.place.table},
                )
                opened.rows = read_rows(place, dataset.schema, max_rows=dataset.max_rows, **how)
            return opened.rows

    def forget(self, name: str) -> None:
        """Let go of rows, for instance of a dataset that was not registered in the end."""
        with self._turn:
            self._opened.pop(name, None)

    def _of(self, dataset: Dataset) -> _Opened:
        with self._turn:
            return self._opened.setdefault(dataset.name, _Opened())


def require_share(ledger: Ledger, dataset: Dataset, analyst: str) -> None:
    """Refuse an analyst to whom no curator granted a share."""
    if all(share.analyst != analyst for share in ledger.shares(dataset.name)):
        raise ForbiddenError(
            f"'{analyst}' has no share of the budget of '{dataset.name}'; a curator grants one on its page"
        )
