"""Accountants: what events cost, exactly. Events say what was done; each accountant prices them in its own unit.

In epsilon: basic composition of pure differential privacy (Dwork, McSherry, Nissim, Smith 2006; McSherry 2009 for the
parallel form); docs/privacy-guarantee.md has the proofs for the noise that is drawn. In rho: zero-concentrated
differential privacy (Bun and Steinke 2016), which prices Gaussian noise too; docs/proofs/zcdp.md.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from veilcube.errors import PrivacyError
from veilcube.privacy.event import (
    ChoiceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    SequentialEvent,
    noise_events,
)


class Currency(StrEnum):
    """What a budget is kept in: pure ``epsilon``, or the ``rho`` of zero-concentrated differential privacy."""

    EPSILON = "epsilon"
    RHO = "rho"

    def cost_of(self, event: Event) -> Fraction:
        """Return what an event costs; raises PrivacyError where this accountant has no price for it."""
        return epsilon_of(event) if self is Currency.EPSILON else rho_of(event)


@dataclass(frozen=True)
class Budget:
    """A total and what has been spent of it, both exact and in one currency.

    >>> Budget(Fraction(1)).charge(Fraction(1, 10)).left
    Fraction(9, 10)
    """

    total: Fraction
    spent: Fraction = Fraction(0)
    currency: Currency = Currency.EPSILON

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return self.total - self.spent

    def allows(self, amount: Fraction) -> bool:
        """Whether a charge of ``amount`` fits."""
        return amount <= self.left

    def charge(self, amount: Fraction) -> "Budget":
        """Return the budget after a charge."""
        return replace(self, spent=self.spent + amount)


def is_pure(event: Event) -> bool:
    """Whether an event has a price in epsilon alone: Gaussian noise has none."""
    return not any(isinstance(one, GaussianEvent) for one in noise_events(event))


def epsilon_of(event: Event) -> Fraction:
    """Return the epsilon that an event spends.

    >>> one = LaplaceEvent(sensitivity=1, scale=Fraction(10))
    >>> epsilon_of(SequentialEvent((one, one))), epsilon_of(ParallelEvent((one, one)))
    (Fraction(1, 5), Fraction(1, 10))
    """
    match event:
        case LaplaceEvent(sensitivity, scale):
            return sensitivity / scale
        case ChoiceEvent(epsilon):
            return epsilon
        case SequentialEvent(events):
            return sum((epsilon_of(inner) for inner in events), Fraction(0))
        case ParallelEvent(events):
            return max((epsilon_of(inner) for inner in events), default=Fraction(0))
        case GaussianEvent():
            raise PrivacyError(
                "Gaussian noise has no price in epsilon alone: at every epsilon some output remains that tells more. "
                "Charge it to a budget in rho, or plan without delta and rho"
            )


def rho_of(event: Event) -> Fraction:
    """Return the rho that an event spends.

    A choice costs epsilon²/2, Gaussian noise d²/(2 sigma²), and both add up. So would independent Laplace noise; but a
    Laplace event may sharpen an earlier one, and then both are one of their epsilons' sum: so these are added up first.
    What is pure costs no more than half the square of its epsilon (docs/proofs/zcdp.md).

    >>> rho_of(SequentialEvent((GaussianEvent(2, Fraction(50)), LaplaceEvent(1, Fraction(10)))))
    Fraction(1, 40)
    """
    total = _cost_in_rho(event)
    cost = total.rho + total.laplace**2 / 2
    return min(cost, epsilon_of(event) ** 2 / 2) if is_pure(event) else cost


@dataclass(frozen=True)
class _RhoAndLaplace:
    """What an event costs in rho, beside its Laplace noise, whose epsilons are still to be squared."""

    rho: Fraction = Fraction(0)
    laplace: Fraction = Fraction(0)


def _cost_in_rho(event: Event) -> _RhoAndLaplace:
    match event:
        case LaplaceEvent(sensitivity, scale):
            return _RhoAndLaplace(laplace=sensitivity / scale)
        case GaussianEvent(sensitivity_squared, sigma_squared):
            return _RhoAndLaplace(sensitivity_squared / (2 * sigma_squared))
        case ChoiceEvent(epsilon):
            return _RhoAndLaplace(epsilon**2 / 2)
        case SequentialEvent(events):
            parts = [_cost_in_rho(inner) for inner in events]
            return _RhoAndLaplace(
                sum((part.rho for part in parts), Fraction(0)), sum((part.laplace for part in parts), Fraction(0))
            )
        case ParallelEvent(events):
            # The dearest of either kind, which no single part may be: what stands before and after adds to both.
            parts = [_cost_in_rho(inner) for inner in events]
            return _RhoAndLaplace(
                max((part.rho for part in parts), default=Fraction(0)),
                max((part.laplace for part in parts), default=Fraction(0)),
            )
