"""Which estimator is best for a release: judged by what was published, at no cost in privacy.

A staged tree is made for the posterior. Over a line or a plane of ordinal cells it also competes with least squares
for trees and plain cells: it is better where neighbours are alike and much worse where they are not, and the data tell
which. If the prior suits, the posterior differs from least squares by about the noise of least squares; if it does not,
by much more. So the mean of (posterior - least squares)² / Var(least squares) is compared with MOST_DISAGREEMENT, over
questions of each kind: random ranges, prefixes, one-way marginals, and cells.
"""

from collections.abc import Iterator

import numpy as np

from veilcube.analyst.estimate.base import Estimator, Fit
from veilcube.analyst.estimate.linear import LeastSquares, wanted_thresholding
from veilcube.analyst.estimate.marginals import MarginalMaxEntropy
from veilcube.analyst.estimate.mixture import LatentClasses
from veilcube.analyst.estimate.partition import Shrunken
from veilcube.analyst.estimate.polya import Posterior
from veilcube.operators import BlockSums
from veilcube.planner import has_like_neighbours
from veilcube.query import Workload
from veilcube.record import ReleaseRecord
from veilcube.schema import Schema
from veilcube.system import Integers

MOST_DISAGREEMENT = 2.0
LEAST_CELLS_TO_COMPARE, MOST_CELLS_TO_COMPARE = 2**6, 2**14
QUERIES = 500
ANY_CONFIDENCE = 0.5


def best_estimator(record: ReleaseRecord, fit: Fit) -> Estimator:
    """Return what the plan asked for, else the posterior where it suits the release, and least squares elsewhere."""
    thresholded = wanted_thresholding(record)
    if thresholded is not None:
        return thresholded if disagreement(record, fit, thresholded) <= MOST_DISAGREEMENT else LeastSquares()
    for made_for_it in (LatentClasses(), MarginalMaxEntropy(), Shrunken()):
        if made_for_it.can_read(record):
            return made_for_it
    unbiased, posterior = LeastSquares(), Posterior()
    if not unbiased.can_read(record):
        return posterior
    is_comparable = LEAST_CELLS_TO_COMPARE <= record.schema.cells <= MOST_CELLS_TO_COMPARE
    if not is_comparable or not has_like_neighbours(record.schema) or not posterior.can_read(record):
        return unbiased
    return posterior if disagreement(record, fit, posterior) <= MOST_DISAGREEMENT else unbiased


def disagreement(record: ReleaseRecord, fit: Fit, other: Estimator) -> float:
    """Return how far another estimator is from least squares, in variances of it, for the kind where it is farthest."""
    plain, found = fit(LeastSquares()), BlockSums(fit(other).cells())
    worst = 0.0
    for low, high in _kinds_of_questions(record.schema):
        expected = plain.rectangles(low, high, ANY_CONFIDENCE)
        apart, spread = found(low, high) - expected.value, expected.stddev
        standard = np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0)
        worst = max(worst, float(np.mean(np.square(standard))))
    return worst


def _kinds_of_questions(schema: Schema) -> Iterator[tuple[Integers, Integers]]:
    """Yield the inclusive ends of ranges, prefixes (the whole among them), one-way marginals, and cells."""
    ranges = Workload.random_ranges(schema, QUERIES, seed=0)
    yield ranges.low, ranges.high
    last = np.array(schema.shape, dtype=np.int64) - 1
    yield np.zeros_like(ranges.high), np.concatenate([last[None], ranges.high[1:]])
    for axis, size in enumerate(schema.shape):
        low, high = np.zeros((size, len(last)), dtype=np.int64), np.tile(last, (size, 1))
        low[:, axis] = high[:, axis] = np.arange(size)
        yield low, high
    yield ranges.low, ranges.low
