"""Distributive queries on a release: where the merge is linear, a weighted sum of released counts, at no cost."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.query import Answer
from veilcube.query.cell_numbers import cell_numbers
from veilcube.query.distributive import DistributiveQuery
from veilcube.schema import Attribute

if TYPE_CHECKING:
    from veilcube.analyst.estimate import GroupedCounts


def answer_distributive(
    query: DistributiveQuery,
    attribute: Attribute,
    read_groups: Callable[[], "GroupedCounts"],
    confidence: float,
    privacy: str,
) -> Answer:
    """Return a linear distributive query of one attribute: each cell weighs what one row in it would give."""
    if not isinstance(query, DistributiveQuery):
        raise QueryError("distributive takes a veilcube.DistributiveQuery; build one from a part and a merge")
    if query.is_finite or not query.is_linear:
        raise QueryError(
            "a release answers distributive queries whose parts add up, such as counts and sums; ask a protected table"
        )
    cells = cell_numbers(attribute)
    fitted = query.fitted(cells)
    fitted.require_distributive(cells.numbers)
    weights, *ends = (_weights(fitted, numbers) for numbers in (cells.numbers, cells.low, cells.high))
    least, largest = np.minimum(weights, np.min(ends, axis=0)), np.maximum(weights, np.max(ends, axis=0))
    groups = read_groups()
    value, stddev = float(weights @ groups.counts), float(np.sqrt(groups.variance_of(weights)))
    # Values may lie anywhere in their bins; whole numbers are all that their cells hold.
    low = float(least @ groups.counts) - groups.half_width_of(least, confidence)
    high = float(largest @ groups.counts) + groups.half_width_of(largest, confidence)
    return Answer(value, min(low, value), max(high, value), confidence, stddev, privacy)


def _weights(query: DistributiveQuery, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what one row at each number would give."""
    one = np.ones(1, dtype=np.int64)
    given = [query.value_of(numbers[cell : cell + 1], one) for cell in range(numbers.size)]
    return np.array(given, dtype=np.float64) / query.parts_of_one
