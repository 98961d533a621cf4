"""The privacy statement that every release, answer and ledger row carries, in words and as data."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Rational

from veilcube.errors import PrivacyError
from veilcube.laws import read_ratio
from veilcube.privacy.accountant import Currency, epsilon_of, is_pure, rho_of
from veilcube.privacy.budget import LARGEST_EPSILON, show_fraction, write_fraction
from veilcube.privacy.event import Event, read_event
from veilcube.privacy.promise import Promise
from veilcube.privacy.unit import Neighbours, PrivacyUnit
from veilcube.privacy.zcdp import LARGEST_RHO, epsilon_for, pure_rho, rho_for
from veilcube.system import read_kind

# A charge has one number in its ledger, so the same words are about the same charge.
_NAMES_A_CHARGE = re.compile(r"Charged to the budget of .* as charge \d+")
_NOT_CHARGED = "Not charged to any ledger."
_CHANGES = {Neighbours.ADD_REMOVE: "adding or removing", Neighbours.REPLACE: "replacing"}


# The deltas at which a rho is told as an epsilon.
_DELTAS_TOLD = (Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**12))


@dataclass(frozen=True)
class PrivacyStatement:
    """What is promised, about whom (unit), against what (neighbours), and by which event.

    Pure: ``epsilon`` alone. With Gaussian noise: ``rho``, and the pair of ``epsilon`` and ``delta`` that it keeps.
    """

    epsilon: Fraction
    neighbours: Neighbours
    unit: PrivacyUnit
    event: Event
    proof: str
    charged_to: str | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.read(self.neighbours))
        for number in (self.epsilon, self.delta, *([] if self.rho is None else [self.rho])):
            if not isinstance(number, Rational):
                raise PrivacyError("epsilon, delta and rho of a privacy statement are exact numbers, such as Fractions")
        read_kind(self.unit, PrivacyUnit, "the unit of a privacy statement is a row or a person", PrivacyError)
        if not isinstance(self.event, Event):
            raise PrivacyError("the event of a privacy statement is what was done, such as a LaplaceEvent")
        for text in (self.proof, *([] if self.charged_to is None else [self.charged_to])):
            read_kind(text, str, "proof and charged_to of a privacy statement are texts", PrivacyError)
        self._require_truth()

    def _require_truth(self) -> None:
        if self.rho is None:
            if self.delta:
                raise PrivacyError("a privacy statement with a delta states the rho that it follows from")
            if epsilon_of(self.event) > self.epsilon:
                raise PrivacyError("the privacy event costs more than the epsilon that is stated for it")
            return
        if not 0 < self.delta < 1 or not 0 < self.rho <= LARGEST_RHO:
            raise PrivacyError("a privacy statement in rho has a rho of at most 10^9 and a delta between 0 and 1")
        if rho_of(self.event) > self.rho:
            raise PrivacyError("the privacy event costs more than the rho that is stated for it")
        if self.rho > rho_for(self.epsilon, self.delta) and epsilon_for(self.rho, self.delta) > self.epsilon:
            raise PrivacyError("the rho of a privacy statement does not keep the epsilon and delta that are stated")

    @classmethod
    def keeping(
        cls, promise: Promise, neighbours: Neighbours, unit: PrivacyUnit, event: Event, proof: str
    ) -> "PrivacyStatement":
        """Return that an event keeps a promise: in epsilon alone where it does so and no rho was asked for."""
        if promise.rho is None or (not promise.is_in_rho and is_pure(event)):
            return cls(promise.epsilon, neighbours, unit, event, proof)
        return cls(promise.epsilon, neighbours, unit, event, proof, delta=promise.delta, rho=promise.rho)

    @property
    def currency(self) -> Currency:
        """What it is stated in: ``epsilon`` or ``rho``."""
        return Currency.EPSILON if self.rho is None else Currency.RHO

    def cost(self, currency: Currency) -> Fraction:
        """Return what it costs a budget in epsilon or in rho; Gaussian noise has no price in epsilon alone."""
        if currency is Currency.RHO:
            return pure_rho(self.epsilon) if self.rho is None else self.rho
        return self.epsilon if self.rho is None else epsilon_of(self.event)

    @property
    def short_words(self) -> str:
        """The numbers of the promise."""
        epsilon = f"epsilon = {show_fraction(self.epsilon)}"
        if self.rho is None:
            return epsilon
        return f"rho = {show_fraction(self.rho)}, {epsilon} with delta = {show_fraction(self.delta)}"

    @property
    def short_cost(self) -> str:
        """What a budget is charged for it."""
        return f"{self.currency} of {show_fraction(self.cost(self.currency))}"

    @property
    def words(self) -> str:
        """The promise as sentences, and where its cost was written down."""
        promise = self._pure_words if self.rho is None else self._concentrated_words
        if self.charged_to is None:
            return f"{promise} {_NOT_CHARGED}"
        return f"{promise} Charged to {self.charged_to}."

    @property
    def _change(self) -> str:
        public = "" if self.neighbours is Neighbours.ADD_REMOVE else " (their number is public)"
        return f"{_CHANGES[self.neighbours]} {self.unit.words}{public}"

    @property
    def _pure_words(self) -> str:
        promise = (
            f"Differentially private with epsilon = {show_fraction(self.epsilon)}: {self._change} changes the "
            f"probability of any output by a factor of at most exp({show_fraction(self.epsilon)})."
        )
        if self.unit.kind == "person":
            promise += (
                " Ids that are the same number (7, 7.0, 007) are one person; should two people share an id, the factor "
                f"for either of them is exp({show_fraction(2 * self.epsilon)})."
            )
        return promise

    @property
    def _concentrated_words(self) -> str:
        rho = self.rho or Fraction(0)
        pairs = ", ".join(
            f"({show_fraction(epsilon_for(rho, delta))}, {show_fraction(delta)})" for delta in _DELTAS_TOLD
        )
        promise = (
            f"Zero-concentrated differentially private with rho = {show_fraction(rho)}, and so with epsilon = "
            f"{show_fraction(self.epsilon)} and delta = {show_fraction(self.delta)}: {self._change} makes any set "
            f"of outputs at most exp({show_fraction(self.epsilon)}) times as likely, plus {show_fraction(self.delta)}, "
            "which bounds how likely an output is that tells more. The same rho "
            f"keeps the pairs of epsilon and delta {pairs} and every other on that curve."
        )
        if self.unit.kind == "person":
            promise += (
                " Ids that are the same number (7, 7.0, 007) are one person; should two people share an id, rho for "
                f"either of them is {show_fraction(4 * rho)}."
            )
        return promise

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
            **({} if self.rho is None else {"delta": write_fraction(self.delta), "rho": write_fraction(self.rho)}),
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
                read_ratio(data["delta"]) if {"delta", "rho"} & set(data) else Fraction(0),
                read_ratio(data["rho"]) if "rho" in data else None,
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
