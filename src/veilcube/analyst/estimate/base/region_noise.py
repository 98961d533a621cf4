"""The noise of groups on any strategy that tells the moments of regions and the noise weights of a query.

Slower than ``ProductNoise`` and for every operator: each group is a region, and a weighted sum is written out as a
query on all cells.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import AnswerMoments, Moments, group_of, union_bound
from veilcube.schema import Region
from veilcube.system import Floats, Integers


@dataclass(frozen=True, eq=False)
class RegionNoise:
    """Moments of the noise of the groups that a region makes along some axes."""

    operator: AnswerMoments
    whole: Region
    axes: tuple[int, ...]

    def of_each(self) -> Moments:
        """Return the moments of every group's count."""
        shape = tuple(self.whole.shape[axis] for axis in self.axes)
        block = self.whole.rectangle()
        if block is not None:
            return self._of_cut_block(*block, shape)
        groups = [group_of(self.whole, self.axes, index) for index in np.ndindex(*shape)]
        return _stack([self.operator.moments_of_region(group) for group in groups], shape)

    def of_weighted(self, weights: Floats) -> Moments:
        """Return the moments of one weighted sum of all groups."""
        order = np.argsort(self.axes)
        spread = np.expand_dims(
            np.transpose(weights, order), [axis for axis in range(len(self.whole.shape)) if axis not in self.axes]
        )
        return Moments.of_weights(self.operator.noise_weights(self.whole.mask() * spread).ravel())

    def of_prefixes(self, inside: float, outside: float, steps: int) -> Moments:
        """Return the moments of the sums that weigh the first groups ``inside`` and the rest ``outside``.

        The variance is exact, from those of the first groups, the rest and all; the higher moments are bounds.
        """
        first = self._cut(lambda cells, k: cells <= k, steps)
        rest = self._cut(lambda cells, k: cells > k, steps)
        everything = self.operator.moments_of_region(self.whole).second
        both = everything - first.second - rest.second
        second = np.maximum(inside**2 * first.second + outside**2 * rest.second + inside * outside * both, 0.0)
        return union_bound(second, [first, rest], (inside, outside))

    def cut_block(
        self, low: Integers, high: Integers, shape: tuple[int, ...]
    ) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """Return one block's groups as blocks, and which of them lie inside it."""
        index = np.indices(shape, dtype=np.int64).reshape(len(shape), -1).T
        lows, highs = np.tile(low, (len(index), 1)), np.tile(high, (len(index), 1))
        lows[:, list(self.axes)] = highs[:, list(self.axes)] = index
        return lows, highs, np.all((low <= lows) & (highs <= high), axis=1)

    def _of_cut_block(self, low: Integers, high: Integers, shape: tuple[int, ...]) -> Moments:
        """Return the moments of every group of one block: blocks themselves, or empty where a group lies outside."""
        lows, highs, inside = self.cut_block(low, high, shape)
        moments = self.operator.moments_of_rectangles(lows[inside], highs[inside])
        found = np.zeros((3, len(inside)))
        found[:, inside] = moments.second, moments.fourth, moments.sixth
        return Moments(*found.reshape(3, *shape), bounded=moments.bounded)

    def _cut(self, keep: Callable[[NDArray[np.int64], int], NDArray[np.bool_]], steps: int) -> Moments:
        (axis,) = self.axes
        shape = self.whole.shape
        cells = np.arange(shape[axis])
        cuts = [self.whole.intersect(Region.on_axis(shape, axis, keep(cells, k))) for k in range(steps)]
        return _stack([self.operator.moments_of_region(cut) for cut in cuts], (steps,))


def _stack(moments: list[Moments], shape: tuple[int, ...]) -> Moments:
    powers = ([getattr(moment, name) for moment in moments] for name in ("second", "fourth", "sixth"))
    arrays = (np.array(power, dtype=np.float64).reshape(shape) for power in powers)
    return Moments(*arrays, bounded=any(moment.bounded for moment in moments))
