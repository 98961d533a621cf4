"""Trees over one axis: every node's count times its multiplier, with least squares in two passes.

``TreeAxis`` measures the distinct nodes of a tree (``shape``). A level's weight is a whole number, its multiplier:
weights 1/2, 1/3, 1/6 are rows times 3, 2, 1, and the noise is scaled to the sensitivity 6.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError
from veilcube.operators.base import AxisMoments, ColumnProducts, Moments, RangeReader, read_size
from veilcube.operators.tree.loops import (
    Gains,
    Nodes,
    adjoint_down,
    estimate_down,
    estimate_up,
    gain_up,
    measure_up,
    read_up_to,
    weigh_down,
    weigh_up,
)
from veilcube.operators.tree.shape import (
    MOST_LEVELS,
    TreeShape,
    build_shape,
    count_rows,
    levels_of_fanouts,
    read_runs,
    refines,
    split_runs,
    tree_fanouts,
    whole_numbers,
)
from veilcube.operators.tree.squares import products_of_fanouts, products_of_nodes
from veilcube.operators.tree.steps import Sums, step_moments
from veilcube.system import Floats, Integers, share_out

LARGEST_MULTIPLIER = 2**31
# Ranges of axes with more cells are read off the nodes, without the cells.
_LONG = 2**14


@dataclass(frozen=True, eq=False)
class TreeGains:
    """What least squares makes of a shape and its multipliers; symbols in ``loops``.

    The multipliers may be any positive numbers here, so that a planner can search among real weights.
    """

    leaf: float
    gains: Gains
    sums: Sums

    @classmethod
    def of(cls, shape: TreeShape, multipliers: Sequence[float]) -> "TreeGains":
        """Compute the gains of every inner node, in one pass."""
        own, below, variance, spread = np.zeros((4, shape.inner))
        powers, before, under = np.zeros((3, shape.inner, 3))
        gains, leaf = (own, below, variance, spread), float(multipliers[-1])
        gain_up(nodes_of(shape), node_multipliers(shape, multipliers), leaf, gains, powers, before, under)
        return cls(leaf, gains, (powers, before, under))

    def moments_of_steps(self, shape: TreeShape, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of step functions, as ``AxisOperator.moments_of_steps`` describes."""
        cuts = np.ascontiguousarray(cuts, dtype=np.int64)
        values = np.ascontiguousarray(values, dtype=np.float64)
        found = np.empty((3, len(cuts)))
        plan = (nodes_of(shape), self.gains, self.sums, self.leaf, shape.end, shape.depth, cuts, values, found)
        share_out(lambda start, stop: step_moments(*plan, start, stop), len(cuts), len(cuts) * shape.depth * 8)
        return Moments(*found)


def nodes_of(shape: TreeShape) -> Nodes:
    """Return the arrays that compiled passes walk on."""
    return shape.first, shape.child_start, shape.child_count


def node_multipliers(shape: TreeShape, multipliers: Sequence[float]) -> Floats:
    """Return each inner node's multiplier: the sum over the levels that it spans; 0 for a virtual root."""
    upto = np.concatenate([[0.0], np.cumsum(np.asarray(multipliers, dtype=np.float64))])
    weights: Floats = upto[shape.spans[:, 1] + 1] - upto[np.maximum(shape.spans[:, 0], 0)]
    return weights


class TreeAxis(AxisMoments):
    """A tree over the cells of one attribute, each level with a whole multiplier.

    ``levels`` are the boundaries of every level, each refining the one before, the last one the cells (``tree_levels``,
    ``hierarchy_levels``). ``TreeAxis.balanced`` needs no arrays until it is used.

    >>> axis = TreeAxis.balanced(8, (1, 2, 2), (1, 1, 1, 1))
    >>> axis.rows, axis.variance_of_ranges(np.array([0]), np.array([7])).round(4).tolist()
    (15, [0.5333])
    """

    def __init__(self, size: int, levels: Sequence[Integers], multipliers: Sequence[int]) -> None:
        inner = tuple(np.ascontiguousarray(level, dtype=np.int64) for level in levels[:-1])
        if not levels or len(levels[-1]) != size + 1 or not refines(size, (*inner, np.asarray(levels[-1]))):
            raise PlanError("the levels of a tree must be partitions of its cells, each refining the one before")
        fanouts = _fanouts_of(size, inner)
        runs = () if fanouts is not None else tuple(tuple(np.diff(level).tolist()) for level in inner)
        self._keep(size, fanouts, runs, multipliers, len(inner) + 1)

    @classmethod
    def balanced(cls, size: int, fanouts: Sequence[int], multipliers: Sequence[int]) -> "TreeAxis":
        """Return the tree whose levels above the cells split each node into so many near-equal parts.

        The first fan-out splits the whole domain: 1 makes a root. There is one more multiplier, for the cells.
        """
        if size < 1 or any(fanout < 1 for fanout in fanouts):
            raise PlanError("a tree needs at least one cell and fan-outs of at least 1")
        axis = cls.__new__(cls)
        axis._keep(size, tuple(int(fanout) for fanout in fanouts), (), multipliers, len(fanouts) + 1)
        return axis

    def _keep(
        self,
        size: int,
        fanouts: tuple[int, ...] | None,
        runs: tuple[tuple[int, ...], ...],
        multipliers: Sequence[int],
        levels: int,
    ) -> None:
        weights = tuple(int(weight) for weight in multipliers)
        if weights != tuple(multipliers) or len(weights) != levels or levels > MOST_LEVELS:
            raise PlanError(f"a tree needs one whole multiplier for each of its {levels} levels, at most {MOST_LEVELS}")
        if not all(1 <= weight <= LARGEST_MULTIPLIER for weight in weights):
            raise PlanError(f"the multipliers of a tree must lie between 1 and {LARGEST_MULTIPLIER}")
        self.size, self.fanouts, self.runs, self.multipliers = int(size), fanouts, runs, weights

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeAxis) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.size, self.fanouts, self.runs, self.multipliers

    def __repr__(self) -> str:
        shape = f"fanouts={self.fanouts}" if self.fanouts is not None else f"{len(self.runs)} levels of runs"
        return f"TreeAxis({self.size} cells, {shape}, multipliers={self.multipliers})"

    @cached_property
    def shape(self) -> TreeShape:
        """The distinct nodes; built on first use."""
        if self.fanouts is not None:
            return build_shape(self.size, levels_of_fanouts(self.size, self.fanouts))
        return build_shape(self.size, [np.concatenate([[0], np.cumsum(level)]) for level in self.runs])

    @cached_property
    def gains(self) -> TreeGains:
        """What least squares weighs each node by; computed on first use."""
        return TreeGains.of(self.shape, self.multipliers)

    @cached_property
    def _weights(self) -> Integers:
        return node_multipliers(self.shape, self.multipliers).astype(np.int64)

    @cached_property
    def rows(self) -> int:
        """How many distinct nodes are measured; known without building them where the tree is balanced."""
        return self.shape.rows if self.fanouts is None else count_rows(self.size, self.fanouts)

    def apply(self, cells: Integers) -> Integers:
        """Return multiplier times count of every node, level by level from the root."""
        flat, out, batch = self._matrices(cells, self.size, self.rows, np.int64)
        sums = np.empty((batch, self.shape.inner), dtype=np.int64)
        plan = (nodes_of(self.shape), self._weights, self.multipliers[-1], self._skip, flat, sums, out)
        self._up(batch, lambda span, part: measure_up(*plan, span, part))
        return out.reshape((*cells.shape[:-1], self.rows))

    def adjoint(self, measurements: Floats) -> Floats:
        """Return for each cell the sum over its nodes of multiplier times measurement."""
        flat, out, batch = self._matrices(measurements, self.rows, self.size, np.float64)
        sums = np.empty((batch, self.shape.inner))
        sums[:, 0] = 0.0 if self._skip else self._weights[0] * flat[:, 0]
        plan = (nodes_of(self.shape), self._weights, self.multipliers[-1], self._skip, flat, sums, out)
        self._down(batch, lambda span, part: adjoint_down(*plan, span, part))
        return out.reshape((*measurements.shape[:-1], self.size))

    def solve(self, measurements: Floats | Integers) -> Floats:
        """Return the generalised least-squares estimate of the cells, in linear time."""
        flat, out, batch = self._matrices(measurements, self.rows, self.size, np.float64, keep_integers=True)
        self._estimate(flat, out, batch)
        return out.reshape((*measurements.shape[:-1], self.size))

    def _estimate(self, flat: NDArray[Any], out: Floats, batch: int) -> Floats:
        """Return the least-squares estimate of every inner node, and write that of the cells where there is room."""
        sums, estimates = np.empty((2, batch, self.shape.inner))
        plan = (nodes_of(self.shape), self.gains.gains, self.multipliers[-1], self._skip, flat, sums, estimates)
        self._up(batch, lambda span, part: estimate_up(*plan, span, part))
        self._down(batch, lambda span, part: estimate_down(*plan, out, span, part))
        return estimates

    def range_reader(self, measurements: Integers) -> RangeReader | None:
        """Return what goes down to the ends of ranges from the estimates of all inner nodes; None for a short axis."""
        if self.size <= _LONG:
            return None
        estimates = self._estimate(measurements.reshape(1, -1), np.empty((1, 0)), 1)[0]
        plan = (nodes_of(self.shape), self.gains.gains, self.multipliers[-1], self._skip, measurements, estimates)

        def read(low: Integers, high: Integers) -> Floats:
            before, upto = np.empty((2, len(low)))
            read_up_to(*plan, np.ascontiguousarray(low), before)
            read_up_to(*plan, np.ascontiguousarray(high + 1), upto)
            return upto - before

        return read

    def noise_weights(self, query: Floats) -> Floats:
        """Return by how much each measurement's noise enters the least-squares answer to a query."""
        flat, out, batch = self._matrices(query, self.size, self.rows, np.float64)
        shares, pulls = np.empty((2, batch, self.shape.inner))
        nodes, gains, leaf = nodes_of(self.shape), self.gains.gains, self.multipliers[-1]
        self._up(batch, lambda span, part: weigh_up(nodes, gains, leaf, flat, shares, span, part))
        pulls[:, 0] = shares[:, 0]
        plan = (nodes, gains, leaf, self._skip, flat, shares, out, pulls)
        self._down(batch, lambda span, part: weigh_down(*plan, span, part))
        return out.reshape((*query.shape[:-1], self.rows))

    def column_sums(self) -> Integers:
        """Return the sum of all multipliers for each cell: it lies in one run of every level."""
        return np.full(self.size, sum(self.multipliers), dtype=np.int64)

    @property
    def largest_column(self) -> int:
        """Every cell lies in one run of each level."""
        return sum(self.multipliers)

    def least_shared(self) -> int:
        """Return the multiplier of the root, which cells of different children share alone; 0 without a root."""
        return sum(self.multipliers) if self.size == 1 else int(self._weights[0])

    def column_products(self) -> tuple[ColumnProducts, ...]:
        """Return the inner products of two cells' columns: the squares of the nodes that hold both, and each."""
        if self.fanouts is not None:
            return products_of_fanouts(self.size, self.fanouts, self.multipliers)
        squares = [weight**2 for weight in self._weights.tolist()] + [self.multipliers[-1] ** 2] * self.shape.leaves
        return products_of_nodes(self.shape, squares, [0] * self.shape.inner)

    def moments_of_steps(self, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of step functions, in the time of the paths to their cuts."""
        return self.gains.moments_of_steps(self.shape, cuts, values)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from: fan-outs where the tree is balanced, else the lengths of runs."""
        shape: dict[str, object] = (
            {"fanouts": list(self.fanouts)}
            if self.fanouts is not None
            else {"runs": [list(level) for level in self.runs]}
        )
        return {"kind": "tree", "size": self.size, **shape, "multipliers": list(self.multipliers)}

    @property
    def _skip(self) -> int:
        return int(self.shape.virtual)

    def _matrices(
        self, array: NDArray[Any], size: int, result: int, kind: type, keep_integers: bool = False
    ) -> tuple[NDArray[Any], NDArray[Any], int]:
        """Return the input as a matrix of rows to work on, an empty output of as many rows, and their number."""
        if array.shape[-1] != size:
            raise ValueError(f"the last axis must have {size} entries, not {array.shape[-1]}")
        read_as = np.int64 if keep_integers and array.dtype == np.int64 else kind
        flat: NDArray[Any] = np.ascontiguousarray(array, dtype=read_as).reshape(-1, size)
        return flat, np.empty((len(flat), result), dtype=kind), len(flat)

    def _up(self, batch: int, work: Callable[[tuple[int, int], tuple[int, int]], None]) -> None:
        """Run a pass from the cells to the root: rows of the matrix in parallel, or the nodes of a level."""
        if batch != 1:
            share_out(lambda top, bottom: work((0, self.shape.inner), (top, bottom)), batch, batch * self.rows)
            return
        for start, stop in reversed(list(pairwise(self.shape.segments.tolist()))):
            self._level(start, stop, work)

    def _down(self, batch: int, work: Callable[[tuple[int, int], tuple[int, int]], None]) -> None:
        """Run a pass from the root to the cells: rows of the matrix in parallel, or the nodes of a level."""
        if batch != 1:
            share_out(lambda top, bottom: work((0, self.shape.inner), (top, bottom)), batch, batch * self.rows)
            return
        for start, stop in pairwise(self.shape.segments.tolist()):
            self._level(start, stop, work)

    def _level(self, start: int, stop: int, work: Callable[[tuple[int, int], tuple[int, int]], None]) -> None:
        """Work on the nodes of one level, the last one with all the cells below it."""
        entries = (stop - start) * 32 if stop < self.shape.inner else self.rows
        share_out(lambda low, high: work((start + low, start + high), (0, 1)), stop - start, entries)


def read_tree_axis(data: Mapping[str, object]) -> TreeAxis:
    """Rebuild from ``to_dict``; a tree of fan-outs takes no memory here, one of runs no more than its text."""
    size, multipliers = read_size(data["size"]), whole_numbers(data["multipliers"], MOST_LEVELS)
    try:
        if "fanouts" in data:
            return TreeAxis.balanced(size, whole_numbers(data["fanouts"], MOST_LEVELS), multipliers)
        boundaries = read_runs(data["runs"], size)
        runs = tuple(tuple(np.diff(level).tolist()) for level in boundaries)
        axis = TreeAxis.__new__(TreeAxis)
        axis._keep(size, None, runs, multipliers, len(runs) + 1)
    except PlanError as problem:
        raise ValueError(str(problem)) from problem
    return axis


def tree_axis(size: int, branching: int, multipliers: Sequence[int] | None = None) -> TreeAxis:
    """Return the balanced tree of a fan-out, with equal weights unless multipliers are given."""
    fanouts = tree_fanouts(size, branching)
    return TreeAxis.balanced(size, fanouts, multipliers or (1,) * (len(fanouts) + 1))


def _fanouts_of(size: int, levels: Sequence[Integers]) -> tuple[int, ...] | None:
    """Return the fan-outs that make these levels, or None if no near-equal splits do."""
    before, fanouts = np.array([0, size], dtype=np.int64), []
    for level in levels:
        children = np.diff(np.searchsorted(level, before))
        fanouts.append(int(children.max()))
        if not np.array_equal(split_runs(before, fanouts[-1]), level):
            return None
        before = level
    return tuple(fanouts)
