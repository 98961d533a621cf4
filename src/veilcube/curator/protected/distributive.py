"""Distributive queries on a protected table: each part under parallel composition, then a merge.

What is published of each part, and what it costs, stands in ``curator.mechanisms.protected.distributive``; merging what
was published costs nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from uuid import uuid4

import numpy as np

from veilcube.curator.mechanisms import ChosenPartsMechanism, NoisyPartsMechanism
from veilcube.curator.protected.desk import Offer
from veilcube.curator.protected.view import View
from veilcube.errors import QueryError
from veilcube.laws import Noise, half_widths
from veilcube.privacy import Promise, leaves_no_trace
from veilcube.query import Answer, CellNumbers, DistributiveQuery, cell_numbers, read_confidence
from veilcube.record import Question
from veilcube.system import Integers

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
    offer: Offer,
    confidence: float,
) -> Answer:
    """Ask every part for one price and merge; never from a stored answer, since functions cannot be compared."""
    promise, confidence = table.desk.promise(offer), read_confidence(confidence)
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
    details = {"query": query.name, "attribute": attribute, "by": list(by), "asked": uuid4().hex}
    question = Question(table.desk.rows.schema, table.region, "distributive", details)
    ask = _choose if query.is_finite else _measure
    return _in_ones(ask(parts, query, question, promise, confidence), query)


def _measure(
    parts: _Parts, query: DistributiveQuery, question: Question, promise: Promise, confidence: float
) -> Answer:
    """Measure a number for each part, and merge the noisy numbers."""
    table = parts.table
    noisy = NoisyPartsMechanism.claiming(query, promise, table.protection)
    merge = _merge_linear if query.is_linear else _merge

    def draw() -> list[int]:
        return noisy.draw(parts.each(parts.exact_rows()), table.desk.samplers)

    stored = table.measure(question, noisy.statement, draw)
    return merge(query, list(stored.values), noisy.noise, confidence, stored.statement.words)


def _choose(parts: _Parts, query: DistributiveQuery, question: Question, promise: Promise, confidence: float) -> Answer:
    """Draw a value of the finite domain for each part, and merge the draws."""
    domain = np.array(query.output, dtype=np.int64)
    chosen = ChosenPartsMechanism.claiming(query, promise.pure_epsilon, parts.table.protection)
    stored = parts.table.measure(question, chosen.statement, lambda: chosen.draw(parts.each(parts.exact_rows())))
    value = float(query.merge_all([int(domain[place]) for place in stored.values]))
    is_inside = domain[0] <= value <= domain[-1]
    low, high = (float(domain[0]), float(domain[-1])) if is_inside else (-inf, inf)
    return Answer(value, low, high, confidence, float("nan"), stored.statement.words)


def _in_ones(answer: Answer, query: DistributiveQuery) -> Answer:
    """Return an answer in parts of one, halves for example, in ones."""
    parts = query.parts_of_one
    if parts == 1:
        return answer
    value, low, high, stddev = (end / parts for end in (answer.value, answer.low, answer.high, answer.stddev))
    return replace(answer, value=value, low=low, high=high, stddev=stddev)


def _merge_linear(query: DistributiveQuery, noisy: list[int], noise: Noise, confidence: float, words: str) -> Answer:
    """Merge noisy parts by adding them up; the interval follows from the summed noise."""
    value, width = query.merge_all(noisy), float(half_widths(noise, [len(noisy)], confidence)[0])
    return Answer(value, value - width, value + width, confidence, noise.stddev * sqrt(len(noisy)), words)


def _merge(query: DistributiveQuery, noisy: list[int], noise: Noise, confidence: float, words: str) -> Answer:
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
