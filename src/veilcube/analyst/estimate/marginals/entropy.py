"""How a release of marginals answers what its tables do not hold: by maximum entropy, and it says so.

A table over two attributes says nothing certain about three. Where the tables determine an answer it is least squares'
own; elsewhere every block is imputed from its parts that stand in measured tables (``coarse_entropy``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod, sqrt

import numpy as np

from veilcube.analyst.estimate.base import Estimates, GroupedCounts
from veilcube.analyst.estimate.marginals.coarse_entropy import Imputed, impute
from veilcube.analyst.estimate.marginals.tables import MarginalsEstimate, MarginalsNoise, answer_of_box
from veilcube.errors import QueryError
from veilcube.laws import Noise, normal_quantile
from veilcube.operators import Axes, MarginalsOperator, group_of, part_covariances
from veilcube.record import ReleaseRecord
from veilcube.schema import Box, Region
from veilcube.system import Floats, Integers

IMPUTED, TOLD = "max_entropy", "least_squares"
MOST_NARROWED, MOST_GROUPS = 8, 100_000
ANY_CONFIDENCE = 0.95


@dataclass(frozen=True)
class MarginalMaxEntropy:
    """What is best on marginals: the tables themselves where they hold the answer, maximum entropy where not."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return IMPUTED

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the release is of marginals."""
        return len(record.measurements) == 1 and record.measurements[0].tables is not None

    def fit(self, record: ReleaseRecord) -> "MarginalsFirstEstimate":
        """Return its answers about this release."""
        measurement = record.measurements[0]
        if measurement.tables is None:
            raise TypeError("a release of marginals was expected")
        tables = MarginalsEstimate(measurement.tables, measurement.values, measurement.noise)
        return MarginalsFirstEstimate(measurement.tables, tables, measurement.noise)


@dataclass(frozen=True, eq=False)
class MarginalsFirstEstimate:
    """Least squares on tables, and maximum entropy for what they do not determine."""

    operator: MarginalsOperator
    tables: MarginalsEstimate
    noise: Noise

    def cells(self) -> Floats:
        """Return the least-squares estimate of every cell, of least norm."""
        return self.tables.cells()

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block, each in the better way."""
        is_held = self.operator.holds(low, high)
        if is_held.all():
            return replace(self.tables.rectangles(low, high, confidence), estimator=TOLD)
        imputed = _with_interval(self._imputed_rectangles(low[~is_held], high[~is_held]), confidence)
        if not is_held.any():
            return imputed
        told, found = self.tables.rectangles(low[is_held], high[is_held], confidence), np.empty((4, len(low)))
        for row, name in zip(found, ("value", "low", "high", "stddev"), strict=True):
            row[is_held], row[~is_held] = getattr(told, name), getattr(imputed, name)
        return Estimates(found[0], found[1], found[2], found[3], f"{TOLD}, {IMPUTED}")

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region; one of several boxes as if all their errors went the same way."""
        try:
            return replace(self.tables.region(region, confidence), estimator=TOLD)
        except QueryError:
            return _with_interval(self._imputed_region(region), confidence)

    def grouped(self, region: Region, axes: Sequence[int]) -> GroupedCounts:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        try:
            found = self.tables.grouped(region, axes)
            found.estimates(ANY_CONFIDENCE)
        except QueryError:
            return self._imputed_groups(region, axes)
        return found

    def _imputed_region(self, region: Region) -> Imputed:
        parts = [self._of_box(box) for box in region.boxes]
        found = Imputed.of_parts(parts, lambda arrays: np.asarray(np.sum(arrays, axis=0)).reshape(()))
        # All boxes together hold no more rows than there are.
        everybody = self.tables.region(Region.everything(region.shape), ANY_CONFIDENCE)
        if everybody.value < found.most:
            return replace(found, most=np.maximum(everybody.value, found.counts), noise_of_most=everybody.stddev)
        return found

    def _imputed_rectangles(self, low: Integers, high: Integers) -> Imputed:
        if len(low) > MOST_GROUPS:
            raise QueryError(
                f"maximum entropy imputes at most {MOST_GROUPS:,} counts that lie in no measured table at once, not "
                f"{len(low):,}; ask for fewer, for marginals, or with estimator='least_squares'"
            )
        lengths = (high - low + 1).astype(np.float64)
        kinds, owner = np.unique(lengths < np.array(self.operator.cell_shape), axis=0, return_inverse=True)
        found, places = [], []
        for number, kind in enumerate(kinds):
            chosen = np.flatnonzero(owner.ravel() == number)
            narrowed = tuple(np.flatnonzero(kind).tolist())
            counts = {part: self._counts_of_part(part, low[chosen], high[chosen]) for part in self._parts_of(narrowed)}
            found.append(self._impute(narrowed, counts, lengths[chosen]))
            places.append(chosen)
        order = np.argsort(np.concatenate(places))
        return Imputed.of_parts(found, lambda parts: np.concatenate(parts)[order])

    def _counts_of_part(self, part: Axes, low: Integers, high: Integers) -> Floats:
        """Return the least-squares counts of blocks that are narrowed on some attributes only."""
        lows, highs = np.zeros_like(low), np.broadcast_to(np.array(self.operator.cell_shape) - 1, high.shape).copy()
        lows[:, part], highs[:, part] = low[:, part], high[:, part]
        return self.tables.rectangles(lows, highs, ANY_CONFIDENCE).value

    def _of_box(self, box: Box) -> Imputed:
        lengths = np.array([box.sizes], dtype=np.float64)
        narrowed = tuple(np.flatnonzero(lengths[0] < np.array(self.operator.cell_shape)).tolist())
        counts = {}
        for part in self._parts_of(narrowed):
            wide = Box(box.shape, tuple(chosen if axis in part else None for axis, chosen in enumerate(box.axes)))
            counts[part] = np.array([answer_of_box(self.tables.residuals, wide, box.shape)])
        return self._impute(narrowed, counts, lengths)

    def _parts_of(self, narrowed: Axes) -> list[Axes]:
        if len(narrowed) > MOST_NARROWED:
            raise QueryError(
                f"maximum entropy imputes conditions on at most {MOST_NARROWED} attributes at once, "
                f"not {len(narrowed)}; ask about fewer, or synthesize rows and count them"
            )
        sets = [part for size in range(len(narrowed) + 1) for part in combinations(narrowed, size)]
        return [part for part in sets if part in self.operator.precisions]

    def _impute(self, narrowed: Axes, counts: dict[Axes, Floats], lengths: Floats) -> Imputed:
        operator = self.operator
        together = part_covariances(operator.cell_shape, operator.precisions, list(counts), lengths)
        if set().union(*counts) < set(narrowed):
            raise QueryError("the release holds no marginal of an attribute that is asked about, so it cannot tell")
        return impute(narrowed, counts, together * self.noise.variance)

    def _imputed_groups(self, region: Region, axes: Sequence[int]) -> "ImputedGroups":
        """Impute each group on its own, then make all of them add up to the count of the region."""
        groups = self._separate_groups(region, axes)
        summed = float(groups.counts.sum())
        scale = max(float(self.region(region, ANY_CONFIDENCE).value), 0.0) / summed if summed > 0 else 1.0
        return replace(groups, imputed=replace(groups.imputed, counts=groups.counts * scale))

    def _separate_groups(self, region: Region, axes: Sequence[int]) -> "ImputedGroups":
        shape = tuple(region.shape[axis] for axis in axes)
        if prod(shape) > MOST_GROUPS:
            raise QueryError(f"maximum entropy imputes at most {MOST_GROUPS:,} groups at once; ask for fewer")
        block = region.rectangle()
        if block is None:
            each = [group_of(region, axes, index) for index in np.ndindex(*shape)]
            held = np.array([bool(group.cells) for group in each], dtype=np.int64).reshape(shape)
            found = Imputed.of_parts([self._found(group) for group in each], lambda parts: np.reshape(parts, shape))
            return ImputedGroups(found, held)
        lows, highs, inside = MarginalsNoise(self.operator, region, tuple(axes)).cut_block(*block, shape)
        lows, highs = lows[inside], highs[inside]
        is_held = self.operator.holds(lows, highs)
        parts, places = [Imputed.told(np.zeros(len(inside)), np.zeros(len(inside)))], np.flatnonzero(inside)
        if is_held.any():
            told = self.tables.rectangles(lows[is_held], highs[is_held], ANY_CONFIDENCE)
            parts.append(Imputed.told(told.value, told.stddev))
        if not is_held.all():
            parts.append(self._imputed_rectangles(lows[~is_held], highs[~is_held]))
        order = [places[is_held]] * bool(is_held.any()) + [places[~is_held]] * bool(not is_held.all())

        def placed(arrays: list[Floats]) -> Floats:
            every = arrays[0].copy()
            for where, array in zip(order, arrays[1:], strict=True):
                every[where] = array
            return every.reshape(shape)

        return ImputedGroups(Imputed.of_parts(parts, placed), inside.astype(np.int64).reshape(shape))

    def _found(self, region: Region) -> Imputed:
        try:
            told = self.tables.region(region, ANY_CONFIDENCE)
        except QueryError:
            return self._imputed_region(region)
        return Imputed.told(told.value, told.stddev)


@dataclass(frozen=True, eq=False)
class ImputedGroups:
    """Groups whose errors are imputed one by one: those of sums are bounded as if all went the same way.

    ``sizes`` say only which groups hold any cell.
    """

    imputed: Imputed
    sizes: Integers

    @property
    def counts(self) -> Floats:
        """The estimated count of each group."""
        return self.imputed.counts

    @property
    def stddevs(self) -> Floats:
        """How far each group may be off."""
        return self.imputed.stddevs

    def first(self, size: int) -> "ImputedGroups":
        """Return the first groups of a single axis only."""
        return ImputedGroups(Imputed.of_parts([self.imputed], lambda parts: parts[0][:size]), self.sizes[:size])

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""
        return _with_interval(self.imputed, confidence)

    def variance_of(self, weights: Floats) -> float:
        """Return a bound on the variance of a weighted sum of the groups."""
        return float(np.abs(weights * self.stddevs).sum() ** 2)

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return a bound on how far a weighted sum of the groups strays with this confidence."""
        return normal_quantile(confidence) * sqrt(self.variance_of(weights))

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return bounds on the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest."""
        bounds: Floats = abs(inside) * self._upto + abs(outside) * (self._upto[-1] - self._upto)
        return np.square(bounds)

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return bounds on the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest."""
        widths: Floats = normal_quantile(confidence) * np.sqrt(self.prefix_variances(inside, outside))
        return widths

    @cached_property
    def _upto(self) -> Floats:
        return np.cumsum(self.stddevs)


def _with_interval(found: Imputed, confidence: float) -> Estimates:
    low, high = found.interval(normal_quantile(confidence))
    return Estimates(found.counts, low, high, found.stddevs, IMPUTED)
