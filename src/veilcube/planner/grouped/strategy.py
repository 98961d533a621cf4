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
    is chosen from the noisy counts of the attributes; a model of all tables together answers any question. ``family``
    is the noise that shares of the budget are planned for; planning sets it.

    >>> GroupedTables().name
    'grouped tables'
    """

    family: Family = "laplace"

    def __post_init__(self) -> None:
        read_choice(self.family, "the family of noise", FAMILIES, PlanError)

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "grouped tables"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        return "every attribute, then tables over several with grouped values"

    @property
    def counts_tables(self) -> bool:
        """Whether only some tables need to be counted, so that the cube may have any size: yes."""
        return True

    def operator(self, schema: Schema) -> PlannedTables:
        """Return the map that the error is planned with."""
        return PlannedTables.of(schema, self.family)

    def design(self, schema: Schema) -> GroupedDesign:
        """Return what it measures on a table of this schema."""
        return GroupedDesign(schema)

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "tuple[GroupedTables, ...]":
        """Return the strategy with the shares of its budget made for a family of noise."""
        return (GroupedTables(family),)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"name": self.name}
