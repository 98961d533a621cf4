"""Attributes: one axis of the cube each, described by public facts only.

Every attribute has its regular cells first, then, if its policies ask for them, one cell for values outside the schema
and one for missing values.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError, SchemaError, quoted
from veilcube.schema.divisions import Bound, BoundaryRule, Calendar, CalendarUnit, Division, read_division
from veilcube.schema.hierarchy import Hierarchy, HierarchySpec, value_text
from veilcube.system import did_you_mean, is_encodable, nearest, read_whole, require_cells, show

OutsidePolicy: TypeAlias = Literal["reject", "clip", "other"]
MissingPolicy: TypeAlias = Literal["reject", "cell"]
Mask: TypeAlias = NDArray[np.bool_]

OTHER_LABEL = "(other)"
MISSING_LABEL = "(missing)"


class Attribute:
    """What ordinal and nominal attributes share: a name, a source column, and where stray values go."""

    kind: str

    def __init__(self, name: str, column: str | None, outside: str, missing: str, policies: Sequence[str]) -> None:
        if not isinstance(name, str) or not name.strip():
            raise SchemaError("an attribute needs a name that is not empty")
        if column is not None and (not isinstance(column, str) or not column):
            raise SchemaError(f"the column of '{name}' must be a name that is not empty")
        if not is_encodable(name) or (column is not None and not is_encodable(column)):
            raise SchemaError("the name or the column of an attribute holds half of a character; write it as UTF-8")
        if not isinstance(outside, str) or outside not in policies:
            raise SchemaError(f"outside={show(outside)} is not allowed for '{name}'; use one of {', '.join(policies)}")
        if not isinstance(missing, str) or missing not in ("reject", "cell"):
            raise SchemaError(f"missing={show(missing)} is not allowed for '{name}'; use 'reject' or 'cell'")
        self._name, self._column = name, name if column is None else column
        self._outside, self._missing = outside, missing

    @property
    def name(self) -> str:
        """What queries call it."""
        return self._name

    @property
    def column(self) -> str:
        """The column of the table it is read from; the name, unless said otherwise."""
        return self._column

    @property
    def outside(self) -> str:
        """What happens to values outside the schema: ``reject``, ``clip`` or ``other``."""
        return self._outside

    @property
    def missing(self) -> str:
        """What happens to missing values: ``reject`` or ``cell``."""
        return self._missing

    @property
    def regular_size(self) -> int:
        """How many cells hold values inside the schema."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """How many cells the axis has, the cells for stray values included."""
        return self.regular_size + (self._outside == "other") + (self._missing == "cell")

    @property
    def other_cell(self) -> int | None:
        """The cell of values outside the schema, if there is one."""
        return self.regular_size if self._outside == "other" else None

    @property
    def missing_cell(self) -> int | None:
        """The cell of missing values, if there is one."""
        return self.size - 1 if self._missing == "cell" else None

    def labels(self) -> list[str]:
        """Return what to print for each cell."""
        require_cells(self.size, 120, f"listing '{self._name}'")
        return [self._label(cell) for cell in range(self.size)]

    def label(self, cell: int) -> str:
        """Return what to print for one cell."""
        return self._label(read_whole(cell, "the cell", 0, self.size - 1))

    def _label(self, cell: int) -> str:
        if cell < self.regular_size:
            return self._regular_label(cell)
        return OTHER_LABEL if cell == self.other_cell else MISSING_LABEL

    def mask(self, first: int, end: int) -> Mask:
        """Return the cells ``first`` to ``end - 1`` as a boolean mask over the axis."""
        require_cells(self.size, 24, f"a condition on '{self._name}'")
        chosen = np.zeros(self.size, dtype=np.bool_)
        chosen[read_whole(first, "the first cell", 0) : read_whole(end, "the cell after the last one", 0)] = True
        return chosen

    def cells_of(self, value: Bound) -> tuple[int, int]:
        """Return the half-open run of cells that one value, or one node of a hierarchy, means."""
        raise NotImplementedError

    def _regular_label(self, cell: int) -> str:
        raise NotImplementedError

    def _facts(self) -> dict[str, object]:
        raise NotImplementedError

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        head: dict[str, object] = {"name": self._name, "kind": self.kind}
        if self._column != self._name:
            head["column"] = self._column
        return head | self._facts() | {"outside": self._outside, "missing": self._missing}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attribute) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self._name, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, {self.size} cells)"


class Ordinal(Attribute):
    """An ordered attribute: whole numbers, bins between edges, or days, months or years of a calendar.

    >>> Ordinal("age", 17, 90).size
    74
    >>> Ordinal("income", edges=[0, 10_000, 20_000, 50_000]).labels()
    ['[0, 10000)', '[10000, 20000)', '[20000, 50000]']
    >>> Ordinal("admitted", "2023", "2024", unit="month").cells_between("2023-02", "2023-04")
    (1, 4)
    """

    kind = "ordinal"

    def __init__(
        self,
        name: str,
        low: Bound | None = None,
        high: Bound | None = None,
        *,
        edges: Sequence[float] | None = None,
        unit: CalendarUnit | None = None,
        outside: OutsidePolicy = "reject",
        missing: MissingPolicy = "reject",
        column: str | None = None,
    ) -> None:
        super().__init__(name, column, outside, missing, ("reject", "clip", "other"))
        try:
            self._division = read_division(low, high, edges, unit)
        except SchemaError as problem:
            raise SchemaError(f"attribute '{name}': {problem}") from problem

    @property
    def division(self) -> Division:
        """How its line is cut into cells."""
        return self._division

    @property
    def is_date(self) -> bool:
        """Whether its cells are days, months or years."""
        return isinstance(self._division, Calendar)

    @property
    def regular_size(self) -> int:
        """How many cells hold values inside the schema."""
        return self._division.size

    def cells_of(self, value: Bound) -> tuple[int, int]:
        """Return the half-open run of cells that ``value`` means; refuses one outside the domain."""
        first, end = self.before(value), self.after(value)
        if first >= end:
            raise QueryError(f"'{self.name}' has no cell for {quoted(value)}; its domain is {self._division.domain()}")
        return first, end

    def cells_between(self, low: Bound | None, high: Bound | None) -> tuple[int, int]:
        """Return the half-open run of cells of the inclusive range ``(low, high)``; ``None`` leaves an end open."""
        with_name = f"the range ({quoted(low)}, {quoted(high)}) on '{self.name}'"
        first = 0 if low is None else self.before(low)
        end = self.regular_size if high is None else self._named(self._division.range_end, high)
        if first >= end:
            raise QueryError(
                f"{with_name} is inverted or outside the domain {self._division.domain()}; write (low, high)"
            )
        return first, end

    def before(self, value: Bound) -> int:
        """Return how many cells lie wholly below ``value``."""
        return self._named(self._division.boundary_before, value)

    def after(self, value: Bound) -> int:
        """Return how many cells lie wholly at or below ``value``."""
        return self._named(self._division.boundary_after, value)

    def _named(self, boundary: BoundaryRule, value: Bound) -> int:
        try:
            return boundary(value)
        except QueryError as problem:
            raise QueryError(f"attribute '{self.name}': {problem}") from problem

    def centres(self) -> NDArray[np.float64]:
        """Return the number that stands for each regular cell in sums and means."""
        require_cells(self.size, 48, f"listing the numbers of '{self._name}'")
        return np.array([self._division.centre(cell) for cell in range(self.regular_size)], dtype=np.float64)

    def spans(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the largest number that each regular cell may hold."""
        require_cells(self.size, 120, f"listing the bounds of '{self._name}'")
        ends = np.array([self._division.span(cell) for cell in range(self.regular_size)], dtype=np.float64)
        return ends[:, 0], ends[:, 1]

    def _regular_label(self, cell: int) -> str:
        return self._division.label(cell)

    def _facts(self) -> dict[str, object]:
        return self._division.to_dict()


class Nominal(Attribute):
    """An attribute of unordered values, flat or grouped by a hierarchy of any depth.

    With both, the hierarchy must hold exactly the values; its order is that of the cells.

    >>> job = Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": {"Law": ["Judge"], "IT": ["Dev", "Ops"]}})
    >>> job.cells_of("Office"), job.cells_of("Aide")
    ((2, 5), (1, 2))
    """

    kind = "nominal"

    def __init__(
        self,
        name: str,
        values: Sequence[object] | None = None,
        *,
        hierarchy: HierarchySpec | None = None,
        outside: Literal["reject", "other"] = "reject",
        missing: MissingPolicy = "reject",
        column: str | None = None,
    ) -> None:
        super().__init__(name, column, outside, missing, ("reject", "other"))
        if values is None and hierarchy is None:
            raise SchemaError(f"attribute '{name}' needs values or a hierarchy; take them from public knowledge")
        try:
            listed = Hierarchy.flat(values) if values is not None else None
            self._hierarchy = listed if hierarchy is None and listed is not None else Hierarchy.read(hierarchy)
            if listed is not None and hierarchy is not None:
                self._hierarchy.require_leaves(listed.leaves)
        except SchemaError as problem:
            raise SchemaError(f"attribute '{name}': {problem}") from problem
        taken = {OTHER_LABEL: self.other_cell, MISSING_LABEL: self.missing_cell}
        for label, cell in taken.items():
            if cell is not None and self._hierarchy.run_of(label) is not None:
                raise SchemaError(f"attribute '{name}': '{label}' is the name of an extra cell; rename that value")

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree over its values; a flat attribute has a root and leaves only."""
        return self._hierarchy

    @property
    def values(self) -> tuple[str, ...]:
        """The values, in the order of the cells."""
        return self._hierarchy.leaves

    @property
    def regular_size(self) -> int:
        """How many cells hold values inside the schema."""
        return len(self._hierarchy.leaves)

    def cells_of(self, value: object) -> tuple[int, int]:
        """Return the half-open run of cells of a value or of a node of the hierarchy."""
        written = quoted(value)
        run = self._hierarchy.run_of(value_text(value))
        if run is None:
            nodes = [*self._hierarchy.groups, *self.values]
            alike = nearest(written, nodes)
            some = ", ".join(repr(node) for node in nodes[:8]) + (", ..." if len(nodes) > 8 else "")
            advice = f"did you mean {alike!r}?" if alike else f"it has {some}"
            raise QueryError(f"'{self.name}' has no value or group {written!r}; {advice}")
        return run

    def _regular_label(self, cell: int) -> str:
        return self.values[cell]

    def _facts(self) -> dict[str, object]:
        spec = self._hierarchy.to_spec()
        return {"hierarchy": spec} if self._hierarchy.groups else {"values": spec}

    def __eq__(self, other: object) -> bool:
        # Mappings compare without regard to order, but the order of a hierarchy is the order of the cells.
        return isinstance(other, Nominal) and self.values == other.values and super().__eq__(other)

    __hash__ = Attribute.__hash__


def read_attribute(facts: Mapping[str, object]) -> Attribute:
    """Rebuild an attribute from the plain data of ``to_dict``."""
    rest = dict(facts)
    kind = rest.pop("kind", None)
    allowed = {
        "ordinal": ("name", "column", "low", "high", "edges", "unit", "outside", "missing"),
        "nominal": ("name", "column", "values", "hierarchy", "outside", "missing"),
    }
    name = rest.get("name", "?")
    if not isinstance(kind, str) or kind not in allowed:
        raise SchemaError(f'attribute \'{name}\' needs kind = "ordinal" or kind = "nominal"')
    unknown = sorted(map(str, set(rest) - set(allowed[kind])))
    if unknown:
        raise SchemaError(
            f"attribute '{name}' has unknown settings: {', '.join(unknown)}; {did_you_mean(unknown[0], allowed[kind])}"
            f"allowed are {', '.join(allowed[kind])}"
        )
    if "name" not in rest:
        raise SchemaError("every attribute needs a name")
    return (Ordinal if kind == "ordinal" else Nominal)(**rest)  # type: ignore[arg-type]
