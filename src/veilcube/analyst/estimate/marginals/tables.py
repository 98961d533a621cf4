"""Least squares on marginals, without the cube: every component is estimated from all tables that hold it.

The tables of a release are made consistent in one step (``operators.marginals.components``): a table over any
attributes that stand together in a measured one is a sum of components, so the same answer follows from whichever table
it is read off.
Only ``cells`` writes the cube out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from veilcube.analyst.estimate.base import Estimates, LinearGroups, RegionNoise, with_intervals
from veilcube.errors import QueryError
from veilcube.laws import Noise
from veilcube.operators import Axes, BlockSums, MarginalsOperator, Moments, group_of
from veilcube.schema import Box, Region
from veilcube.system import Floats, Integers, available_memory

# A group of a wide cube may hold more cells than 64 bits count; nobody needs to know how many more.
LARGEST_SIZE = 2**62


class MarginalsEstimate:
    """The least-squares answers of a release of marginals."""

    def __init__(self, operator: MarginalsOperator, values: Integers, noise: Noise) -> None:
        self._operator, self._values, self._noise = operator, values, noise
        self._sums: dict[Axes, BlockSums[np.float64]] = {}

    @cached_property
    def residuals(self) -> dict[Axes, Floats]:
        """The least-squares estimate of every measured component."""
        return self._operator.residuals(self._values)

    def table(self, axes: Axes) -> Floats:
        """Return the estimated table over attributes, sorted, that stand together in a measured one."""
        shape = self._operator.sizes(axes)
        table = np.zeros(shape)
        for size in range(len(axes) + 1):
            for component in combinations(axes, size):
                part = self.residuals[component]
                spread = np.expand_dims(part, [place for place, axis in enumerate(axes) if axis not in component])
                table += spread / (table.size // part.size)
        return table

    def cells(self) -> Floats:
        """Return the least-squares estimate of every cell; refuses a cube that does not fit into memory."""
        if 16 * prod(self._operator.cell_shape) > available_memory():
            raise QueryError(
                "the cube of this release has more cells than fit into memory; ask for counts or marginals instead"
            )
        return self._operator.solve(self._values)

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        return with_intervals(
            self._values_of(low, high), self._operator.moments_of_rectangles(low, high), self._noise, confidence
        )

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        moments = self._operator.moments_of_region(region)
        return with_intervals(np.asarray(self._value_of(region)), moments, self._noise, confidence)

    def grouped(self, region: Region, axes: Sequence[int]) -> LinearGroups:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        noise = MarginalsNoise(self._operator, region, tuple(axes))
        shape = tuple(region.shape[axis] for axis in axes)
        block = region.rectangle()
        if block is None:
            groups = [group_of(region, axes, index) for index in np.ndindex(*shape)]
            counts = np.array([self._value_of(group) for group in groups]).reshape(shape)
            cells = np.array([min(group.cells, LARGEST_SIZE) for group in groups], dtype=np.int64).reshape(shape)
            return LinearGroups(counts, cells, self._noise, noise)
        lows, highs, inside = noise.cut_block(*block, shape)
        counts, cells = np.zeros(len(inside)), np.zeros(len(inside), dtype=np.int64)
        counts[inside] = self._values_of(lows[inside], highs[inside])
        others = [axis for axis in range(len(region.shape)) if axis not in axes]
        cells[inside] = min(prod(int(high - low) + 1 for low, high in np.stack(block, axis=1)[others]), LARGEST_SIZE)
        return LinearGroups(counts.reshape(shape), cells.reshape(shape), self._noise, noise)

    def _values_of(self, low: Integers, high: Integers) -> Floats:
        values = np.empty(len(low))
        for narrowed, chosen in self._operator.by_narrowed(low, high):
            if narrowed not in self._sums:
                self._sums[narrowed] = BlockSums(self.table(narrowed) if narrowed else self.table(()).reshape(1))
            axes = list(narrowed)
            ends = (
                (low[chosen][:, axes], high[chosen][:, axes]) if axes else (np.zeros((chosen.size, 1), np.int64),) * 2
            )
            values[chosen] = self._sums[narrowed](*ends)
        # An inverted block narrows nothing and holds nothing.
        values[(low > high).any(axis=1)] = 0.0
        return values

    def _value_of(self, region: Region) -> float:
        return sum(answer_of_box(self.residuals, box, region.shape) for box in region.boxes)


def answer_of_box(residuals: dict[Axes, Floats], box: Box, shape: Sequence[int]) -> float:
    """Return Σ_R Π_{i∉R} share_i · (sum of r_R over the box's cells): the least-squares count of one box."""
    shares = np.array(box.sizes, dtype=np.float64) / np.array(shape, dtype=np.float64)
    narrowed = {axis for axis, share in enumerate(shares.tolist()) if share < 1}
    total = 0.0
    for component, part in residuals.items():
        if narrowed.issuperset(component):
            inside = part[np.ix_(*(box.indices(axis) for axis in component))] if component else part
            total += float(np.delete(shares, list(component)).prod() * inside.sum())
    return total


@dataclass(frozen=True, eq=False)
class MarginalsNoise(RegionNoise):
    """The noise of groups on marginals: weighted sums are products of one factor an attribute, never a cube."""

    operator: MarginalsOperator

    def of_weighted(self, weights: Floats) -> Moments:
        """Return the moments of one weighted sum of all groups."""
        first, *others = self.axes
        products = []
        for box in self.whole.boxes:
            masks = [box.mask(axis).astype(np.float64) for axis in range(len(self.whole.shape))]
            for index in np.ndindex(*(self.whole.shape[axis] for axis in others)):
                factors = list(masks)
                factors[first] = masks[first] * weights[(slice(None), *index)]
                for axis, cell in zip(others, index, strict=True):
                    factors[axis] = masks[axis] * (np.arange(masks[axis].size) == cell)
                products.append(factors)
        return Moments.of_weights(self.operator.noise_weights_of_products(products))
