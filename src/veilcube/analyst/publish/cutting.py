"""What a page lets people choose of an attribute: its cells, or runs of them where they are too many."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from veilcube.analyst.estimate import Runs
from veilcube.errors import QueryError
from veilcube.query import read_sql
from veilcube.schema import Attribute, Bins, Calendar, Node, Nominal, Ordinal, Schema

MOST_RUNS, MOST_NAMES, MOST_GROUPS = 400, 4096, 400
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class RunGroup:
    """A group of a hierarchy: its first and last run, both included, and how deep it lies."""

    name: str
    depth: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Cut:
    """One attribute in runs of cells, with their labels; the first ``regular`` runs hold values of the schema."""

    attribute: Attribute
    runs: Runs
    labels: Sequence[str]
    regular: int
    note: str

    def to_dict(self, schema: Schema) -> dict[str, object]:
        """Return what a page needs to know of it."""
        return {
            "name": self.attribute.name,
            "ordered": isinstance(self.attribute, Ordinal),
            "labels": list(self.labels),
            "sizes": self.runs.sizes.tolist(),
            "regular": self.regular,
            "note": self.note,
            "missing": self._missing,
            "groups": [asdict(group) for group in self.groups()],
            "sql": {"name": _identifier(schema, self.attribute.name), **self._spelling()},
        }

    @property
    def _missing(self) -> int | None:
        return None if self.attribute.missing_cell is None else len(self.runs) - 1

    def groups(self) -> list[RunGroup]:
        """Return the groups of a hierarchy that hold whole runs, parents before children."""
        if not isinstance(self.attribute, Nominal):
            return []
        first = {int(cell): number for number, cell in enumerate(self.runs.first)}
        last = {int(cell): number for number, cell in enumerate(self.runs.last)}
        found = [
            RunGroup(node.name, depth, first[node.first], last[node.end - 1])
            for depth, node in _inner_nodes(self.attribute.hierarchy.root)
            if node.first in first and node.end - 1 in last
        ]
        return found[:MOST_GROUPS]

    def _spelling(self) -> dict[str, object]:
        """Return how SQL says from where to where each regular run reaches."""
        ends = list(zip(self.runs.first[: self.regular], self.runs.last[: self.regular], strict=True))
        attribute = self.attribute
        if not isinstance(attribute, Ordinal):
            return {"kind": "names", "from": [_text(label) for label in self.labels[: self.regular]]}
        division = attribute.division
        if isinstance(division, Bins):
            edges = division.edges
            pairs = [(str(edges[low]), str(edges[high + 1])) for low, high in ends]
            return {"kind": "edges", "from": [low for low, _ in pairs], "to": [high for _, high in pairs]}
        spell = _text if isinstance(division, Calendar) else str
        labels = [(spell(division.label(int(low))), spell(division.label(int(high)))) for low, high in ends]
        return {"kind": "between", "from": [low for low, _ in labels], "to": [high for _, high in labels]}


def cut(attribute: Attribute, most: int = MOST_RUNS) -> Cut:
    """Cut an attribute into at most so many runs of regular cells, and a run for each cell of stray values.

    Names are kept apart as long as they are no more than a page can hold; more of them are joined by their groups.
    """
    if isinstance(attribute, Nominal):
        return _cut_names(attribute, most)
    size = attribute.regular_size
    length = -(-size // most)
    first = np.arange(0, size, length, dtype=np.int64)
    last = np.minimum(first + length - 1, size - 1)
    labels = [_label(attribute, int(low), int(high)) for low, high in zip(first, last, strict=True)]
    note = "" if length == 1 else f"in steps of {length} {_unit(attribute)}"
    return _with_stray(attribute, first, last, labels, note)


def _cut_names(attribute: Nominal, most: int) -> Cut:
    size = attribute.regular_size
    if size <= (MOST_NAMES if most >= MOST_RUNS else most):
        cells = np.arange(size, dtype=np.int64)
        return _with_stray(attribute, cells, cells, list(attribute.hierarchy.leaves), "")
    for level in range(attribute.hierarchy.depth - 1, 0, -1):
        nodes = attribute.hierarchy.level(level)
        if len(nodes) <= most:
            first = np.array([node.first for node in nodes], dtype=np.int64)
            last = np.array([node.end - 1 for node in nodes], dtype=np.int64)
            note = f"by the groups of level {level}"
            return _with_stray(attribute, first, last, [node.name for node in nodes], note)
    if size <= MOST_NAMES:
        return _cut_names(attribute, MOST_RUNS)
    raise QueryError(
        f"'{attribute.name}' has {size:,} values, more than a page can list, and no groups to join them; give it a "
        "hierarchy of at most a few hundred groups"
    )


def _with_stray(attribute: Attribute, first: np.ndarray, last: np.ndarray, labels: list[str], note: str) -> Cut:
    stray = np.arange(attribute.regular_size, attribute.size, dtype=np.int64)
    names = [*(["(other)"] * (attribute.other_cell is not None)), *(["(missing)"] * bool(attribute.missing == "cell"))]
    runs = Runs(np.concatenate([first, stray]), np.concatenate([last, stray]))
    return Cut(attribute, runs, [*labels, *names], len(first), note)


def _label(attribute: Attribute, first: int, last: int) -> str:
    division = attribute.division if isinstance(attribute, Ordinal) else None
    if division is None:
        raise AssertionError("attributes are ordinal or nominal")
    if isinstance(division, Bins) and first != last:
        closing = "]" if last == division.size - 1 else ")"
        return f"[{division.edges[first]}, {division.edges[last + 1]}{closing}"
    return division.label(first) if first == last else f"{division.label(first)} to {division.label(last)}"


def _unit(attribute: Attribute) -> str:
    division = attribute.division if isinstance(attribute, Ordinal) else None
    if isinstance(division, Calendar):
        return f"{division.unit}s"
    return "bins" if isinstance(division, Bins) else "values"


def _inner_nodes(root: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    for node in root.children:
        if not node.is_leaf:
            yield depth, node
            yield from _inner_nodes(node, depth + 1)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _identifier(schema: Schema, name: str) -> str:
    """Return a name as SQL takes it: as it is if that is understood, else in double quotes."""
    quoted = '"' + name.replace('"', '""') + '"'
    if not _PLAIN_NAME.fullmatch(name):
        return quoted
    try:
        read_sql(schema, f"{name} IS NULL")
    except QueryError:
        return quoted
    return name
