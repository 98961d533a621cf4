"""Hierarchies over nominal values: a tree whose leaves, read from left to right, are the cells of the axis."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, Union

import numpy as np

from veilcube.errors import QueryError, SchemaError, quoted
from veilcube.system import is_encodable, read_whole

HierarchySpec: TypeAlias = Mapping[str, Union["HierarchySpec", Sequence[Union[str, "HierarchySpec"]]]]

MAX_DEPTH = 64
_VALUE = object()  # what stands below a leaf: nothing more to read


@dataclass(frozen=True)
class Node:
    """A node of the tree, with the half-open run of leaves below it."""

    name: str
    first: int
    end: int
    children: tuple["Node", ...] = field(default=(), repr=False)

    @property
    def is_leaf(self) -> bool:
        """Whether it is a value and not a group."""
        return not self.children


@dataclass(frozen=True)
class Hierarchy:
    """A checked tree: no value twice, no empty group, no name that could mean two things."""

    root: Node
    leaves: tuple[str, ...]
    runs: Mapping[str, tuple[int, int]] = field(repr=False, compare=False)

    @classmethod
    def flat(cls, values: Sequence[object]) -> "Hierarchy":
        """Build the tree of a root and its leaves."""
        if isinstance(values, np.ndarray):
            values = values.tolist()
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise SchemaError("values must be a list")
        if any(isinstance(value, Mapping) for value in values):
            raise SchemaError("values must be a list of plain values; use hierarchy={...} for groups")
        return cls._checked(values)

    @classmethod
    def read(cls, spec: object) -> "Hierarchy":
        """Build from nested mappings and lists: keys are groups, strings in lists are values."""
        if not isinstance(spec, Mapping):
            raise SchemaError("a hierarchy must be a mapping from group names to lists of values or to further groups")
        return cls._checked(spec)

    @classmethod
    def _checked(cls, spec: object) -> "Hierarchy":
        leaves: list[str] = []
        root = _read_node("", spec, leaves, depth=0)
        repeated = [leaf for leaf, times in Counter(leaves).items() if times > 1]
        if repeated:
            raise SchemaError(f"the value '{repeated[0]}' is listed twice; each value belongs in one place")
        runs: dict[str, tuple[int, int]] = {}
        for node in _walk(root):
            if node is root:
                continue
            run = (node.first, node.end)
            if node.name in runs and runs[node.name] != run:
                raise SchemaError(f"the name '{node.name}' stands for two different things; rename one of them")
            runs[node.name] = run
        return cls(root, tuple(leaves), runs)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the inner nodes, parents before children."""
        return tuple(node.name for node in _walk(self.root) if not node.is_leaf and node is not self.root)

    @property
    def depth(self) -> int:
        """How many levels there are below the root; the values of a flat list are level 1."""
        return _depth(self.root)

    def level(self, number: int) -> tuple[Node, ...]:
        """Return the nodes so many levels below the root, from left to right; a value above that level is its own node.

        >>> [node.name for node in Hierarchy.read({"Care": ["Nurse", "Aide"], "Law": ["Judge"]}).level(1)]
        ['Care', 'Law']
        """
        wanted = read_whole(number, "the level of a hierarchy", 1)
        if wanted > self.depth:
            raise QueryError(f"the hierarchy has levels 1 to {self.depth}, from its topmost groups to its values")
        nodes = self.root.children
        for _ in range(wanted - 1):
            nodes = tuple(below for node in nodes for below in (node.children or (node,)))
        return nodes

    def run_of(self, name: str) -> tuple[int, int] | None:
        """Return the half-open run of leaves below the node called ``name``, or None if there is no such node."""
        return self.runs.get(name) if isinstance(name, str) else None

    def require_leaves(self, values: Sequence[str]) -> None:
        """Refuse a hierarchy that misses one of these values or has another one."""
        if not isinstance(values, Sequence) or not all(isinstance(value, str) for value in values):
            raise SchemaError("the values of a hierarchy are a list of texts")
        ours, theirs = set(self.leaves), set(values)
        missed = [value for value in values if value not in ours]
        if missed:
            raise SchemaError(f"the hierarchy misses the value '{missed[0]}'; put it into a group")
        added = [leaf for leaf in self.leaves if leaf not in theirs]
        if added:
            raise SchemaError(f"the hierarchy has '{added[0]}', which is not among the values; leave one of them out")

    def to_spec(self) -> object:
        """Return the nested lists and mappings it is rebuilt from."""
        return _spec_of(self.root.children)


def _read_node(name: str, spec: object, leaves: list[str], depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise SchemaError(f"the hierarchy is deeper than {MAX_DEPTH} levels")
    first = len(leaves)
    children: list[Node] = []
    for child, below in _children_of(name, spec):
        if below is _VALUE:
            leaves.append(child)
            children.append(Node(child, len(leaves) - 1, len(leaves)))
        else:
            children.append(_read_node(child, below, leaves, depth + 1))
    if not children:
        raise SchemaError(f"{_place(name)} is empty; list at least one value")
    return Node(name, first, len(leaves), tuple(children))


def _children_of(name: str, spec: object) -> list[tuple[str, object]]:
    if isinstance(spec, Mapping):
        return [(str(child), below) for child, below in spec.items()]
    if isinstance(spec, str) or not isinstance(spec, Sequence):
        raise SchemaError(f"the group '{name}' must hold a list of values or further groups")
    found: list[tuple[str, object]] = []
    for entry in spec:
        if isinstance(entry, Mapping):
            found += [(str(child), below) for child, below in entry.items()]
        elif not _is_value(entry):
            raise SchemaError(
                f"{_place(name)} holds something that is not a value; use missing='cell' for missing ones"
            )
        else:
            text = value_text(entry)
            if not is_encodable(text):
                raise SchemaError(f"{_place(name)} holds half of a character; write values as UTF-8")
            found.append((text, _VALUE))
    return found


def value_text(value: object) -> str:
    """Return how a value is spelled in a schema: 1.0 is 1, so that numbers match however a table stores them."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    try:
        return str(value)
    except Exception:  # a number of thousands of digits, or an object without a text: spelled as no schema spells it
        return quoted(value)


def _is_value(entry: object) -> bool:
    if isinstance(entry, float) and math.isnan(entry):
        return False
    return isinstance(entry, str) or not (entry is None or isinstance(entry, Iterable))


def _place(name: str) -> str:
    return f"the group '{name}'" if name else "the list of values"


def _depth(node: Node) -> int:
    return 1 + max(map(_depth, node.children)) if node.children else 0


def _walk(node: Node) -> list[Node]:
    return [node, *(inner for child in node.children for inner in _walk(child))]


def _spec_of(children: Sequence[Node]) -> object:
    if all(child.is_leaf for child in children):
        return [child.name for child in children]
    if not any(child.is_leaf for child in children):
        return {child.name: _spec_of(child.children) for child in children}
    return [child.name if child.is_leaf else {child.name: _spec_of(child.children)} for child in children]
