"""Impossible combinations: cells that no row of the population can fall into (structural zeros), as public facts.

An entry names attributes and, for each, the values that cannot meet those of the others: a box of cells. Cells are kept
as runs, so that an attribute of any length costs what its entries cost; masks are made when they are asked for.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from math import prod
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError, SchemaError
from veilcube.schema.attribute import Attribute, Mask, Ordinal
from veilcube.schema.divisions import Bound, read_date
from veilcube.schema.hierarchy import value_text
from veilcube.system import require_cells

MOST_ENTRIES = 1000
MAX_NESTING = 32
# Whether all entries together leave no cell is told up to so many cells; cells in the same entries count once.
MOST_COMPARED = 2**20

Run: TypeAlias = tuple[int, int]  # half-open
End: TypeAlias = Bound | None
Part: TypeAlias = Bound | tuple[End, End] | None  # a value or node, a range, or the missing values


@dataclass(frozen=True)
class Chosen:
    """What an entry says of one attribute: its parts in the order of the cells, each spelled in one way."""

    name: str
    axis: int
    parts: tuple[Part, ...]
    runs: tuple[Run, ...] = field(repr=False, compare=False)

    @property
    def condition(self) -> object:
        """What a query would say for it."""
        return self.parts[0] if len(self.parts) == 1 else frozenset(self.parts)

    @property
    def plain(self) -> object:
        """What a schema file says for it."""
        written = [_plain(part) for part in self.parts]
        return written[0] if len(written) == 1 else written


Combination: TypeAlias = tuple[Chosen, ...]  # in the order of the axes


def read_impossible(
    entries: object, attributes: Sequence[Attribute], axis_of: Callable[[str], int]
) -> tuple[Combination, ...]:
    """Return the entries that ``impossible`` lists, refusing those that leave nothing possible."""
    if isinstance(entries, Mapping | str | bytes) or not isinstance(entries, Iterable):
        raise SchemaError("impossible is a list of mappings such as [{'sex': 'Male', 'diagnosis': 'Pregnancy'}]")
    listed = list(islice(entries, MOST_ENTRIES + 1))
    if len(listed) > MOST_ENTRIES:
        raise SchemaError(
            f"a schema holds at most {MOST_ENTRIES:,} impossible combinations; join some with lists, ranges or groups"
        )
    found = []
    for number, entry in enumerate(listed, 1):
        try:
            found.append(_read_entry(entry, attributes, axis_of))
        except QueryError as problem:
            raise SchemaError(f"impossible combination {number}: {problem}") from problem
    _require_possible(found, attributes)
    return tuple(found)


def boxes_of(combinations: Sequence[Combination], attributes: Sequence[Attribute]) -> tuple[tuple[Mask, ...], ...]:
    """Return each entry as one mask per attribute; masks cannot be written to, and equal ones may be one array."""
    whole: list[tuple[Run, ...]] = [((0, attribute.size),) for attribute in attributes]
    boxes = []
    for combination in combinations:
        named = {chosen.axis: chosen.runs for chosen in combination}
        boxes.append([(axis, named.get(axis, everything)) for axis, everything in enumerate(whole)])
    different = {key for box in boxes for key in box}
    require_cells(sum(attributes[axis].size for axis, _ in different), 1, "listing impossible combinations")
    masks = {(axis, runs): _mask(attributes[axis].size, runs) for axis, runs in different}
    return tuple(tuple(masks[key] for key in box) for box in boxes)


def _mask(size: int, runs: Sequence[Run]) -> Mask:
    chosen: NDArray[np.bool_] = np.zeros(size, dtype=np.bool_)
    for first, end in runs:
        chosen[first:end] = True
    chosen.flags.writeable = False
    return chosen


def _read_entry(entry: object, attributes: Sequence[Attribute], axis_of: Callable[[str], int]) -> Combination:
    if not isinstance(entry, Mapping):
        raise QueryError(
            "it is no mapping from attributes to values, such as {'sex': 'Male', 'diagnosis': 'Pregnancy'}"
        )
    if not entry:
        raise QueryError("it names no attribute; name at least one, with the values that are impossible")
    found: dict[int, Chosen] = {}
    for name, condition in entry.items():
        axis = axis_of(name)
        if axis in found:
            raise QueryError(f"it names '{attributes[axis].name}' twice; name each attribute once")
        found[axis] = _read_chosen(attributes[axis], axis, condition)
    return tuple(found[axis] for axis in sorted(found))


def _read_chosen(attribute: Attribute, axis: int, condition: object) -> Chosen:
    parts = [_read_part(attribute, value) for value in _values_of(attribute, condition)]
    if not parts:
        raise QueryError(f"the list of values for '{attribute.name}' is empty; list at least one")
    # Sets have no order and lists any: one order for all, so that equal entries have equal files and digests.
    ordered = sorted(set(parts), key=lambda found: (found[1], repr(found[0])))
    return Chosen(attribute.name, axis, tuple(part for part, _ in ordered), _merged(run for _, run in ordered))


def _values_of(attribute: Attribute, condition: object, depth: int = 0) -> list[object]:
    """Return the values of a list, of lists inside it too; on an ordinal attribute a tuple is a range and stays one."""
    if isinstance(condition, np.ndarray):
        condition = condition.tolist()
    if not isinstance(condition, list | tuple | Set) or (
        isinstance(condition, tuple) and isinstance(attribute, Ordinal)
    ):
        return [condition]
    if depth > MAX_NESTING:
        raise QueryError(f"the values for '{attribute.name}' are lists inside lists without end; write one list")
    return [value for inner in condition for value in _values_of(attribute, inner, depth + 1)]


def _read_part(attribute: Attribute, value: object) -> tuple[Part, Run]:
    """Return a value, a range or a node as it is kept, and its run of cells."""
    if isinstance(value, Mapping):
        value = _read_table(attribute, value)
    if value is None:
        if attribute.missing_cell is None:
            raise QueryError(f"'{attribute.name}' has no cell for missing values; its schema rejects them")
        return None, (attribute.missing_cell, attribute.missing_cell + 1)
    if not isinstance(attribute, Ordinal):
        return value_text(value), attribute.cells_of(value)  # type: ignore[arg-type]
    if not isinstance(value, tuple):
        bound = _spelled(value)
        return bound, attribute.cells_of(bound)
    if len(value) != 2:
        raise QueryError(f"a range on '{attribute.name}' is a pair (low, high); use a list for a set of values")
    low, high = (None if end is None else _spelled(end) for end in value)
    run = attribute.cells_between(low, high)
    # No end of a range that holds a cell is infinite on the other side.
    return (_finite(low), _finite(high)), run


def _read_table(attribute: Attribute, table: Mapping[object, object]) -> tuple[object, object] | None:
    """Return what a table of a schema file stands for: a range, or None for missing values."""
    if set(table) == {"missing"} and table["missing"] is True:
        return None
    if isinstance(attribute, Ordinal) and set(table) <= {"low", "high"}:
        return table.get("low"), table.get("high")
    allowed = (
        "a table holds low and high, or"
        if isinstance(attribute, Ordinal)
        else "its values have no order; list them, or use"
    )
    raise QueryError(f"'{attribute.name}' is given a table that says no values; {allowed} missing = true")


def _spelled(value: object) -> Bound:
    """Return a number or a date in its one spelling; the attribute itself refuses what is neither."""
    if isinstance(value, date):
        return read_date(value)[0].isoformat()
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, Real) or isinstance(value, bool):
        return value  # type: ignore[return-value]
    try:
        number = float(value)
    except OverflowError:  # as good as infinite: nothing in a schema lies beyond it
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    if abs(number) > 2**53 or not number.is_integer():
        return number
    return int(value) if isinstance(value, Integral) else int(number)


def _finite(end: End) -> End:
    return None if isinstance(end, float) and math.isinf(end) else end


def _plain(part: Part) -> object:
    if part is None:
        return {"missing": True}
    if isinstance(part, tuple):
        return {name: end for name, end in zip(("low", "high"), part, strict=True) if end is not None}
    return part


def _merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return disjoint runs, in order, that hold the same cells."""
    found: list[Run] = []
    for first, end in sorted(runs):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((first, end))
    return tuple(found)


def _require_possible(combinations: Sequence[Combination], attributes: Sequence[Attribute]) -> None:
    """Refuse entries that forbid every cell: one of them, those of one attribute, or all together."""
    boxes: list[dict[int, tuple[Run, ...]]] = []
    alone: dict[int, list[Run]] = defaultdict(list)
    for number, combination in enumerate(combinations, 1):
        bounded = {one.axis: one.runs for one in combination if one.runs != ((0, attributes[one.axis].size),)}
        if not bounded:
            raise SchemaError(
                f"impossible combination {number} forbids every cell of the cube; leave some value possible"
            )
        if len(bounded) == 1:
            for axis, runs in bounded.items():
                alone[axis] += runs
        boxes.append(bounded)
    for axis, listed in alone.items():
        if _merged(listed) == ((0, attributes[axis].size),):
            raise SchemaError(
                f"the impossible combinations leave no possible value of '{attributes[axis].name}'; "
                "leave one of them out"
            )
    if _hold_every_cell(boxes, [attribute.size for attribute in attributes]):
        raise SchemaError("the impossible combinations together forbid every cell of the cube; leave one of them out")


def _hold_every_cell(boxes: Sequence[Mapping[int, tuple[Run, ...]]], shape: Sequence[int]) -> bool:
    """Whether every cell lies in a box; False also where there are too many kinds of cells to look at."""
    axes = sorted({axis for box in boxes for axis in box})
    kinds = [_kinds(axis, boxes, shape[axis]) for axis in axes]
    if prod(map(len, kinds)) > MOST_COMPARED:
        return False
    # For each axis, and after the last, the boxes that neither it nor a later one bounds.
    settled = [sum(1 << bit for bit, box in enumerate(boxes) if max(box) < axis) for axis in [*axes, len(shape)]]
    return _every_choice_is_held(kinds, settled, (1 << len(boxes)) - 1, 0)


def _kinds(axis: int, boxes: Sequence[Mapping[int, tuple[Run, ...]]], size: int) -> list[int]:
    """Return the sets of boxes that the cells of an axis lie in, a bit for each box; those of few boxes first."""
    inside = 0
    changes: dict[int, int] = defaultdict(int, {0: 0})
    for bit, box in enumerate(boxes):
        if axis not in box:
            inside |= 1 << bit
        for end in (end for run in box.get(axis, ()) for end in run):
            changes[end] ^= 1 << bit
    found = set()
    for cut in sorted(changes.keys() - {size}):
        inside ^= changes[cut]
        found.add(inside)
    return sorted(found, key=int.bit_count)


def _every_choice_is_held(kinds: Sequence[Sequence[int]], settled: Sequence[int], held: int, axis: int) -> bool:
    """Whether every choice of one cell on each further axis stays in one of the boxes ``held``."""
    if not held or held & settled[axis]:
        return held != 0
    return all(_every_choice_is_held(kinds, settled, held & kind, axis + 1) for kind in kinds[axis])
