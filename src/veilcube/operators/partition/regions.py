"""Counts of the regions of a partition of the cells: what an adaptive release measures beside the cells.

A partition is one label for each cell, 0 up to the number of regions. Blocks (a grid of near-equal boxes) are the
partition that is known before any data is touched; others follow from what was published.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from veilcube.errors import QueryError
from veilcube.operators.base import NeighbourName, OperatorDefaults, read_size
from veilcube.operators.tree import split_runs
from veilcube.query import Factor, LinearQueries
from veilcube.schema import Region, Schema
from veilcube.system import Floats, Integers

MOST_AXES = 32


@dataclass(frozen=True, eq=False)
class RegionCounts(OperatorDefaults):
    """The exact count of every region; regions are disjoint, so a row counts in one of them."""

    cell_shape: tuple[int, ...]
    regions: int
    labels: Integers | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.regions <= prod(self.cell_shape):
            raise ValueError("a partition has at least one region and at most as many as cells")
        if self.labels is not None:
            found = self.labels
            is_fit = found.shape == self.cell_shape and found.min() >= 0 and found.max() < self.regions
            if not is_fit or not np.bincount(found.ravel(), minlength=self.regions).all():
                raise ValueError("the labels of a partition must number its regions, none of them empty")
            found.setflags(write=False)

    @classmethod
    def of(cls, labels: Integers) -> "RegionCounts":
        """Return the counts of the regions that labels tell apart."""
        return cls(labels.shape, int(labels.max()) + 1, labels.astype(np.int64))

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """One number per region."""
        return (self.regions,)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The only axis of the measurements."""
        return ("region",)

    @property
    def array_shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays that a file keeps beside the measured values: the labels."""
        return {"labels": (prod(self.cell_shape),)}

    @property
    def array_dimensions(self) -> dict[str, tuple[str, ...]]:
        """The axes of those arrays: there is a label for each cell, not for each region."""
        return {"labels": ("cell",)}

    def arrays(self) -> dict[str, Integers]:
        """Return the labels, for the file."""
        return {"labels": self.chosen.ravel()}

    def with_arrays(self, arrays: Mapping[str, Integers]) -> "RegionCounts":
        """Return the operator with the labels that a file kept."""
        return replace(self, labels=arrays["labels"].reshape(self.cell_shape))

    @property
    def chosen(self) -> Integers:
        """The region of each cell."""
        if self.labels is None:
            raise ValueError("the regions of this measurement are not known yet")
        return self.labels

    @cached_property
    def sizes(self) -> Integers:
        """How many cells each region has."""
        return np.bincount(self.chosen.ravel(), minlength=self.regions)

    @property
    def words_to_apply(self) -> int:
        """The count of each region."""
        return self.regions

    def apply(self, cells: Integers) -> Integers:
        """Return the exact count of each region, in whole numbers."""
        counts = np.zeros(self.regions, dtype=np.int64)
        np.add.at(counts, self.chosen.ravel(), cells.ravel())
        return counts

    def adjoint(self, measurements: Floats) -> Floats:
        """Return the transposed map: every cell gets the measurement of its region."""
        return np.asarray(measurements, dtype=np.float64)[self.chosen]

    def solve(self, measurements: Integers) -> Floats:
        """Return the least-squares cells of smallest norm: each region's measurement spread evenly."""
        return self.adjoint(measurements / self.sizes)

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return 1 for a row more or less; 2 for an exchanged row, which leaves one region and enters another."""
        return 1 if neighbours == "add-remove" else 2

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the same: each of these regions changes by 1."""
        return self.sensitivity(neighbours)

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Refuse: regions alone do not determine the cells."""
        raise QueryError("the regions of an adaptive release do not answer questions alone; use its estimators")

    def variance_of_region(self, region: Region) -> float:
        """Refuse: regions alone do not determine the cells."""
        raise QueryError("the regions of an adaptive release do not answer questions alone; use its estimators")

    def queries(self, schema: Schema) -> tuple[LinearQueries, Floats]:
        """Return each region as its runs of cells along the last attribute, runs that repeat below as one."""
        labels = self.chosen.reshape(-1, schema.shape[-1])
        starts = np.ones(labels.shape, dtype=np.bool_)
        starts[:, 1:] = labels[:, 1:] != labels[:, :-1]
        line, first = np.nonzero(starts)
        last = np.append(first[1:], 0) - 1
        last[last < 0] = labels.shape[1] - 1
        owner = labels[line, first]
        low = np.column_stack([*np.unravel_index(line, schema.shape[:-1] or (1,)), first])[:, -len(schema) :]
        low, high, owner = _stacked(low, np.column_stack([low[:, :-1], last]), owner)
        order = np.argsort(owner, kind="stable")
        factors = []
        for axis, size in enumerate(schema.shape):
            cells = np.arange(size)
            inside = (cells >= low[order, axis, np.newaxis]) & (cells <= high[order, axis, np.newaxis])
            factors.append(Factor.of_rows(np.arange(order.size), inside.astype(np.float64)))
        return LinearQueries(schema, tuple(factors), owner[order], self.regions), np.ones(self.regions)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from; the labels are kept as an array."""
        return {"kind": "regions", "shape": list(self.cell_shape), "regions": self.regions}


def _stacked(low: Integers, high: Integers, owner: Integers) -> tuple[Integers, Integers, Integers]:
    """Join boxes of one region that continue each other along an attribute, from the last attribute to the first."""
    for axis in reversed(range(low.shape[1] - 1)):
        others = [column for end in (low, high) for column in np.delete(end, axis, axis=1).T]
        order = np.lexsort([low[:, axis], *others, owner])
        low, high, owner = low[order], high[order], owner[order]
        others = [column[order] for column in others]
        follows = (low[1:, axis] == high[:-1, axis] + 1) & (owner[1:] == owner[:-1])
        for column in others:
            follows &= column[1:] == column[:-1]
        begins = np.concatenate([[True], ~follows])
        ends = np.concatenate([~follows, [True]])
        high = np.where(np.arange(high.shape[1]) == axis, high[ends], high[begins])
        low, owner = low[begins], owner[begins]
    return low, high, owner


def read_regions(data: Mapping[str, object]) -> RegionCounts:
    """Rebuild from ``to_dict``, without the labels."""
    shape, regions = data["shape"], data["regions"]
    if not isinstance(shape, list) or not 1 <= len(shape) <= MOST_AXES or type(regions) is not int:
        raise TypeError("a partition has a shape and a number of regions")
    return RegionCounts(tuple(read_size(size) for size in shape), regions)


@dataclass(frozen=True)
class Blocks:
    """A grid of boxes: each axis is cut into so many runs of near-equal length.

    >>> Blocks((4, 6), (2, 3)).labels.tolist()
    [[0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5], [3, 3, 4, 4, 5, 5]]
    """

    shape: tuple[int, ...]
    parts: tuple[int, ...]

    @property
    def edges(self) -> list[Integers]:
        """The boundaries of the runs of each axis."""
        return [
            split_runs(np.array([0, size], dtype=np.int64), parts)
            for size, parts in zip(self.shape, self.parts, strict=True)
        ]

    @property
    def labels(self) -> Integers:
        """The number of each cell's block."""
        numbers = np.zeros((1,) * len(self.shape), dtype=np.int64)
        for axis, (size, edges) in enumerate(zip(self.shape, self.edges, strict=True)):
            runs = np.searchsorted(edges, np.arange(size), side="right") - 1
            ahead = [1] * len(self.shape)
            ahead[axis] = size
            numbers = numbers * (edges.size - 1) + runs.reshape(ahead)
        return np.ascontiguousarray(np.broadcast_to(numbers, self.shape))


def block_parts(shape: Sequence[int], sides: Sequence[int]) -> tuple[int, ...]:
    """Return into how many runs each axis is cut for blocks of about these sides."""
    return tuple(max(1, round(size / side)) for size, side in zip(shape, sides, strict=True))
