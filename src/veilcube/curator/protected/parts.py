"""Parts of partitions: how a part is named in the ledger, and whether rows lie in the parts they are charged as."""

import json
from collections.abc import Sequence

from veilcube.curator.cube import CHOICE_OF_ROWS
from veilcube.curator.ledger import PartOf
from veilcube.curator.protected.divisions import region_said
from veilcube.errors import PrivacyError, QueryError
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Region, Schema


def require_inside(schema: Schema, unit: PrivacyUnit, region: Region, within: Sequence[PartOf]) -> None:
    """Refuse rows that do not all lie in the parts they are charged as, each inside the one before."""
    for number, claimed in enumerate(within):
        place = _place(schema, unit, within[:number][-1:], claimed)
        if place is None or region.intersect(place).cells != region.cells:
            raise PrivacyError(
                "the rows in view do not all lie in the part that they would be charged as; take parts from "
                "partition(...)[value] and narrow them with where"
            )


def part_of(schema: Schema, unit: PrivacyUnit, outer: Sequence[PartOf], said: object, numbers: Sequence[int]) -> PartOf:
    """Return the part of a division that some numbers name, inside an outer part if there is one."""
    partition = {
        "by": said,
        "inside": [json.loads(outer[0].partition), json.loads(outer[0].part)] if outer else None,
        "schema": schema.fingerprint(),
        "unit": unit.to_dict(),
    }
    if unit.kind == "person":  # parts share nobody's rows only under one choice of rows, so others add up
        partition["rows"] = CHOICE_OF_ROWS
    return PartOf(json.dumps(partition, sort_keys=True), json.dumps(list(numbers)))


def _place(schema: Schema, unit: PrivacyUnit, outer: Sequence[PartOf], claimed: PartOf) -> Region | None:
    """Return the cells of a part as the ledger names it; None if it names none of this table, there."""
    try:
        said, numbers = json.loads(claimed.partition)["by"], [int(number) for number in json.loads(claimed.part)]
        is_same = claimed == part_of(schema, unit, outer, said, numbers)
        return region_said(schema, said, numbers) if is_same else None
    except (AttributeError, LookupError, TypeError, ValueError, QueryError):
        return None
