"""Maxima, minima and k-th ranks of a protected table, drawn from the domain that the schema and the conditions leave.

Claim: a draw is epsilon-differentially private (docs/proofs/rank.md, Theorems 1 and 2) for one row added, removed or
exchanged. A person with at most m rows is at most m such steps, so each step gets epsilon/m; in a part of a partition
an exchanged row may leave one part and enter another, which is two steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

import numpy as np

from veilcube.curator.ledger import StoredAnswer
from veilcube.curator.protected.view import View
from veilcube.curator.sampling import ROUNDING_GRID, draw_rank
from veilcube.errors import PrivacyError, QueryError
from veilcube.privacy import (
    MOST_ROWS,
    ChoiceEvent,
    EpsilonLike,
    Event,
    Neighbours,
    PrivacyStatement,
    RankMethod,
    SequentialEvent,
    leaves_no_trace,
    rank_reach,
    read_epsilon,
    write_fraction,
)
from veilcube.query import RankAnswer, ends_of_cells, read_confidence, value_of_cell
from veilcube.record import Question
from veilcube.schema import Ordinal
from veilcube.system import Integers, read_flag

PROOF = "docs/proofs/rank.md#theorem-2"
# The sampler needs a rate of one step of its grid, and a rate is at least a fifth of epsilon.
SMALLEST_EPSILON = Fraction(8, ROUNDING_GRID)


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
        cells = np.flatnonzero(table.region.reached(axis)[: ordinal.regular_size])
        if cells.size == 0:
            raise QueryError(f"the conditions leave no value of '{attribute}', so the domain is empty; widen them")
        table.desk.rows.require_room([axis])
        return cls(table, ordinal, axis, cells)

    def exact_counts(self) -> Integers:
        """Return the exact number of rows at each value. PRIVATE."""
        return np.asarray(self.table.exact_counts_of(self.ordinal.name)[self.cells])

    def climbed(self, is_from_top: bool) -> Integers:
        """Return them so that the first rank is the last place. PRIVATE."""
        counts = self.exact_counts()
        return counts if is_from_top else counts[::-1]

    @property
    def steps(self) -> int:
        """How many rows may come, go or be exchanged when one unit changes, over all parts of a partition."""
        crosses = self.table.is_part and self.table.desk.neighbours is Neighbours.REPLACE
        return self.table.desk.unit.max_rows * (2 if crosses else 1)

    def statement(self, epsilon: Fraction, event: Event, proof: str) -> PrivacyStatement:
        """Return the promise about the rows in view."""
        desk = self.table.desk
        return PrivacyStatement(epsilon, desk.neighbours, desk.unit, event, proof)

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
    epsilon: EpsilonLike,
    confidence: float,
    fresh: bool,
) -> RankAnswer:
    """Draw the value of a rank, or return a stored draw; with a share for the interval also its ends."""
    price, confidence, fresh = read_epsilon(epsilon), read_confidence(confidence), read_flag(fresh, "fresh")
    ladder = Ladder.of(table, attribute)
    draws = _draws(asked, price, ladder, confidence)
    events = tuple(ChoiceEvent(budget * ladder.steps) for _, budget, _ in draws)
    statement = ladder.statement(price, events[0] if len(events) == 1 else SequentialEvent(events), PROOF)
    # The same epsilon buys less accuracy where it is divided among more steps, so their number is part of the question.
    details = asked.details() | {"steps": ladder.steps} | ({"confidence": confidence} if asked.share else {})
    question = ladder.question("rank", details)

    def fits(places: Sequence[int]) -> bool:
        return len(places) == len(draws) and all(0 <= place < ladder.cells.size for place in places)

    stored = None if fresh else table.desk.recall(question, statement, (), fits)
    if stored is None:
        _require_rank(ladder, asked.rank)
        stored = table.measure(question, statement, lambda: _drawn(ladder.climbed(asked.is_from_top), draws))
    return _answer(ladder, asked, stored, confidence)


def _draws(
    asked: RankQuestion, price: Fraction, ladder: Ladder, confidence: float
) -> list[tuple[int, Fraction, RankMethod]]:
    """Return rank, epsilon for one row and mechanism of every draw: the answer, then its ends.

    An end is drawn for a rank that is g rows off, g one more than a draw misses by at most: it then lies on its side of
    the true value. A rank nearer to the top than g has no upper end but the domain's. What cannot be drawn is refused
    here, before it is paid for.
    """
    each = price / ladder.steps
    both = each * asked.share
    if min(each - both, both / 2 if asked.share else each) < SMALLEST_EPSILON:
        raise PrivacyError(
            "epsilon, or its share for an interval, is too small to draw with; use at least 2**-52 for a row of a unit"
        )
    if not asked.share:
        return [(asked.rank, each, asked.method)]
    method, size = RankMethod.PERMUTE_AND_FLIP, ladder.cells.size
    sure = 1 - (1 - confidence) / 2
    off = rank_reach(size, both / 2, sure, method) + 1
    if asked.rank > off:
        ends = [(asked.rank + off, both / 2, method), (asked.rank - off, both / 2, method)]
    else:
        ends = [(asked.rank + rank_reach(size, both, confidence, method) + 1, both, method)]
    if ends[0][0] > MOST_ROWS:
        raise QueryError("an end of the interval would be a rank above 2**53; use a larger share, or interval=None")
    return [(asked.rank, each - both, asked.method), *ends]


def _drawn(climbed: Integers, draws: Sequence[tuple[int, Fraction, RankMethod]]) -> list[int]:
    """Draw the answer from the rows, and its ends from the rows and public ones below them."""
    (rank, epsilon, method), *ends = draws
    value = draw_rank(climbed, epsilon, rank, method)
    return [value, *(draw_rank(_with_public_rows(climbed, k), share, k, way) for k, share, way in ends)]


def _with_public_rows(climbed: Integers, rank: int) -> Integers:
    """Return the rows with as many public ones at the lowest value as the rank, so that there is a row of this rank.

    Without them, a rank beyond all rows is drawn from an almost flat law. The same rows more keep neighbours what they
    are. Rows at the lowest value matter only until the rank is reached, so what is missing has the law of all of them.
    """
    longer = climbed.copy()
    longer[0] += max(rank - int(climbed.sum()), 0)
    return longer


def _answer(ladder: Ladder, asked: RankQuestion, stored: StoredAnswer, confidence: float) -> RankAnswer:
    places = stored.values if asked.is_from_top else [ladder.cells.size - 1 - value for value in stored.values]
    value = int(ladder.cells[places[0]])
    first, last = _ends(ladder, asked, places[1:], value)
    low, high = ends_of_cells(ladder.ordinal, first, last)
    spent = stored.statement.epsilon * (1 - asked.share) / ladder.steps
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
