"""Whether facts fit the noise of a release: each against the standard deviation of its count, and all together."""

import numpy as np

from veilcube.analyst.estimate import Estimate
from veilcube.analyst.refine.facts import Boxes, BoxSums, FactTest, ReleaseFacts, judge_facts
from veilcube.analyst.refine.release.covariance import CellCovariance, CellMetric, between, variances
from veilcube.analyst.refine.release.imposing import Imposed, rounding_of
from veilcube.analyst.refine.release.refined_answers import NOTHING_LEFT, explained_variances
from veilcube.laws import Noise
from veilcube.operators import BlockSums, Moments
from veilcube.schema import Region
from veilcube.system import Floats, Integers

_LAPLACE_EXCESS = 3.0
_ANY_CONFIDENCE = 0.5
# Up to so many cells over all facts, the noise of each fact is written out.
_MOST_WRITTEN_OUT = 1 << 22


def judge_release(
    covariance: CellCovariance, noise: Noise, cells: Floats, facts: ReleaseFacts, imposed: Imposed
) -> FactTest:
    """Return how well facts fit least-squares cells, which have this covariance in units of one noise."""
    second, fourth, _ = noise.cumulants()
    widening = covariance.widening(_cells_of(facts.sums, cells.shape))
    stddevs = np.sqrt(np.maximum(variances(covariance, facts.sums), 0.0) * second) * widening
    kurtosis = fourth / second**2 if second > 0 else 0.0
    # In units of a Laplace variable's excess kurtosis.
    shares = np.minimum(_fourth_shares(covariance, facts.sums, cells.size) * kurtosis / _LAPLACE_EXCESS, 1.0)
    unit = second * float(widening.max(initial=1.0)) ** 2
    distance = min(imposed.squared_distance / unit, np.finfo(np.float64).max) if unit > 0 else 0.0
    residuals = _residuals(cells, facts, rounding_of(covariance, np.abs(cells), facts, second))
    return judge_facts(facts.facts, residuals, stddevs, shares, (distance, imposed.bound, kurtosis))


def judge_posterior(posterior: Estimate, metric: CellMetric, facts: ReleaseFacts) -> FactTest:
    """Return how well facts fit a posterior, whose counts have standard deviations and no covariance.

    A weighted sum has at most the sum of the standard deviations of what it adds up.
    """
    cells, boxes = posterior.cells(), facts.sums.boxes
    stddevs = posterior.rectangles(boxes.low, boxes.high, _ANY_CONFIDENCE).stddev.copy()
    for row, box in boxes.gapped.items():
        stddevs[row] = posterior.region(Region(boxes.shape, (box,)), _ANY_CONFIDENCE).stddev
    bounds = np.asarray(abs(facts.sums.matrix) @ stddevs)
    residuals = _residuals(cells, facts, rounding_of(metric, np.abs(cells), facts, 1.0))
    return judge_facts(facts.facts, residuals, bounds, np.ones(len(facts)))


def _residuals(cells: Floats, facts: ReleaseFacts, rounding: Floats) -> Floats:
    """Return by how much each fact is off, inequalities by what they are broken by, without what rounding leaves."""
    found = facts.sums.values(BlockSums(cells), cells) - facts.constants
    is_broken = np.where(facts.is_equality, np.abs(found), found) > rounding
    return np.where(is_broken, found, 0.0)


def _cells_of(sums: BoxSums, shape: tuple[int, ...]) -> Integers:
    """Return how many cells the boxes of each sum have."""
    every = np.ones(shape)
    of_boxes = sums.boxes.sums(BlockSums(every), every)
    held = np.asarray(np.rint((abs(sums.matrix) > 0) @ of_boxes), dtype=np.int64)
    return np.maximum(held, 1)


def _fourth_shares(covariance: CellCovariance, sums: BoxSums, cells: int) -> Floats:
    """Return Σw⁴ / (Σw²)² of the weights of single noises in each sum, or a bound from above."""
    if len(sums) * cells <= _MOST_WRITTEN_OUT:
        singles = (sums.take(np.array([row])).spread(np.ones(1)) for row in range(len(sums)))
        each = [Moments.of_weights(covariance.moments.noise_weights(query).ravel()) for query in singles]
        second, fourth = (np.array([getattr(one, power) for one in each]) for power in ("second", "fourth"))
    elif sums.shares is None and not sums.boxes.gapped:
        moments = covariance.moments.moments_of_rectangles(sums.boxes.low, sums.boxes.high)
        second, fourth = moments.second, moments.fourth
    else:
        return np.ones(len(sums))
    shares: Floats = np.divide(fourth, second**2, out=np.zeros(len(sums)), where=second > 0)
    return np.minimum(shares, 1.0)


def determines_total(metric: CellMetric, imposed: Imposed, facts: ReleaseFacts) -> bool:
    """Whether the facts tell how many rows there are, or bound their number from below."""
    shape = imposed.refined_cells.shape
    last = np.array([shape], dtype=np.int64) - 1
    everything = BoxSums(Boxes(shape, np.zeros_like(last), last))
    own = variances(metric, everything)
    explained = explained_variances(metric, imposed.known, imposed.factored, everything)
    bounds = facts.take(np.flatnonzero(~facts.is_equality & (facts.constants < 0)))
    along = between(metric, bounds.sums, everything)[:, 0] if len(bounds) else np.empty(0)
    # A sum that has all of its noise in common with the total is a multiple of it.
    is_total = (along < 0) & (along**2 >= (1 - NOTHING_LEFT) * own * variances(metric, bounds.sums))
    return bool((own - explained <= NOTHING_LEFT * own).all() or is_total.any())
