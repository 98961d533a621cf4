"""Grouped tables as a strategy: every attribute first, then the tables over several that the data are worth."""

from dataclasses import dataclass

from veilcube.errors import PlanError
from veilcube.planner.design import FAMILIES, Family, StrategyDefaults
from veilcube.planner.grouped.design import GroupedDesign, PlannedTables
from veilcube.query import Workload
from veilcube.schema import Schema
from veilcube.system import read_choice


@dataclass(frozen=True)
class GroupedTables(StrategyDefaults):
    """Count every attribute, then tables over two, three and all of them, values grouped as finely as pays.

    For tables of three and more attributes: what ``"auto"`` takes there. Which tables are measured, and how finely,
    is chosen from the noisy counts of the attributes; a model of all tables together answers any question. With
    ``full_cells``, as ``"auto"`` has it, all rows are counted before, for a hundredth of the budget: where they are so
    many that cells are full, every cell is counted on its own instead. ``family`` is the noise that shares of the
    budget are planned for; planning sets it.

    >>> GroupedTables().name
    'grouped tables'
    """

    family: Family = "laplace"
    full_cells: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.full_cells, bool):
            raise PlanError("full_cells is True or False: whether cells are counted alone where they are full")
        read_choice(self.family, "the family of noise", FAMILIES, PlanError)

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "grouped tables"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        tables = "every attribute, then tables over several with grouped values"
        return f"all rows; every cell alone if there are enough, else {tables}" if self.full_cells else tables

    @property
    def counts_tables(self) -> bool:
        """Whether only some tables need to be counted, so that the cube may have any size: yes."""
        return True

    def operator(self, schema: Schema) -> PlannedTables:
        """Return the map that the error is planned with."""
        return PlannedTables.of(schema, self.family)

    def design(self, schema: Schema) -> GroupedDesign:
        """Return what it measures on a table of this schema."""
        return GroupedDesign(schema, self.full_cells)

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "tuple[GroupedTables, ...]":
        """Return the strategy with the shares of its budget made for a family of noise."""
        return (GroupedTables(family, self.full_cells),)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"name": self.name} | ({"full_cells": True} if self.full_cells else {})

    def settings(self) -> dict[str, object]:
        """Return the plain data that it can be made from again."""
        return {"name": self.name, "full_cells": self.full_cells, "family": self.family}
