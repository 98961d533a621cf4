"""Quantiles of a protected table: one, or many with one budget, by the way that should miss by fewer rows.

Claims: a recursive split is epsilon-differentially private (docs/proofs/rank.md, Theorem 4), a tree of noisy counts is
the linear mechanism (docs/proofs/linear.md, Theorem 1), a refined tree spends epsilon along every path
(docs/proofs/refined-tree.md, Theorem 1), and a noisy number of rows may choose between two of them
(docs/proofs/rank.md, Theorem 5). All are stated for one row that comes or goes; an exchanged row is two such steps, a
person with at most m rows m of them, and each step gets its part of epsilon.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TypeAlias

import numpy as np

from veilcube.curator.ledger import StoredAnswer
from veilcube.curator.mechanisms import (
    NoiseSampler,
    ReadQuantiles,
    draw_quantiles,
    read_quantiles_from_refined_tree,
    read_quantiles_from_tree,
    require_drawable,
)
from veilcube.curator.protected.extremes import Ladder
from veilcube.curator.protected.view import View
from veilcube.errors import QueryError
from veilcube.planner import QuantileChoice, QuantileMethod, QuantilePlan, plan_by_total, plan_quantiles, require_method
from veilcube.privacy import (
    MOST_ROWS,
    SLOTS_IN_ALL,
    ChoiceEvent,
    EpsilonLike,
    Event,
    LaplaceEvent,
    Neighbours,
    ParallelEvent,
    SequentialEvent,
    leaves_no_trace,
    write_fraction,
)
from veilcube.query import RankAnswer, RankAnswers, ends_of_cells, read_confidence, value_of_cell
from veilcube.system import Integers, read_flag

Way: TypeAlias = QuantilePlan | QuantileChoice

SPLIT_PROOF = "docs/proofs/rank.md#theorem-4"
CHOICE_PROOF = "docs/proofs/rank.md#theorem-5"
TREE_PROOF = "docs/proofs/linear.md#theorem-1"
REFINED_PROOF = "docs/proofs/refined-tree.md#theorem-1"
BY_TOTAL = "by total"


@dataclass(frozen=True)
class QuantileQuestion:
    """Which quantiles, by which method, and about how many rows there are if that is public."""

    quantiles: Sequence[object]
    method: str = "auto"
    rows: int | None = None

    def __post_init__(self) -> None:
        require_method(self.method)
        if self.rows is None:
            return
        if isinstance(self.rows, bool) or not isinstance(self.rows, Integral) or not 0 <= self.rows <= MOST_ROWS:
            raise QueryError("rows is about how many rows there are, from 0 to 2**53; leave it out if it is not public")

    def plan(self, cells: int, epsilon: EpsilonLike, steps: int) -> Way:
        """Return how to answer; where nothing public tells, a noisy number of rows decides."""
        if self.method == "auto" and self.rows is None:
            return plan_by_total(cells, self.quantiles, epsilon, steps=steps)
        return plan_quantiles(cells, self.quantiles, epsilon, method=self.method, steps=steps, rows=self.rows)


@leaves_no_trace
def ask_quantile(
    table: View, attribute: str, quantile: object, epsilon: EpsilonLike, confidence: float, fresh: bool
) -> RankAnswer:
    """Draw one quantile, by a split of one level."""
    ladder = Ladder.of(table, attribute)
    confidence, fresh = read_confidence(confidence), read_flag(fresh, "fresh")
    asked = QuantileQuestion([quantile], QuantileMethod.SPLIT)
    _, stored = _find(ladder, asked, epsilon, confidence, fresh)
    # What is stored may have been paid for with more than was asked for now.
    spent = plan_quantiles(
        ladder.cells.size, [quantile], stored.statement.epsilon, method=QuantileMethod.SPLIT, steps=_steps(ladder)
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
    epsilon: EpsilonLike,
    method: str,
    confidence: float,
    fresh: bool,
    rows: int | None = None,
) -> RankAnswers:
    """Find many quantiles for one epsilon; ``method`` is "auto", "split", "tree" or "refined".

    ``rows`` is about how many rows there are, if that is public; otherwise "auto" may spend a two-hundredth of epsilon
    on finding out.
    """
    ladder = Ladder.of(table, attribute)
    confidence, fresh = read_confidence(confidence), read_flag(fresh, "fresh")
    if ladder.ordinal.is_date:
        raise QueryError(f"'{attribute}' holds dates, which arrays of answers cannot; ask for its quantiles one by one")
    way, stored = _find(ladder, QuantileQuestion(quantiles, method, rows), epsilon, confidence, fresh)
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


def _steps(ladder: Ladder) -> int:
    """Return how many rows come or go: an exchanged one leaves a place and enters another, in one part or in two."""
    desk = ladder.table.desk
    return desk.unit.max_rows * (2 if desk.neighbours is Neighbours.REPLACE else 1)


def _find(
    ladder: Ladder, asked: QuantileQuestion, epsilon: EpsilonLike, confidence: float, fresh: bool
) -> tuple[Way, StoredAnswer]:
    """Return how it is answered and what was stored, drawn now or before."""
    table, steps, fresh = ladder.table, _steps(ladder), read_flag(fresh, "fresh")
    way = asked.plan(ladder.cells.size, epsilon, steps)
    event, proof = _claim(way, steps)
    statement = ladder.statement(way.epsilon, event, proof)
    details: dict[str, object] = {
        "quantiles": [write_fraction(quantile) for quantile in way.split.quantiles],
        "method": BY_TOTAL if isinstance(way, QuantileChoice) else str(way.method),
    }
    is_split = isinstance(way, QuantilePlan) and way.method is QuantileMethod.SPLIT
    question = ladder.question("quantiles", details | ({} if is_split else {"confidence": confidence}))
    number, size = len(way.split.quantiles), ladder.cells.size

    def fits(values: Sequence[int]) -> bool:
        return len(values) in (number, 4 * number) and all(0 <= place < size for place in values[: 3 * number])

    stored = None if fresh else table.desk.recall(question, statement, fits=fits)
    if stored is None:
        for each in (way.few, way.many) if isinstance(way, QuantileChoice) else (way,):
            if each.method is QuantileMethod.SPLIT:
                require_drawable(each.split, each.budgets)

        def draw() -> list[int]:
            return _draw(way, ladder.exact_counts(), confidence, table.desk.draw_noise)

        stored = table.measure(question, statement, draw)
    return way, stored


def _draw(way: Way, counts: Integers, confidence: float, draw_noise: NoiseSampler) -> list[int]:
    """Return what is stored: the places alone if draws of a split were planned, else all that was read."""
    if isinstance(way, QuantileChoice):
        noisy_rows = int(counts.sum()) + int(draw_noise(way.total_scale, (1,))[0])
        return _all_of(_measure(way.way_for(noisy_rows), counts, confidence, draw_noise))
    found = _measure(way, counts, confidence, draw_noise)
    return found.places if way.method is QuantileMethod.SPLIT else _all_of(found)


def _measure(plan: QuantilePlan, counts: Integers, confidence: float, draw_noise: NoiseSampler) -> ReadQuantiles:
    quantiles = plan.split.quantiles
    if plan.method is QuantileMethod.TREE and plan.tree is not None:
        return read_quantiles_from_tree(counts, quantiles, plan.tree, confidence, draw_noise)
    if plan.method is QuantileMethod.REFINED and plan.refined is not None:
        return read_quantiles_from_refined_tree(counts, quantiles, plan.refined, confidence, draw_noise)
    return _drawn(draw_quantiles(counts, plan.split, plan.budgets), plan, counts.size, confidence)


def _all_of(found: ReadQuantiles) -> list[int]:
    return found.places + found.first + found.last + found.rows


def _drawn(places: list[int], plan: QuantilePlan, size: int, confidence: float) -> ReadQuantiles:
    """Return draws of a split, which know of no ends but the domain's."""
    number = len(places)
    reach = plan.reach(max(size, SLOTS_IN_ALL), confidence).astype(np.int64)
    return ReadQuantiles(places, [0] * number, [size - 1] * number, reach.tolist())


def _read_stored(ladder: Ladder, way: Way, stored: StoredAnswer, confidence: float) -> ReadQuantiles:
    values, number, size = list(stored.values), len(way.split.quantiles), ladder.cells.size
    if len(values) > number:
        return ReadQuantiles(*(values[start : start + number] for start in range(0, 4 * number, number)))
    # What is stored may have been paid for with more than was asked for now.
    spent = plan_quantiles(
        size, way.split.quantiles, stored.statement.epsilon, method=QuantileMethod.SPLIT, steps=_steps(ladder)
    )
    return _drawn(values, spent, size, confidence)


def _claim(way: Way, steps: int) -> tuple[Event, str]:
    """Return what is done and where it is proved.

    Of a choice, the way that is not taken is as if done to no rows at all, so the two are parallel.
    """
    if isinstance(way, QuantileChoice):
        either = ParallelEvent((_claim(way.few, steps)[0], _claim(way.many, steps)[0]))
        return SequentialEvent((LaplaceEvent(steps, way.total_scale), either)), CHOICE_PROOF
    if way.method is QuantileMethod.TREE and way.tree is not None:
        return LaplaceEvent(way.tree.sensitivity * steps, way.tree.noise.scale), TREE_PROOF
    if way.method is QuantileMethod.REFINED and way.refined is not None:
        return _for_steps(way.refined.event, steps), REFINED_PROOF
    return SequentialEvent(tuple(ChoiceEvent(budget * steps) for budget in way.budgets)), SPLIT_PROOF


def _for_steps(event: Event, steps: int) -> Event:
    """Return an event of Laplace noise that was planned for one row as one for so many rows: the noise is the same."""
    match event:
        case LaplaceEvent(sensitivity, scale):
            return LaplaceEvent(sensitivity * steps, scale)
        case SequentialEvent(events):
            return SequentialEvent(tuple(_for_steps(inner, steps) for inner in events))
        case ParallelEvent(events):
            return ParallelEvent(tuple(_for_steps(inner, steps) for inner in events))
        case ChoiceEvent(epsilon):
            return ChoiceEvent(epsilon * steps)
