"""The L2 sensitivity of every operator: by all pairs of columns, by a search on large domains; nobody is left out.

What is proved in docs/proofs/linear.md is tested here.
"""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import numpy as np
import pytest

import veilcube.operators
import veilcube.planner
from conformance.operators import LARGE, SMALL, check_against_search, check_sensitivity_l2, product_of
from veilcube.errors import PlanError
from veilcube.operators import NeighbourName, ProductOperator, TreeAxis
from veilcube.planner.grouped.design import PlannedTables
from veilcube.schema import Ordinal, Schema


@pytest.mark.parametrize("name", SMALL)
def test_l2_sensitivity_is_the_largest_change_over_all_cells_and_pairs(name: str) -> None:
    check_sensitivity_l2(SMALL[name])


@pytest.mark.parametrize("name", LARGE)
def test_a_search_on_a_large_domain_finds_the_declared_change_and_nothing_above_it(name: str) -> None:
    check_against_search(LARGE[name], seed=7)


@pytest.mark.parametrize("name", SMALL)
def test_l2_lies_between_what_l1_allows(name: str) -> None:
    for neighbours in ("add-remove", "replace"):
        once, squared = SMALL[name].sensitivity(neighbours), SMALL[name].sensitivity_l2_squared(neighbours)
        assert once <= squared <= once**2


class L1ForL2(ProductOperator):
    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return self.sensitivity(neighbours)


class SquaredL1ForL2(ProductOperator):
    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return self.sensitivity(neighbours) ** 2


class TooSmall(ProductOperator):
    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return super().sensitivity_l2_squared(neighbours) * 95 // 100


class TooLarge(ProductOperator):
    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return -(-super().sensitivity_l2_squared(neighbours) * 105 // 100)


class SharesNothing(ProductOperator):
    """Takes two columns to have nothing in common."""

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return super().sensitivity_l2_squared("add-remove") * (1 if neighbours == "add-remove" else 2)


BROKEN = [L1ForL2, SquaredL1ForL2, TooSmall, TooLarge, SharesNothing]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_fails_both_checks(broken: type[ProductOperator]) -> None:
    small = product_of(TreeAxis.balanced(6, (1, 2), (4, 5, 3)), TreeAxis.balanced(3, (1,), (2, 3)))
    large = product_of(TreeAxis.balanced(300, (1, 10), (4, 5, 3)), TreeAxis.balanced(40, (1, 4), (2, 3, 1)))
    check_sensitivity_l2(small)
    check_against_search(large, seed=1)
    with pytest.raises(AssertionError, match="declared"):
        check_sensitivity_l2(broken(small.axes, small.dimensions))
    with pytest.raises(AssertionError, match="declared"):
        check_against_search(broken(large.axes, large.dimensions), seed=1)


def classes_with(*methods: str) -> Iterator[type]:
    """Yield the concrete classes of the package that have some methods, wherever they are defined."""
    for package in (veilcube.operators, veilcube.planner):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(found.name)
            for _, kind in inspect.getmembers(module, inspect.isclass):
                is_own = kind.__module__ == found.name and not getattr(kind, "_is_protocol", False)
                if is_own and all(hasattr(kind, method) for method in methods):
                    yield kind


# Errors are planned with these, and nothing is measured by them: they have no columns.
PLANNED_ONLY = {PlannedTables}


@pytest.mark.parametrize("kind", PLANNED_ONLY)
def test_what_is_only_planned_with_measures_nothing(kind: type[PlannedTables]) -> None:
    operator = kind.of(Schema([Ordinal("age", 1, 5), Ordinal("hour", 0, 23)]), "laplace")
    with pytest.raises(PlanError):
        operator.apply(np.zeros(operator.cell_shape, dtype=np.int64))


def test_every_operator_and_every_axis_is_checked() -> None:
    operators = set(classes_with("apply", "adjoint", "solve", "sensitivity"))
    axes = set(classes_with("apply", "adjoint", "solve", "column_sums", "to_dict"))
    assert len(operators) >= 7
    assert len(axes) >= 5
    assert operators - PLANNED_ONLY <= {type(operator) for operator in SMALL.values()}
    products = [operator for operator in SMALL.values() if isinstance(operator, ProductOperator)]
    assert axes <= {type(axis) for operator in products for axis in operator.axes}


def test_an_operator_without_an_l2_sensitivity_fails() -> None:
    class Forgetful:
        """All of the identity but what is new."""

        cell_shape = (2, 2)

        def apply(self, cells: object) -> object:
            return cells

    with pytest.raises(AttributeError):
        check_sensitivity_l2(Forgetful())  # type: ignore[arg-type]
