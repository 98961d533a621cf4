"""Quantiles of a protected table: one, or many with one budget, by the way that should miss by fewer rows.

What is measured, and what it costs, stands in ``curator.mechanisms.protected.quantiles``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from veilcube.curator.ledger import StoredAnswer
from veilcube.curator.mechanisms import QuantileMechanism, ReadQuantiles
from veilcube.curator.protected.desk import Offer
from veilcube.curator.protected.extremes import Ladder
from veilcube.curator.protected.view import View
from veilcube.errors import QueryError
from veilcube.planner import QuantileMethod, QuantileWay, plan_by_total, plan_quantiles, read_method
from veilcube.privacy import MOST_ROWS, EpsilonLike, leaves_no_trace, write_fraction
from veilcube.query import RankAnswer, RankAnswers, ends_of_cells, read_confidence, value_of_cell
from veilcube.system import read_flag


@dataclass(frozen=True)
class QuantileQuestion:
    """Which quantiles, by which method, and about how many rows there are if that is public."""

    quantiles: Sequence[object]
    method: str = "auto"
    rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", read_method(self.method))
        if self.rows is None:
            return
        if isinstance(self.rows, bool) or not isinstance(self.rows, Integral) or not 0 <= self.rows <= MOST_ROWS:
            raise QueryError("rows is about how many rows there are, from 0 to 2**53; leave it out if it is not public")

    def plan(self, cells: int, epsilon: EpsilonLike, steps: int) -> QuantileWay:
        """Return how to answer; where nothing public tells, a noisy number of rows decides."""
        if self.method == "auto" and self.rows is None:
            return plan_by_total(cells, self.quantiles, epsilon, steps=steps)
        return plan_quantiles(cells, self.quantiles, epsilon, method=self.method, steps=steps, rows=self.rows)


@leaves_no_trace
def ask_quantile(
    table: View, attribute: str, quantile: object, offer: Offer, confidence: float, fresh: bool
) -> RankAnswer:
    """Draw one quantile, by a split of one level."""
    ladder = Ladder.of(table, attribute)
    confidence, fresh = read_confidence(confidence), read_flag(fresh, "fresh")
    asked = QuantileQuestion([quantile], QuantileMethod.SPLIT)
    _, stored = _find(ladder, asked, offer, confidence, fresh)
    # What is stored may have been paid for with more than was asked for now.
    spent = plan_quantiles(
        ladder.cells.size,
        [quantile],
        stored.statement.epsilon,
        method=QuantileMethod.SPLIT,
        steps=ladder.table.protection.moved_rows,
    )
    low, high = ends_of_cells(ladder.ordinal, int(ladder.cells[0]), int(ladder.cells[-1]))
    value = value_of_cell(ladder.ordinal, int(ladder.cells[stored.values[0]]))
    rows = int(spent.reach(ladder.cells.size, confidence)[0])
    return RankAnswer(value, low, high, confidence, rows, stored.statement.words)


@leaves_no_trace
def ask_quantiles(
    table: View,
    attribute: str,
    quantiles: Sequence[object],
    offer: Offer,
    method: str,
    confidence: float,
    fresh: bool,
    rows: int | None = None,
) -> RankAnswers:
    """Find many quantiles for one epsilon; ``method`` is "auto", "split", "tree" or "staged".

    ``rows`` is about how many rows there are, if that is public; otherwise "auto" may spend a two-hundredth of epsilon
    on finding out.
    """
    ladder = Ladder.of(table, attribute)
    confidence, fresh = read_confidence(confidence), read_flag(fresh, "fresh")
    if ladder.ordinal.is_date:
        raise QueryError(f"'{attribute}' holds dates, which arrays of answers cannot; ask for its quantiles one by one")
    way, stored = _find(ladder, QuantileQuestion(quantiles, method, rows), offer, confidence, fresh)
    found = _read_stored(ladder, way, stored, confidence)
    least, largest = ladder.ordinal.spans()
    return RankAnswers(
        ladder.ordinal.centres()[ladder.cells[found.places]],
        least[ladder.cells[found.first]],
        largest[ladder.cells[found.last]],
        np.full(len(found.places), np.nan),
        confidence,
        stored.statement.words,
        {"quantile": tuple(f"{float(quantile):.6g}" for quantile in way.split.quantiles)},
        rows=np.array(found.rows, dtype=np.float64),
    )


def _find(
    ladder: Ladder, asked: QuantileQuestion, offer: Offer, confidence: float, fresh: bool
) -> tuple[QuantileWay, StoredAnswer]:
    """Return how it is answered and what was stored, drawn now or before."""
    table, fresh = ladder.table, read_flag(fresh, "fresh")
    epsilon = table.desk.promise(offer).pure_epsilon
    way = asked.plan(ladder.cells.size, epsilon, table.protection.moved_rows)
    mechanism = QuantileMechanism.claiming(way, table.protection)
    quantiles = [write_fraction(quantile) for quantile in way.split.quantiles]
    details: dict[str, object] = {"quantiles": quantiles} | ({} if way.is_split else {"confidence": confidence})
    question, *earlier = (ladder.question("quantiles", details | {"method": name}) for name in way.names)
    number, size = len(way.split.quantiles), ladder.cells.size

    def fits(values: Sequence[int]) -> bool:
        return len(values) in (number, 4 * number) and all(0 <= place < size for place in values[: 3 * number])

    found = (table.desk.recall(each, mechanism.statement, fits=fits) for each in (question, *earlier))
    stored = None if fresh else next((answer for answer in found if answer is not None), None)
    if stored is None:
        mechanism.require_drawable()

        def draw() -> list[int]:
            return mechanism.draw(ladder.exact_counts(), confidence, table.desk.samplers)

        stored = table.measure(question, mechanism.statement, draw)
    return way, stored


def _read_stored(ladder: Ladder, way: QuantileWay, stored: StoredAnswer, confidence: float) -> ReadQuantiles:
    values, number, size = list(stored.values), len(way.split.quantiles), ladder.cells.size
    if len(values) > number:
        return ReadQuantiles.of_flat(values)
    # What is stored may have been paid for with more than was asked for now.
    spent = plan_quantiles(
        size,
        way.split.quantiles,
        stored.statement.epsilon,
        method=QuantileMethod.SPLIT,
        steps=ladder.table.protection.moved_rows,
    )
    return ReadQuantiles.of_draws(values, spent, size, confidence)
