"""Which estimator is best for a release: judged by what was published, at no cost in privacy.

A refined tree is made for the posterior. Over a line or a plane of ordinal cells it also competes with least squares
for trees and plain cells: it is better where neighbours are alike and much worse where they are not, and the data tell
which. If the prior suits, the posterior differs from least squares by about the noise of least squares; if it does not,
by much more. So the mean over random ranges of (posterior - least squares)² / Var(least squares) is compared with
MOST_DISAGREEMENT.
"""

import numpy as np

from veilcube.analyst.estimate.base import Estimator, Fit
from veilcube.analyst.estimate.entropy import MarginalsFirst
from veilcube.analyst.estimate.least_squares import LeastSquares
from veilcube.analyst.estimate.posterior import Posterior
from veilcube.analyst.estimate.shrunken import Shrunken
from veilcube.analyst.estimate.thresholded import wanted_thresholding
from veilcube.operators.block_sums import BlockSums
from veilcube.planner.refined_tree import has_like_neighbours
from veilcube.query import Workload
from veilcube.release import ReleaseRecord

MOST_DISAGREEMENT = 2.0
LEAST_CELLS_TO_COMPARE, MOST_CELLS_TO_COMPARE = 2**6, 2**14
QUERIES = 500
ANY_CONFIDENCE = 0.5


def best_estimator(record: ReleaseRecord, fit: Fit) -> Estimator:
    """Return what the plan asked for, else the posterior where it suits the release, and least squares elsewhere."""
    thresholded = wanted_thresholding(record)
    if thresholded is not None:
        return thresholded if disagreement(record, fit, thresholded) <= MOST_DISAGREEMENT else LeastSquares()
    if MarginalsFirst().can_read(record):
        return MarginalsFirst()
    if Shrunken().can_read(record):
        return Shrunken()
    unbiased, posterior = LeastSquares(), Posterior()
    if not unbiased.can_read(record):
        return posterior
    is_comparable = LEAST_CELLS_TO_COMPARE <= record.schema.cells <= MOST_CELLS_TO_COMPARE
    if not is_comparable or not has_like_neighbours(record.schema) or not posterior.can_read(record):
        return unbiased
    return posterior if disagreement(record, fit, posterior) <= MOST_DISAGREEMENT else unbiased


def disagreement(record: ReleaseRecord, fit: Fit, other: Estimator) -> float:
    """Return how far another estimator is from least squares over random ranges, in variances of least squares."""
    ranges = Workload.random_ranges(record.schema, QUERIES, seed=0)
    plain = fit(LeastSquares()).rectangles(ranges.low, ranges.high, ANY_CONFIDENCE)
    found = BlockSums(fit(other).cells())(ranges.low, ranges.high)
    apart = np.divide(found - plain.value, plain.stddev, out=np.zeros_like(found), where=plain.stddev > 0)
    return float(np.mean(np.square(apart)))
