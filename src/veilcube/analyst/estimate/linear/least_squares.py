"""Least squares: unbiased, with exact variances and intervals from the law of the summed noise.

On an identity release the estimate of a set of m cells is their exact count plus the sum of m independent noises of one
law (docs/proofs/intervals.md). On any other linear strategy the estimate of a query is a linear function of the noisy
measurements, and its interval follows from the moments of its noise weights (``laws.answer_noise``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import (
    Estimate,
    Estimates,
    GroupedCounts,
    LinearGroups,
    Portable,
    RegionNoise,
    Runs,
    cells_of_runs,
    with_intervals,
)
from veilcube.analyst.estimate.linear.portable_noise import moments_of_runs, widths_of_sums
from veilcube.analyst.estimate.linear.product_noise import ProductNoise
from veilcube.analyst.estimate.marginals import MarginalsEstimate
from veilcube.analyst.estimate.partition import AdaptiveEstimate, is_adaptive
from veilcube.errors import QueryError
from veilcube.laws import Noise, half_widths, two_weight_half_widths, weighted_half_width
from veilcube.operators import (
    BlockSums,
    LinearAnswers,
    ProductOperator,
    RangeReader,
    group_cells,
)
from veilcube.record import NoisyMeasurement, ReleaseRecord
from veilcube.schema import Region


class LinearEstimate:
    """The least-squares answers of one measurement by any operator that tells its moments.

    ``product`` is the operator as a product of one-axis maps, if it is one: groups then separate by axis.
    """

    def __init__(
        self,
        answers: LinearAnswers,
        values: NDArray[np.int64],
        noise: Noise,
        product: ProductOperator | None = None,
    ) -> None:
        self._answers, self._values, self._noise, self._product = answers, values, noise, product

    @cached_property
    def _cells(self) -> NDArray[np.float64]:
        cells = self._answers.solve(self._values)
        cells.setflags(write=False)
        return cells

    @cached_property
    def _block_sums(self) -> BlockSums[np.float64]:
        return BlockSums(self._cells)

    @cached_property
    def _reader(self) -> RangeReader | None:
        """What answers ranges on a single long attribute without its cells."""
        if self._product is None or len(self._product.axes) > 1:
            return None
        return self._product.axes[0].range_reader(self._values)

    def cells(self) -> NDArray[np.float64]:
        """Return the least-squares estimate of every cell."""
        return self._cells.copy()

    def rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64], confidence: float) -> Estimates:
        """Estimate the count of each block."""
        moments = self._answers.moments_of_rectangles(low, high)
        sums = self._block_sums(low, high) if self._reader is None else self._reader(low[:, 0], high[:, 0])
        return with_intervals(sums, moments, self._noise, confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        moments, block = self._answers.moments_of_region(region), region.rectangle()
        if block is None or self._reader is None:
            return with_intervals(group_cells(self._cells, region, ())[0], moments, self._noise, confidence)
        return with_intervals(self._reader(*block).reshape(()), moments, self._noise, confidence)

    def grouped(self, region: Region, axes: Sequence[int]) -> GroupedCounts:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        sums, sizes = group_cells(self._cells, region, axes)
        group_noise = (
            ProductNoise.of(self._product, region, axes)
            if self._product is not None
            else RegionNoise(self._answers, region, tuple(axes))
        )
        return LinearGroups(sums, sizes, self._noise, group_noise)

    def portable(self, cuts: Sequence[Runs], confidence: float) -> Portable | None:
        """Return how to compute its answers elsewhere; None but for a product, whose noise separates by axis."""
        if self._product is None:
            return None
        return Portable(cells_of_runs(self._cells, cuts), moments_of_runs(self._product, self._noise, cuts, confidence))


@dataclass(frozen=True)
class LeastSquares:
    """The unbiased estimator; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "least_squares"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the release is one measurement whose operator tells the noise of its answers."""
        if is_adaptive(record):
            return True
        return len(record.measurements) == 1 and record.measurements[0].operator.answers is not None

    def fit(self, record: ReleaseRecord) -> Estimate:
        """Return its answers about this release."""
        if is_adaptive(record):
            return AdaptiveEstimate(record)
        measurement = record.measurements[0]
        values, noise, answers = measurement.values, measurement.noise, measurement.operator.answers
        if answers is None:
            raise QueryError("one measurement of this release does not answer questions alone; use its own estimators")
        if measurement.tables is not None:
            return MarginalsEstimate(measurement.tables, values, noise)
        if measurement.cells is not None:
            return IdentityEstimate(measurement)
        return LinearEstimate(answers, values, noise, measurement.product)


class IdentityEstimate:
    """Sums of noisy cells."""

    def __init__(self, measurement: NoisyMeasurement) -> None:
        self._values, self._noise = measurement.values, measurement.noise
        self._block_sums = BlockSums(measurement.values)

    def cells(self) -> NDArray[np.float64]:
        """Return the noisy count of every cell."""
        return self._values.astype(np.float64)

    def rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64], confidence: float) -> Estimates:
        """Estimate the count of each block."""
        sums = self._block_sums(low, high)
        sizes = high[:, 0] - low[:, 0] + 1
        for axis in range(1, low.shape[1]):
            sizes *= high[:, axis] - low[:, axis] + 1
        return _with_intervals(sums, sizes, self._noise, confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        sums, sizes = group_cells(self._values, region, ())
        return _with_intervals(sums, sizes, self._noise, confidence)

    def grouped(self, region: Region, axes: Sequence[int]) -> "SummedGroups":
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        sums, sizes = group_cells(self._values, region, axes)
        return SummedGroups(sums.astype(np.float64), sizes, self._noise)

    def portable(self, cuts: Sequence[Runs], confidence: float) -> Portable:
        """Return how to compute its answers elsewhere."""
        return Portable(cells_of_runs(self._values, cuts), widths_of_sums(self._values.size, self._noise, confidence))


@dataclass(frozen=True, eq=False)
class SummedGroups:
    """Groups of cells, each a sum of independent noisy cells that no other group shares."""

    counts: NDArray[np.float64]
    sizes: NDArray[np.int64]
    noise: Noise

    def first(self, size: int) -> "SummedGroups":
        """Return the first groups of a single axis only."""
        return SummedGroups(self.counts[:size], self.sizes[:size], self.noise)

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""
        return _with_intervals(self.counts, self.sizes, self.noise, confidence)

    def variance_of(self, weights: NDArray[np.float64]) -> float:
        """Return the noise variance of a weighted sum of the groups."""
        return float(self.noise.variance * np.sum(np.square(weights) * self.sizes))

    def half_width_of(self, weights: NDArray[np.float64], confidence: float) -> float:
        """Return w such that the noise of a weighted sum of the groups stays within ±w with ``confidence``."""
        sizes = self.sizes.ravel()
        used = np.abs(np.broadcast_to(weights, self.sizes.shape).ravel()) * (sizes > 0)
        heaviest = float(used.max(initial=0.0))
        if heaviest == 0.0:
            return 0.0
        if np.isin(used, (0.0, heaviest)).all():
            terms = np.array([sizes[used > 0].sum()], dtype=np.int64)
            return heaviest * float(half_widths(self.noise, terms, confidence)[0])
        return weighted_half_width(self.noise, used, sizes, confidence)

    def prefix_variances(self, inside: float, outside: float) -> NDArray[np.float64]:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        upto = np.cumsum(self.sizes).astype(np.float64)
        terms: NDArray[np.float64] = inside**2 * upto + outside**2 * (upto[-1] - upto)
        return self.noise.variance * terms

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> NDArray[np.float64]:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        upto = np.cumsum(self.sizes)
        return two_weight_half_widths(self.noise, inside, upto, outside, upto[-1] - upto, confidence)


def _with_intervals(
    sums: NDArray[np.int64] | NDArray[np.float64], sizes: NDArray[np.int64], noise: Noise, confidence: float
) -> Estimates:
    value = np.asarray(sums, dtype=np.float64)
    width = half_widths(noise, np.asarray(sizes).ravel(), confidence).reshape(value.shape)
    stddev: NDArray[np.float64] = np.sqrt(np.asarray(sizes, dtype=np.float64)) * noise.stddev
    return Estimates(value, value - width, value + width, stddev)
