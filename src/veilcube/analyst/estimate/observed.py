"""The exact posterior of each question about an adaptive release, from the two observations that it has (ISPE, step E).

A query with cells of some regions is seen twice, by independent noise: once as the sum of its own m noisy cells, and
once as the noisy totals of these regions less the noisy cells that do not belong to the query. The second has one noise
of a total's scale for each region and one of a cell's for each cell taken off. With a flat prior the posterior is the
normalised product of the two laws (Theorems 4.1 and 4.2 there), exactly: mean, standard deviation and equal-tailed
interval. Where both scales are equal the mean is near least squares', which answers a hundred thousand times faster.

Regions that were chosen from the noisy cells follow their noise, so the product is exact for blocks and a little too
narrow for others, whose intervals are widened as least squares' are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.adjusted import AdjustedGroups
from veilcube.analyst.estimate.base import Estimates
from veilcube.analyst.estimate.cells_and_regions import (
    AdaptiveEstimate,
    is_adaptive,
    widening_of,
)
from veilcube.analyst.estimate.grouping import group_of
from veilcube.analyst.observations import posterior
from veilcube.errors import QueryError
from veilcube.release import ReleaseRecord
from veilcube.schema import Region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_QUERIES = 20_000
# Below this scale whole noises differ from continuous ones by more than rounding.
LARGEST_DISCRETE_SCALE = 20
# Below this one, the chance of any noise at all is less than 1e-27.
LEAST_SCALE = 1 / 64


@dataclass(frozen=True)
class Observed:
    """The exact posterior of each question; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "observed"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the release is of cells and regions."""
        return is_adaptive(record)

    def fit(self, record: ReleaseRecord) -> "ObservedEstimate":
        """Return its answers about this release."""
        return ObservedEstimate(record)


class ObservedEstimate:
    """Posteriors from what was published of the cells and of the regions of a query."""

    def __init__(self, record: ReleaseRecord) -> None:
        cells, regions = record.measurements
        self._unbiased = AdaptiveEstimate(record)
        self._cells, self._totals, self._regions = cells.values, regions.values, self._unbiased.answers.regions
        self._scales = float(cells.noise.scale), float(regions.noise.scale)
        self._summed = self._regions.apply(self._cells)

    def cells(self) -> Floats:
        """Return the posterior mean of every cell."""
        shape = self._cells.shape
        index = np.indices(shape).reshape(len(shape), -1).T
        return self.rectangles(index, index, 0.5).value.reshape(shape)

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        if len(low) > MOST_QUERIES:
            raise QueryError(
                f"'observed' computes one posterior after another, for at most {MOST_QUERIES:,} questions at once; "
                "use estimator='least_squares' for more"
            )
        blocks = (
            tuple(slice(first, last + 1) for first, last in zip(lows, highs, strict=True))
            for lows, highs in zip(low, high, strict=True)
        )
        found = [self._posterior(self._cells[block], self._regions.chosen[block], confidence) for block in blocks]
        return Estimates(*np.array(found, dtype=np.float64).reshape(-1, 4).T)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        inside = region.mask()
        found = self._posterior(self._cells[inside], self._regions.chosen[inside], confidence)
        return Estimates(*(np.asarray(part) for part in found))

    def grouped(self, region: Region, axes: Sequence[int]) -> AdjustedGroups:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        unbiased = self._unbiased.grouped(region, axes)
        shape = tuple(region.shape[axis] for axis in axes)
        if prod(shape) > MOST_QUERIES:
            raise QueryError(f"'observed' answers at most {MOST_QUERIES:,} groups; use estimator='least_squares'")
        values = np.array([float(self.region(group_of(region, axes, at), 0.5).value) for at in np.ndindex(*shape)])
        return AdjustedGroups(values.reshape(shape), unbiased, -np.inf)

    def _posterior(self, cells: Integers, labels: Integers, confidence: float) -> tuple[float, float, float, float]:
        """Return value, low, high and standard deviation of the count of some cells."""
        if cells.size == 0:
            return 0.0, 0.0, 0.0, 0.0
        met, held = np.unique(labels, return_counts=True)
        own, left_over = int(cells.sum()), int((self._regions.sizes[met] - held).sum())
        others = int(self._totals[met].sum() - (self._summed[met].sum() - own))
        of_cells, of_regions = self._scales
        if max(self._scales) < LEAST_SCALE:
            return float(own), float(own), float(own), 0.0
        noises = {of_cells: left_over, of_regions: met.size} if of_cells != of_regions else {}
        noises = {scale: many for scale, many in noises.items() if many} or {of_cells: left_over + met.size}
        observations = [(own, {of_cells: int(cells.size)}), (others, noises)]
        belief = posterior(observations, discrete=max(self._scales) <= LARGEST_DISCRETE_SCALE)
        low, high = belief.interval(confidence)
        middle, widening = belief.mean, float(widening_of(np.asarray(cells.size))) if self._unbiased.is_chosen else 1.0
        return middle, middle + widening * (low - middle), middle + widening * (high - middle), widening * belief.stddev
