"""The Haar transform of an ordinal attribute, in whole numbers: the total, and left sum minus right sum of every node.

Privelet (Xiao, Wang and Gehrke 2011) adds to coefficient c noise of scale λ / W(c). Weight times coefficient is the
difference of the two halves' sums, so in these integer rows all noise is of one scale λ; a cell touches the total and
one node a level, 1 + ceil(log2 n) rows with entries ±1, which is the transform's generalised sensitivity (Lemma 2).

Sizes that are no power of two are split near the middle and never padded: n cells make n rows, the map is one to one,
and a query for everything uses the total alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.axis import AxisMoments, Floats, Integers, read_size
from veilcube.operators.exchange import ColumnPair, farthest
from veilcube.operators.inside import InsideAxis, Way, in_tiles
from veilcube.operators.moments import Moments
from veilcube.operators.tree_shape import build_shape, levels_of_fanouts
from veilcube.operators.wavelet_kernels import haar_pass
from veilcube.operators.wavelet_tree import WaveletTree


@dataclass(frozen=True)
class HaarAxis(InsideAxis, AxisMoments):
    """One row for the total (row 0) and one for each inner node, at the first cell of its right half.

    >>> HaarAxis(8).apply(np.array([9, 3, 6, 2, 8, 4, 5, 7])).tolist()
    [44, 6, 4, 4, -4, 4, 0, -2]
    >>> HaarAxis(8).variance_of_ranges(np.array([0, 3]), np.array([7, 4])).tolist()
    [1.0, 0.6875]
    """

    size: int

    @property
    def rows(self) -> int:
        """As many as cells."""
        return self.size

    @cached_property
    def tree(self) -> WaveletTree:
        """The halves of halves; built on first use."""
        halvings = max(self.size - 1, 1).bit_length() if self.size > 1 else 0
        return WaveletTree.of(build_shape(self.size, levels_of_fanouts(self.size, (1, *(2,) * (halvings - 1)))))

    @cached_property
    def _pairs(self) -> Integers:
        """The first cells of the two halves of each inner node, parents before children."""
        first = np.zeros(self.tree.parent.size, dtype=np.int64)
        first[self.tree.cell_row] = np.arange(self.size)
        first[: self.tree.shape.inner] = self.tree.shape.first
        splits = self.tree.shape.child_count > 0
        right = self.tree.shape.child_start[splits] + 1
        return np.stack([self.tree.shape.first[splits], first[right]], axis=1)

    @cached_property
    def bands(self) -> Integers:
        """The level of each row: 0 for the total, 1 for the first halving, and so on."""
        splits = np.flatnonzero(self.tree.shape.child_count > 0)
        found = np.zeros(self.size, dtype=np.int64)
        found[self._pairs[:, 1]] = self.tree.depth[splits] + 1
        return found

    def along(self, way: Way, block: NDArray[Any], *, may_overwrite: bool) -> NDArray[Any]:
        """Apply the map, its transpose, its inverse or that one's transpose to every vector of a block."""
        upwards = way in ("apply", "noise_weights")
        kind: Any = np.int64 if way == "apply" else np.float64
        factor = kind(1) if way in ("apply", "adjoint") else kind(0.5)
        return in_tiles(
            lambda source, target, width, start, stop: haar_pass(
                source, target, self._pairs, upwards, factor, width, start, stop
            ),
            block, self.size, self.size, kind, may_overwrite=may_overwrite,
        )  # fmt: skip

    def column_sums(self) -> Integers:
        """Return 1 for the total and 1 for each level above the cell."""
        return 1 + self.tree.depth[self.tree.cell_row]

    def column_pairs(self) -> tuple[ColumnPair, ...]:
        """Return how two cells' columns may differ: signs agree above the node that parts them, and differ there.

        Of all pairs parted at nodes of one depth, the deepest have the most rows of their own.
        """
        tree, splits = self.tree, np.flatnonzero(self.tree.shape.child_count > 0)
        left = tree.shape.child_start[splits]
        kinds = (tree.depth[splits] << 16) | (tree.height[left] << 8) | tree.height[left + 1]
        parted = {
            ColumnPair((kind >> 16) + 1, ((1, -1),), (kind >> 8) & 255, kind & 255)
            for kind in np.unique(kinds).tolist()
        }
        return farthest({ColumnPair(same=tree.deepest + 1), *parted})

    def least_shared(self) -> int:
        """Return 0: what two columns share has signs, and ``column_pairs`` tells it."""
        return 0 if self.size > 1 else 1

    def moments_of_steps(self, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of step functions, in the time of the paths to their cuts."""
        return self.tree.moments_of_steps(cuts, values, np.ones(self.tree.shape.inner), 1.0, is_paired=True)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "haar", "size": self.size}


def read_haar_axis(data: Mapping[str, object]) -> HaarAxis:
    """Rebuild from ``to_dict``; no array is made."""
    return HaarAxis(read_size(data["size"]))
