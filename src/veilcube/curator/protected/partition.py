"""A protected table split by attributes: all parts at once for one epsilon, or each part on its own.

Parts share no row. What is spent on single parts therefore costs the dataset the dearest part only; the ledger keeps
the sums, so that this holds across sessions, processes and analysts who split by the same attributes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, cast

from veilcube.curator.ledger import PartOf
from veilcube.errors import PrivacyError, QueryError
from veilcube.privacy import EpsilonLike, PrivacyUnit
from veilcube.privacy.secrecy import Private
from veilcube.query import Answers, read_condition
from veilcube.schema import Attribute, Region, Schema
from veilcube.system.arguments import read_text

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
        powers = {read_text(attribute, "the attribute"): 1}
        return cast(Answers, self.table.ask_moment(powers, self.axes, epsilon, confidence, fresh))

    def noisy_mean(
        self, attribute: str, *, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False
    ) -> Answers:
        """Estimate the mean of an attribute in every part, all for one epsilon."""
        powers = {read_text(attribute, "the attribute"): 1}
        return cast(Answers, self.table.ask_moment(powers, self.axes, epsilon, confidence, fresh, is_mean=True))

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
        placed = dict(sorted(zip(self.axes, cells, strict=True)))
        return _part_of(self._schema, self.table.desk.unit, self.table.within[-1:], placed)


def require_inside(schema: Schema, unit: PrivacyUnit, region: Region, within: Sequence[PartOf]) -> None:
    """Refuse rows that do not all lie in the parts they are charged as, each inside the one before."""
    for number, claimed in enumerate(within):
        placed = _cells_of(schema, claimed)
        agrees = placed is not None and claimed == _part_of(schema, unit, within[:number][-1:], placed)
        if not agrees or not all(_lies_in(region, axis, cell) for axis, cell in (placed or {}).items()):
            raise PrivacyError(
                "the rows in view do not all lie in the part that they would be charged as; take parts from "
                "partition(...)[value] and narrow them with where"
            )


def _part_of(schema: Schema, unit: PrivacyUnit, outer: Sequence[PartOf], placed: Mapping[int, int]) -> PartOf:
    """Return the part at some cells of axes, which ascend, inside an outer part if there is one."""
    partition = {
        "by": [schema.names[axis] for axis in placed],
        "inside": [json.loads(outer[0].partition), json.loads(outer[0].part)] if outer else None,
        "schema": schema.fingerprint(),
        "unit": unit.to_dict(),
    }
    return PartOf(json.dumps(partition, sort_keys=True), json.dumps(list(placed.values())))


def _cells_of(schema: Schema, part: PartOf) -> dict[int, int] | None:
    """Return the cell of each axis that a part names; None if it names none."""
    try:
        names, cells = json.loads(part.partition)["by"], json.loads(part.part)
        return {schema.axis(name): int(cell) for name, cell in zip(names, cells, strict=True)}
    except (AttributeError, LookupError, TypeError, ValueError, QueryError):
        return None


def _lies_in(region: Region, axis: int, cell: int) -> bool:
    elsewhere = region.reached(axis).copy()
    elsewhere[cell] = False
    return not elsewhere.any()


def _cell_of(attribute: Attribute, value: object) -> int:
    labels = attribute.labels()
    if isinstance(value, str) and value in labels:
        return labels.index(value)
    chosen = read_condition(attribute, value).nonzero()[0]
    if chosen.size != 1:
        raise QueryError(f"a part of '{attribute.name}' is one of its values, not a range or a group of them")
    return int(chosen[0])
