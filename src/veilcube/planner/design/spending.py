"""What a promise buys: the noise of one family for a share of the budget, and the event that tells of it.

Shares of epsilon buy Laplace noise by the L1 sensitivity, shares of rho Gaussian noise by the squared L2 sensitivity.
In either currency shares that add up to one spend the whole promise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Protocol

from veilcube.laws import BlockGaussian, DiscreteGaussian, DiscreteLaplace, JointLaplace, Noise, SharpenedLaplace
from veilcube.planner.design.price import Family
from veilcube.privacy import GaussianEvent, LaplaceEvent, NoiseEvent, scale_for, sigma_squared_for


class Spending(Protocol):
    """A budget that is spent on measurements of one sensitivity."""

    @property
    def family(self) -> Family:
        """The noise that it is spent on."""

    def shares(self, weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Return the shares of the budget for which noise is inversely proportional to weights."""

    def of_tables(self, summed: int, squared: int) -> "Spending":
        """Return the same budget for tables whose multipliers, or their squares, add up to so much."""

    def law(self, share: Fraction = Fraction(1)) -> Noise:
        """Return the least noise that a share of the budget pays for."""

    def joint_law(self, share: Fraction) -> Noise:
        """Return that of one level of a tree which is measured with its other levels at once."""

    def sharper_law(self, before: Noise, share: Fraction) -> Noise:
        """Return that of what has noise already and is measured once more for a share."""

    def event(self, share: Fraction = Fraction(1)) -> NoiseEvent:
        """Return what measuring for a share does to the data."""

    @property
    def unit(self) -> float:
        """The scale of Laplace noise that the whole budget buys, or that errs like what it buys: a unit for counts."""


@dataclass(frozen=True)
class LaplaceSpending:
    """An epsilon for measurements of an L1 sensitivity."""

    epsilon: Fraction
    sensitivity: int
    family: ClassVar[Family] = "laplace"

    def shares(self, weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Return the weights, normalised: scales are inversely proportional to shares of epsilon."""
        return _normalised(weights)

    def of_tables(self, summed: int, squared: int) -> "LaplaceSpending":
        """Return the budget for tables that a unit changes by the sum of their multipliers."""
        return LaplaceSpending(self.epsilon, self.sensitivity * summed)

    def law(self, share: Fraction = Fraction(1)) -> DiscreteLaplace:
        """Return the least noise that a share of epsilon pays for."""
        return DiscreteLaplace(scale_for(self.epsilon * share, self.sensitivity))

    def joint_law(self, share: Fraction) -> DiscreteLaplace:
        """Return the law of a level whose noise is drawn together with that of the others."""
        return JointLaplace(self.law(share).scale)

    def sharper_law(self, before: Noise, share: Fraction) -> DiscreteLaplace:
        """Return the law of the noise that takes the place of what was drawn before."""
        return SharpenedLaplace.of(before.parameter, self.law(share).scale)

    def event(self, share: Fraction = Fraction(1)) -> LaplaceEvent:
        """Return what measuring for a share of epsilon does to the data."""
        return LaplaceEvent(self.sensitivity, self.law(share).scale)

    @property
    def unit(self) -> float:
        """The scale of continuous noise for all of epsilon."""
        return float(self.sensitivity / self.epsilon)


@dataclass(frozen=True)
class GaussianSpending:
    """A rho for measurements of a squared L2 sensitivity.

    Precisions of Gaussian noise add up as shares of rho do. So what is measured again, or on several levels at once,
    has independent noise: no joint or sharpened law would tell more (docs/proofs/gaussian-trees.md).
    """

    rho: Fraction
    sensitivity_squared: int
    family: ClassVar[Family] = "gaussian"

    def shares(self, weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Return the squared weights, normalised: sigma² is inversely proportional to shares of rho."""
        return _normalised([weight**2 for weight in weights])

    def of_tables(self, summed: int, squared: int) -> "GaussianSpending":
        """Return the budget for tables that a unit changes, in squares, by the sum of their squared multipliers."""
        return GaussianSpending(self.rho, self.sensitivity_squared * squared)

    def law(self, share: Fraction = Fraction(1)) -> DiscreteGaussian:
        """Return the least noise that a share of rho pays for."""
        return DiscreteGaussian(sigma_squared_for(self.rho * share, self.sensitivity_squared))

    def joint_law(self, share: Fraction) -> DiscreteGaussian:
        """Return the same law, marked as that of a block: levels have independent noise."""
        return BlockGaussian(self.law(share).sigma_squared)

    def sharper_law(self, before: Noise, share: Fraction) -> DiscreteGaussian:
        """Return the law of a further measurement, independent of the one before."""
        return self.law(share)

    def event(self, share: Fraction = Fraction(1)) -> GaussianEvent:
        """Return what measuring for a share of rho does to the data."""
        return GaussianEvent(self.sensitivity_squared, self.law(share).sigma_squared)

    @property
    def unit(self) -> float:
        """The scale of Laplace noise with the variance of continuous noise for all of rho."""
        return sqrt(self.sensitivity_squared / (4 * self.rho))


def _normalised(weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    total = sum(weights, start=Fraction(0))
    return tuple(weight / total for weight in weights)
