"""All nodes of some levels of a halving tree, each level with its multiplier: a staged tree in which nothing stops.

On the padded cube (every position holds a cell, those without one being empty) A'A is a sum of projections: with P_ℓ
the averaging over the nodes of level ℓ, A'A = Σ_ℓ m_ℓ² 2^ℓ P_ℓ. It is constant on the differences of successive P_ℓ,
with eigenvalues μ_ℓ = Σ over levels at or below ℓ of m² 2^level, so Var(q) = Σ_ℓ (|P_ℓ q|² - |P_above q|²) / μ_ℓ. Where
sizes are powers of two this is least squares; elsewhere it is unbiased, and its variance is at most the one given here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np

from veilcube.operators.base import BoundedMoments, NeighbourName, OperatorDefaults
from veilcube.operators.staged.halving import HalvingTree
from veilcube.schema import Region
from veilcube.system import Floats, Integers


@dataclass(frozen=True)
class BlockLevels(OperatorDefaults):
    """Counts of every node of ``levels`` (from coarse to fine, the last being 0), times whole ``multipliers``."""

    tree: HalvingTree
    levels: tuple[int, ...]
    multipliers: tuple[int, ...]

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """The shape of the cube."""
        return self.tree.shape

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """One number per node, level after level."""
        return (sum(self.tree.nodes(level) for level in self.levels),)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The only axis of the measurements."""
        return ("node",)

    @cached_property
    def _inverse_eigenvalues(self) -> Floats:
        gains = np.array([m**2 * 2.0**level for m, level in zip(self.multipliers, self.levels, strict=True)])
        inverse: Floats = 1.0 / np.cumsum(gains[::-1])[::-1]
        return inverse

    @property
    def words_to_apply(self) -> int:
        """How many 64-bit words ``apply`` holds at most: the counts in order, and the nodes', multiplied and joined."""
        return prod(self.cell_shape) + 3 * prod(self.measurement_shape)

    def apply(self, cells: Integers) -> Integers:
        """Return the exact multiples of the nodes' counts."""
        in_order = cells.reshape(-1)[self.tree.order]
        counts = [np.add.reduceat(in_order, self.tree.starts(level)) for level in self.levels]
        return np.concatenate([m * part for m, part in zip(self.multipliers, counts, strict=True)])

    def adjoint(self, measurements: Floats) -> Floats:
        """Return the transposed map applied to measurements."""
        return self._to_cube(self._padded_adjoint(measurements))

    def solve(self, measurements: Integers) -> Floats:
        """Return the least-squares estimate of the cells on the padded cube."""
        return self._to_cube(self._inverted(self._padded_adjoint(measurements.astype(np.float64))))

    @property
    def answers(self) -> BoundedMoments:
        """Answers whose variances are known, and their higher moments bounded."""
        return BoundedMoments(self)

    def noise_weights(self, query: Floats) -> Floats:
        """Return the weight of each measurement's noise in the answer to a query that weighs every cell."""
        padded = np.zeros(2**self.tree.depth)
        padded[self.tree.positions] = query.reshape(-1)[self.tree.order]
        spread = self._inverted(padded)
        return np.concatenate(
            [m * spread.reshape(-1, 2**level).sum(axis=1)[self._ranks(level)] for m, level in self._rows()]
        )

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return the sum of the multipliers; an exchanged row leaves and enters a node of every level with several."""
        if neighbours == "add-remove":
            return sum(self.multipliers)
        return 2 * sum(m for m, level in self._rows() if self.tree.nodes(level) > 1)

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the sum of the squared multipliers, for an exchanged row twice that of the levels with several nodes.

        Cells that the coarsest of these levels parts lie in different nodes of all finer ones.
        """
        if neighbours == "add-remove":
            return sum(m**2 for m in self.multipliers)
        return 2 * sum(m**2 for m, level in self._rows() if self.tree.nodes(level) > 1)

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Return the variance of the estimate of each block: the norms of its averages multiply over the axes."""
        norms = [np.zeros(low.shape[0])]
        for level in self.levels:
            per_axis = [
                _squared_norms(self.tree.axes[axis].values(), low[:, axis], high[:, axis], bits)
                for axis, bits in enumerate(self.tree.bits_below(level))
            ]
            norms.append(prod(per_axis[1:], start=per_axis[0]))
        return self._variance(norms)

    def variance_of_region(self, region: Region) -> float:
        """Return the variance of the estimate of the count in a region."""
        in_order, norms = region.mask().reshape(-1)[self.tree.order].astype(np.float64), [np.zeros(())]
        for level in self.levels:
            overlaps = np.add.reduceat(in_order, self.tree.starts(level))
            norms.append(np.square(overlaps).sum() / 2.0**level)
        return float(self._variance(norms))

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"kind": "blocks", "tree": self.tree.to_dict(), "levels": list(self.levels)}

    def _variance(self, norms: list[Floats]) -> Floats:
        gains = [finer - coarser for coarser, finer in pairwise(norms)]
        return np.asarray(sum(gain * inverse for gain, inverse in zip(gains, self._inverse_eigenvalues, strict=True)))

    def _rows(self) -> Iterator[tuple[int, int]]:
        return zip(self.multipliers, self.levels, strict=True)

    def _ranks(self, level: int) -> Integers:
        return self.tree.positions[self.tree.starts(level)] >> level

    def _padded_adjoint(self, measurements: Floats) -> Floats:
        total, start = np.zeros(2**self.tree.depth), 0
        for m, level in self._rows():
            of_level = np.zeros(2 ** (self.tree.depth - level))
            ranks = self._ranks(level)
            of_level[ranks] = m * measurements[start : start + ranks.size]
            total += np.repeat(of_level, 2**level)
            start += ranks.size
        return total

    def _inverted(self, vector: Floats) -> Floats:
        """Return (A'A)^-1 v on the padded cube."""
        result, coarser = np.zeros_like(vector), np.zeros_like(vector)
        for level, inverse in zip(self.levels, self._inverse_eigenvalues, strict=True):
            averages = np.repeat(vector.reshape(-1, 2**level).mean(axis=1), 2**level)
            result += inverse * (averages - coarser)
            coarser = averages
        return result

    def _to_cube(self, padded: Floats) -> Floats:
        cells = np.empty(self.tree.cells)
        cells[self.tree.order] = padded[self.tree.positions]
        return cells.reshape(self.cell_shape)


def _squared_norms(codes: Integers, low: Integers, high: Integers, bits: int) -> Floats:
    """Return |P q|² of ranges of cells, P the average over runs of 2^bits codes: whole runs, and two cut ones at most.

    Codes that no cell has count as cells outside every range.
    """
    begins_run = np.diff(codes >> bits, prepend=-1) > 0
    starts = np.flatnonzero(begins_run)
    sizes, run_of = np.diff(starts, append=codes.size), np.cumsum(begins_run) - 1
    squares = np.concatenate([[0], np.cumsum(np.square(sizes))])
    first, last = run_of[low], run_of[high]
    in_first = np.minimum((starts + sizes)[first], high + 1) - low
    in_last = np.where(first == last, 0, high + 1 - starts[last])
    between = np.maximum(squares[last] - squares[first + 1], 0)
    norms: Floats = (np.square(in_first) + np.square(in_last) + between) / 2.0**bits
    return np.where(high < low, 0.0, norms)
