"""A table of whole-number codes, and the questions that are asked about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import veilcube as vc

Whole: TypeAlias = NDArray[np.int64]
Axes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class CodedTable:
    """Rows of codes from 0, one column for each attribute, which is ordered or not."""

    name: str
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    is_ordered: tuple[bool, ...]
    codes: Whole = field(repr=False)

    @property
    def cells(self) -> int:
        """How many cells the whole cube has; there may be more than fit any memory."""
        return prod(self.sizes)

    def schema(self) -> vc.Schema:
        """Return the public facts: ordered attributes are numbers, others are texts."""
        return vc.Schema(
            [
                vc.Ordinal(name, 0, size - 1) if ordered else vc.Nominal(name, [str(code) for code in range(size)])
                for name, size, ordered in zip(self.columns, self.sizes, self.is_ordered, strict=True)
            ]
        )

    def frame(self) -> pd.DataFrame:
        """Return the rows as people hold them, with texts where codes have no order."""
        columns: dict[str, object] = {}
        for axis, (name, size, ordered) in enumerate(zip(self.columns, self.sizes, self.is_ordered, strict=True)):
            codes = self.codes[:, axis]
            columns[name] = codes if ordered else np.array([str(code) for code in range(size)], dtype=object)[codes]
        return pd.DataFrame(columns)

    def count_by(self, axes: Sequence[int]) -> Whole:
        """Return the true table of some attributes, by counting every row."""
        shape = tuple(self.sizes[axis] for axis in axes)
        cells = np.ravel_multi_index(tuple(self.codes[:, axis] for axis in axes), shape)
        return np.bincount(cells, minlength=prod(shape)).reshape(shape)


@dataclass(frozen=True)
class Conjunctions:
    """Inclusive ends of codes over all columns, one row a question, and how many rows of the table meet each."""

    low: Whole = field(repr=False)
    high: Whole = field(repr=False)
    truth: Whole = field(repr=False)

    def first(self) -> "Conjunctions":
        """Return the first question alone."""
        return Conjunctions(self.low[:1], self.high[:1], self.truth[:1])


@dataclass(frozen=True)
class Questions:
    """What is asked: the tables of attributes and the conjunctions, by kind (2way, 3way, range1 to range4)."""

    tables: Mapping[str, Sequence[Axes]] = field(repr=False)
    conjunctions: Mapping[str, Conjunctions] = field(repr=False)

    def with_at_most(self, most: int) -> "Questions":
        """Return the same questions with only so many tables of each kind."""
        return Questions({kind: spaced(tables, most) for kind, tables in self.tables.items()}, self.conjunctions)


def spaced(items: Sequence[Axes], most: int) -> Sequence[Axes]:
    """Return at most so many, evenly spaced over all."""
    if len(items) <= most:
        return items
    return [items[place] for place in np.linspace(0, len(items) - 1, most).round().astype(int).tolist()]


def metric_of(kind: str) -> str:
    """Return how the error of a kind is measured: tables by total variation, conjunctions in rows."""
    return "tv" if kind.endswith("way") else "rmse"
