"""Distributive queries: compute on the parts of a partitioned table, then merge; the general method of TR-2010-003.

A query is distributive if the value of a table follows from the values of any parts that it is cut into. Each part is
asked under parallel composition, which costs one epsilon for all parts, and what comes back is merged. The part is
given by two arrays, the numbers that its cells stand for (the middles of bins) and how many rows each cell holds; one
row more or less may change the value of a part by at most ``sensitivity``. Where the answer must lie in a finite
domain, the part gives a score to each value of the domain instead, higher for better ones, and the sensitivity is that
of every score.

Nothing here sees private data: what a query promises is tried on made-up tables, and a query that breaks it is refused.
That cannot prove a declared sensitivity; whoever declares one vouches for it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from itertools import islice, pairwise
from numbers import Integral
from typing import Literal, TypeAlias

import numpy as np

from veilcube.errors import QueryError
from veilcube.query.cell_numbers import CellNumbers
from veilcube.system import Integers, takes

PartValue: TypeAlias = Callable[[Integers, Integers], int]
PartScores: TypeAlias = Callable[[Integers, Integers], Sequence[int] | Integers]
Output: TypeAlias = Literal["unlimited"] | Sequence[int]

LARGEST_SENSITIVITY = 2**40
MOST_VALUES = 2**20
LONGEST_NAME = 200
# More than any sum of rows that a sensitivity allows; a part beyond it does not have the sensitivity that it declares.
LARGEST_RESULT = 2**120
# Two scores, or two values of a domain, then differ by what a 64-bit integer can hold.
LARGEST_SCORE = 2**61
_LARGEST_INT64_SUM = 2**62
_TRIALS = 64
# Two cuts must leave no part without cells.
_LEAST_CELLS_TRIED, _MOST_CELLS_TRIED = 4, 12
_SEED = 20100003


@dataclass(frozen=True)
class DistributiveQuery:
    """A query by parts: what a part gives, how two results merge, and how much one row may change.

    ``output`` is "unlimited", for whole numbers that take noise, or the finite domain of the answers, ascending.

    >>> most = DistributiveQuery(lambda numbers, rows: int(rows.sum()), lambda a, b: a + b, sensitivity=1)
    >>> most.merge_all([2, 3, 4])
    9
    """

    part: PartValue | PartScores
    merge: Callable[[int, int], int]
    sensitivity: int
    output: Output = "unlimited"
    name: str = "query"
    # A ready-made query knows what it is where cells stand for halves or tenths, and which values are of use there.
    _fit: "Callable[[Integers, int], DistributiveQuery] | None" = field(default=None, repr=False, compare=False)
    # Results are whole numbers of parts of one: 2 for halves.
    parts_of_one: int = field(default=1, init=False, repr=False)

    def __post_init__(self) -> None:
        if not takes(self.part, 2) or not takes(self.merge, 2):
            raise QueryError(
                "a distributive query needs a function of numbers and rows, and one that merges two results"
            )
        size = self.sensitivity
        if isinstance(size, bool) or not isinstance(size, Integral) or not 1 <= size <= LARGEST_SENSITIVITY:
            raise QueryError("the sensitivity of a distributive query must be a whole number from 1 to 2**40")
        object.__setattr__(self, "sensitivity", int(size))
        if not isinstance(self.output, str):
            most = MOST_VALUES if self._fit is None else LARGEST_SCORE
            object.__setattr__(self, "output", _read_domain(self.output, most))
        elif self.output != "unlimited":
            raise QueryError("the output of a distributive query is 'unlimited' or a list of the values it may take")
        if not isinstance(self.name, str) or len(self.name) > LONGEST_NAME:
            raise QueryError(f"the name of a distributive query must be a text of at most {LONGEST_NAME} characters")

    @staticmethod
    def count() -> "DistributiveQuery":
        """Return the query for the number of rows."""
        return count_query()

    @staticmethod
    def sum(low: int, high: int) -> "DistributiveQuery":
        """Return the query for the sum of numbers clipped to the bounds."""
        return sum_query(low, high)

    @staticmethod
    def max(domain: Sequence[int]) -> "DistributiveQuery":
        """Return the query for the largest number, among a finite domain."""
        return max_query(domain)

    @staticmethod
    def min(domain: Sequence[int]) -> "DistributiveQuery":
        """Return the query for the smallest number, among a finite domain."""
        return min_query(domain)

    @property
    def is_finite(self) -> bool:
        """Whether an answer lies in a finite domain."""
        return not isinstance(self.output, str)

    @cached_property
    def domain(self) -> Integers | None:
        """The values that an answer may take, written out; None if it is unlimited."""
        if isinstance(self.output, str):
            return None
        if len(self.output) > MOST_VALUES:
            raise QueryError(f"a domain of more than {MOST_VALUES:,} values is too large to score each; shorten it")
        return np.array(self.output, dtype=np.int64)

    @cached_property
    def uses_numbers(self) -> bool:
        """Whether, on made-up tables, a part depends on the numbers of its cells, and not on their rows alone."""
        if self._fit is not None:
            return True
        for numbers, rows in _made_up_tables(np.arange(-3, 9)):
            if not np.array_equal(self._result(numbers, rows), self._result(7 * numbers[::-1] + 20, rows)):
                return True
        return False

    def fitted(self, cells: CellNumbers) -> "DistributiveQuery":
        """Return the query for cells of these numbers, in their parts of one; refuses cells that have none."""
        if cells.missing and self.uses_numbers:
            raise QueryError(
                f"{cells.missing}, which stand for no number, and this query computes with numbers; ask for "
                "DistributiveQuery.count(), or about an attribute of numbers"
            )
        if self._fit is not None:
            fitted = self._fit(cells.numbers, cells.parts_of_one)
            object.__setattr__(fitted, "parts_of_one", cells.parts_of_one)
            return fitted
        if cells.parts_of_one > 1 and self.uses_numbers:
            raise QueryError(
                "the middles of the bins are not whole numbers, which a query of your own needs; choose other edges, "
                "or ask for DistributiveQuery.sum, .max or .min"
            )
        return self

    def _result(self, numbers: Integers, rows: Integers) -> int | Integers:
        return self.scores_of(numbers, rows) if self.is_finite else self.value_of(numbers, rows)

    @cached_property
    def is_linear(self) -> bool:
        """Whether, on made-up tables, a part is a weighted sum of its rows and results are merged by adding them up."""
        if self.is_finite:
            return False
        for numbers, rows in _made_up_tables(np.arange(-3, 9)):
            weighted = sum(int(n) * self.value_of(numbers[i : i + 1], np.ones(1, np.int64)) for i, n in enumerate(rows))
            first, second = _halves(numbers, rows)
            merged = self.merge(self.value_of(*first), self.value_of(*second))
            if self.value_of(numbers, rows) != weighted or merged != weighted:
                return False
        return True

    def value_of(self, numbers: Integers, rows: Integers) -> int:
        """Return the exact value of a part; with a finite domain the best value, the lowest of equals."""
        if self.domain is None:
            return _whole(self.part(numbers, rows))
        return int(self.domain[int(np.argmax(self.scores_of(numbers, rows)))])

    def scores_of(self, numbers: Integers, rows: Integers) -> Integers:
        """Return the exact score of every value of the finite domain."""
        domain, scores = self.domain, np.asarray(self.part(numbers, rows))
        is_whole = domain is not None and scores.shape == domain.shape and scores.dtype.kind in "iu"
        if not is_whole or int(scores.min()) < -LARGEST_SCORE or int(scores.max()) > LARGEST_SCORE:
            raise QueryError(
                "the part of a query with a finite output must give one whole score for each of its values, from "
                "-2**61 to 2**61"
            )
        return scores.astype(np.int64)

    def merge_all(self, results: Sequence[int]) -> int:
        """Merge the results of all parts, in order."""
        if not isinstance(results, Sequence) or not results or not all(isinstance(one, Integral) for one in results):
            raise QueryError("the results to merge are a list of whole numbers, one for each part")
        return reduce(lambda one, other: _whole(self.merge(one, other)), results)

    def require_distributive(self, numbers: Integers) -> None:
        """Refuse a query whose merge is not associative, or whose sensitivity is too small, on made-up partitions.

        ``numbers`` are those of the cells that a part may hold: public facts.
        """
        tables = _made_up_tables(numbers)
        if not all(self._is_associative(cells, rows) for cells, rows in tables):
            raise QueryError("the merge is not associative on sampled partitions; a distributive query needs one")
        for cells, rows in tables:
            first, second = (self.value_of(*half) for half in _halves(cells, rows))
            if self.domain is None and _whole(self.merge(first, second)) != self.value_of(cells, rows):
                raise QueryError(
                    "merging sampled parts does not give the value of the whole; the query is not distributive"
                )
            self._require_sensitivity(cells, rows)

    def _is_associative(self, cells: Integers, rows: Integers) -> bool:
        first, last = _halves(cells, rows)
        a, b, c = (self.value_of(*part) for part in (*_halves(*first), last))
        return _whole(self.merge(_whole(self.merge(a, b)), c)) == _whole(self.merge(a, _whole(self.merge(b, c))))

    def is_monotone(self, low: Sequence[int], high: Sequence[int]) -> bool:
        """Whether merging never falls where a result rises, tried between the ends of the results."""
        widths = [b - a for a, b in zip(low, high, strict=True)]
        if max(widths) > np.iinfo(np.int64).max:
            return False
        generator = np.random.default_rng(_SEED)
        for _ in range(_TRIALS):
            one, other = (
                [a + int(generator.integers(width, endpoint=True)) for a, width in zip(low, widths, strict=True)]
                for _ in range(2)
            )
            lower, upper = list(map(min, one, other)), list(map(max, one, other))
            if self.merge_all(lower) > self.merge_all(upper):
                return False
        return True

    def _require_sensitivity(self, cells: Integers, rows: Integers) -> None:
        for place in range(min(cells.size, 3)):
            more = rows.copy()
            more[place] += 1
            if self.domain is None:
                change = abs(self.value_of(cells, more) - self.value_of(cells, rows))
            else:
                change = int(np.abs(self.scores_of(cells, more) - self.scores_of(cells, rows)).max())
            if change > self.sensitivity:
                raise QueryError("one row changes a part by more than the declared sensitivity; declare a larger one")


def count_query() -> DistributiveQuery:
    """Count rows: one more row is one more."""
    return DistributiveQuery(
        lambda _, rows: _weighted_total(np.ones_like(rows), rows, 1), lambda a, b: a + b, 1, name="count"
    )


def sum_query(low: int, high: int, parts_of_one: int = 1) -> DistributiveQuery:
    """Sum numbers, clipped to the bounds from low to high, which set the sensitivity."""
    if not all(isinstance(end, Integral) and not isinstance(end, bool) for end in (low, high)) or low > high:
        raise QueryError("the bounds of a sum must be two finite whole numbers, the lower one first; correct them")
    least, largest = int(low) * parts_of_one, int(high) * parts_of_one
    heaviest = max(abs(least), abs(largest), 1)
    if heaviest > LARGEST_SENSITIVITY:
        raise QueryError("the bounds of a sum, in parts of one that the bins need, are beyond 2**40; use nearer ones")
    return DistributiveQuery(
        lambda numbers, rows: _weighted_total(np.clip(numbers, least, largest), rows, heaviest),
        lambda a, b: a + b,
        heaviest,
        name="sum",
        _fit=lambda _, parts: sum_query(low, high, parts),
    )


def max_query(domain: Sequence[int]) -> DistributiveQuery:
    """Find the largest number, among a finite domain, by the rank utility: rows that keep a value from being it.

    On given cells only the values that can be told apart there are drawn from, so the domain may be long.
    """
    values = _read_domain(domain, LARGEST_SCORE)

    def fit(numbers: Integers, parts: int) -> DistributiveQuery:
        return _largest_of(_distinct_values(values, numbers, parts))

    return _largest_of(values, fit)


def min_query(domain: Sequence[int]) -> DistributiveQuery:
    """Find the smallest number, among a finite domain: the largest one of the domain turned over."""
    values = _read_domain(domain, LARGEST_SCORE)

    def fit(numbers: Integers, parts: int) -> DistributiveQuery:
        distinct = _distinct_values(_turned(values), -numbers[::-1], parts)
        return _smallest_of(_turned(distinct))

    return _smallest_of(values, fit)


def _largest_of(
    values: Sequence[int], fit: "Callable[[Integers, int], DistributiveQuery] | None" = None
) -> DistributiveQuery:
    written_out = cache(lambda: np.array(values, dtype=np.int64))

    def scores(numbers: Integers, rows: Integers) -> Integers:
        order = np.argsort(numbers, kind="stable")
        ascending, below = numbers[order], np.concatenate([[0], np.cumsum(rows[order])])
        above = below[-1] - below[np.searchsorted(ascending, written_out(), side="right")]
        at_least = below[-1] - below[np.searchsorted(ascending, written_out(), side="left")]
        in_the_way: Integers = np.where(above > 0, above, (at_least == 0).astype(np.int64))
        return -in_the_way

    return DistributiveQuery(scores, max, 1, values, "max", fit)


def _smallest_of(
    values: Sequence[int], fit: "Callable[[Integers, int], DistributiveQuery] | None" = None
) -> DistributiveQuery:
    turned = cache(lambda: _largest_of(_turned(values)))
    return DistributiveQuery(lambda numbers, rows: turned().scores_of(-numbers, rows)[::-1], min, 1, values, "min", fit)


def _turned(values: Sequence[int]) -> Sequence[int]:
    """Return the negated values, ascending again."""
    if isinstance(values, range):
        return range(-values[-1], -values[0] + 1, values.step)
    return tuple(-value for value in reversed(values))


def _distinct_values(values: Sequence[int], numbers: Integers, parts: int) -> tuple[int, ...]:
    """Return values of a domain, in parts of one, that a maximum over cells of ascending numbers can tell apart.

    Between two neighbouring numbers all values score alike: the least of them stands for all, and for none if the
    number below it is in the domain, which scores at least as well on every table.
    """
    found = []
    listed: list[int] = np.unique(numbers).tolist()
    for low, high in zip(listed, [*listed[1:], None], strict=True):
        place = bisect_right(values, low // parts)
        if place and values[place - 1] * parts == low:
            found.append(low)
        elif place < len(values) and (high is None or values[place] * parts < high):
            found.append(values[place] * parts)
    # Values below all numbers score worst on every table, and are of use only where there are no others.
    return tuple(found) or (values[-1] * parts,)


def _weighted_total(weights: Integers, rows: Integers, heaviest: int) -> int:
    """Return the exact sum, in Python's integers where 64 bits might wrap around and break the sensitivity."""
    fits = heaviest * float(rows.sum(dtype=np.float64)) < _LARGEST_INT64_SUM
    return int((weights * rows).sum() if fits else (weights.astype(object) * rows).sum())


def _made_up_tables(numbers: Integers) -> list[tuple[Integers, Integers]]:
    """Return small tables over some of the cells, some of them with empty cells, the same ones every time."""
    generator = np.random.default_rng(_SEED)
    tables = []
    for trial in range(_TRIALS):
        size = int(generator.integers(_LEAST_CELLS_TRIED, _MOST_CELLS_TRIED))
        cells = np.sort(generator.choice(numbers, size))
        tables.append((cells, generator.integers(0, 1 + trial % 5 + trial // 8, size, endpoint=True)))
    return tables


def _halves(numbers: Integers, rows: Integers) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
    middle = max(numbers.size // 2, 1)
    return (numbers[:middle], rows[:middle]), (numbers[middle:], rows[middle:])


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or abs(int(value)) > LARGEST_RESULT:
        raise QueryError(
            "the parts and merges of a distributive query must give whole numbers from -2**120 to 2**120; round or "
            "rescale them"
        )
    return int(value)


def _read_domain(values: Sequence[int], most: int) -> Sequence[int]:
    """Return ascending whole values; a range stays one, and none is gone through further than it may be long."""
    if isinstance(values, range):
        read: Sequence[int] = values
        ends = [values.start, values.stop]
    else:
        read = _listed(values)
        ends = [min(read, default=0), max(read, default=0)]
    if max(map(abs, ends)) > LARGEST_SCORE:
        raise QueryError("the output domain must lie between -2**61 and 2**61; rescale the values")
    if not len(read):
        raise QueryError("the output domain is empty; declare at least one value that may be the answer")
    is_ascending = read.step > 0 if isinstance(read, range) else all(one < other for one, other in pairwise(read))
    if len(read) > most or not is_ascending:
        raise QueryError(f"the output domain must be at most {MOST_VALUES:,} ascending values, none of them twice")
    return tuple(read) if len(read) <= MOST_VALUES else read


def _listed(values: Iterable[int]) -> tuple[int, ...]:
    try:
        read = tuple(_whole(value) for value in islice(values, MOST_VALUES + 1))
    except (TypeError, QueryError):
        raise QueryError("the output domain must be whole numbers, such as range(1, 101)") from None
    if len(read) > MOST_VALUES:
        raise QueryError(f"the output domain must be at most {MOST_VALUES:,} ascending values, none of them twice")
    return read
