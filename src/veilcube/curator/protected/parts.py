"""Parts of partitions: how a part is named in the ledger, and whether rows lie in the parts they are charged as."""

import json
from collections.abc import Mapping, Sequence

from veilcube.curator.cube import CHOICE_OF_ROWS
from veilcube.curator.ledger import PartOf
from veilcube.errors import PrivacyError, QueryError
from veilcube.privacy import PrivacyUnit
from veilcube.query import read_cells
from veilcube.schema import Attribute, Region, Schema


def require_inside(schema: Schema, unit: PrivacyUnit, region: Region, within: Sequence[PartOf]) -> None:
    """Refuse rows that do not all lie in the parts they are charged as, each inside the one before."""
    for number, claimed in enumerate(within):
        placed = _cells_of(schema, claimed)
        agrees = placed is not None and claimed == part_of(schema, unit, within[:number][-1:], placed)
        if not agrees or not all(_lies_in(region, axis, cell) for axis, cell in (placed or {}).items()):
            raise PrivacyError(
                "the rows in view do not all lie in the part that they would be charged as; take parts from "
                "partition(...)[value] and narrow them with where"
            )


def part_of(schema: Schema, unit: PrivacyUnit, outer: Sequence[PartOf], placed: Mapping[int, int]) -> PartOf:
    """Return the part at some cells of axes, which ascend, inside an outer part if there is one."""
    partition = {
        "by": [schema.names[axis] for axis in placed],
        "inside": [json.loads(outer[0].partition), json.loads(outer[0].part)] if outer else None,
        "schema": schema.fingerprint(),
        "unit": unit.to_dict(),
    }
    if unit.kind == "person":  # parts share nobody's rows only under one choice of rows, so others add up
        partition["rows"] = CHOICE_OF_ROWS
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


def cell_of(attribute: Attribute, value: object) -> int:
    """Return the one cell that a value names."""
    if isinstance(value, str) and value in (labels := attribute.labels()):
        return labels.index(value)
    found = read_cells(attribute, value)
    chosen = found if isinstance(found, range) else found.nonzero()[0]
    if len(chosen) != 1:
        raise QueryError(f"a part of '{attribute.name}' is one of its values, not a range or a group of them")
    return int(chosen[0])
