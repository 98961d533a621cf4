"""Blocks of a staged tree that were measured at once: which measurements belong together, and that they make sense.

A block is published as consecutive measurements with the law ``joint-discrete-laplace``, or
``discrete-gaussian-in-a-block``: the roots, then all their halves, and so on down to the cells. Blocks of one height
come together. Nothing is measured of their cells later. Jointly drawn values of halves add up to those of the nodes;
Gaussian ones are measured independently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.record.measurement import NoisyMeasurement
from veilcube.system import Integers


@dataclass(frozen=True, eq=False)
class JointBlocks:
    """Blocks of one height: where in the order of the cells each starts, and the scales by height, the cells' first.

    Of Gaussian noise, ``scales`` are the parameters sigma², and ``values`` what was measured: (blocks, nodes), by
    height.
    """

    starts: Integers
    scales: tuple[Fraction, ...]
    is_gaussian: bool = False
    values: tuple[Integers, ...] = ()

    @property
    def height(self) -> int:
        """The height of the blocks' binary trees."""
        return len(self.scales) - 1

    def cells(self) -> Integers:
        """Return the places of the blocks' cells: (blocks, leaves)."""
        return self.starts[:, None] + np.arange(2**self.height)


def joint_blocks(measurements: Sequence[NoisyMeasurement]) -> list[JointBlocks]:
    """Return the blocks of a release; raises ReleaseFileError where measurements with joint noise form none."""
    found, parts = [], list(measurements)
    if not any(part.noise.in_block for part in parts):
        return []
    closed: NDArray[np.bool_] | None = None
    while parts:
        operator = parts[0].nodes
        if operator is None:
            if parts[0].noise.in_block:
                raise ReleaseFileError("joint noise belongs to nodes of a staged tree; remake the release")
            parts = parts[1:]
            continue
        closed = np.zeros(operator.tree.cells, dtype=bool) if closed is None else closed
        if _cells_of(operator, closed).any():
            raise ReleaseFileError("cells of the release are measured again after joint noise; remake the release")
        if not parts[0].noise.in_block:
            parts = parts[1:]
            continue
        run, parts = parts[: operator.level + 1], parts[operator.level + 1 :]
        found.append(_blocks_of(operator.tree, run))
        closed[found[-1].cells()] = True
    return found


def _cells_of(operator: NodeCounts, per_cell: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of the operator's nodes hold a marked cell."""
    upto = np.concatenate([[0], np.cumsum(per_cell)])
    borders = np.append(operator.tree.starts(operator.level), operator.tree.cells)
    marked: NDArray[np.bool_] = upto[borders[operator.chosen + 1]] > upto[borders[operator.chosen]]
    return marked


def _blocks_of(tree: HalvingTree, run: Sequence[NoisyMeasurement]) -> JointBlocks:
    """Check that a run of measurements is whole blocks from their roots to the cells, with sums that fit."""
    height = len(run) - 1
    if len({part.noise.family for part in run}) > 1:
        raise ReleaseFileError("a block of the release has noise of two kinds; remake the release")
    chosen = [_nodes_of(tree, part, height - depth) for depth, part in enumerate(run)]
    for depth in range(1, height + 1):
        level = height - depth
        parents = tree.ancestors(level, level + 1)[chosen[depth]]
        fits = np.array_equal(parents, np.repeat(chosen[depth - 1], 2))
        if not fits or not _adds_up(run[depth], run[depth - 1]):
            raise ReleaseFileError("nodes with joint noise do not add up to those above them; remake the release")
    starts, scales = tree.starts(height)[chosen[0]], tuple(part.noise.parameter for part in reversed(run))
    if run[0].noise.is_joint:
        return JointBlocks(starts, scales)
    values = tuple(part.values.reshape(starts.size, -1) for part in reversed(run))
    return JointBlocks(starts, scales, is_gaussian=True, values=values)


def _adds_up(halves: NoisyMeasurement, nodes: NoisyMeasurement) -> bool:
    """Whether jointly drawn values of halves have the sums that they must have; independent ones may have any."""
    return not halves.noise.is_joint or np.array_equal(halves.values.reshape(-1, 2).sum(axis=1), nodes.values)


def _nodes_of(tree: HalvingTree, part: NoisyMeasurement, level: int) -> Integers:
    """Return which nodes of a level a part of a block measures."""
    operator = part.nodes
    if operator is not None and operator.level == level and part.noise.in_block:
        nodes: Integers = operator.chosen
        if tree.is_whole(level)[nodes].all():
            return nodes
    raise ReleaseFileError("joint noise of the release does not reach from whole nodes to cells; remake the release")
