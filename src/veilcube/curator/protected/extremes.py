"""Maxima, minima and k-th ranks of a protected table, over the domain that the schema and the conditions leave.

What is drawn, and what it costs, stands in ``curator.mechanisms.protected.ranks``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

import numpy as np

from veilcube.curator.ledger import StoredAnswer
from veilcube.curator.mechanisms import RankMechanism
from veilcube.curator.protected.desk import Offer
from veilcube.curator.protected.view import View
from veilcube.errors import QueryError
from veilcube.privacy import (
    MOST_ROWS,
    EpsilonLike,
    Neighbours,
    RankMethod,
    leaves_no_trace,
    rank_reach,
    read_epsilon,
    write_fraction,
)
from veilcube.query import RankAnswer, ends_of_cells, read_confidence, value_of_cell
from veilcube.record import Question
from veilcube.schema import Ordinal
from veilcube.system import Integers, read_flag

# The values and their counts, sums of these, and the chances of a draw.
_BYTES_WHILE_DRAWING = 80


@dataclass(frozen=True, eq=False)
class Ladder:
    """The values that a ranked answer may take: the cells of an ordinal attribute that the conditions reach."""

    table: View
    ordinal: Ordinal
    axis: int
    cells: Integers

    @classmethod
    def of(cls, table: View, attribute: str) -> "Ladder":
        """Return the values of an attribute in view; refuses one without order and conditions that leave no value."""
        (axis,) = table.axes_of([attribute])
        ordinal = table.desk.rows.schema.attributes[axis]
        if not isinstance(ordinal, Ordinal):
            raise QueryError(f"'{attribute}' has no order, so it has no maximum or quantile; ask for its marginal")
        table.desk.rows.require_room([axis], _BYTES_WHILE_DRAWING)
        cells = np.flatnonzero(table.region.reached(axis)[: ordinal.regular_size])
        if cells.size == 0:
            raise QueryError(f"the conditions leave no value of '{attribute}', so the domain is empty; widen them")
        return cls(table, ordinal, axis, cells)

    def exact_counts(self) -> Integers:
        """Return the exact number of rows at each value. PRIVATE."""
        return np.asarray(self.table.exact_counts_of(self.ordinal.name)[self.cells])

    def climbed(self, is_from_top: bool) -> Integers:
        """Return them so that the first rank is the last place. PRIVATE."""
        counts = self.exact_counts()
        return counts if is_from_top else counts[::-1]

    def question(self, kind: str, details: dict[str, object]) -> Question:
        """Return the question under which an answer is stored."""
        named = {"attribute": self.ordinal.name} | details
        return Question(self.table.desk.rows.schema, self.table.region, kind, named)


@dataclass(frozen=True)
class RankQuestion:
    """Which rank, counted from the top or from the bottom, by which mechanism, with what share for the interval."""

    rank: int
    is_from_top: bool
    method: RankMethod
    share: Fraction

    @classmethod
    def read(cls, rank: int, is_from_top: bool, method: str, interval: EpsilonLike | None) -> "RankQuestion":
        """Check what a user asked for."""
        if isinstance(rank, bool) or not isinstance(rank, Integral) or not 1 <= rank <= MOST_ROWS:
            raise QueryError("rank must be a whole number from 1, the largest value, to 2**53; correct the rank")
        share = Fraction(0) if interval is None else read_epsilon(interval)
        if share >= 1:
            raise QueryError("interval is the share of epsilon for the interval's ends, below 1; use 1/2 or None")
        chosen = RankMethod.read(method)
        if chosen is RankMethod.TILTED and rank != 1:
            raise QueryError("method='tilted' finds a maximum, rank 1; use 'permute-and-flip' for any other rank")
        return cls(int(rank), is_from_top, chosen, share)

    def details(self) -> dict[str, object]:
        """Return it as plain data."""
        counted = "largest" if self.is_from_top else "smallest"
        return {"rank": self.rank, "of": counted, "method": str(self.method), "interval": write_fraction(self.share)}


@leaves_no_trace
def ask_rank(
    table: View,
    attribute: str,
    asked: RankQuestion,
    offer: Offer,
    confidence: float,
    fresh: bool,
) -> RankAnswer:
    """Draw the value of a rank, or return a stored draw; with a share for the interval also its ends.

    Draws are pure: a delta is not needed, and a rho pays for the epsilon that costs as much.
    """
    price, confidence = table.desk.promise(offer).pure_epsilon, read_confidence(confidence)
    fresh = read_flag(fresh, "fresh")
    ladder = Ladder.of(table, attribute)
    steps = table.protection.changed_rows
    ranks = RankMechanism.claiming(
        asked.rank,
        asked.method,
        price,
        table.protection,
        share=asked.share,
        values=ladder.cells.size,
        confidence=confidence,
    )
    # The same epsilon buys less accuracy where it is divided among more steps, so their number is part of the question.
    details = asked.details() | {"steps": steps} | ({"confidence": confidence} if asked.share else {})
    question = ladder.question("rank", details)

    def fits(places: Sequence[int]) -> bool:
        return len(places) == ranks.size and all(0 <= place < ladder.cells.size for place in places)

    stored = None if fresh else table.desk.recall(question, ranks.statement, fits=fits)
    if stored is None:
        _require_rank(ladder, asked.rank)
        stored = table.measure(question, ranks.statement, lambda: ranks.draw(ladder.climbed(asked.is_from_top)))
    return _answer(ladder, asked, stored, confidence)


def _answer(ladder: Ladder, asked: RankQuestion, stored: StoredAnswer, confidence: float) -> RankAnswer:
    places = stored.values if asked.is_from_top else [ladder.cells.size - 1 - value for value in stored.values]
    value = int(ladder.cells[places[0]])
    first, last = _ends(ladder, asked, places[1:], value)
    low, high = ends_of_cells(ladder.ordinal, first, last)
    spent = stored.statement.epsilon * (1 - asked.share) / ladder.table.protection.changed_rows
    rows = rank_reach(ladder.cells.size, spent, confidence, asked.method)
    return RankAnswer(value_of_cell(ladder.ordinal, value), low, high, confidence, rows, stored.statement.words)


def _ends(ladder: Ladder, asked: RankQuestion, places: Sequence[int], value: int) -> tuple[int, int]:
    """Return the first and the last cell of the interval; what was not drawn is the end of the domain."""
    found = [int(ladder.cells[place]) for place in places]
    first, last = int(ladder.cells[0]), int(ladder.cells[-1])
    if not asked.is_from_top:
        return (found[1] if len(found) > 1 else first), max(found[0] if found else last, value)
    return min(found[0] if found else first, value), (found[1] if len(found) > 1 else last)


def _require_rank(ladder: Ladder, rank: int) -> None:
    """Refuse a rank beyond the number of rows, where that number is public: all rows, their number not hidden."""
    table = ladder.table
    is_public = (
        table.desk.neighbours is Neighbours.REPLACE
        and table.desk.unit.kind == "row"
        and not table.is_part
        and table.region.cells == table.desk.rows.schema.cells
        and ladder.cells.size == ladder.ordinal.size
    )
    if is_public and rank > table.desk.rows.exact_rows:
        raise QueryError("rank is above the number of rows, which is public here; ask for a smaller rank")
