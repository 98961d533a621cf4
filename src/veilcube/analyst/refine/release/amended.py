"""Estimates whose intervals are amended question by question, in one way for blocks, regions and groups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from veilcube.analyst.estimate import (
    BlockQueries,
    CellQueries,
    CountQueries,
    Estimate,
    Estimates,
    GroupedCounts,
    group_lists,
    queries_about_groups,
    queries_about_region,
)
from veilcube.analyst.refine.facts import Boxes, BoxSums
from veilcube.operators import group_of
from veilcube.schema import Region
from veilcube.system import Floats, Integers


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions as cells, ``asked``, and as sums of boxes: ``sums`` has those with cells, ``held`` tells which."""

    asked: CountQueries
    make_sums: Callable[[Integers], BoxSums]

    @cached_property
    def held(self) -> Integers:
        """The questions that have any cells."""
        return np.flatnonzero(self.asked.sizes > 0)

    @cached_property
    def sums(self) -> BoxSums:
        """The questions that have cells, as sums of boxes."""
        return self.make_sums(self.held)

    @classmethod
    def of_blocks(cls, shape: tuple[int, ...], low: Integers, high: Integers) -> "Questions":
        """Return blocks by their inclusive ends."""
        return cls(BlockQueries(shape, low, high), lambda held: BoxSums(Boxes(shape, low[held], high[held])))

    @classmethod
    def of_region(cls, region: Region) -> "Questions":
        """Return a region as one question."""
        return cls(queries_about_region(region), lambda held: BoxSums.of_regions(region.shape, [region] * len(held)))

    @classmethod
    def of_groups(cls, region: Region, axes: Sequence[int]) -> tuple["Questions", Integers]:
        """Return the groups that a region makes along some axes, and the place of each among all combinations."""
        asked, places = queries_about_groups(region, axes)
        if isinstance(asked, BlockQueries):
            return cls.of_blocks(region.shape, asked.low, asked.high), places
        shape = tuple(region.shape[axis] for axis in axes)

        def make_sums(held: Integers) -> BoxSums:
            index = np.stack(np.unravel_index(places[held], shape), axis=1).tolist()
            return BoxSums.of_regions(region.shape, [group_of(region, axes, one) for one in index])

        return cls(CellQueries(group_lists(region, axes)), make_sums), places


# Given one estimate for each question, and the confidence, returns them with other intervals.
Amend: TypeAlias = Callable[[Estimates, Questions, float], Estimates]


@dataclass(frozen=True, eq=False)
class AmendedEstimate:
    """The answers of another estimate, with amended intervals."""

    inner: Estimate
    amend: Amend

    def cells(self) -> Floats:
        """Return the estimate of every cell."""
        return self.inner.cells()

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        found = self.inner.rectangles(low, high, confidence)
        return self.amend(found, Questions.of_blocks(self._shape, low, high), confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        found = _each(np.ravel, self.inner.region(region, confidence))
        return _each(lambda part: part.reshape(()), self.amend(found, Questions.of_region(region), confidence))

    def grouped(self, region: Region, axes: Sequence[int]) -> "AmendedGroups":
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        return AmendedGroups(self.inner.grouped(region, axes), self.amend, region, tuple(axes))

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return self.inner.cells().shape


@dataclass(frozen=True, eq=False)
class AmendedGroups:
    """Groups whose estimates have amended intervals; as linear statistics of the noise they are as they were."""

    inner: GroupedCounts
    amend: Amend
    region: Region
    axes: tuple[int, ...]

    @property
    def counts(self) -> Floats:
        """The estimated count of each group."""
        return self.inner.counts

    @property
    def sizes(self) -> Integers:
        """How many cells of the cube each group holds."""
        return self.inner.sizes

    def first(self, size: int) -> "AmendedGroups":
        """Return the first groups of a single axis only."""
        return replace(self, inner=self.inner.first(size))

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its amended interval."""
        found = self.inner.estimates(confidence)
        questions, places = Questions.of_groups(self.region, self.axes)
        whole = int(np.prod([self.region.shape[axis] for axis in self.axes]))

        def listed(part: Floats) -> Floats:
            every = np.zeros(whole)
            every[: part.size] = part.ravel()
            return every[places]

        amended = self.amend(_each(listed, found), questions, confidence)

        def placed(part: Floats, before: Floats) -> Floats:
            every = np.zeros(whole)
            every[: before.size] = before.ravel()
            every[places] = part
            return every[: before.size].reshape(before.shape)

        return Estimates(
            placed(amended.value, found.value),
            placed(amended.low, found.low),
            placed(amended.high, found.high),
            placed(amended.stddev, found.stddev),
            found.estimator,
        )

    def variance_of(self, weights: Floats) -> float:
        """Return the noise variance of a weighted sum of the groups."""
        return self.inner.variance_of(weights)

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return w such that the noise of a weighted sum of the groups stays within ±w."""
        return self.inner.half_width_of(weights, confidence)

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        return self.inner.prefix_variances(inside, outside)

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        return self.inner.prefix_half_widths(inside, outside, confidence)


def _each(change: Callable[[Floats], Floats], found: Estimates) -> Estimates:
    value, low, high, stddev = (change(part) for part in (found.value, found.low, found.high, found.stddev))
    return Estimates(value, low, high, stddev, found.estimator)
