"""Halving trees of many kinds, and linear maps of cells written out as matrices."""

import numpy as np
from numpy.typing import NDArray

from veilcube.operators import HalvingTree, Operator
from veilcube.schema import Nominal, Ordinal, Schema

UNEVEN = {
    "Care": ["Nurse", "Aide", "Cook"],
    "Law": {"Court": ["Judge"]},
    "Tech": {"Web": ["Dev", "Ops"], "Lab": ["Bio"]},
}
SCHEMAS = {
    "one cell": Schema([Ordinal("a", 1, 1)]),
    "two cells": Schema([Ordinal("a", 1, 2)]),
    "power of two": Schema([Ordinal("a", 1, 16)]),
    "odd size": Schema([Ordinal("a", 1, 11)]),
    "size after a power of two": Schema([Ordinal("a", 1, 9)]),
    "two axes": Schema([Ordinal("a", 1, 8), Ordinal("b", 1, 4)]),
    "odd axes": Schema([Ordinal("a", 1, 3), Ordinal("b", 1, 5)]),
    "axes of one cell": Schema([Ordinal("a", 1, 1), Ordinal("b", 1, 6), Ordinal("c", 1, 1)]),
    "three axes": Schema([Ordinal("a", 1, 2), Ordinal("b", 1, 5), Ordinal("c", 1, 3)]),
    "plain values": Schema([Nominal("job", ["x", "y", "z"])]),
    "uneven hierarchy": Schema([Nominal("job", hierarchy=UNEVEN)]),
    "special cells": Schema([Nominal("job", hierarchy=UNEVEN, missing="cell", outside="other")]),
    "hierarchy of one leaf": Schema([Nominal("job", hierarchy={"All": {"Some": ["One"]}})]),
    "hierarchy and range": Schema([Nominal("job", hierarchy=UNEVEN), Ordinal("a", 1, 3)]),
}
TREES = {name: HalvingTree.of(schema) for name, schema in SCHEMAS.items()}


def matrix_of(operator: Operator) -> NDArray[np.float64]:
    """Return A, one column per cell, from what A does to tables of one row."""
    cells = int(np.prod(operator.cell_shape))
    tables = np.eye(cells, dtype=np.int64).reshape(cells, *operator.cell_shape)
    return np.array([operator.apply(table) for table in tables]).T.astype(np.float64)
