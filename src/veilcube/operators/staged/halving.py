"""The halving tree: a binary tree over the cells of a cube, the same for whoever knows the schema.

Every attribute's cells get binary codes (their own numbers for an ordinal one, the branches taken in its hierarchy for
a nominal one). The attributes are halved in turn, the widest first: the codes' bits, interleaved in that order, are the
cell's position. The nodes of level b are the runs of cells whose positions agree in all but the last b bits: level 0
holds the cells, level ``depth`` the whole cube. Positions that no cell has belong to no node, so a size that is not a
power of two costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.schema import Attribute, Node, Nominal, Schema
from veilcube.system import Integers

DEEPEST = 62
MOST_CELLS = 2**22
SIDES = 3  # between, at the lower end, at the upper end


@dataclass(frozen=True)
class AxisCodes:
    """How one attribute is halved: ``size`` cells with increasing codes of ``bits`` bits; None means 0, 1, 2, ..."""

    size: int
    bits: int
    codes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.bits <= DEEPEST or 2**self.bits < self.size:
            raise ValueError("an attribute needs cells and enough bits to tell them apart")
        if self.codes is not None and not _is_increasing(self.codes, self.size, 2**self.bits):
            raise ValueError("codes must increase and fit their bits")

    def values(self) -> Integers:
        """Return the code of each cell."""
        return np.arange(self.size) if self.codes is None else np.array(self.codes, dtype=np.int64)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"size": self.size, "bits": self.bits, "codes": None if self.codes is None else list(self.codes)}


def _is_increasing(codes: tuple[int, ...], size: int, end: int) -> bool:
    if len(codes) != size or not all(type(code) is int for code in codes):
        return False
    return codes[0] >= 0 and codes[-1] < end and all(a < b for a, b in pairwise(codes))


@dataclass(frozen=True)
class HalvingTree:
    """The binary tree over all cells that the attributes' codes span."""

    axes: tuple[AxisCodes, ...]

    def __post_init__(self) -> None:
        if not self.axes or self.depth > DEEPEST or self.cells > MOST_CELLS:
            raise ValueError(f"a halving tree holds at most {MOST_CELLS:,} cells")

    @classmethod
    def of(cls, schema: Schema) -> "HalvingTree":
        """Return the tree of a schema's cells."""
        return cls(tuple(codes_of(attribute) for attribute in schema))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the cube."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        """How many cells the cube has."""
        return prod(axis.size for axis in self.axes)

    @property
    def depth(self) -> int:
        """The level of the root: how often cells are halved apart."""
        return sum(axis.bits for axis in self.axes)

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """Which axis each halving divides, from the root down: always one with the most bits left."""
        left = [axis.bits for axis in self.axes]
        turns = []
        for _ in range(self.depth):
            widest = max(range(len(left)), key=lambda axis: left[axis])
            left[widest] -= 1
            turns.append(widest)
        return tuple(turns)

    def bits_below(self, level: int) -> tuple[int, ...]:
        """Return how many of each axis' bits vary inside a node of a level."""
        below = self.turns[self.depth - level :]
        return tuple(below.count(axis) for axis in range(len(self.axes)))

    @property
    def order(self) -> Integers:
        """The cells (flat, row-major numbers) in the order of their positions."""
        return _order(self)[0]

    @property
    def positions(self) -> Integers:
        """The positions of the cells, increasing."""
        return _order(self)[1]

    def starts(self, level: int) -> Integers:
        """Return where in the order of the cells each node of a level starts."""
        return _starts(self, level)

    def nodes(self, level: int) -> int:
        """Return how many nodes a level has."""
        return int(self.starts(level).size)

    def is_whole(self, level: int) -> NDArray[np.bool_]:
        """Return which nodes of a level hold a cell at each of their positions."""
        sizes = np.diff(np.append(self.starts(level), self.cells))
        whole: NDArray[np.bool_] = sizes == 2**level
        return whole

    def ancestors(self, level: int, above: int) -> Integers:
        """Return for each node of a level the node of a level above it that holds it."""
        return np.searchsorted(self.starts(above), self.starts(level), side="right") - 1

    @property
    def is_line(self) -> bool:
        """Whether at most one attribute has more than one cell."""
        return sum(axis.bits > 0 for axis in self.axes) <= 1

    @property
    def classes(self) -> int:
        """How many classes of nodes there are."""
        return SIDES * (self.depth + 1)

    def kinds(self, level: int) -> Integers:
        """Return the class of each node of a level: its level, and whether it lies at an end of the axis it divides.

        Counts thin out or pile up towards the ends of a domain, so nodes there divide unlike those between.
        """
        return _kinds(self, level)

    def to_dict(self) -> list[dict[str, object]]:
        """Return the plain data it is rebuilt from."""
        return [axis.to_dict() for axis in self.axes]


def read_halving_tree(data: object) -> HalvingTree:
    """Rebuild from ``to_dict``; the data is untrusted."""
    if not isinstance(data, list) or not all(isinstance(axis, Mapping) for axis in data):
        raise ValueError("a halving tree is a list of attributes")
    return HalvingTree(tuple(_read_axis(axis) for axis in data))


def _read_axis(data: Mapping[str, object]) -> AxisCodes:
    size, bits, codes = data["size"], data["bits"], data["codes"]
    if type(size) is not int or type(bits) is not int or not (codes is None or isinstance(codes, list)):
        raise TypeError("an attribute of a halving tree has a size, bits and codes")
    return AxisCodes(size, bits, None if codes is None else tuple(codes))


def codes_of(attribute: Attribute) -> AxisCodes:
    """Return how an attribute is halved: an ordinal one by its cells' numbers, a nominal one along its hierarchy."""
    paths = _paths_of(attribute)
    if paths is None:
        return AxisCodes(attribute.size, (attribute.size - 1).bit_length())
    bits = max(map(len, paths))
    return AxisCodes(attribute.size, bits, tuple(int(path.ljust(bits, "0") or "0", 2) for path in paths))


def halving_depth(schema: Schema) -> int:
    """Return how many halvings tell all cells of a schema apart, also where no tree could hold so many."""
    depth = 0
    for attribute in schema:
        paths = _paths_of(attribute)
        depth += (attribute.size - 1).bit_length() if paths is None else max(map(len, paths))
    return depth


def _paths_of(attribute: Attribute) -> list[str] | None:
    """Return the branches that lead to each cell of a hierarchy; None for an attribute without one."""
    if not isinstance(attribute, Nominal) or all(child.is_leaf for child in attribute.hierarchy.root.children):
        return None
    paths = [""] * attribute.size
    specials = [Node("", cell, cell + 1) for cell in range(attribute.regular_size, attribute.size)]
    _write_paths([attribute.hierarchy.root, *specials], "", paths)
    return paths


def _write_paths(siblings: list[Node], path: str, paths: list[str]) -> None:
    """Halve a list of siblings until one is left, then go on with its children."""
    if len(siblings) > 1:
        middle = (len(siblings) + 1) // 2
        _write_paths(siblings[:middle], path + "0", paths)
        _write_paths(siblings[middle:], path + "1", paths)
    elif siblings[0].children:
        _write_paths(list(siblings[0].children), path, paths)
    else:
        paths[siblings[0].first] = path


@lru_cache(maxsize=8)
def _order(tree: HalvingTree) -> tuple[Integers, Integers]:
    position = np.zeros(tree.shape, dtype=np.int64)
    for axis, codes in enumerate(tree.axes):
        values = codes.values()
        spread = np.zeros(codes.size, dtype=np.int64)
        places = [tree.depth - 1 - turn for turn, turned in enumerate(tree.turns) if turned == axis]
        for bit, place in zip(range(codes.bits - 1, -1, -1), places, strict=True):
            spread |= (values >> bit & 1) << place
        position += spread.reshape([-1 if other == axis else 1 for other in range(len(tree.axes))])
    flat = position.ravel()
    order = np.argsort(flat, kind="stable")
    return _frozen(order), _frozen(flat[order])


@lru_cache(maxsize=256)
def _starts(tree: HalvingTree, level: int) -> Integers:
    if not 0 <= level <= tree.depth:
        raise ValueError("the halving tree has no such level")
    prefixes = tree.positions >> level
    return _frozen(np.flatnonzero(np.diff(prefixes, prepend=prefixes[0] - 1)))


@lru_cache(maxsize=256)
def _kinds(tree: HalvingTree, level: int) -> Integers:
    nodes = tree.nodes(level)
    if level in (0, tree.depth):
        return _frozen(np.full(nodes, SIDES * level))
    taken = tree.depth - level
    axis, paths = tree.turns[taken], tree.positions[tree.starts(level)] >> level
    at_low, at_high = np.ones(nodes, dtype=bool), np.ones(nodes, dtype=bool)
    codes = tree.axes[axis].codes or (0, tree.axes[axis].size - 1)
    bits = [turn for turn in range(taken) if tree.turns[turn] == axis]
    for bit, turn in enumerate(bits):
        went, place = paths >> (taken - 1 - turn) & 1, tree.axes[axis].bits - 1 - bit
        at_low &= went == codes[0] >> place & 1
        at_high &= went == codes[-1] >> place & 1
    return _frozen(SIDES * level + np.where(at_low & ~at_high, 1, 0) + np.where(at_high & ~at_low, 2, 0))


def _frozen(array: Integers) -> Integers:
    array.setflags(write=False)
    return array
