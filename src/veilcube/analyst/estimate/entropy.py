"""How a release of marginals answers what its tables do not hold: by maximum entropy, and it says so.

A table over two attributes says nothing certain about three. Where the tables determine an answer it is least squares'
own; elsewhere every block is foretold from its parts that stand in measured tables (``coarse_entropy``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimates, GroupedCounts
from veilcube.analyst.estimate.coarse_entropy import foretell
from veilcube.analyst.estimate.marginal_tables import MarginalsEstimate, MarginalsNoise, answer_of_box
from veilcube.errors import QueryError
from veilcube.operators.block_covariances import part_covariances
from veilcube.operators.components import Axes
from veilcube.operators.grouping import group_of
from veilcube.operators.marginals import MarginalsOperator
from veilcube.privacy.deviations import normal_deviations
from veilcube.privacy.noise import DiscreteLaplace
from veilcube.release import ReleaseRecord
from veilcube.schema import Box, Region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FORETOLD, TOLD = "max_entropy", "least_squares"
MOST_NARROWED, MOST_GROUPS = 8, 100_000
ANY_CONFIDENCE = 0.95


@dataclass(frozen=True)
class MarginalsFirst:
    """What is best on marginals: the tables themselves where they hold the answer, maximum entropy where not."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return FORETOLD

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the release is of marginals."""
        return len(record.measurements) == 1 and isinstance(record.measurements[0].operator, MarginalsOperator)

    def fit(self, record: ReleaseRecord) -> "MarginalsFirstEstimate":
        """Return its answers about this release."""
        measurement = record.measurements[0]
        if not isinstance(measurement.operator, MarginalsOperator):
            raise TypeError("a release of marginals was expected")
        tables = MarginalsEstimate(measurement.operator, measurement.values, measurement.noise)
        return MarginalsFirstEstimate(measurement.operator, tables, measurement.noise)


@dataclass(frozen=True, eq=False)
class MarginalsFirstEstimate:
    """Least squares on tables, and maximum entropy for what they do not determine."""

    operator: MarginalsOperator
    tables: MarginalsEstimate
    noise: DiscreteLaplace

    def cells(self) -> Floats:
        """Return the least-squares estimate of every cell, of least norm."""
        return self.tables.cells()

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block, each in the better way."""
        is_held = self.operator.holds(low, high)
        if is_held.all():
            return replace(self.tables.rectangles(low, high, confidence), estimator=TOLD)
        foretold = self._foretold_rectangles(low[~is_held], high[~is_held], confidence)
        if not is_held.any():
            return foretold
        told, found = self.tables.rectangles(low[is_held], high[is_held], confidence), np.empty((4, len(low)))
        for row, name in zip(found, ("value", "low", "high", "stddev"), strict=True):
            row[is_held], row[~is_held] = getattr(told, name), getattr(foretold, name)
        return Estimates(found[0], found[1], found[2], found[3], f"{TOLD}, {FORETOLD}")

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region; one of several boxes as if all their errors went the same way."""
        try:
            return replace(self.tables.region(region, confidence), estimator=TOLD)
        except QueryError:
            found = [self._of_box(box) for box in region.boxes]
        value, stddev = (np.asarray(sum(part[side] for part in found)) for side in (0, 1))
        return _with_normal_interval(value, stddev, confidence)

    def grouped(self, region: Region, axes: Sequence[int]) -> GroupedCounts:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        try:
            found = self.tables.grouped(region, axes)
            found.estimates(ANY_CONFIDENCE)
        except QueryError:
            return self._foretold_groups(region, axes)
        return found

    def _foretold_rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        if len(low) > MOST_GROUPS:
            raise QueryError(
                f"maximum entropy foretells at most {MOST_GROUPS:,} counts that lie in no measured table at once, not "
                f"{len(low):,}; ask for fewer, for marginals, or with estimator='least_squares'"
            )
        lengths = (high - low + 1).astype(np.float64)
        kinds, owner = np.unique(lengths < np.array(self.operator.cell_shape), axis=0, return_inverse=True)
        value, stddev = np.empty(len(low)), np.empty(len(low))
        for number, kind in enumerate(kinds):
            chosen = np.flatnonzero(owner.ravel() == number)
            narrowed = tuple(np.flatnonzero(kind).tolist())
            counts = {part: self._counts_of_part(part, low[chosen], high[chosen]) for part in self._parts_of(narrowed)}
            value[chosen], stddev[chosen] = self._foretell(narrowed, counts, lengths[chosen])
        return _with_normal_interval(value, stddev, confidence)

    def _counts_of_part(self, part: Axes, low: Integers, high: Integers) -> Floats:
        """Return the least-squares counts of blocks that are narrowed on some attributes only."""
        lows, highs = np.zeros_like(low), np.broadcast_to(np.array(self.operator.cell_shape) - 1, high.shape).copy()
        lows[:, part], highs[:, part] = low[:, part], high[:, part]
        return self.tables.rectangles(lows, highs, ANY_CONFIDENCE).value

    def _of_box(self, box: Box) -> tuple[float, float]:
        lengths = np.array([box.sizes], dtype=np.float64)
        narrowed = tuple(np.flatnonzero(lengths[0] < np.array(self.operator.cell_shape)).tolist())
        counts = {}
        for part in self._parts_of(narrowed):
            wide = Box(box.shape, tuple(chosen if axis in part else None for axis, chosen in enumerate(box.axes)))
            counts[part] = np.array([answer_of_box(self.tables.residuals, wide, box.shape)])
        value, stddev = self._foretell(narrowed, counts, lengths)
        return float(value[0]), float(stddev[0])

    def _parts_of(self, narrowed: Axes) -> list[Axes]:
        if len(narrowed) > MOST_NARROWED:
            raise QueryError(
                f"maximum entropy foretells conditions on at most {MOST_NARROWED} attributes at once, "
                f"not {len(narrowed)}; ask about fewer, or synthesize rows and count them"
            )
        sets = [part for size in range(len(narrowed) + 1) for part in combinations(narrowed, size)]
        return [part for part in sets if part in self.operator.precisions]

    def _foretell(self, narrowed: Axes, counts: dict[Axes, Floats], lengths: Floats) -> tuple[Floats, Floats]:
        operator = self.operator
        together = part_covariances(operator.cell_shape, operator.precisions, list(counts), lengths)
        if set().union(*counts) < set(narrowed):
            raise QueryError("the release holds no marginal of an attribute that is asked about, so it cannot tell")
        found = foretell(narrowed, counts, together * self.noise.variance)
        return found.counts, found.stddevs

    def _foretold_groups(self, region: Region, axes: Sequence[int]) -> "ForetoldGroups":
        """Foretell each group on its own, then make all of them add up to the count of the region."""
        groups = self._separate_groups(region, axes)
        summed = float(groups.counts.sum())
        scale = max(float(self.region(region, ANY_CONFIDENCE).value), 0.0) / summed if summed > 0 else 1.0
        return replace(groups, counts=groups.counts * scale)

    def _separate_groups(self, region: Region, axes: Sequence[int]) -> "ForetoldGroups":
        shape = tuple(region.shape[axis] for axis in axes)
        if prod(shape) > MOST_GROUPS:
            raise QueryError(f"maximum entropy foretells at most {MOST_GROUPS:,} groups at once; ask for fewer")
        block = region.rectangle()
        if block is not None:
            lows, highs, inside = MarginalsNoise(self.operator, region, tuple(axes)).cut_block(*block, shape)
            counts, stddevs = np.zeros((2, len(inside)))
            found = self.rectangles(lows[inside], highs[inside], ANY_CONFIDENCE)
            counts[inside], stddevs[inside] = found.value, found.stddev
            return ForetoldGroups(counts.reshape(shape), inside.astype(np.int64).reshape(shape), stddevs.reshape(shape))
        each = [self.region(group_of(region, axes, index), ANY_CONFIDENCE) for index in np.ndindex(*shape)]
        held = [bool(group_of(region, axes, index).cells) for index in np.ndindex(*shape)]
        counts, stddevs = (np.array([float(getattr(one, name)) for one in each]) for name in ("value", "stddev"))
        return ForetoldGroups(
            counts.reshape(shape), np.array(held, dtype=np.int64).reshape(shape), stddevs.reshape(shape)
        )


@dataclass(frozen=True, eq=False)
class ForetoldGroups:
    """Groups whose errors are foretold one by one: those of sums are bounded as if all went the same way.

    ``sizes`` say only which groups hold any cell.
    """

    counts: Floats
    sizes: Integers
    stddevs: Floats

    def first(self, size: int) -> "ForetoldGroups":
        """Return the first groups of a single axis only."""
        return ForetoldGroups(self.counts[:size], self.sizes[:size], self.stddevs[:size])

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""
        return _with_normal_interval(self.counts, self.stddevs, confidence)

    def variance_of(self, weights: Floats) -> float:
        """Return a bound on the variance of a weighted sum of the groups."""
        return float(np.abs(weights * self.stddevs).sum() ** 2)

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return a bound on how far a weighted sum of the groups strays with this confidence."""
        return normal_deviations(confidence) * sqrt(self.variance_of(weights))

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return bounds on the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest."""
        bounds: Floats = abs(inside) * self._upto + abs(outside) * (self._upto[-1] - self._upto)
        return np.square(bounds)

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return bounds on the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest."""
        widths: Floats = normal_deviations(confidence) * np.sqrt(self.prefix_variances(inside, outside))
        return widths

    @cached_property
    def _upto(self) -> Floats:
        return np.cumsum(self.stddevs)


def _with_normal_interval(value: Floats, stddev: Floats, confidence: float) -> Estimates:
    width = normal_deviations(confidence) * stddev
    return Estimates(value, np.maximum(value - width, np.minimum(value, 0.0)), value + width, stddev, FORETOLD)
