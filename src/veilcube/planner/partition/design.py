"""The design of an adaptive release: cells first, then the regions of a partition, and how the budget is divided.

The division and the size of blocks follow from the exact variance of least squares over the workload
(``operators.partition.cells_and_regions``), under one condition: cells keep so much of the budget that no question
about single cells has more than 5% more error than under the identity.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from veilcube.laws import Noise, NoiseCumulants
from veilcube.operators import (
    Blocks,
    CellsAndRegions,
    IdentityOperator,
    Moments,
    NeighbourName,
    OperatorDefaults,
    PairedMoments,
    RegionCounts,
    block_moments,
    cells_of,
)
from veilcube.planner.design import Family, Parts, Planned
from veilcube.privacy import Event, SequentialEvent
from veilcube.query import Workload
from veilcube.schema import Region, Schema
from veilcube.system import Floats, Integers

# Under Gaussian noise squares add up: regions of a quarter of the cells' weight cost the cells 3% of error, as those of
# a thirtieth do under Laplace noise.
SPLITS: Mapping[Family, tuple[Fraction, ...]] = {
    "laplace": (Fraction(30, 31), Fraction(40, 41), Fraction(60, 61), Fraction(100, 101)),
    "gaussian": (Fraction(4, 5), Fraction(9, 11), Fraction(11, 13), Fraction(7, 8)),
}
MOST_GRIDS = 100
MOST_QUERIES = 300


@dataclass(frozen=True)
class AdaptiveDesign:
    """What the two steps measure: the cells with ``split`` of the weight, the regions with the rest.

    ``parts`` cut each axis into blocks; a partition by ``grow`` or ``kd`` is chosen from the noisy cells instead.
    """

    partition: str
    split: Fraction
    parts: tuple[int, ...]
    passes: int
    threshold: float
    gain: ClassVar[float] = 1.0
    tables: ClassVar[None] = None
    suited: ClassVar[None] = None

    @property
    def foreseen(self) -> str:
        """What errors are planned as if it happened: nothing for blocks, which are known beforehand."""
        return "" if self.partition == "blocks" else "planned as if regions were blocks"

    def shares(self, plan: Planned) -> tuple[Fraction, ...]:
        """Return the shares of the budget for the cells and for the regions."""
        return plan.step_spending.shares((self.split, 1 - self.split))

    def laws(self, plan: Planned) -> tuple[Noise, Noise]:
        """Return the noise of the cells and of the regions."""
        cells, regions = map(plan.step_spending.law, self.shares(plan))
        return cells, regions

    def measured(self, plan: Planned) -> Parts:
        """Return the largest measurements that may be published: the cells, and a region for each cell."""
        cells, regions = self.laws(plan)
        schema = plan.schema
        most = prod(self.parts) if self.partition == "blocks" else schema.cells
        return [(IdentityOperator(schema.shape, schema.names), cells), (RegionCounts(schema.shape, most), regions)]

    def variances(self, plan: Planned, workload: Workload) -> Floats:
        """Return the exact variance of the least-squares answer to each query, if the regions are blocks."""
        return self._noise(plan, workload).second

    def mean_variance(self, plan: Planned, workload: Workload) -> float:
        """Return the mean of these variances."""
        return workload.mean(self.variances(plan, workload))

    def half_widths(self, plan: Planned, workload: Workload, confidence: float) -> Floats:
        """Return half the width of the interval of each least-squares answer."""
        return self._noise(plan, workload).half_widths(confidence)

    def _noise(self, plan: Planned, workload: Workload) -> NoiseCumulants:
        """Return the noise of the least-squares answers to a workload if the regions are blocks: two laws of noise."""
        cells, totals = self.laws(plan)
        schema = plan.schema
        grid = Blocks(schema.shape, self.parts)
        found = block_moments(grid, cells.variance, totals.variance, workload.low, workload.high)
        laws = ((found.cells, cells), (found.totals, totals))
        if workload.regions:
            answers = CellsAndRegions(RegionCounts.of(grid.labels), cells.variance, totals.variance, grid)
            for row, region in workload.regions.items():
                single = answers.overlaps.of_lists(cells_of(region)).at(0)
                for many, one in ((found.cells, single.cells), (found.totals, single.totals)):
                    many.second[row], many.fourth[row], many.sixth[row] = one.second, one.fourth, one.sixth
        of_cells, of_totals = (NoiseCumulants.of(law, part.second, part.fourth, part.sixth) for part, law in laws)
        return (of_cells + of_totals).with_weights_up_to(1.0)

    def event(self, plan: Planned) -> Event:
        """Return what is done: two measurements, the second chosen from the output of the first."""
        return SequentialEvent(tuple(map(plan.step_spending.event, self.shares(plan))))


@dataclass(frozen=True)
class CellsAndBlocks(OperatorDefaults):
    """Cells and blocks as one map, each kind of row with a whole multiplier: an adaptive release is planned with it."""

    blocks: Blocks
    multipliers: tuple[int, int]
    dimensions: tuple[str, ...] = ("row",)

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """The shape of the cube that it measures."""
        return self.blocks.shape

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """A row for each cell and each block."""
        return (prod(self.blocks.shape) + prod(self.blocks.parts),)

    @property
    def answers(self) -> "CellsAndBlocks":
        """Itself: the noise of an answer is told in rows."""
        return self

    @cached_property
    def least_squares(self) -> CellsAndRegions:
        """Least squares, in units of the noise of one row."""
        cells, regions = (float(multiplier) ** -2 for multiplier in self.multipliers)
        return CellsAndRegions(RegionCounts.of(self.blocks.labels), cells, regions, self.blocks)

    @property
    def words_to_apply(self) -> int:
        """How many 64-bit words ``apply`` holds at most: cells and blocks, multiplied and joined."""
        return 3 * prod(self.measurement_shape)

    def apply(self, cells: Integers) -> Integers:
        """Return the exact measurements."""
        own, shared = self.multipliers
        return np.concatenate([own * cells.ravel(), shared * self.least_squares.regions.apply(cells)])

    def adjoint(self, measurements: Floats) -> Floats:
        """Return the transposed map applied to measurements."""
        own, shared = self.multipliers
        cells, regions = self._divided(measurements)
        return own * cells + shared * self.least_squares.regions.adjoint(regions)

    def solve(self, measurements: Integers) -> Floats:
        """Return the least-squares estimate of the cells."""
        own, shared = self.multipliers
        cells, regions = self._divided(measurements.astype(np.float64))
        return self.least_squares.solve(cells / own, regions / shared)

    def noise_weights(self, query: Floats) -> Floats:
        """Return by how much each row's noise enters the answer to a query that weighs every cell."""
        return self.least_squares.noise_weights(query)

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return the sum of the multipliers; twice that for an exchanged row, which may leave its block."""
        return sum(self.multipliers) * (1 if neighbours == "add-remove" else 2)

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the sum of the squared multipliers; twice that for an exchanged row, which may leave its block."""
        return sum(multiplier**2 for multiplier in self.multipliers) * (1 if neighbours == "add-remove" else 2)

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Return the variance of the least-squares estimate of each block of cells."""
        return self.moments_of_rectangles(low, high).second

    def variance_of_region(self, region: Region) -> float:
        """Return the variance of the least-squares estimate of the count in a region."""
        return float(self.moments_of_region(region).second)

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of the noise weights of each block of cells."""
        cells, regions = (float(multiplier) ** -2 for multiplier in self.multipliers)
        return self._in_rows(block_moments(self.blocks, cells, regions, low, high))

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of a region."""
        return self.least_squares.moments_of_region(region)

    def _in_rows(self, moments: PairedMoments) -> Moments:
        """Return the moments of the weights of rows, which are multiples of cells and of totals."""
        parts = [(moments.cells, self.multipliers[0]), (moments.totals, self.multipliers[1])]
        second, fourth, sixth = (
            sum(getattr(part, name) / float(multiplier) ** power for part, multiplier in parts)
            for name, power in (("second", 2), ("fourth", 4), ("sixth", 6))
        )
        return Moments(second, fourth, sixth)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"kind": "cells and blocks", "parts": list(self.blocks.parts), "multipliers": list(self.multipliers)}

    def _divided(self, measurements: Floats) -> tuple[Floats, Floats]:
        cells = prod(self.cell_shape)
        return measurements[:cells].reshape(self.cell_shape), measurements[cells:]


def planned_operator(schema: Schema, split: Fraction, parts: tuple[int, ...]) -> CellsAndBlocks:
    """Return what an adaptive release measures if its regions are these blocks."""
    return CellsAndBlocks(Blocks(schema.shape, parts), (split.numerator, split.denominator - split.numerator))


@lru_cache(maxsize=64)
def best_design(
    schema: Schema,
    workload: Workload,
    split: Fraction | None,
    parts: tuple[int, ...] | None,
    family: Family = "laplace",
) -> tuple[Fraction, tuple[int, ...]]:
    """Return the division of the budget and the blocks with the least mean variance over a workload."""
    low, high = workload.low[:MOST_QUERIES], workload.high[:MOST_QUERIES]
    weights = workload.weights[:MOST_QUERIES]
    grids = [parts] if parts is not None else list(_grids(schema.shape))
    splits = SPLITS[family] if split is None else (split,)

    def error(choice: tuple[Fraction, tuple[int, ...]]) -> float:
        operator = planned_operator(schema, *choice)
        variance = float((weights * operator.variance_of_rectangles(low, high)).mean())
        if family == "gaussian":
            return variance * float(operator.sensitivity_l2_squared("add-remove"))
        return variance * float(operator.sensitivity("add-remove")) ** 2

    return min(product(splits, grids), key=error)


def _grids(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Return the grids to compare: powers of two of runs on each axis, on all alike if those are too many."""
    options = [[2**bits for bits in range(size.bit_length()) if 2**bits <= size] for size in shape]
    if prod(map(len, options)) <= MOST_GRIDS:
        yield from product(*options)
        return
    for bits in range(max(shape).bit_length()):
        yield tuple(max(1, size >> bits) for size in shape)
