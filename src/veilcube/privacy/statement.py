"""The privacy statement that every release, answer and ledger row carries, in words and as data."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Rational

from veilcube.errors import PrivacyError
from veilcube.laws import read_ratio
from veilcube.privacy.accountant import epsilon_of
from veilcube.privacy.budget import LARGEST_EPSILON, show_fraction, write_fraction
from veilcube.privacy.event import Event, read_event
from veilcube.privacy.unit import Neighbours, PrivacyUnit
from veilcube.system import read_kind

# A charge has one number in its ledger, so the same words are about the same charge.
_NAMES_A_CHARGE = re.compile(r"Charged to the budget of .* as charge \d+")
_NOT_CHARGED = "Not charged to any ledger."
_CHANGES = {Neighbours.ADD_REMOVE: "adding or removing", Neighbours.REPLACE: "replacing"}


@dataclass(frozen=True)
class PrivacyStatement:
    """What is promised (epsilon), about whom (unit), against what (neighbours), and by which event."""

    epsilon: Fraction
    neighbours: Neighbours
    unit: PrivacyUnit
    event: Event
    proof: str
    charged_to: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.read(self.neighbours))
        if not isinstance(self.epsilon, Rational):
            raise PrivacyError("the epsilon of a privacy statement is an exact number, such as a Fraction")
        read_kind(self.unit, PrivacyUnit, "the unit of a privacy statement is a row or a person", PrivacyError)
        if not isinstance(self.event, Event):
            raise PrivacyError("the event of a privacy statement is what was done, such as a LaplaceEvent")
        for text in (self.proof, *([] if self.charged_to is None else [self.charged_to])):
            read_kind(text, str, "proof and charged_to of a privacy statement are texts", PrivacyError)
        if epsilon_of(self.event) > self.epsilon:
            raise PrivacyError("the privacy event costs more than the epsilon that is stated for it")

    @property
    def words(self) -> str:
        """The promise as one sentence, and where its cost was written down."""
        public = "" if self.neighbours is Neighbours.ADD_REMOVE else " (their number is public)"
        promise = (
            f"Differentially private with epsilon = {show_fraction(self.epsilon)}: {_CHANGES[self.neighbours]} "
            f"{self.unit.words}{public} changes the probability of any output by a factor of at most "
            f"exp({show_fraction(self.epsilon)})."
        )
        if self.unit.kind == "person":
            promise += (
                " Ids that are the same number (7, 7.0, 007) are one person; should two people share an id, the factor "
                f"for either of them is exp({show_fraction(2 * self.epsilon)})."
            )
        if self.charged_to is None:
            return f"{promise} {_NOT_CHARGED}"
        return f"{promise} Charged to {self.charged_to}."

    def __str__(self) -> str:
        return self.words

    def charged(self, to: str) -> "PrivacyStatement":
        """Return the statement with the place its cost was charged to."""
        return replace(self, charged_to=to)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from; the words come along for readers without veilcube."""
        return {
            "words": self.words,
            "epsilon": write_fraction(self.epsilon),
            "neighbours": str(self.neighbours),
            "unit": self.unit.to_dict(),
            "event": self.event.to_dict(),
            "proof": self.proof,
            "charged_to": self.charged_to,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "PrivacyStatement":
        """Rebuild from ``to_dict``; the data is untrusted, so epsilon must lie in (0, 10^9]."""
        if not isinstance(data, Mapping):
            raise PrivacyError("a privacy statement is a mapping, as to_dict writes it")
        try:
            charged_to = data["charged_to"]
            epsilon = read_ratio(data["epsilon"])
            if not 0 < epsilon <= LARGEST_EPSILON:
                raise PrivacyError("the epsilon of a privacy statement must be above 0 and at most 10^9")
            return cls(
                epsilon,
                Neighbours.read(str(data["neighbours"])),
                PrivacyUnit.from_dict(data["unit"]),  # type: ignore[arg-type]
                read_event(data["event"]),  # type: ignore[arg-type]
                str(data["proof"]),
                None if charged_to is None else str(charged_to),
            )
        except (KeyError, ValueError, TypeError, AttributeError) as problem:
            raise PrivacyError("the privacy statement is not well formed") from problem


def join_promises(promises: Sequence[str], *, each: str = "sources, each") -> str:
    """Return the promises of several answers as one text that says how often each was made; a charge is made once."""
    counted = Counter(promise for promise in promises if promise)
    return "; ".join(
        promise if times == 1 or _is_one_charge(promise) else f"{times} {each}: {promise}"
        for promise, times in counted.items()
    )


def _is_one_charge(promise: str) -> bool:
    return _NAMES_A_CHARGE.search(promise) is not None and _NOT_CHARGED not in promise
