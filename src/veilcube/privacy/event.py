"""Privacy events: what was done to the data, apart from what it costs (that is the accountant's question)."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from veilcube.errors import PrivacyError
from veilcube.privacy.budget import write_fraction


@dataclass(frozen=True)
class LaplaceEvent:
    """Integer measurements of L1 sensitivity ``sensitivity`` with discrete Laplace noise of ``scale`` on each."""

    sensitivity: int
    scale: Fraction

    def __post_init__(self) -> None:
        if self.sensitivity < 1 or self.scale <= 0:
            raise PrivacyError("a Laplace event needs a sensitivity of at least 1 and a scale above 0")

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "laplace", "sensitivity": self.sensitivity, "scale": write_fraction(self.scale)}


@dataclass(frozen=True)
class SequentialEvent:
    """Events on the same data one after another, later ones free to depend on earlier outputs: costs add up."""

    events: tuple["Event", ...]

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "sequential", "events": [event.to_dict() for event in self.events]}


@dataclass(frozen=True)
class ParallelEvent:
    """Events on parts of the data that share no unit: the dearest one is the cost of all."""

    events: tuple["Event", ...]

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "parallel", "events": [event.to_dict() for event in self.events]}


Event: TypeAlias = LaplaceEvent | SequentialEvent | ParallelEvent
MAX_NESTING = 32


def read_event(data: Mapping[str, object], depth: int = 0) -> Event:
    """Rebuild an event from ``to_dict``."""
    kind = data.get("kind")
    try:
        if kind == "laplace":
            return LaplaceEvent(int(str(data["sensitivity"])), Fraction(str(data["scale"])))
        if kind in ("sequential", "parallel") and depth < MAX_NESTING:
            inner = tuple(read_event(part, depth + 1) for part in data["events"])  # type: ignore[attr-defined]
            return SequentialEvent(inner) if kind == "sequential" else ParallelEvent(inner)
    except (KeyError, ValueError, TypeError, AttributeError, ZeroDivisionError) as problem:
        raise PrivacyError("the privacy event is not well formed") from problem
    raise PrivacyError("the privacy event is of a kind that this version does not know")
