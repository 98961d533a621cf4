"""Releases whose measured nodes form a tree: refined trees, trees over one attribute, and plain cells."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import HalvingTree, IdentityOperator, NodeCounts, ProductOperator, TreeAxis
from veilcube.operators.halving import AxisCodes, halving_depth
from veilcube.operators.tree import node_multipliers
from veilcube.operators.tree_shape import levels_of_fanouts
from veilcube.posterior import MeasuredTree, NodeValues, node_values
from veilcube.release import NoisyMeasurement, ReleaseRecord

Integers = NDArray[np.int64]

MOST_CELLS = 2**18
DEEPEST = 26


def has_measured_tree(record: ReleaseRecord) -> bool:
    """Whether the measured nodes of a release form a tree that is small enough for the posterior."""
    if record.schema.cells > MOST_CELLS:
        return False
    operators = [part.operator for part in record.measurements]
    if all(isinstance(operator, NodeCounts) for operator in operators):
        trees = {operator.tree for operator in operators if isinstance(operator, NodeCounts)}
        is_moderate = len(trees) == 1 and all(tree.depth <= DEEPEST for tree in trees)
        return is_moderate and measured_tree(record).is_covered
    if len(operators) != 1:
        return False
    if isinstance(operators[0], IdentityOperator):
        return halving_depth(record.schema) <= DEEPEST
    axis = _tree_axis(operators[0])
    return axis is not None and sum(width for _, _, width in _digits(axis)) <= DEEPEST


def measured_tree(record: ReleaseRecord) -> MeasuredTree:
    """Return the tree of what a release measured."""
    first = record.measurements[0]
    if isinstance(first.operator, NodeCounts):
        return MeasuredTree.of(first.operator.tree, node_values(record.measurements))
    axis = _tree_axis(first.operator)
    if axis is not None:
        return _tree_of_axis(axis, first)
    tree = HalvingTree.of(record.schema)
    counts = first.values.reshape(-1)[tree.order]
    return MeasuredTree.of(tree, [NodeValues(0, np.arange(tree.cells), counts, float(first.noise.scale))])


def _tree_axis(operator: object) -> TreeAxis | None:
    if isinstance(operator, ProductOperator) and len(operator.axes) == 1 and isinstance(operator.axes[0], TreeAxis):
        return operator.axes[0]
    return None


def _tree_of_axis(axis: TreeAxis, measurement: NoisyMeasurement) -> MeasuredTree:
    """Match each measured run of cells with a node of the halving tree that the axis' own levels span."""
    tree, shape = HalvingTree((_codes(axis),)), axis.shape
    skipped = int(shape.virtual)
    bottom = np.flatnonzero((shape.child_start >= shape.inner) & (shape.child_count > 0))
    cells = np.concatenate([*(np.arange(shape.first[v], shape.end[v]) for v in bottom), np.empty(0, np.int64)])
    first = np.concatenate([shape.first[skipped:], cells])
    last = np.concatenate([shape.end[skipped:] - 1, cells])
    inner = node_multipliers(shape, axis.multipliers)[skipped:]
    multipliers = np.concatenate([inner, np.full(cells.size, axis.multipliers[-1])])
    differing = tree.positions[first] ^ tree.positions[last]
    levels = np.array([int(bits).bit_length() for bits in differing], dtype=np.int64)
    values, scale = measurement.values / multipliers, float(measurement.noise.scale)
    parts = []
    for level, multiplier in np.unique(np.stack([levels, multipliers.astype(np.int64)], axis=1), axis=0):
        rows = np.flatnonzero((levels == level) & (multipliers == multiplier))
        nodes = np.searchsorted(tree.starts(int(level)), first[rows])
        parts.append(NodeValues(int(level), nodes, values[rows], scale / float(multiplier)))
    return MeasuredTree.of(tree, parts)


def _codes(axis: TreeAxis) -> AxisCodes:
    """Return binary codes of the cells that keep every node of the axis' tree together: a digit for each level."""
    codes, bits = np.zeros(1, dtype=np.int64), 0
    for parent, siblings, width in _digits(axis):
        place = np.arange(parent.size) - (np.cumsum(siblings) - siblings)[parent]
        codes = codes[parent] << width | (place << width) // siblings[parent]
        bits += width
    return AxisCodes(axis.size, bits, tuple(codes.tolist()))


def _digits(axis: TreeAxis) -> Iterator[tuple[Integers, Integers, int]]:
    """Yield for each level below the whole axis its nodes' parents, the parents' numbers of children, and the bits."""
    if axis.fanouts is not None:
        levels = list(levels_of_fanouts(axis.size, axis.fanouts))
    else:
        levels = [np.concatenate([[0], np.cumsum(level)]) for level in axis.runs]
    for before, now in pairwise([np.array([0, axis.size]), *levels, np.arange(axis.size + 1)]):
        parent = np.searchsorted(before, now[:-1], side="right") - 1
        siblings = np.bincount(parent)
        yield parent, siblings, int(siblings.max() - 1).bit_length()
