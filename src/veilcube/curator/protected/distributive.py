"""Distributive queries on a protected table: each part under parallel composition, then a merge.

Claim: one row lies in one part, also where the asked attribute itself cuts the table. So adding or removing it changes
one part's value, or scores, by at most the declared sensitivity s; an exchanged row changes two parts, or one of them
twice. Noise of scale (that change)/epsilon on every part, or a draw by permute-and-flip from the scores, is
epsilon-differentially private for all parts together (docs/proofs/rank.md, Theorem 3), and merging what was published
costs nothing. The promise rests on the declared sensitivity; that of a ready-made sum over bins is in the parts of one
that their middles are counted in, and so is its noise. The query's functions run on exact counts: they are the
curator's code and must do nothing but compute. They run after the charge, and whatever goes wrong in them is told by
one sentence that is always the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, sqrt
from typing import TypeVar
from uuid import uuid4

import numpy as np

from veilcube.curator.protected.view import View
from veilcube.curator.sampling import ROUNDING_GRID, draw_cheapest
from veilcube.errors import PrivacyError, QueryError
from veilcube.laws import DiscreteLaplace, half_widths
from veilcube.privacy import (
    ChoiceEvent,
    EpsilonLike,
    LaplaceEvent,
    PrivacyStatement,
    RankCosts,
    leaves_no_trace,
    read_epsilon,
    scale_for,
    unit_sensitivity,
)
from veilcube.query import Answer, CellNumbers, DistributiveQuery, cell_numbers, read_confidence
from veilcube.record import Question
from veilcube.system import Integers

Result = TypeVar("Result")

PROOF = "docs/proofs/rank.md#theorem-3"
MOST_PARTS = 2**16


@dataclass(frozen=True, eq=False)
class _Parts:
    """The cells of the asked attribute, and of the attributes that cut the table into parts, that are in view.

    ``is_single`` tells that the asked attribute cuts the table too: each of its cells is a part of its own.
    """

    table: View
    names: tuple[str, ...]
    cells: tuple[Integers, ...]
    numbers: CellNumbers
    is_single: bool

    @classmethod
    def of(cls, table: View, attribute: str, by: Sequence[str]) -> "_Parts":
        table.axes_of(list(by))
        names = (attribute, *(name for name in by if name != attribute))
        axes = table.axes_of(list(names))
        attributes = [table.desk.rows.schema.attributes[axis] for axis in axes]
        reached = zip((table.region.reached(axis) for axis in axes), attributes, strict=True)
        cells = tuple(np.flatnonzero(mask[: entry.regular_size]) for mask, entry in reached)
        if not all(found.size for found in cells):
            raise QueryError("the conditions leave no cell to ask about; widen the conditions")
        is_single = attribute in by
        if np.prod([found.size for found in cells[0 if is_single else 1 :]], dtype=np.float64) > MOST_PARTS:
            raise QueryError(f"a distributive query has at most {MOST_PARTS:,} parts; cut by fewer attributes")
        table.desk.rows.require_room(axes)
        return cls(table, names, cells, cell_numbers(attributes[0]).take(cells[0]), is_single)

    def exact_rows(self) -> Integers:
        """Return the exact counts, one line for each part that the other attributes cut. PRIVATE."""
        counts = self.table.exact_counts_of(*self.names)[np.ix_(*self.cells)]
        return np.asarray(counts.reshape(self.cells[0].size, -1).T)

    def each(self, rows: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Return the numbers and the rows of one part after another. PRIVATE."""
        numbers = self.numbers.numbers
        for line in rows:
            if not self.is_single:
                yield numbers, line
            else:
                yield from ((numbers[cell : cell + 1], line[cell : cell + 1]) for cell in range(numbers.size))


@leaves_no_trace
def ask_distributive(
    table: View,
    query: DistributiveQuery,
    attribute: str,
    by: Sequence[str],
    epsilon: EpsilonLike,
    confidence: float,
) -> Answer:
    """Ask every part for one epsilon and merge; never from a stored answer, since functions cannot be compared."""
    price, confidence = read_epsilon(epsilon), read_confidence(confidence)
    if not isinstance(query, DistributiveQuery):
        raise QueryError("distributive takes a veilcube.DistributiveQuery; build one from a part and a merge")
    if isinstance(by, str) or not isinstance(by, Sequence):
        raise QueryError("by is a list of attributes that cut the table into parts; put a single one into a list")
    parts = _Parts.of(table, attribute, by)
    if query.is_finite and parts.is_single:
        raise QueryError(
            "a part without rows draws any value of a finite output, so single values cannot be merged; cut by other "
            "attributes than the one that is asked about"
        )
    query = query.fitted(parts.numbers)
    query.require_distributive(parts.numbers.numbers)
    change = unit_sensitivity(query.sensitivity, 2 * query.sensitivity, table.desk.unit, table.desk.neighbours)
    details = {"query": query.name, "attribute": attribute, "by": list(by), "asked": uuid4().hex}
    question = Question(table.desk.rows.schema, table.region, "distributive", details)
    if query.is_finite:
        return _choose(parts, query, question, price, change, confidence)
    scale = scale_for(price, change)
    statement = PrivacyStatement(price, table.desk.neighbours, table.desk.unit, LaplaceEvent(change, scale), PROOF)
    is_linear = query.is_linear

    def draw() -> list[int]:
        exact = _of_each_part(query.value_of, parts.each(parts.exact_rows()))
        noise = table.desk.draw_noise(scale, (len(exact),)).tolist()
        return [value + error for value, error in zip(exact, noise, strict=True)]

    stored, noise = table.measure(question, statement, draw), DiscreteLaplace(scale)
    merge = _merge_linear if is_linear else _merge
    return _in_ones(merge(query, list(stored.values), noise, confidence, stored.statement.words), query)


def _choose(
    parts: _Parts, query: DistributiveQuery, question: Question, price: Fraction, change: int, confidence: float
) -> Answer:
    """Draw a value of the finite domain for each part, and merge the draws."""
    table, domain = parts.table, np.array(query.output, dtype=np.int64)
    statement = PrivacyStatement(price, table.desk.neighbours, table.desk.unit, ChoiceEvent(price), PROOF)
    rate = price / (2 * change)
    if rate < Fraction(1, ROUNDING_GRID):
        raise PrivacyError("epsilon is too small to draw with; use at least 2**-55 times what one unit may change")

    def draw() -> list[int]:
        scores = _of_each_part(query.scores_of, parts.each(parts.exact_rows()))
        return [draw_cheapest(RankCosts(score.max() - score, rate)) for score in scores]

    stored = table.measure(question, statement, draw)
    value = float(query.merge_all([int(domain[place]) for place in stored.values]))
    is_inside = domain[0] <= value <= domain[-1]
    low, high = (float(domain[0]), float(domain[-1])) if is_inside else (-inf, inf)
    return _in_ones(Answer(value, low, high, confidence, float("nan"), stored.statement.words), query)


def _in_ones(answer: Answer, query: DistributiveQuery) -> Answer:
    """Return an answer in parts of one, halves for example, in ones."""
    parts = query.parts_of_one
    if parts == 1:
        return answer
    value, low, high, stddev = (end / parts for end in (answer.value, answer.low, answer.high, answer.stddev))
    return replace(answer, value=value, low=low, high=high, stddev=stddev)


def _of_each_part(
    function: Callable[[Integers, Integers], Result], parts: Iterable[tuple[Integers, Integers]]
) -> list[Result]:
    """Run a query's function on the exact rows of every part; what it raises could carry counts and goes no further."""
    try:
        return [function(numbers, rows) for numbers, rows in parts]
    except KeyboardInterrupt:
        is_stopped = True
    except BaseException:
        is_stopped = False
    # Raised out here, where the exception of the function is no longer the context of the new one.
    if is_stopped:
        raise KeyboardInterrupt
    raise QueryError(
        "the part of the distributive query failed on the table, or gave something else than whole numbers within its "
        "bounds, and was paid for; correct the function on made-up rows, which it must accept with any counts"
    )


def _merge_linear(
    query: DistributiveQuery, noisy: list[int], noise: DiscreteLaplace, confidence: float, words: str
) -> Answer:
    """Merge noisy parts by adding them up; the interval follows from the summed noise."""
    value, width = query.merge_all(noisy), float(half_widths(noise, [len(noisy)], confidence)[0])
    return Answer(value, value - width, value + width, confidence, noise.stddev * sqrt(len(noisy)), words)


def _merge(query: DistributiveQuery, noisy: list[int], noise: DiscreteLaplace, confidence: float, words: str) -> Answer:
    """Merge noisy parts; the interval follows from the ends of all parts at once.

    All parts lie within their ends together with probability confidence, since their noises are independent. If the
    merge never falls where a result rises, the merged ends then hold the merged truth; else there is no interval.
    """
    value = query.merge_all(noisy)
    width = int(half_widths(noise, [1], confidence ** (1 / len(noisy)))[0]) + 1
    lower, upper = [result - width for result in noisy], [result + width for result in noisy]
    if not query.is_monotone(lower, upper):
        return Answer(value, -inf, inf, confidence, float("nan"), words)
    return Answer(value, query.merge_all(lower), query.merge_all(upper), confidence, float("nan"), words)
