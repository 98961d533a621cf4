"""Strategies: which linear measurements to take. A strategy is public; choosing one never looks at the data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from veilcube.errors import PlanError
from veilcube.operators import IdentityOperator, Operator
from veilcube.schema import Schema


class Strategy(Protocol):
    """A choice of measurements for any schema."""

    @property
    def name(self) -> str:
        """The word that users and files call it by."""

    def operator(self, schema: Schema) -> Operator:
        """Return the linear map that it measures on a cube of this schema."""

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""


@dataclass(frozen=True)
class Identity:
    """Measure every cell on its own: best for questions about few cells."""

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "identity"

    def operator(self, schema: Schema) -> Operator:
        """Return the identity on the schema's cells."""
        return IdentityOperator(schema.shape, schema.names)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"name": self.name}


_NAMED: Mapping[str, type[Identity]] = {"identity": Identity}


def candidates_for(strategy: "Strategy | str") -> tuple[Strategy, ...]:
    """Return the strategies that a user's choice allows; ``"auto"`` allows all."""
    if strategy == "auto":
        return tuple(make() for make in _NAMED.values())
    if isinstance(strategy, str):
        if strategy not in _NAMED:
            raise PlanError(f"the strategy '{strategy}' is not known; use 'auto' or one of {', '.join(_NAMED)}")
        return (_NAMED[strategy](),)
    if not hasattr(strategy, "operator"):
        raise PlanError("a strategy is 'auto', a name, or an object such as veilcube.Identity()")
    return (strategy,)
