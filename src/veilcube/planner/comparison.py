"""What a plan was chosen among, and why it took which family of noise: both were compared at the same promise."""

from dataclasses import dataclass
from math import sqrt
from typing import Protocol

from veilcube.planner.design import Family, Strategy
from veilcube.privacy import PrivacyUnit, Promise


@dataclass(frozen=True)
class Candidate:
    """A strategy that was considered with noise of a family, and its expected error on the workload."""

    strategy: Strategy
    expected_error: float
    family: Family = "laplace"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        return self.strategy.summary


class Priced(Protocol):
    """What of a plan its reason is made of."""

    @property
    def promise(self) -> Promise:
        """What is promised."""

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected."""

    @property
    def family(self) -> Family:
        """The noise that was taken."""

    @property
    def expected_error(self) -> float:
        """The error that it leads to."""

    @property
    def sensitivity(self) -> int:
        """The largest L1 change of the measurements when one unit changes."""

    @property
    def sensitivity_l2_squared(self) -> int:
        """The largest squared L2 change of them."""


def reason_for(taken: Priced, rival: Priced | None) -> str:
    """Say which noise was taken and why; nothing where epsilon is promised alone, which leaves no choice.

    ``rival`` is the plan that would be taken with noise of the other family, None if there is none that can be drawn.
    """
    promise = taken.promise
    if promise.rho is None:
        return ""
    if rival is None:
        return f"{_word(taken.family)} noise was taken, the only one that can be drawn for this promise"
    if taken.expected_error > rival.expected_error:
        return (
            f"{_word(taken.family)} noise was taken, though by the plan {_word(rival.family)} noise would err less "
            f"({rival.expected_error:.4g} for {taken.expected_error:.4g}): if cells turn out full, each is counted "
            "alone, and on single counts it is several times less"
        )
    laplace, gaussian = sqrt(2) / float(promise.pure_epsilon), 1 / sqrt(2 * float(promise.rho))
    ratio = taken.sensitivity / sqrt(taken.sensitivity_l2_squared)
    return (
        f"{_word(taken.family)} noise was taken: its expected error is {taken.expected_error:.4g}, that of "
        f"{_word(rival.family)} noise at the same promise {rival.expected_error:.4g}. "
        f"One {taken.unit.kind} changes the measurements {ratio:.3g} times as much in sum, which Laplace noise is "
        "scaled to, as in length, which Gaussian noise is scaled to; for a change of 1 they have standard deviations "
        f"of {laplace:.3g} and {gaussian:.3g}"
    )


def _word(family: Family) -> str:
    return family.capitalize()
