"""Nobody finds a unit that changes measurements by more than their L2 sensitivity: a search on cubes of many cells.

Rows of a person are moved one by one to wherever the change grows most, from many beginnings. What is found is a lower
bound of the sensitivity, and reaches it.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from support.tree_strategies import PlainTree
from veilcube.operators import IdentityOperator, MarginalsOperator, Operator
from veilcube.planner import Wavelet
from veilcube.privacy import Neighbours, PrivacyUnit
from veilcube.record import sensitivity_l2_squared_of
from veilcube.schema import Nominal, Ordinal, Schema

GROUPS = {"Care": ["Nurse", "Aide"], "Office": ["Clerk", "Judge", "Dev"], "Farm": ["Hand"]}
PEOPLE = Schema([Ordinal("age", 0, 48), Nominal("sex", ["Female", "Male"]), Nominal("job", hierarchy=GROUPS)])
LINE = Schema([Ordinal("income", 0, 699)])

OPERATORS: dict[str, Operator] = {
    "identity": IdentityOperator(PEOPLE.shape, PEOPLE.names),
    "tree on a line": PlainTree(3).operator(LINE),
    "tree in a cube": PlainTree(2).operator(PEOPLE),
    "wavelet on a line": Wavelet(flat=()).operator(LINE),
    "wavelet in a cube": Wavelet(flat=()).operator(PEOPLE),
    "tables of pairs": MarginalsOperator((4, 3, 5, 2, 4), tuple("abcde"), 2, (1, 2, 1, 1, 3, 1, 1, 2, 1, 1)),
}
BEGINNINGS = 12
UNITS = [PrivacyUnit.row(), PrivacyUnit.person("id", 2), PrivacyUnit.person("id", 6)]


def products_of(operator: Operator) -> NDArray[np.float64]:
    """Return the inner products of all columns."""
    cells = int(np.prod(operator.cell_shape))
    rows = np.eye(cells, dtype=np.int64)
    columns = np.stack([operator.apply(row.reshape(operator.cell_shape)).ravel() for row in rows]).astype(np.float64)
    return columns @ columns.T


def climb(products: NDArray[np.float64], rows: NDArray[np.int64], signs: NDArray[np.float64]) -> float:
    """Move one row after another to where the squared change is largest, until nothing grows; return the change."""
    change, before = 0.0, -1.0
    while change > before:
        before = change
        for place, sign in enumerate(signs):
            others = np.arange(signs.size) != place
            rows[place] = np.argmax(np.diag(products) + 2 * sign * (signs[others] @ products[rows[others]]))
        change = float(signs @ products[np.ix_(rows, rows)] @ signs)
    return change


def largest_change(products: NDArray[np.float64], coming: int, going: int, rng: np.random.Generator) -> float:
    """Return the largest squared change that was found by rows that come and go, begun apart and all together."""
    signs = np.array([1.0] * coming + [-1.0] * going)
    found = []
    for _ in range(BEGINNINGS):
        found.append(climb(products, rng.integers(0, len(products), size=signs.size), signs))
        both, one_each = rng.integers(0, len(products), size=2), np.array([1.0, -1.0])
        climb(products, both, one_each)
        found.append(climb(products, np.repeat(both, [coming, going]), signs))
    return max(found)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.max_rows} rows")
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_search_for_the_largest_change_finds_the_sensitivity_and_nothing_above(
    name: str, unit: PrivacyUnit, neighbours: str
) -> None:
    operator, relation = OPERATORS[name], Neighbours.read(neighbours)
    declared = sensitivity_l2_squared_of(operator, unit, relation)
    products, rng, most = products_of(operator), np.random.default_rng(3), unit.max_rows
    # A row is exchanged for a row, a person for one with any number of rows.
    of_persons = {0, most // 2, most} if unit.kind == "person" else {1}
    going = {0} if relation is Neighbours.ADD_REMOVE else of_persons
    found = max(largest_change(products, most, gone, rng) for gone in going)
    assert found == declared, f"declared {declared}, found {found}"


def test_a_sensitivity_without_the_square_of_the_rows_would_be_exceeded() -> None:
    products = products_of(OPERATORS["tables of pairs"])
    per_row = OPERATORS["tables of pairs"].sensitivity_l2_squared("add-remove")
    assert largest_change(products, 6, 0, np.random.default_rng(3)) == 36 * per_row > 6 * per_row
