"""Strategies: which linear measurements to take. A strategy is public; choosing one never looks at the data."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from veilcube.operators import IdentityOperator, Operator
from veilcube.query import Workload
from veilcube.schema import Schema


@runtime_checkable
class Strategy(Protocol):
    """A choice of measurements for any schema."""

    @property
    def name(self) -> str:
        """The word that users and files call it by."""

    def operator(self, schema: Schema) -> Operator:
        """Return the linear map that it measures on a cube of this schema."""

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""


@runtime_checkable
class OpenStrategy(Protocol):
    """A strategy that leaves choices open, which can be made for a workload."""

    def resolve(self, schema: Schema, workload: Workload) -> Strategy:
        """Return the strategy with every choice made, for the least expected error over a workload."""


@dataclass(frozen=True)
class Identity:
    """Measure every cell on its own: best for questions about few cells."""

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "identity"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        return "every cell"

    def operator(self, schema: Schema) -> Operator:
        """Return the identity on the schema's cells."""
        return IdentityOperator(schema.shape, schema.names)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"name": self.name}
