"""Counts, sums, moments and means over groups of rows: linear questions with whole weights, as they are stored.

A row of a group weighs Π_a v_a^(k_a), v_a the number of its cell on attribute a in whole units; a count has no power, a
sum one. A mean is measured as two sums, of v - low and of high - v: whatever v is, the two weights of a row add up to
high - low, so both together have the sensitivity of one of them, and their noisy ratio is the mean. Stored answers are
read as linear queries with the variance of their noise.

A whole number stands for itself. A bin stands for its middle; edges are read as the decimals that people write, and the
unit is the largest number of which every middle is a whole multiple, so that sums are integers. Values outside the
schema and missing ones count as 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise, product
from math import gcd, lcm, prod
from numbers import Integral
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.query import LinearQueries
from veilcube.record.questions.canonical_region import region_from_data
from veilcube.record.questions.question import Question
from veilcube.schema import Attribute, Bins, Box, Ordinal, Region, Schema, WholeNumbers
from veilcube.system import Floats, require_cells

LARGEST_NUMBER = 2**53
# The numbers of all cells, their powers as Python's whole numbers, and what is counted beside them.
_BYTES_PER_NUMBER = 96


@dataclass(frozen=True, eq=False)
class CellValues:
    """Each cell's number, ``unit`` times ``numbers[cell]``; 0 for the cells of stray values."""

    unit: Fraction
    numbers: NDArray[np.int64]


def cell_values(attribute: Attribute) -> CellValues:
    """Return the numbers of an attribute's cells; refuses attributes whose cells have none."""
    division = attribute.division if isinstance(attribute, Ordinal) else None
    require_cells(attribute.size, _BYTES_PER_NUMBER, f"summing '{attribute.name}'")
    numbers = np.zeros(attribute.size, dtype=np.int64)
    if isinstance(division, WholeNumbers):
        numbers[: division.size] = np.arange(division.low, division.high + 1)
        return CellValues(Fraction(1), numbers)
    if isinstance(division, Bins):
        unit, multiples = _in_units(_middles(division))
        if max(map(abs, multiples)) > LARGEST_NUMBER:
            raise QueryError(
                f"the edges of '{attribute.name}' have too many digits to be summed as whole numbers; round the edges"
            )
        numbers[: division.size] = multiples
        return CellValues(unit, numbers)
    if division is not None:
        raise QueryError(f"'{attribute.name}' holds dates, which have no sum or mean; ask for counts instead")
    raise QueryError(f"'{attribute.name}' has no order, so it has no sum, mean or moment; ask for its marginal")


def _middles(division: Bins) -> list[Fraction]:
    # The shortest decimal of a float is what was written: 0.1 means one tenth.
    edges = [Fraction(repr(edge)) for edge in division.edges]
    return [(low + high) / 2 for low, high in pairwise(edges)]


def _in_units(values: list[Fraction]) -> tuple[Fraction, list[int]]:
    denominator = lcm(*(value.denominator for value in values))
    multiples = [int(value * denominator) for value in values]
    common = reduce(gcd, multiples) or 1
    return Fraction(common, denominator), [multiple // common for multiple in multiples]


Weights: TypeAlias = Mapping[int, NDArray[np.int64]]  # the whole weights of the cells, by axis

LARGEST_POWER = 16
LARGEST_WEIGHT = 2**62
LARGEST_UNIT = 10**100
MOST_GROUPS = 1_000_000
_KINDS = ("moment", "mean")


@dataclass(frozen=True, eq=False)
class Moment:
    """A linear question: the powers of its attributes and the attributes it is grouped by, both in axis order."""

    question: Question
    powers: Mapping[int, int]
    by: tuple[int, ...]

    @classmethod
    def ask(
        cls, schema: Schema, region: Region, powers: Mapping[str, int], by: Sequence[str] = (), *, is_mean: bool = False
    ) -> "Moment":
        """Return the question for the moment (or the mean of one attribute) of the rows of a region, by group."""
        read = _read_powers(schema, powers)
        axes = tuple(sorted(schema.axis(name) for name in by))
        if len(set(axes)) != len(axes):
            raise QueryError("an attribute is named twice; name each one once")
        if not region.cells:
            raise QueryError("the condition selects no cell, so there is nothing to measure; widen the condition")
        details = {
            "powers": {schema.names[axis]: power for axis, power in read.items()},
            "by": [schema.names[axis] for axis in axes],
        }
        asked = cls(Question(schema, region, "mean" if is_mean else "moment", details), read, axes)
        if prod(cells.size for cells in asked.groups) > MOST_GROUPS:
            raise QueryError(f"there are more than {MOST_GROUPS:,} groups; group by fewer attributes")
        if asked.heaviest > LARGEST_WEIGHT or asked.unit > LARGEST_UNIT:
            raise QueryError("the values are too large for exact sums of such powers; use lower powers or coarser bins")
        return asked

    @classmethod
    def from_data(cls, schema: Schema, data: Mapping[str, object]) -> "Moment | None":
        """Rebuild from a question's plain data; None if it is of another kind."""
        if not cls.is_kind(data):
            return None
        powers, by = data.get("powers"), data.get("by")
        if not isinstance(powers, Mapping) or not isinstance(by, list):
            raise QueryError("the stored question is not well formed; its ledger was changed by another program")
        return cls.ask(schema, region_from_data(schema, data.get("where")), powers, by, is_mean=data["kind"] == "mean")

    @staticmethod
    def is_kind(data: Mapping[str, object]) -> bool:
        """Whether a question's plain data are those of a moment or a mean."""
        return data.get("kind") in _KINDS

    @property
    def schema(self) -> Schema:
        """The schema it is about."""
        return self.question.schema

    @property
    def region(self) -> Region:
        """The rows it is about."""
        return self.question.region

    @property
    def is_mean(self) -> bool:
        """Whether it asks for a mean, by two sums."""
        return self.question.kind == "mean"

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """The axes whose cells its weights and groups depend on."""
        return tuple(sorted({*self.by, *self.powers}))

    @cached_property
    def groups(self) -> tuple[NDArray[np.int64], ...]:
        """For each grouping attribute, the cells that the region reaches."""
        return tuple(np.flatnonzero(self.region.reached(axis)) for axis in self.by)

    @cached_property
    def size(self) -> int:
        """How many integers are measured."""
        return (2 if self.is_mean else 1) * prod(cells.size for cells in self.groups)

    @cached_property
    def unit(self) -> Fraction:
        """What one unit of a measured integer means."""
        return prod(
            (cell_values(self.schema.attributes[axis]).unit ** power for axis, power in self.powers.items()),
            start=Fraction(1),
        )

    @cached_property
    def span(self) -> tuple[int, int]:
        """The least and the largest whole number of a mean's attribute that the region reaches."""
        (axis,) = self.powers
        attribute = self.schema.attributes[axis]
        reached = cell_values(attribute).numbers[: attribute.regular_size][
            self.region.reached(axis)[: attribute.regular_size]
        ]
        if not reached.size or reached.min() == reached.max():
            raise QueryError(f"the condition leaves less than two values of '{attribute.name}', so its mean is public")
        return int(reached.min()), int(reached.max())

    @cached_property
    def measures(self) -> tuple[Weights, ...]:
        """The weights of each measurement: one for a moment, two for a mean."""
        if not self.is_mean:
            return ({axis: self._powered(axis) for axis in self.powers},)
        (axis,) = self.powers
        attribute, (low, high) = self.schema.attributes[axis], self.span
        numbers = cell_values(attribute).numbers
        is_counted = self.region.reached(axis) & attribute.mask(0, attribute.regular_size)
        return {axis: np.where(is_counted, numbers - low, 0)}, {axis: np.where(is_counted, high - numbers, 0)}

    @cached_property
    def heaviest(self) -> int:
        """The largest sum of weights, by size, that one row has: the sensitivity to one row that comes or goes."""
        if self.is_mean:
            return self.span[1] - self.span[0]
        return max(abs(end) for end in self._row_weights)

    @cached_property
    def heaviest_exchange(self) -> int:
        """The largest change, summed over measurements, when one row is exchanged for another."""
        if self.is_mean or prod(cells.size for cells in self.groups) > 1:
            return 2 * self.heaviest
        return self._row_weights[1] - self._row_weights[0]

    @cached_property
    def heaviest_squared(self) -> int:
        """The largest sum of squared weights of one row; that of a mean is largest where one of both weights is 0."""
        return self.heaviest**2

    @cached_property
    def heaviest_exchange_squared(self) -> int:
        """The largest sum of squared changes when one row is exchanged for another.

        Rows of two groups change two measurements. Rows of one group change one by the difference of their weights,
        which is more only where they differ in sign; and where the groups tell the weights, they are equal.
        """
        if self.is_mean:
            return 2 * self.heaviest_squared
        apart = (self._row_weights[1] - self._row_weights[0]) ** 2
        if prod(cells.size for cells in self.groups) == 1:
            return apart
        return 2 * self.heaviest_squared if set(self.powers) <= set(self.by) else max(2 * self.heaviest_squared, apart)

    def exact(self, counts: NDArray[np.int64]) -> list[int]:
        """Return the exact integers, each measurement's groups in order, from the counts over ``axes``. PRIVATE."""
        fits = float(counts.sum(dtype=np.float64)) * max(self.heaviest, 1) < LARGEST_WEIGHT
        wide = counts if fits else counts.astype(object)
        summed = tuple(place for place, axis in enumerate(self.axes) if axis not in self.by)
        held = np.ix_(*self.groups) if self.by else ...
        found: list[int] = []
        for weights in self.measures:
            weighted = wide
            for axis, row in weights.items():
                shape = [-1 if axis == other else 1 for other in self.axes]
                weighted = weighted * row.reshape(shape)
            found += np.asarray(weighted.sum(axis=summed), dtype=wide.dtype)[held].ravel().tolist()
        return found

    def _powered(self, axis: int) -> NDArray[np.int64]:
        numbers = cell_values(self.schema.attributes[axis]).numbers.astype(object) ** self.powers[axis]
        if max(abs(number) for number in numbers) > LARGEST_WEIGHT:
            raise QueryError("the values are too large for exact sums of such powers; use lower powers or coarser bins")
        numbers[self.schema.attributes[axis].regular_size :] = 0
        return numbers.astype(np.int64)

    @cached_property
    def _row_weights(self) -> tuple[int, int]:
        """The least and the largest weight of a row, rows outside the region with their 0 included."""
        low = high = 1
        for axis in self.powers:
            reached = self._powered(axis)[self.region.reached(axis)]
            ends = [weight * end for weight in (low, high) for end in (int(reached.min()), int(reached.max()))]
            low, high = min(ends), max(ends)
        return (low, high) if self.region.cells == self.schema.cells else (min(low, 0), max(high, 0))


def _read_powers(schema: Schema, powers: Mapping[str, int]) -> dict[int, int]:
    if not isinstance(powers, Mapping):
        raise QueryError('a moment is a mapping from attributes to powers, such as {"height": 1, "weight": 1}')
    read: dict[int, int] = {}
    for name, power in powers.items():
        if isinstance(power, bool) or not isinstance(power, Integral) or not 1 <= power <= LARGEST_POWER:
            raise QueryError(f"the power of '{name}' in a moment must be a whole number from 1 to {LARGEST_POWER}")
        axis = schema.axis(name)
        if axis in read:
            raise QueryError("an attribute is named twice; name each one once")
        cell_values(schema.attributes[axis])
        read[axis] = int(power)
    return dict(sorted(read.items()))


def linear_queries(moment: Moment) -> LinearQueries:
    """Return what was measured, in the order of the stored integers and in the attributes' own units."""
    terms = [
        [_term(moment, weights, box, group) for box in moment.region.boxes if _holds(moment, box, group)]
        for weights in moment.measures
        for group in _groups(moment)
    ]
    return LinearQueries.of_terms(moment.schema, terms)


def _groups(moment: Moment) -> Iterator[tuple[int, ...]]:
    return product(*(cells.tolist() for cells in moment.groups))


def _holds(moment: Moment, box: Box, group: Sequence[int]) -> bool:
    return all(box.holds(axis, cell) for axis, cell in zip(moment.by, group, strict=True))


def _term(moment: Moment, weights: Weights, box: Box, group: Sequence[int]) -> Mapping[int, Floats]:
    """Return the weights of the cells on every axis that a box, a group or a power makes other than 1."""
    term: dict[int, Floats] = {axis: mask.astype(np.float64) for axis, mask in enumerate(box.axes) if mask is not None}
    for axis, cell in zip(moment.by, group, strict=True):
        term[axis] = np.zeros(moment.schema.shape[axis])
        term[axis][cell] = 1.0
    scale = float(moment.unit)
    for axis, row in weights.items():
        term[axis] = term.get(axis, np.ones(row.size)) * row.astype(np.float64) * scale
        scale = 1.0
    return term
