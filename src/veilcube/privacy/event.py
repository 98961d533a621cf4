"""Privacy events: what was done to the data, apart from what it costs (that is the accountant's question)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple, TypeAlias

from veilcube.errors import PrivacyError
from veilcube.laws import read_ratio
from veilcube.privacy.budget import LARGEST_EPSILON, write_fraction

LARGEST_SENSITIVITY = 2**62


class NoiseKey(NamedTuple):
    """Noise by its family and parameter (scale or sigma²), with the sensitivity (L1, or squared L2) that it hides."""

    family: str
    parameter: Fraction
    sensitivity: int

    @property
    def event(self) -> "NoiseEvent":
        """What measuring with this noise does to the data."""
        return (GaussianEvent if self.family == GaussianEvent.family else LaplaceEvent)(
            self.sensitivity, self.parameter
        )


@dataclass(frozen=True)
class LaplaceEvent:
    """Integer measurements of L1 sensitivity ``sensitivity`` with discrete Laplace noise of ``scale`` on each.

    Sharpening a value that was published before counts as one more with the scale that was added. Pure epsilons add up
    that way; other accountants must take both as one (docs/proofs/sharpened-noise.md).
    """

    sensitivity: int
    scale: Fraction
    family: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        if not 1 <= self.sensitivity <= LARGEST_SENSITIVITY or self.scale <= 0:
            raise PrivacyError("a Laplace event needs a sensitivity from 1 to 2^62 and a scale above 0")

    @property
    def noise(self) -> "NoiseKey":
        """Which noise was drawn, and for which change."""
        return NoiseKey(self.family, self.scale, self.sensitivity)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "laplace", "sensitivity": self.sensitivity, "scale": write_fraction(self.scale)}


@dataclass(frozen=True)
class GaussianEvent:
    """Integer measurements of squared L2 sensitivity ``sensitivity_squared`` with discrete Gaussian noise on each.

    ``sigma_squared`` is the parameter of the noise. Measuring the same once more with fresh noise is one more event:
    precisions add up as costs do, so nothing is lost by it (docs/proofs/gaussian-trees.md).
    """

    sensitivity_squared: int
    sigma_squared: Fraction
    family: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        if not 1 <= self.sensitivity_squared <= LARGEST_SENSITIVITY**2 or self.sigma_squared <= 0:
            raise PrivacyError("a Gaussian event needs a squared sensitivity from 1 to 2^124 and a sigma² above 0")

    @property
    def noise(self) -> "NoiseKey":
        """Which noise was drawn, and for which change."""
        return NoiseKey(self.family, self.sigma_squared, self.sensitivity_squared)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {
            "kind": "gaussian",
            "sensitivity_squared": self.sensitivity_squared,
            "sigma_squared": write_fraction(self.sigma_squared),
        }


@dataclass(frozen=True)
class ChoiceEvent:
    """One value drawn from a finite domain by a mechanism that is ``epsilon``-differentially private for the unit."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= LARGEST_EPSILON:
            raise PrivacyError("a choice event needs an epsilon above 0 and at most 10^9")

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": "choice", "epsilon": write_fraction(self.epsilon)}


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


Event: TypeAlias = LaplaceEvent | GaussianEvent | ChoiceEvent | SequentialEvent | ParallelEvent
NoiseEvent: TypeAlias = LaplaceEvent | GaussianEvent
MAX_NESTING = 32
MAX_EVENTS = 1_000
MAX_SCALE_DIGITS = 200_000


def read_event(data: Mapping[str, object]) -> Event:
    """Rebuild an event from ``to_dict``; the data is untrusted, so its numbers, depth and size are bounded."""
    try:
        _check_size(data)
        return _read_event(data)
    except (KeyError, ValueError, TypeError, AttributeError) as problem:
        raise PrivacyError("the privacy event is not well formed") from problem


def noise_events(event: Event) -> Iterator[NoiseEvent]:
    """Every measurement with noise that an event is made of."""
    if isinstance(event, NoiseEvent):
        yield event
    elif not isinstance(event, ChoiceEvent):
        for inner in event.events:
            yield from noise_events(inner)


def _check_size(data: Mapping[str, object]) -> None:
    """Bound the work before any of it is done: the cost of many events is a fraction that grows with each of them."""
    digits = 0
    for count, node in enumerate(_nodes(data, 0), start=1):
        digits += sum(len(str(node.get(name, ""))) for name in ("scale", "epsilon", "sigma_squared"))
        if count > MAX_EVENTS or digits > MAX_SCALE_DIGITS:
            raise PrivacyError(f"the privacy event has more than {MAX_EVENTS:,} parts or too many digits")


def _nodes(data: Mapping[str, object], depth: int) -> Iterator[Mapping[str, object]]:
    if depth > MAX_NESTING:
        raise PrivacyError(f"the privacy event is nested more than {MAX_NESTING} deep")
    yield data
    for part in _parts(data):
        yield from _nodes(part, depth + 1)


def _parts(data: Mapping[str, object]) -> list[Mapping[str, object]]:
    parts = data.get("events", [])
    if not isinstance(parts, list):
        raise TypeError("the parts of an event must be a list")
    return parts


def _read_event(data: Mapping[str, object]) -> Event:
    kind = data.get("kind")
    if kind == "laplace":
        if type(data["sensitivity"]) is not int:
            raise TypeError("a sensitivity must be an integer")
        return LaplaceEvent(data["sensitivity"], read_ratio(data["scale"]))
    if kind == "gaussian":
        if type(data["sensitivity_squared"]) is not int:
            raise TypeError("a squared sensitivity must be an integer")
        return GaussianEvent(data["sensitivity_squared"], read_ratio(data["sigma_squared"]))
    if kind == "choice":
        return ChoiceEvent(read_ratio(data["epsilon"]))
    inner = tuple(_read_event(part) for part in _parts(data))
    if kind == "sequential":
        return SequentialEvent(inner)
    if kind == "parallel":
        return ParallelEvent(inner)
    raise PrivacyError("the privacy event is of a kind that this version does not know")
