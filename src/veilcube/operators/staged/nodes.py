"""Counts of chosen nodes of one level of a halving tree: what a staged tree measures at each step."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.operators.base import NeighbourName, OperatorDefaults, queries_of_one_term
from veilcube.operators.staged.halving import HalvingTree, read_halving_tree
from veilcube.query import Factor, LinearQueries
from veilcube.schema import Region, Schema
from veilcube.system import Floats, Integers


@dataclass(frozen=True, eq=False)
class NodeCounts(OperatorDefaults):
    """The exact counts of some nodes of a level; the nodes are disjoint, so a row counts in at most one of them."""

    tree: HalvingTree
    level: int
    rows: int
    nodes: Integers | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.level <= self.tree.depth or not 0 <= self.rows <= self.tree.cells:
            raise ValueError("a measurement of nodes has a level of its tree and at most so many rows as cells")
        if self.nodes is not None and not self._has_valid_nodes(self.nodes):
            raise ValueError("the nodes of a measurement must increase and lie in their level")

    def _has_valid_nodes(self, nodes: Integers) -> bool:
        if nodes.shape != (self.rows,):
            return False
        is_inside = self.rows == 0 or (nodes[0] >= 0 and nodes[-1] < self.tree.nodes(self.level))
        return bool(is_inside and (np.diff(nodes) > 0).all())

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """The shape of the cube."""
        return self.tree.shape

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """One number per node."""
        return (self.rows,)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The only axis of the measurements."""
        return ("node",)

    @property
    def array_shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays that a file keeps beside the measured values: the nodes."""
        return {"nodes": (self.rows,)}

    def arrays(self) -> dict[str, Integers]:
        """Return the nodes, for the file."""
        return {"nodes": self.chosen}

    def with_arrays(self, arrays: Mapping[str, Integers]) -> "NodeCounts":
        """Return the operator with the nodes that a file kept."""
        return replace(self, nodes=arrays["nodes"])

    @property
    def chosen(self) -> Integers:
        """The nodes, as numbers within their level."""
        if self.nodes is None:
            raise ValueError("the nodes of this measurement are not known yet")
        return self.nodes

    @property
    def words_to_apply(self) -> int:
        """The counts in the order of the tree, their sums by node, and the chosen ones."""
        return 2 * prod(self.cell_shape) + self.tree.nodes(self.level) + prod(self.measurement_shape)

    def apply(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact count of each node."""
        in_order = cells.reshape(-1)[self.tree.order]
        counts: NDArray[np.int64] = np.add.reduceat(in_order, self.tree.starts(self.level))
        return counts[self.chosen]

    def adjoint(self, measurements: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the transposed map: every cell gets the measurement of its node, or 0."""
        of_level = np.zeros(self.tree.nodes(self.level))
        of_level[self.chosen] = measurements
        sizes = np.diff(self.tree.starts(self.level), append=self.tree.cells)
        cells = np.empty(self.tree.cells)
        cells[self.tree.order] = np.repeat(of_level, sizes)
        return cells.reshape(self.cell_shape)

    def solve(self, measurements: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the least-squares cells of smallest norm: each node's measurement spread evenly."""
        sizes = np.diff(self.tree.starts(self.level), append=self.tree.cells)[self.chosen]
        return self.adjoint(measurements / sizes)

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return 1 for a row more or less; 2 for an exchanged row, which leaves one node and enters another."""
        return 1 if neighbours == "add-remove" else 2

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the same: each of these nodes changes by 1."""
        return self.sensitivity(neighbours)

    def variance_of_rectangles(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
        """Refuse: nodes of one level alone do not determine the cells."""
        raise QueryError("one step of a staged tree does not answer questions alone; use the 'posterior' estimator")

    def variance_of_region(self, region: Region) -> float:
        """Refuse: nodes of one level alone do not determine the cells."""
        raise QueryError("one step of a staged tree does not answer questions alone; use the 'posterior' estimator")

    def queries(self, schema: Schema) -> tuple[LinearQueries, Floats]:
        """Return the box of each node: cells whose codes agree with its first cell's in all bits above the level."""
        first_cells = self.tree.order[self.tree.starts(self.level)[self.chosen]]
        corners = np.unravel_index(first_cells, schema.shape)
        factors = []
        for codes, corner, below in zip(self.tree.axes, corners, self.tree.bits_below(self.level), strict=True):
            prefixes = codes.values() >> below
            inside = prefixes[np.newaxis, :] == prefixes[corner][:, np.newaxis]
            factors.append(Factor.of_rows(np.arange(first_cells.size), inside.astype(np.float64)))
        return queries_of_one_term(schema, factors, first_cells.size), np.ones(first_cells.size)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from; the nodes are kept as an array."""
        return {"kind": "nodes", "tree": self.tree.to_dict(), "level": self.level, "rows": self.rows}


def read_nodes(data: Mapping[str, object]) -> NodeCounts:
    """Rebuild from ``to_dict``, without the nodes."""
    level, rows = data["level"], data["rows"]
    if type(level) is not int or type(rows) is not int:
        raise TypeError("a measurement of nodes has a level and a number of rows")
    return NodeCounts(read_halving_tree(data["tree"]), level, rows)
