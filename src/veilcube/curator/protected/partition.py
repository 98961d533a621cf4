"""A protected table split by attributes: all parts at once for one epsilon, or each part on its own.

Parts share no row. What is spent on single parts therefore costs the dataset the dearest part only; the ledger keeps
the sums, so that this holds across sessions, processes and analysts who split by the same attributes.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, cast

from veilcube.curator.ledger import PartOf
from veilcube.errors import QueryError
from veilcube.privacy import EpsilonLike
from veilcube.privacy.secrecy import Private
from veilcube.query import Answers, read_condition
from veilcube.schema import Attribute, Region, Schema

if TYPE_CHECKING:
    from veilcube.curator.protected.table import ProtectedTable


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Private):
    """The parts of a protected table, by the cells of some axes; index it with a value, or a tuple of values."""

    table: "ProtectedTable"
    axes: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Partition('{self.table.desk.dataset}' by {', '.join(self._names)}: {len(self):,} parts)"

    def __len__(self) -> int:
        return prod(attribute.size for attribute in self._attributes)

    def __iter__(self) -> Iterator[str | tuple[str, ...]]:
        """Iterate over the labels of the parts."""
        for labels in product(*(attribute.labels() for attribute in self._attributes)):
            yield labels[0] if len(labels) == 1 else labels

    def __getitem__(self, value: object) -> "ProtectedTable":
        """Return one part as a protected table; what it spends is charged as far as it exceeds the dearest part."""
        values = value if isinstance(value, tuple) else (value,)
        if len(values) != len(self.axes):
            raise QueryError(f"a part is named by one value of each of {', '.join(self._names)}")
        cells = [_cell_of(attribute, entry) for attribute, entry in zip(self._attributes, values, strict=True)]
        shape, region = self._schema.shape, self.table.region
        for axis, cell in zip(self.axes, cells, strict=True):
            mask = self._schema.attributes[axis].mask(cell, cell + 1)
            region = region.intersect(Region.on_axis(shape, axis, mask))
        return replace(self.table, region=region, within=(*self.table.within, self._place(cells)))

    def items(self) -> Iterator[tuple[str | tuple[str, ...], "ProtectedTable"]]:
        """Iterate over the labels and the parts."""
        return ((label, self[label]) for label in self)

    def noisy_count(self, *, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False) -> Answers:
        """Count the rows of every part that the conditions leave, all for one epsilon."""
        return cast(Answers, self.table.ask_moment({}, self.axes, epsilon, confidence, fresh))

    def noisy_sum(
        self, attribute: str, *, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False
    ) -> Answers:
        """Sum an attribute in every part, as ``ProtectedTable.noisy_sum`` does, all for one epsilon."""
        return cast(Answers, self.table.ask_moment({attribute: 1}, self.axes, epsilon, confidence, fresh))

    def noisy_mean(
        self, attribute: str, *, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False
    ) -> Answers:
        """Estimate the mean of an attribute in every part, all for one epsilon."""
        return cast(Answers, self.table.ask_moment({attribute: 1}, self.axes, epsilon, confidence, fresh, is_mean=True))

    @property
    def _schema(self) -> Schema:
        return self.table.desk.rows.schema

    @property
    def _attributes(self) -> tuple[Attribute, ...]:
        return tuple(self._schema.attributes[axis] for axis in self.axes)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self._attributes)

    def _place(self, cells: Sequence[int]) -> PartOf:
        """Name a part by what decides which rows are in it: schema, unit, attributes, cells, and the parts around it.

        Conditions do not matter: they only narrow the parts.
        """
        ordered = sorted(zip(self.axes, cells, strict=True))
        outer = self.table.within[-1] if self.table.within else None
        partition = {
            "by": [self._schema.names[axis] for axis, _ in ordered],
            "inside": None if outer is None else [json.loads(outer.partition), json.loads(outer.part)],
            "schema": self._schema.fingerprint(),
            "unit": self.table.desk.unit.to_dict(),
        }
        return PartOf(json.dumps(partition, sort_keys=True), json.dumps([cell for _, cell in ordered]))


def _cell_of(attribute: Attribute, value: object) -> int:
    labels = attribute.labels()
    if isinstance(value, str) and value in labels:
        return labels.index(value)
    chosen = read_condition(attribute, value).nonzero()[0]
    if chosen.size != 1:
        raise QueryError(f"a part of '{attribute.name}' is one of its values, not a range or a group of them")
    return int(chosen[0])
