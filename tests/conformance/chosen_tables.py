"""What the second step of grouped tables might choose on a small schema: any groups, and any division of its budget.

Which tables it really chooses follows from noisy counts, so its promise must hold for all that it could. Here are all
partitions of the first attribute's values, in no order, and several tables at once whose multipliers use up the budget.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import GroupedTablesOperator
from veilcube.planner import Family
from veilcube.planner.grouped.choosing import UNITS
from veilcube.schema import Schema

# Multipliers of the sum UNITS, or whose squares add up to its square.
DIVISIONS: dict[Family, tuple[tuple[int, ...], ...]] = {
    "laplace": ((1, UNITS - 1), (UNITS // 3, UNITS // 3, UNITS - 2 * (UNITS // 3)), (UNITS // 16,) * 16),
    "gaussian": ((UNITS // 2,) * 4, (UNITS // 2,) * 3 + (UNITS // 4,) * 4, (UNITS // 4,) * 16),
}


def every_partition(cells: int) -> Iterator[NDArray[np.int64]]:
    """List all partitions of some cells, as labels in the order of their first cells."""
    labels = [[0]]
    for _ in range(1, cells):
        labels = [[*before, label] for before in labels for label in range(max(before) + 2)]
    return (np.array(partition) for partition in labels)


def every_choice(schema: Schema, family: Family) -> Iterator[GroupedTablesOperator]:
    """List tables over all attributes for every partition of the first one, then every division among several."""
    others = [(axis, np.arange(size)) for axis, size in enumerate(schema.shape) if axis]
    for labels in every_partition(schema.shape[0]):
        yield GroupedTablesOperator.of(schema.shape, [(0, labels), *others], [tuple(range(len(schema)))], [UNITS])
    labelled = _groupings(schema)
    tables = _tables(schema, len(labelled) // len(schema))
    for multipliers in DIVISIONS[family]:
        chosen = [tables[number % len(tables)] for number in range(len(multipliers))]
        for turn in range(min(len(chosen), 4)):
            yield GroupedTablesOperator.of(schema.shape, labelled, chosen[turn:] + chosen[:turn], multipliers)


def _groupings(schema: Schema) -> list[tuple[int, NDArray[np.int64]]]:
    """List for each attribute: every value, two runs, two groups that alternate, and all values together."""
    return [
        (axis, labels)
        for axis, size in enumerate(schema.shape)
        for labels in (
            np.arange(size),
            (np.arange(size) >= size // 2).astype(np.int64),
            np.arange(size) % 2,
            np.zeros(size, dtype=np.int64),
        )
    ]


def _tables(schema: Schema, each: int) -> list[tuple[int, ...]]:
    """List tables over all attributes with the same kind of groups, and over each one with every kind."""
    joint = [tuple(each * axis + kind for axis in range(len(schema))) for kind in range(each)]
    alone = [(number,) for number in range(each * len(schema))]
    return list(dict.fromkeys([*joint[:3], *alone, *joint[3:]]))
