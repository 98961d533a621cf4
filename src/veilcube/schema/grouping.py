"""Groupings: an attribute's cells in disjoint runs, by value or by a level of its hierarchy, with a label for each.

``"job"`` groups by values, ``"job:Level 1"`` by the topmost groups of its hierarchy. Level 2 are the groups inside
those, and so on; a value that lies above a level stands for itself, as do cells for stray values.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from veilcube.errors import QueryError, quoted
from veilcube.schema.attribute import Nominal
from veilcube.schema.schema import Schema
from veilcube.system import Integers, require_cells

_LEVEL = re.compile(r"(.+):\s*level\s*(\d{1,4})", re.IGNORECASE | re.DOTALL)
BYTES_PER_GROUP = 200


@dataclass(frozen=True, eq=False)
class Grouping:
    """Runs of cells of one attribute that share no cell: ``first`` and ``last`` cell of each, both included."""

    name: str
    axis: int
    first: Integers
    last: Integers
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_by_value(self) -> bool:
        """Whether every cell is a group of its own."""
        return bool((self.first == self.last).all())


def read_groupings(schema: Schema, names: Sequence[str]) -> tuple[Grouping, ...]:
    """Return how the named attributes and levels of attributes group the cells; each attribute once.

    >>> from veilcube.schema.attribute import Ordinal
    >>> job = Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}, missing="cell")
    >>> (grouping,) = read_groupings(Schema([Ordinal("age", 17, 90), job]), ["JOB:level 1"])
    >>> grouping.name, grouping.labels, grouping.last.tolist()
    ('job:Level 1', ('Care', 'Law', '(missing)'), [1, 2, 3])
    """
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise QueryError(f"groups are named by a list of attributes such as ['{schema.names[0]}']")
    named = [split_level(schema, name) for name in names]
    axes = [axis for axis, _ in named]
    if len(set(axes)) != len(axes):
        raise QueryError("an attribute is named twice; group by each one once, by its values or by one level")
    return tuple(_grouping(schema, axis, level) for axis, level in named)


def split_level(schema: Schema, name: object) -> tuple[int, int | None]:
    """Return the attribute that a name stands for and the level of its hierarchy, None for its values."""
    found = _LEVEL.fullmatch(name) if isinstance(name, str) and name not in schema.names else None
    if found is None:
        return schema.axis(name), None  # type: ignore[arg-type]
    return schema.axis(found[1]), int(found[2])


def level_name(schema: Schema, axis: int, level: int | None) -> str:
    """Return what a grouping is called: the one spelling of the attribute's name, and the level if there is one."""
    return schema.names[axis] if level is None else f"{schema.names[axis]}:Level {level}"


def require_groups(groupings: Sequence[Grouping], most: int, instead: str) -> None:
    """Refuse more combinations of groups than can be asked one by one."""
    number = prod(map(len, groupings))
    if number > most:
        raise QueryError(f"that gives {number:,} groups, and at most {most:,} can be asked at once; {instead}")


def _grouping(schema: Schema, axis: int, level: int | None) -> Grouping:
    attribute, name = schema.attributes[axis], level_name(schema, axis, level)
    if level is None:
        require_cells(attribute.size, BYTES_PER_GROUP, f"grouping by '{attribute.name}'")
        cells = np.arange(attribute.size, dtype=np.int64)
        return Grouping(name, axis, cells, cells, tuple(attribute.labels()))
    if not isinstance(attribute, Nominal) or not attribute.hierarchy.groups:
        raise QueryError(
            f"'{attribute.name}' has no hierarchy, so it has no levels; group by '{attribute.name}' itself"
        )
    depth = attribute.hierarchy.depth
    if not 1 <= level <= depth:
        raise QueryError(f"'{quoted(attribute.name)}' has levels 1 to {depth}, from its topmost groups to its values")
    nodes = attribute.hierarchy.level(level)
    labels = attribute.labels()[attribute.regular_size :]
    stray = np.arange(attribute.regular_size, attribute.size, dtype=np.int64)
    first = np.concatenate([np.array([node.first for node in nodes], dtype=np.int64), stray])
    last = np.concatenate([np.array([node.end - 1 for node in nodes], dtype=np.int64), stray])
    return Grouping(name, axis, first, last, (*(node.name for node in nodes), *labels))
