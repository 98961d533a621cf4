"""Random small schemas, rows and conditions, with conditions as data: rendered as SQL, or judged row by row.

The judge is written from the rules of SQL's three-valued logic alone, without any code of the package.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeAlias

from hypothesis import strategies as st

from veilcube.errors import QueryError
from veilcube.query.sql import read_sql
from veilcube.schema import Attribute, Nominal, Ordinal, Region, Schema

Value: TypeAlias = int | float | str | date | None
Row: TypeAlias = tuple[Value, ...]
Truth: TypeAlias = bool | None

OUTSIDE = "<outside the schema>"  # stands for any value that the schema does not know
SIGNS: Mapping[str, Callable[[object, object], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, repr=False)
class Column:
    """One attribute with what a test needs to know of it."""

    attribute: Attribute
    sql_type: str
    inside: tuple[Value, ...]  # values that a row may hold
    bounds: tuple[Value, ...]  # values that a condition may compare with
    members: Mapping[str, frozenset[str]]  # the values of each group
    cell_of: Callable[[Value], int]

    def __repr__(self) -> str:
        return f"Column({self.attribute.to_dict()})"

    @property
    def name(self) -> str:
        """Its name, quoted as SQL wants it."""
        return '"' + self.attribute.name.replace('"', '""') + '"'

    def cell(self, value: Value) -> int:
        """Return the cell of a value, found without the package's own arithmetic."""
        if value is None or value == OUTSIDE:
            stray = self.attribute.missing_cell if value is None else self.attribute.other_cell
            assert stray is not None
            return stray
        return self.cell_of(value)


def whole_numbers(draw: st.DrawFn, name: str, **policies: str) -> Column:
    low = draw(st.integers(-3, 3))
    high = low + draw(st.integers(0, 6))
    bounds = (*range(low - 1, high + 2), low + 0.5)
    attribute = Ordinal(name, low, high, **policies)
    return Column(attribute, "INTEGER", tuple(range(low, high + 1)), bounds, {}, lambda value: value - low)


def bins(draw: st.DrawFn, name: str, **policies: str) -> Column:
    whole = draw(st.booleans())
    step = 1 if whole else 0.25
    steps = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    edges = [draw(st.integers(-4, 2)) * step]
    for width in steps:
        edges.append(edges[-1] + width * step)
    if not whole and all(edge == int(edge) for edge in edges):
        edges = [edge + step for edge in edges]  # edges that are all whole numbers stand for whole values
    inside = [edges[0] + k * step for k in range(sum(steps) + 1)]
    bounds = (*edges, *(edge - step for edge in edges), edges[-1] + step)

    def cell_of(value: Value) -> int:
        return min(sum(edge <= value for edge in edges), len(edges) - 1) - 1

    attribute = Ordinal(name, edges=edges, **policies)
    return Column(attribute, "INTEGER" if whole else "DOUBLE", tuple(inside), bounds, {}, cell_of)


def calendar(draw: st.DrawFn, name: str, **policies: str) -> Column:
    unit = draw(st.sampled_from(["day", "month", "year"]))
    length, span, margin, step = {"day": (10, 5, 2, 1), "month": (7, 120, 45, 9), "year": (4, 900, 400, 37)}[unit]
    low = draw(st.dates(date(2019, 12, 20), date(2020, 3, 5)))
    attribute = Ordinal(name, low, low + timedelta(days=span), unit=unit, **policies)
    labels = attribute.labels()[: attribute.regular_size]
    every = [low + timedelta(days=k) for k in range(-margin, span + margin)]
    starts = [day for day in every if day.isoformat()[:length] != (day - timedelta(days=1)).isoformat()[:length]]
    bounds = (*starts, *(day - timedelta(days=1) for day in starts), low, *every[:: 5 * step])
    inside = tuple(day for day in (*bounds, *every[::step]) if day.isoformat()[:length] in labels)
    cells = {label: cell for cell, label in enumerate(labels)}
    return Column(attribute, "DATE", inside, bounds, {}, lambda value: cells[value.isoformat()[:length]])


def flat_values(draw: st.DrawFn, name: str, **policies: str) -> Column:
    values = draw(st.lists(st.sampled_from(["a", "B", "it's", 'say "x"', "", "ü", "1"]), min_size=1, unique=True))
    attribute = Nominal(name, values, **policies)
    return Column(attribute, "VARCHAR", tuple(values), tuple(values), {}, values.index)


def grouped_values(draw: st.DrawFn, name: str, **policies: str) -> Column:
    width = draw(st.integers(1, 3))
    deep = [f"d{k}" for k in range(width)]
    spec = {"Deep": {"Deeper": deep, "Beside": ["e"]}, "Flat": ["f", {"In": ["g"]}]}
    members = {
        "Deep": frozenset([*deep, "e"]),
        "Deeper": frozenset(deep),
        "Beside": frozenset("e"),
        "Flat": frozenset("fg"),
        "In": frozenset("g"),
    }
    values = [*deep, "e", "f", "g"]
    attribute = Nominal(name, hierarchy=spec, **policies)
    return Column(attribute, "VARCHAR", tuple(values), (*values, *members), members, values.index)


Maker: TypeAlias = Callable[..., Column]


@dataclass(frozen=True)
class Case:
    """A schema with a small table and a condition on it."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    condition: "Node"

    @property
    def schema(self) -> Schema:
        """The schema of the columns."""
        return Schema([column.attribute for column in self.columns])


@dataclass(frozen=True)
class Atom:
    """A comparison of one column; ``kind`` is a sign, ``in``, ``between``, ``null`` or ``constant``."""

    kind: str
    column: Column
    position: int
    values: tuple[Value, ...] = ()
    negated: bool = False
    flipped: bool = False

    def sql(self) -> str:
        name, values = self.column.name, [literal(value) for value in self.values]
        no = "NOT " if self.negated else ""
        if self.kind == "constant":
            return {True: "TRUE", False: "FALSE", None: "NULL"}[self.values[0]]
        if self.kind == "null":
            return f"{name} IS {no}NULL"
        if self.kind == "in":
            return f"{name} {no}IN ({', '.join(values)})"
        if self.kind == "between":
            return f"{name} {no}BETWEEN {values[0]} AND {values[1]}"
        return f"{values[0]} {FLIPPED[self.kind]} {name}" if self.flipped else f"{name} {self.kind} {values[0]}"

    def judge(self, row: Row) -> Truth:
        held = row[self.position]
        if self.kind == "constant":
            return self.values[0]
        if self.kind == "null":
            return (held is None) != self.negated
        if self.kind == "in":
            found = either(self._compare("=", held, value) for value in self.values)
        elif self.kind == "between":
            low, high = self.values
            found = both([self._compare(">=", held, low), self._compare("<=", held, high)])
        else:
            return self._compare(self.kind, held, self.values[0])
        return opposite(found) if self.negated else found

    def _compare(self, sign: str, held: Value, value: Value) -> Truth:
        if held is None or value is None:
            return None
        if held == OUTSIDE:
            return {"=": False, "<>": True}.get(sign)
        if value in self.column.members:
            return (held in self.column.members[value]) == (sign == "=")
        return SIGNS[sign](held, value)


@dataclass(frozen=True)
class Not:
    """The negation of a condition."""

    inner: "Node"

    def sql(self) -> str:
        return f"NOT ({self.inner.sql()})"

    def judge(self, row: Row) -> Truth:
        return opposite(self.inner.judge(row))


@dataclass(frozen=True)
class Chain:
    """Conditions joined by AND or by OR."""

    word: str
    parts: tuple["Node", ...]

    def sql(self) -> str:
        return f" {self.word} ".join(
            f"({part.sql()})" if isinstance(part, Chain) else part.sql() for part in self.parts
        )

    def judge(self, row: Row) -> Truth:
        return (both if self.word == "AND" else either)(part.judge(row) for part in self.parts)


Node: TypeAlias = Atom | Not | Chain


def opposite(truth: Truth) -> Truth:
    return None if truth is None else not truth


def both(truths: Sequence[Truth]) -> Truth:
    found = set(truths)
    return False if False in found else None if None in found else True


def either(truths: Sequence[Truth]) -> Truth:
    found = set(truths)
    return True if True in found else None if None in found else False


def literal(value: Value) -> str:
    """Write a value as SQL does."""
    if value is None:
        return "NULL"
    if isinstance(value, date):
        # Both spellings that people use; which one depends on the day, so that each is drawn often.
        return f"DATE '{value}'" if value.day % 2 else f"'{value}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def count_in(region: Region, case: Case) -> int:
    """Count the rows whose cells lie in the region: the exact count, by going through the table."""
    total = 0
    for row in case.rows:
        cells = [column.cell(value) for column, value in zip(case.columns, row, strict=True)]
        total += sum(all(box.mask(axis)[cell] for axis, cell in enumerate(cells)) for box in region.boxes)
    return total


@st.composite
def atoms(draw: st.DrawFn, columns: tuple[Column, ...]) -> Atom:
    """Draw a comparison that the schema can answer; what it refuses must be refused for a cell, not for a bug."""
    position = draw(st.integers(0, len(columns) - 1))
    column = columns[position]
    ordered = isinstance(column.attribute, Ordinal)
    kind = draw(
        st.sampled_from([*(SIGNS if ordered else ("=", "<>")), "in", *["between"] * ordered, "null", "constant"])
    )
    bound = st.sampled_from(column.bounds)
    bound = st.one_of(bound, bound, bound, st.none())
    values: tuple[Value, ...] = ()
    if kind == "constant":
        values = (draw(st.sampled_from([True, False, None])),)
    elif kind == "in":
        values = tuple(draw(st.lists(bound, min_size=1, max_size=3)))
    elif kind != "null":
        values = (draw(bound), draw(bound))
    atom = Atom(kind, column, position, values, draw(st.booleans()), draw(st.booleans()))
    try:
        read_sql(Schema([each.attribute for each in columns]), atom.sql())
    except QueryError as refused:
        if (
            "cuts through" not in str(refused)
            and "has no cell for" not in str(refused)
            and "is inverted" not in str(refused)
        ):
            raise
        return Atom("null", column, position, (), atom.negated)
    return atom


@st.composite
def cases(draw: st.DrawFn, makers: Sequence[Maker], outside: Sequence[str]) -> Case:
    columns = []
    for number in range(draw(st.integers(1, 3))):
        maker = draw(st.sampled_from(makers))
        policies = {"missing": draw(st.sampled_from(["reject", "cell"])), "outside": draw(st.sampled_from(outside))}
        columns.append(maker(draw, f"{'xyz'[number]} {number}", **policies))
    held = [_held(column) for column in columns]
    rows = draw(st.lists(st.tuples(*held), min_size=1, max_size=25))
    leaf = atoms(tuple(columns))
    tree = st.recursive(
        leaf,
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(Chain, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=4).map(tuple))
        ),
        max_leaves=8,
    )
    return Case(tuple(columns), tuple(rows), draw(tree))


def _held(column: Column) -> st.SearchStrategy[Value]:
    strays = [None] * (column.attribute.missing_cell is not None) + [OUTSIDE] * (
        column.attribute.other_cell is not None
    )
    inside = st.sampled_from(column.inside)
    return st.one_of(inside, inside, st.sampled_from(strays)) if strays else inside
