"""The noise of groups on a product strategy: what is kept separates from what is summed out.

The cells of the kept attributes fall into parts: two cells belong to one part if the region has the same cells of the
summed-out attributes below both. A single box is one part. A weighted sum of groups is Σ_parts (weights on the part) x
(what is summed out below it), so its noise weights are sums of products, one for each part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import AxisOperator, Moments, ProductOperator, union_bound
from veilcube.schema import Box, Region
from veilcube.system import Floats

_ENTRIES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class ProductNoise:
    """Moments of the noise of groups: the kept axes, their parts, and the moments of what is summed out below each.

    ``products`` are the inner products of the noise weights of what is summed out, between parts.
    """

    kept: ProductOperator
    parts: tuple[NDArray[np.bool_], ...]
    below: tuple[Moments, ...]
    products: Floats

    @classmethod
    def of(cls, operator: ProductOperator, region: Region, axes: Sequence[int]) -> "ProductNoise":
        """Find the parts of the kept axes that a region makes."""
        others = [axis for axis in range(len(operator.axes)) if axis not in axes]
        kept, rest = _some(operator, axes), _some(operator, others)
        part_of, members = _parts_of(region, axes)
        masks = tuple(part_of == number for number in range(len(members)))
        regions = [_project(region, boxes, others) for boxes in members]
        below = tuple(rest.moments_of_region(part) if others else _ONE for part in regions)
        products = rest.covariances(regions) if others else np.ones((len(regions), len(regions)))
        return cls(kept, masks, below, products)

    def of_each(self) -> Moments:
        """Return the moments of every group's count."""
        shape = self.kept.cell_shape
        found = Moments(*np.zeros((3, *shape)), bounded=any(below.bounded for below in self.below))
        cells = reduce(_outer, (_cell_moments(axis) for axis in self.kept.axes))
        for mask, below in zip(self.parts, self.below, strict=True):
            found.second[mask] = (cells.second * below.second)[mask]
            found.fourth[mask] = (cells.fourth * below.fourth)[mask]
            found.sixth[mask] = (cells.sixth * below.sixth)[mask]
        return found

    def of_weighted(self, weights: Floats) -> Moments:
        """Return the moments of one weighted sum of all groups."""
        noise = np.array([self.kept.noise_weights(weights * mask).ravel() for mask in self.parts])
        return self._joined(noise.reshape(len(self.parts), 1, -1 if self.parts else 0), ())

    def of_prefixes(self, inside: float, outside: float, steps: int) -> Moments:
        """Return the moments of the sums that weigh the first groups ``inside`` and the rest ``outside``."""
        (axis,) = self.kept.axes
        runs = [_run_of(mask) for mask in self.parts]
        if len(runs) == 1 and runs[0] is not None:
            first, last = runs[0]
            middle = np.clip(np.arange(steps) + 1, first, last + 1)
            cuts = np.stack([np.full(steps, first), middle, np.full(steps, last + 1)], axis=1)
            values = np.broadcast_to(np.array([0.0, inside, outside, 0.0]), (steps, 4))
            return axis.moments_of_steps(cuts, values) * self.below[0]
        return self._prefixes_written_out(axis, inside, outside, steps)

    def _prefixes_written_out(self, axis: AxisOperator, inside: float, outside: float, steps: int) -> Moments:
        bounded = len(self.parts) > 1 or any(below.bounded for below in self.below)
        found = Moments(*np.empty((3, steps)), bounded=bounded)
        cells, at_once = np.arange(axis.size), max(1, _ENTRIES_AT_ONCE // (axis.rows * max(1, len(self.parts))))
        for start in range(0, steps, at_once):
            chunk = slice(start, min(start + at_once, steps))
            weights = np.where(cells <= np.arange(steps)[chunk, np.newaxis], inside, outside)
            noise = np.array([axis.noise_weights(weights * mask) for mask in self.parts])
            joined = self._joined(noise, (chunk.stop - start,))
            found.second[chunk], found.fourth[chunk], found.sixth[chunk] = joined.second, joined.fourth, joined.sixth
        return found

    def _joined(self, noise: Floats, shape: tuple[int, ...]) -> Moments:
        """Join the parts' noise weights on the kept axes, (parts, queries, rows), with what is summed out below."""
        if not self.parts:
            return Moments(*np.zeros((3, *shape))) if shape else Moments(np.zeros(()), np.zeros(()), np.zeros(()))
        own = [_reshape(Moments.of_weights(part) * below, shape) for part, below in zip(noise, self.below, strict=True)]
        if len(own) == 1:
            return own[0]
        second = np.einsum("pkr,qkr,pq->k", noise, noise, self.products, optimize=True).reshape(shape)
        return union_bound(np.maximum(second, 0.0), own)


_ONE = Moments(np.ones(()), np.ones(()), np.ones(()))


def _some(operator: ProductOperator, axes: Sequence[int]) -> ProductOperator:
    return ProductOperator(
        tuple(operator.axes[axis] for axis in axes), tuple(operator.dimensions[axis] for axis in axes)
    )


def _cell_moments(axis: AxisOperator) -> Moments:
    """Return the moments of each single cell of an axis."""
    cells = np.arange(axis.size, dtype=np.int64)
    values = np.broadcast_to(np.array([0.0, 1.0, 0.0]), (axis.size, 3))
    return axis.moments_of_steps(np.stack([cells, cells + 1], axis=1), values)


def _reshape(moments: Moments, shape: tuple[int, ...]) -> Moments:
    powers = (moments.second, moments.fourth, moments.sixth)
    return Moments(*(power.reshape(shape) for power in powers), bounded=moments.bounded)


def _outer(left: Moments, right: Moments) -> Moments:
    pairs = ((left.second, right.second), (left.fourth, right.fourth), (left.sixth, right.sixth))
    return Moments(*(np.multiply.outer(ours, theirs) for ours, theirs in pairs))


def _parts_of(region: Region, axes: Sequence[int]) -> tuple[NDArray[np.int64], list[tuple[int, ...]]]:
    """Return the part of each cell of the kept axes (-1 outside the region), and the boxes that lie above each part."""
    shape = tuple(region.shape[axis] for axis in axes)
    part_of = np.full(shape, -1, dtype=np.int64)
    members: list[tuple[int, ...]] = []
    for number, box in enumerate(region.boxes):
        target = np.ix_(*(box.indices(axis) for axis in axes))
        reached = part_of[target]
        for old in np.unique(reached):
            members.append((*(members[old] if old >= 0 else ()), number))
            reached = np.where(part_of[target] == old, len(members) - 1, reached)
        part_of[target] = reached
    used, numbers = np.unique(part_of, return_inverse=True)
    kept = [members[old] for old in used if old >= 0]
    return numbers.reshape(shape) - int(used[0] < 0), kept


def _project(region: Region, boxes: Sequence[int], axes: Sequence[int]) -> Region:
    """Return the summed-out cells of some boxes of a region; below one group, they are disjoint."""
    shape = tuple(region.shape[axis] for axis in axes)
    chosen = (region.boxes[number] for number in boxes)
    return Region(shape, tuple(Box(shape, tuple(box.axes[axis] for axis in axes)) for box in chosen))


def _run_of(mask: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Return the first and last cell of a mask that is one run, else None."""
    chosen = np.flatnonzero(mask)
    return (int(chosen[0]), int(chosen[-1])) if chosen[-1] - chosen[0] + 1 == chosen.size else None
