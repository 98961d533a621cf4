"""The Haar transform of an ordinal attribute, in whole numbers: the total, and left sum minus right sum of every node.

Privelet (Xiao, Wang and Gehrke 2011) adds to coefficient c noise of scale λ / W(c). Weight times coefficient is the
difference of the two halves' sums, so in these integer rows all noise is of one scale λ; a cell touches the total and
one node a level, 1 + ceil(log2 n) rows with entries ±1, which is the transform's generalised sensitivity (Lemma 2).

Sizes that are no power of two are split near the middle and never padded: n cells make n rows, the map is one to one,
and a query for everything uses the total alone. Where a node of n cells is split follows from n, so no tree is kept:
the left half has n // 2 cells.

Proved in docs/proofs/wavelets.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.operators.base import (
    AxisMoments,
    ColumnPair,
    ColumnProducts,
    InsideAxis,
    Moments,
    RangeReader,
    Way,
    farthest,
    farthest_products,
    in_tiles,
    read_size,
)
from veilcube.operators.wavelet.loops import haar_pass, read_up_to
from veilcube.system import Floats, Integers, compiled, share_out

# Ranges of axes with more cells have noise weights that are sparse enough to be told so.
_LONG = 2_048


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

    @property
    def depth(self) -> int:
        """How many levels of halves there are: ceil(log2 n)."""
        return (self.size - 1).bit_length()

    @property
    def largest_column(self) -> int:
        """The largest L1 norm of a column: the total, and one node of each level."""
        return 1 + self.depth

    @cached_property
    def _levels(self) -> list[Integers]:
        """For each level the first cells of the two halves of every node that it splits."""
        found, boundaries = [], np.array([0, self.size], dtype=np.int64)
        for _ in range(self.depth):
            first, lengths = boundaries[:-1], np.diff(boundaries)
            middle = (first + lengths // 2)[lengths > 1]
            found.append(np.stack([first[lengths > 1], middle], axis=1))
            boundaries = np.insert(boundaries, np.flatnonzero(lengths > 1) + 1, middle)
        return found

    @cached_property
    def _pairs(self) -> Integers:
        """The first cells of the two halves of each inner node, parents before children."""
        return np.concatenate([np.empty((0, 2), dtype=np.int64), *self._levels])

    def range_weights(self, low: Integers, high: Integers) -> "scipy.sparse.csr_array | None":
        """Return the noise weights of inclusive ranges, a path of nodes for each end; None where the axis is short."""
        return haar_range_weights(self.size, low, high) if self.size > _LONG else None

    def range_reader(self, measurements: Integers) -> RangeReader | None:
        """Return what halves totals on the way to the ends of ranges; None where the axis is short."""
        if self.size <= _LONG:
            return None
        return lambda low, high: read_up_to(measurements, high + 1) - read_up_to(measurements, low)

    @property
    def has_bands(self) -> bool:
        """True."""
        return True

    @cached_property
    def bands(self) -> Integers:
        """The level of each row: 0 for the total, 1 for the first halving, and so on."""
        found = np.zeros(self.size, dtype=np.int64)
        for level, pairs in enumerate(self._levels, start=1):
            found[pairs[:, 1]] = level
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
        boundaries, sums = np.array([0, self.size], dtype=np.int64), np.ones(self.size, dtype=np.int64)
        for pairs in self._levels:
            lengths = np.diff(boundaries)
            sums += np.repeat(lengths > 1, lengths)
            boundaries = np.insert(boundaries, np.searchsorted(boundaries, pairs[:, 1]), pairs[:, 1])
        return sums

    def column_pairs(self) -> tuple[ColumnPair, ...]:
        """Return how two cells' columns may differ: signs agree above the node that parts them, and differ there.

        Of all pairs parted at nodes of one length, the deepest have the most rows of their own.
        """
        parted = (ColumnPair(depth + 1, ((1, -1),), left, right) for depth, left, right in self._partings())
        return farthest({ColumnPair(same=self.largest_column), *parted})

    @property
    def largest_square(self) -> int:
        """The largest squared L2 norm of a column: all its entries are 1 or -1."""
        return self.largest_column

    def column_products(self) -> tuple[ColumnProducts, ...]:
        """Return the inner products of two cells' columns: the node that parts them takes 1 off what they share."""
        parted = (ColumnProducts(depth + 2 + left, depth + 2 + right, depth) for depth, left, right in self._partings())
        return farthest_products(parted, self.largest_square)

    def _partings(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each depth and length of a node how many rows the deepest cells of its halves have below it."""
        lengths = {self.size: 1}
        for depth in range(self.depth):
            for length in (length for length in lengths if length > 1):
                left, right = ((half - 1).bit_length() for half in (length // 2, length - length // 2))
                yield depth, left, right
            lengths = _halved(lengths)

    def least_shared(self) -> int:
        """Return 0: what two columns share has signs, and ``column_pairs`` tells it."""
        return 0 if self.size > 1 else 1

    def moments_of_steps(self, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of step functions, in the time of the paths to their cuts."""
        cuts = np.ascontiguousarray(cuts, dtype=np.int64)
        values = np.ascontiguousarray(values, dtype=np.float64)
        found = np.zeros((len(cuts), 3))
        share_out(
            lambda start, stop: _step_moments(self.size, cuts, values, found, start, stop), len(cuts), 64 * len(cuts)
        )
        return Moments(*np.ascontiguousarray(found.T))

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "haar", "size": self.size}


def haar_range_weights(size: int, low: Integers, high: Integers) -> "scipy.sparse.csr_array":
    """Return A (A'A)^-1 q of each inclusive range q as sparse rows: one of a million cells touches forty of them.

    A node's mean is the plain one of its halves' means, and its row's weight half of the left mean less the right one.
    The first b cells have the means 1 and 0 but for the nodes that b cuts, one at each level, so those are all the
    rows that count; a range is the difference of two such beginnings.
    """
    ends, which = np.unique(np.concatenate([low, high + 1]), return_inverse=True)
    weights = _weights_of_beginnings(size, ends)
    return scipy.sparse.csr_array(weights[which[len(low) :]] - weights[which[: len(low)]])


def _weights_of_beginnings(size: int, ends: Integers) -> "scipy.sparse.csr_array":
    """Return the weights of the first ``ends`` cells: down the paths of the nodes they cut, then up for the means."""
    first, length = np.zeros_like(ends), np.full_like(ends, size)
    path: list[tuple[Integers, Integers, NDArray[np.bool_]]] = []
    cut = np.flatnonzero((ends > first) & (ends < first + length))
    while len(cut):
        middle = first[cut] + length[cut] // 2
        is_left = ends[cut] <= middle
        path.append((cut, middle, is_left))
        length[cut] = np.where(is_left, length[cut] // 2, length[cut] - length[cut] // 2)
        first[cut] = np.where(is_left, first[cut], middle)
        cut = cut[(ends[cut] > first[cut]) & (ends[cut] < first[cut] + length[cut])]
    # What a beginning does not cut any more it holds whole or not at all.
    mean = (ends >= first + length).astype(np.float64)
    entries: list[tuple[Integers, Integers, Floats]] = []
    for cut, middle, is_left in reversed(path):
        left, right = np.where(is_left, mean[cut], 1.0), np.where(is_left, 0.0, mean[cut])
        entries.append((cut, middle, (left - right) / 2))
        mean[cut] = (left + right) / 2
    entries.append((np.arange(len(ends)), np.zeros(len(ends), dtype=np.int64), mean))
    rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return scipy.sparse.csr_array((values, (rows, columns)), shape=(len(ends), size))


def read_haar_axis(data: Mapping[str, object]) -> HaarAxis:
    """Rebuild from ``to_dict``; no array is made."""
    return HaarAxis(read_size(data["size"]))


def _halved(lengths: Mapping[int, int]) -> dict[int, int]:
    """Return how many nodes of each length the next level has: at most two lengths, that differ by one."""
    found: dict[int, int] = {}
    for length, times in lengths.items():
        for half in (length // 2, length - length // 2) if length > 1 else ():
            found[half] = found.get(half, 0) + times
    return found


@compiled
def _step_at(cuts: Integers, cell: int) -> int:
    """Return the number of the step that a cell lies in."""
    step = 0
    while step < cuts.size and cuts[step] <= cell:
        step += 1
    return step


@compiled
def _mean_of_all(size: int, cuts: Integers, values: Floats, path: Integers, lefts: Floats, sums: Floats) -> float:
    """Return the mean of a query at the root, adding up the powers of the noise weights of all rows that count.

    A node's mean is the plain one of its halves', a constant's is itself. ``path`` is the way from the root to the node
    at hand (first cell, length, how many halves are done): a walk without recursion, which cached code does not allow.
    """
    at, mean = 0, 0.0
    path[0, 0], path[0, 1], path[0, 2] = 0, size, 0
    while at >= 0:
        first, length, done = path[at]
        step = _step_at(cuts, first)
        if done == 0 and (step == cuts.size or cuts[step] >= first + length):
            mean = values[step]
            at -= 1
        elif done < 2:
            if done == 1:
                lefts[at] = mean
            path[at, 2] = done + 1
            at += 1
            path[at, 0] = first if done == 0 else first + length // 2
            path[at, 1] = length // 2 if done == 0 else length - length // 2
            path[at, 2] = 0
        else:
            square = ((lefts[at] - mean) / 2) ** 2
            sums[0] += square
            sums[1] += square * square
            sums[2] += square * square * square
            mean = (lefts[at] + mean) / 2
            at -= 1
    return mean


@compiled
def _step_moments(size: int, cuts: Integers, values: Floats, sums: Floats, start: int, stop: int) -> None:
    path, lefts = np.empty((64, 3), dtype=np.int64), np.empty(64)
    for q in range(start, stop):
        square = _mean_of_all(size, cuts[q], values[q], path, lefts, sums[q]) ** 2
        sums[q, 0] += square
        sums[q, 1] += square * square
        sums[q, 2] += square * square * square
