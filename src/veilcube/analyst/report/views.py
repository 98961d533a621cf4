"""What a report shows of an attribute: its cells, or runs of them where they are too many to be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from veilcube.errors import quoted
from veilcube.schema import Attribute, Bins, Calendar, Nominal, Ordinal, WholeNumbers
from veilcube.system import Floats, Integers

Kind: TypeAlias = Literal["numbers", "dates", "names"]

MOST_POINTS, MOST_BARS, MOST_COLUMNS, MOST_LINES = 120, 24, 40, 24
# Fewer numbers or dates are bars: each is read on its own.
FEWEST_POINTS = 13
LONGEST_LABEL = 40


@dataclass(frozen=True, eq=False)
class View:
    """Runs of cells of one attribute with their labels; ``note`` says what is not shown as it is.

    ``places`` are the numbers or dates of a line's points, ``groups`` the top group of each name.
    """

    name: str
    kind: Kind
    low: Integers
    high: Integers
    labels: Sequence[str]
    places: Sequence[float] | Sequence[str] = ()
    groups: Sequence[str] = ()
    note: str = ""
    is_ordered: bool = False

    def __len__(self) -> int:
        return len(self.labels)


def view_of(attribute: Attribute, counts: Floats | None, most: int, *, as_line: bool) -> View:
    """Return at most so many runs of an attribute's cells; of many names without groups, those with the most rows.

    ``counts`` are the estimated counts of its cells, where they are at hand.
    """
    if isinstance(attribute, Ordinal):
        return _ordinal_view(attribute, most, as_line=as_line)
    if isinstance(attribute, Nominal):
        return _nominal_view(attribute, counts, most)
    raise AssertionError("attributes are ordinal or nominal")


def is_line(attribute: Attribute) -> bool:
    """Whether an attribute's counts are drawn along a line: many numbers or dates at equal distances."""
    is_even = isinstance(attribute, Ordinal) and isinstance(attribute.division, WholeNumbers | Calendar)
    return is_even and attribute.regular_size >= FEWEST_POINTS


def is_listed(attribute: Attribute, most: int) -> bool:
    """Whether names are chosen by their counts: they are many, and no groups stand for them."""
    return isinstance(attribute, Nominal) and attribute.size > most and not attribute.hierarchy.groups


def _ordinal_view(attribute: Ordinal, most: int, *, as_line: bool) -> View:
    size, division = attribute.regular_size, attribute.division
    length = -(-size // most)
    low = np.arange(0, size, length, dtype=np.int64)
    high = np.minimum(low + length - 1, size - 1)
    labels = [_run_label(attribute, int(first), int(last)) for first, last in zip(low, high, strict=True)]
    note = "" if length == 1 else f"{length} {_unit(attribute)} at a time"
    kind: Kind = "names"
    places: list[float] | list[str] = []
    if as_line and isinstance(division, WholeNumbers):
        kind, places = "numbers", [division.low + (first + last) / 2 for first, last in zip(low, high, strict=True)]
    elif as_line and isinstance(division, Calendar):
        kind, places = "dates", [division.first_day(int(first)).isoformat() for first in low]
    if not as_line:
        stray = np.arange(size, attribute.size, dtype=np.int64)
        low, high = np.concatenate([low, stray]), np.concatenate([high, stray])
        labels += attribute.labels()[size:] if stray.size else []
    return View(attribute.name, kind, low, high, _cut_all(labels), places, (), note, is_ordered=True)


def _unit(attribute: Ordinal) -> str:
    division = attribute.division
    if isinstance(division, Calendar):
        return f"{division.unit}s"
    return "bins" if isinstance(division, Bins) else "values"


def _run_label(attribute: Ordinal, first: int, last: int) -> str:
    division = attribute.division
    if first == last:
        return division.label(first)
    if isinstance(division, Bins):
        closing = "]" if last == division.size - 1 else ")"
        return f"[{division.edges[first]}, {division.edges[last + 1]}{closing}"
    return f"{division.label(first)} to {division.label(last)}"


def _nominal_view(attribute: Nominal, counts: Floats | None, most: int) -> View:
    root, size = attribute.hierarchy.root, attribute.size
    stray = np.arange(attribute.regular_size, size, dtype=np.int64)
    if size > most and attribute.hierarchy.groups and len(root.children) + stray.size <= most:
        low = np.concatenate([[node.first for node in root.children], stray]).astype(np.int64)
        high = np.concatenate([[node.end - 1 for node in root.children], stray]).astype(np.int64)
        labels = [*(node.name for node in root.children), *attribute.labels()[attribute.regular_size :]]
        note = f"its {len(root.children)} top groups, of {attribute.regular_size:,} values"
        return View(attribute.name, "names", low, high, _cut_all(labels), note=note)
    cells = np.arange(size, dtype=np.int64)
    every, note = attribute.labels(), ""
    groups = _top_groups(attribute)
    if size > most:
        cells = np.argsort(-counts, kind="stable")[:most] if counts is not None else cells[:most]
        note = f"{most} of {size:,} values, those with the largest estimates: which these are is partly chance"
    return View(
        attribute.name,
        "names",
        cells,
        cells,
        _cut_all([every[cell] for cell in cells]),
        (),
        [groups[cell] for cell in cells] if groups else (),
        note,
    )


def _top_groups(attribute: Nominal) -> list[str]:
    """Return the top group of every cell where there are few; a value without one, and stray values, have none."""
    children = attribute.hierarchy.root.children
    if not attribute.hierarchy.groups or len(children) > 7:
        return []
    found = [""] * attribute.size
    for top in children:
        if not top.is_leaf:
            found[top.first : top.end] = [_cut(top.name)] * (top.end - top.first)
    return found


def _cut_all(labels: Sequence[str]) -> list[str]:
    """Return labels as a chart has room for them, no two alike."""
    found: dict[str, None] = {}
    for label in labels:
        shown, number = _cut(label), 2
        while shown in found:
            shown, number = f"{_cut(label)[: LONGEST_LABEL - 5]} ({number})", number + 1
        found[shown] = None
    return list(found)


def _cut(label: str) -> str:
    text = quoted(label)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 3]}..."


def cut_name(name: str) -> str:
    """Return the name of an attribute as a chart has room for it."""
    return _cut(name)
