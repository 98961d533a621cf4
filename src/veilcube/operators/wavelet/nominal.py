"""The nominal transform of an attribute with a hierarchy, in whole numbers: how each node differs from its siblings.

Privelet's nominal coefficient of node v with parent p of fan-out f is S_v - S_p / f, with noise of scale λ / W(v) and
weight W = f / (2f - 2). In whole numbers that is f S_v - S_p with noise 2 (f - 1) λ. To give all rows ONE scale, a
group of fan-out f has the multiplier m = L / (2 (f - 1)) and the total the multiplier L, where L is a common multiple:
then every group adds L to a cell's column, the noise's scale is L λ, and the generalised sensitivity is the number of
levels (Lemma 4). A node with one child is that child, and is measured once; leaves may sit at any depth. Rows of
siblings sum to zero in truth, so least squares subtracts their mean (``loops``).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError
from veilcube.operators.base import (
    AxisMoments,
    ColumnPair,
    ColumnProducts,
    InsideAxis,
    Moments,
    Way,
    farthest,
    in_tiles,
    read_size,
)
from veilcube.operators.tree import build_shape, products_of_nodes, read_runs, refines
from veilcube.operators.wavelet.loops import Family, nominal_adjoint, nominal_measure, nominal_solve, nominal_weigh
from veilcube.operators.wavelet.tree import WaveletTree
from veilcube.system import Floats, Integers

# Beyond this, multipliers are rounded: the weights are then off by little, and the sensitivity is still exact.
LARGEST_COMMON_MULTIPLE = 10_080
STEPS_OF_THE_SMALLEST = 32
# Fan-out times multiplier: with more, sums of a column might not fit into 64 bits.
LARGEST_ENTRY = 2**50
_PASSES: Mapping[Way, Callable[..., None]] = {
    "apply": nominal_measure,
    "adjoint": nominal_adjoint,
    "solve": nominal_solve,
    "noise_weights": nominal_weigh,
}


class NominalAxis(InsideAxis, AxisMoments):
    """One row for every node of a hierarchy in level order, cells included; row 0 is the total.

    ``levels`` are the boundaries of the hierarchy's levels above the cells (``hierarchy_levels``), the total first.

    >>> axis = NominalAxis(6, [np.array([0, 6]), np.array([0, 3, 6])])
    >>> axis.apply(np.array([9, 3, 6, 2, 8, 2])).tolist()
    [120, 12, -12, 9, -9, 0, -6, 12, -6]
    >>> (axis.variance_of_ranges(np.zeros(3, dtype=np.int64), np.array([5, 2, 0])) * 4**2).round(10).tolist()
    [1.0, 0.75, 1.2685185185]
    """

    def __init__(
        self,
        size: int,
        levels: Sequence[Integers],
        multipliers: Mapping[int, int] | None = None,
        *,
        largest_multiple: int = LARGEST_COMMON_MULTIPLE,
    ) -> None:
        if not refines(size, levels) or len(levels[0]) != 2:
            raise PlanError("the levels of a hierarchy must be partitions of its cells, each refining the one before")
        self.size = int(size)
        self._levels = tuple(np.ascontiguousarray(level, dtype=np.int64) for level in levels)
        self._given = None if multipliers is None else dict(multipliers)
        self._largest_multiple = min(largest_multiple, LARGEST_COMMON_MULTIPLE)

    @cached_property
    def tree(self) -> WaveletTree:
        """The hierarchy's distinct nodes; built on first use."""
        return WaveletTree.of(build_shape(self.size, self._levels))

    @cached_property
    def _groups(self) -> Integers:
        """The fan-outs of all groups of siblings, known without building the tree."""
        splits = [np.diff(np.searchsorted(below, above)) for above, below in pairwise(self._levels)]
        fanouts = np.concatenate([*splits, np.diff(self._levels[-1])])
        return fanouts[fanouts > 1]

    @property
    def rows(self) -> int:
        """How many distinct nodes the hierarchy has."""
        return 1 + int(self._groups.sum())

    @cached_property
    def multipliers(self) -> Mapping[int, int]:
        """The multiplier of groups by their fan-out; that of the total stands under 1."""
        fanouts = np.unique(self._groups).tolist()
        chosen = _balanced(fanouts, self._largest_multiple) if self._given is None else self._given
        if {1, *fanouts} != set(chosen) or max(fanout * chosen[fanout] for fanout in chosen) > LARGEST_ENTRY:
            raise PlanError("a nominal transform needs a multiplier for the total and for each fan-out, none too large")
        return chosen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NominalAxis) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.size, tuple(level.tobytes() for level in self._levels)))

    def __repr__(self) -> str:
        return f"NominalAxis({self.size} cells, {len(self._levels)} levels above them)"

    @cached_property
    def _group_multipliers(self) -> Integers:
        """The multiplier of the children of each inner node; 1 where there are none."""
        return np.array([self.multipliers.get(count, 1) for count in self.tree.shape.child_count.tolist()])

    @cached_property
    def _family(self) -> Family:
        tree = self.tree
        own = np.full(self.rows, self.multipliers[1], dtype=np.int64)
        own[1:] = self._group_multipliers[tree.parent[1:]]
        return tree.shape.child_start, tree.shape.child_count, tree.parent, tree.cell_row, own

    @property
    def has_bands(self) -> bool:
        """True."""
        return True

    @property
    def bands(self) -> Integers:
        """The level of each row: 0 for the total."""
        return self.tree.depth

    def along(self, way: Way, block: NDArray[Any], *, may_overwrite: bool) -> NDArray[Any]:
        """Apply the map, its transpose, least squares or its transpose to every vector of a block."""
        is_forward = way in ("apply", "noise_weights")
        given, length = (self.size, self.rows) if is_forward else (self.rows, self.size)
        kind: Any = np.int64 if way == "apply" else np.float64
        work, family = _PASSES[way], self._family
        return in_tiles(
            lambda source, target, width, start, stop: work(source, target, family, width, start, stop),
            block, given, length, kind, may_overwrite=may_overwrite,
        )  # fmt: skip

    @cached_property
    def _norms(self) -> Integers:
        """What the rows at and above each node add to the columns of its cells."""
        shares = 2 * (self.tree.shape.child_count - 1) * self._group_multipliers
        found = np.full(self.rows, self.multipliers[1], dtype=np.int64)
        for level in range(1, self.tree.deepest + 1):
            here = np.flatnonzero(self.tree.depth == level)
            found[here] = found[self.tree.parent[here]] + shares[self.tree.parent[here]]
        return found

    def column_sums(self) -> Integers:
        """Return the total's multiplier, and for each group above a cell twice its others' number times its own."""
        return self._norms[self.tree.cell_row]

    def column_pairs(self) -> tuple[ColumnPair, ...]:
        """Return how two cells' columns may differ: they agree above the group that parts them, and cross in it."""
        largest = self._norms.copy()
        for v in range(self.rows - 1, 0, -1):
            largest[self.tree.parent[v]] = max(largest[self.tree.parent[v]], largest[v])
        found: set[ColumnPair] = set()
        for v in np.flatnonzero(self.tree.shape.child_count > 1).tolist():
            begin, count = int(self.tree.shape.child_start[v]), int(self.tree.shape.child_count[v])
            below = np.sort(largest[begin : begin + count] - self._norms[begin : begin + count])[::-1]
            found.add(self._parted(int(self._norms[v]), count, int(self._group_multipliers[v]), below[:2].tolist()))
        return farthest({ColumnPair(same=int(largest[0])), *found})

    def _parted(self, above: int, count: int, multiplier: int, below: list[int]) -> ColumnPair:
        """Return the columns of cells below two children of a group: (f - 1) m against -m, and -m in the others."""
        own = (count - 1) * multiplier
        crossing = ((own, -multiplier), (-multiplier, own))
        return ColumnPair(above + (count - 2) * multiplier, crossing, *below)

    def column_products(self) -> tuple[ColumnProducts, ...]:
        """Return the inner products of two leaves' columns.

        A group adds ((f - 1) m)² + (f - 1) m² = f (f - 1) m² to the columns below each child, and
        -2 (f - 1) m² + (f - 2) m² = -f m² to the product of two columns that it parts.
        """
        counts, times = self.tree.shape.child_count.tolist(), self._group_multipliers.tolist()
        parting = [-count * multiplier**2 for count, multiplier in zip(counts, times, strict=True)]
        squares = [self.multipliers[1] ** 2]
        squares += [(1 - counts[parent]) * parting[parent] for parent in self.tree.parent[1:].tolist()]
        return products_of_nodes(self.tree.shape, squares, parting)

    def least_shared(self) -> int:
        """Return 0: what two columns share has signs, and ``column_pairs`` tells it."""
        return 0 if self.size > 1 else self.multipliers[1]

    def moments_of_steps(self, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of step functions, in the time of the paths to their cuts."""
        divisor = (self.tree.shape.child_count * self._group_multipliers).astype(np.float64)
        return self.tree.moments_of_steps(cuts, values, divisor, float(self.multipliers[1]))

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from: the lengths of each level's runs, and the multipliers."""
        return {
            "kind": "nominal",
            "size": self.size,
            "runs": [np.diff(level).tolist() for level in self._levels],
            "multipliers": [[fanout, multiplier] for fanout, multiplier in sorted(self.multipliers.items())],
        }


def _balanced(fanouts: Sequence[int], largest_multiple: int) -> dict[int, int]:
    """Return multipliers with which every group adds the same to a column, or nearly so where numbers would be huge."""
    common = lcm(2, *(2 * (fanout - 1) for fanout in fanouts))
    if common > largest_multiple and len(fanouts) > 1:
        common = max(largest_multiple, STEPS_OF_THE_SMALLEST * (fanouts[-1] - 1))
    return {1: common} | {fanout: max(round(common / (2 * (fanout - 1))), 1) for fanout in fanouts}


def read_nominal_axis(data: Mapping[str, object]) -> NominalAxis:
    """Rebuild from ``to_dict``; it takes no more memory than its text."""
    size, multipliers = read_size(data["size"]), data["multipliers"]
    if not isinstance(multipliers, list) or not all(map(_is_multiplier, multipliers)):
        raise ValueError("the multipliers of a nominal transform must be pairs of whole numbers")
    try:
        axis = NominalAxis(size, read_runs(data["runs"], size), dict(multipliers))
        if len(axis.multipliers) != len(multipliers):
            raise ValueError("a fan-out stands twice")
    except PlanError as problem:
        raise ValueError(str(problem)) from problem
    return axis


def _is_multiplier(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(type(n) is int and 1 <= n <= 2**48 for n in pair)
