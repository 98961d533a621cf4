"""Shares, ratios, differences and other contrasts of counts, and linear queries: each with the noise of the whole."""

from collections.abc import Mapping, Sequence

import numpy as np

from veilcube.analyst.estimate import Estimates, GroupedCounts, mean_of_groups, ratio_of_groups
from veilcube.analyst.questions.asking import Asking
from veilcube.analyst.questions.weights import axes_of_query, named_axes, weights_of_query, weights_of_regions
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers, LinearQueries, Query, read_query
from veilcube.schema import Region
from veilcube.system import Floats, read_real, show

MOST_LINEAR_QUERIES = 10_000
LARGEST_WEIGHT = 1e12


def read_where(release: Asking, where: Query | None) -> Region:
    """Return the rows that a question is about."""
    return read_query(release.schema, {} if where is None else where)


def read_either(release: Asking, query: Query | None, conditions: Mapping[str, object]) -> Region:
    """Return the rows that one condition chooses, given as an argument or by keywords."""
    if query is not None and conditions:
        raise QueryError("give the condition either as one argument or by keywords, not both")
    if query is None and not conditions:
        raise QueryError("a share needs a condition, such as sex='Female' or \"age >= 65\"")
    return read_query(release.schema, conditions if query is None else query)


def share_of(release: Asking, inside: Region, among: Region, estimator: str, confidence: float) -> Answer:
    """Return the share of the rows in one region that lie in the other as well: the mean of being inside."""
    if not among.cells:
        raise QueryError("the condition in where selects no cell, so there is nobody to take a share of; widen it")
    axes = named_axes([inside])
    weights = weights_of_regions(release.schema, axes, [(1.0, inside)])
    groups = release._estimate(estimator).grouped(among, axes)
    found = mean_of_groups(groups, weights, confidence)
    return Answer(found.value, found.low, found.high, confidence, found.stddev, release._words)


def ratio_of(release: Asking, first: Region, second: Region, estimator: str, confidence: float) -> Answer:
    """Return the ratio of two counts; without an upper end where noise hides whether the second is 0."""
    if not second.cells:
        raise QueryError("the second condition selects no cell, so nothing can be divided by its count; widen it")
    schema = release.schema
    axes = named_axes([first, second])
    above, below = (weights_of_regions(schema, axes, [(1.0, region)]) for region in (first, second))
    groups = release._estimate(estimator).grouped(Region.everything(schema.shape), axes)
    found = ratio_of_groups(groups, above, below, confidence)
    return Answer(found.value, found.low, found.high, confidence, found.stddev, release._words)


def contrast_of(release: Asking, weighted: Sequence[tuple[float, Region]], estimator: str, confidence: float) -> Answer:
    """Return a weighted sum of counts."""
    axes = named_axes([region for _, region in weighted])
    weights = weights_of_regions(release.schema, axes, weighted)
    groups = release._estimate(estimator).grouped(Region.everything(release.schema.shape), axes)
    value, width, stddev = _weighted(groups, weights, confidence)
    return Answer(value, value - width, value + width, confidence, stddev, release._words)


def read_contrast(release: Asking, weighted: object, where: Region) -> list[tuple[float, Region]]:
    """Return the weights and conditions of a contrast, each condition among the rows that it is about."""
    if isinstance(weighted, str | Mapping) or not isinstance(weighted, Sequence) or not weighted:
        raise QueryError('a contrast is a list of weights and conditions, such as [(1, "age < 30"), (-1, "age >= 30")]')
    found = []
    for entry in weighted:
        if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 2:
            raise QueryError('each entry of a contrast is a weight and a condition, such as (1, "age < 30")')
        weight, query = entry
        number = read_real(weight, "the weight of a condition")
        if abs(number) > LARGEST_WEIGHT:
            raise QueryError(f"the weight of a condition must lie between -1e12 and 1e12, not {show(weight)}")
        found.append((number, read_query(release.schema, query).intersect(where)))
    return found


def answer_linear(release: Asking, queries: LinearQueries, estimator: str, confidence: float) -> Answers:
    """Return the answers of linear queries; those about the same attributes share what is counted."""
    if queries.schema != release.schema:
        raise QueryError("the linear queries are for another schema; build them with release.schema")
    if not 1 <= len(queries) <= MOST_LINEAR_QUERIES:
        raise QueryError(
            f"between 1 and {MOST_LINEAR_QUERIES:,} linear queries are answered at once, not {len(queries):,}; "
            "ask some at a time"
        )
    everything, estimate = Region.everything(release.schema.shape), release._estimate(estimator)
    grouped: dict[tuple[int, ...], GroupedCounts] = {}
    found = np.zeros((3, len(queries)))
    for number in range(len(queries)):
        axes = axes_of_query(queries, number)
        weights = weights_of_query(queries, number, axes)
        if axes not in grouped:
            grouped[axes] = estimate.grouped(everything, axes)
        found[:, number] = _weighted(grouped[axes], weights, confidence)
    value, width, stddev = found
    return release._many(Estimates(value, value - width, value + width, stddev), confidence, estimator)


def _weighted(groups: GroupedCounts, weights: Floats, confidence: float) -> tuple[float, float, float]:
    """Return a weighted sum of groups, half the width of its interval, and its standard deviation."""
    largest = float(np.abs(weights).max(initial=0.0))
    if largest == 0.0:
        return 0.0, 0.0, 0.0
    # The squares of very large weights would leave floats.
    relative = weights / largest
    value, width = float((relative * groups.counts).sum()), float(groups.half_width_of(relative, confidence))
    return largest * value, largest * width, largest * float(np.sqrt(groups.variance_of(relative)))
