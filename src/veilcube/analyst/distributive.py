"""Distributive queries on a release: where the merge is linear, a weighted sum of released counts, at no cost."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from veilcube.errors import QueryError
from veilcube.query import Answer
from veilcube.query.distributive import DistributiveQuery, cell_numbers
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
    numbers, one = cell_numbers(attribute), np.ones(1, dtype=np.int64)
    if query.domain is not None or not query.is_linear:
        raise QueryError(
            "a release answers distributive queries whose parts add up, such as counts and sums; ask a protected table"
        )
    query.require_distributive(numbers)
    weights = np.array([query.value_of(numbers[cell : cell + 1], one) for cell in range(numbers.size)], np.float64)
    groups = read_groups()
    value, width = float(weights @ groups.counts), groups.half_width_of(weights, confidence)
    return Answer(value, value - width, value + width, confidence, float(np.sqrt(groups.variance_of(weights))), privacy)
