"""What weights cost under each family of noise: the norm of the columns that they make.

Rows multiplied by weights θ have noise of one size for a column of norm 1. Laplace noise is scaled to the L1 norm of a
column, so weights cost their sum; Gaussian noise to its L2 norm, so their squares add up. The best weights of one
price are not those of the other: where group k alone answers for the error c_k / θ_k², the best θ_k are as the cube
root of c_k under the first, and as its fourth root under the second.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from veilcube.system import Floats

# Which noise a plan is for: Laplace noise is priced by L1 sensitivities, Gaussian noise by L2 ones, and what is best to
# measure differs.
Family: TypeAlias = Literal["laplace", "gaussian"]
FAMILIES: tuple[Family, ...] = ("laplace", "gaussian")

# Of one column: which weights add up in each of its entries, as the first weight and the one after the last.
Chain: TypeAlias = tuple[tuple[int, int], ...]


class Price(Protocol):
    """The norm that noise is scaled to, as a function of weights."""

    @property
    def power(self) -> float:
        """Which power of its part of the error over its part of the price balances independent groups in one step."""

    @property
    def tolerance(self) -> float:
        """The share of the error below which a gain ends the search."""

    def norm(self, theta: Floats) -> float:
        """Return the norm of the largest column."""

    def slopes(self, theta: Floats) -> Floats:
        """Return the slopes of half the squared norm, at weights of norm 1."""

    def parts(self, theta: Floats) -> Floats:
        """Return the part of the budget that each weight takes, of weights of norm 1."""

    def proportions(self, theta: Floats) -> Floats:
        """Return weights of norm 1 scaled to a sum of 1."""


@dataclass(frozen=True)
class SumPrice:
    """The L1 norm: the sum of the weights."""

    power: ClassVar[float] = 1 / 3
    tolerance: ClassVar[float] = 1e-4

    def norm(self, theta: Floats) -> float:
        """Return the sum."""
        return float(theta.sum())

    def slopes(self, theta: Floats) -> Floats:
        """Return ones."""
        return np.ones_like(theta)

    def parts(self, theta: Floats) -> Floats:
        """Return the weights themselves."""
        return theta

    def proportions(self, theta: Floats) -> Floats:
        """Return the weights themselves."""
        return theta


@dataclass(frozen=True)
class SquaresPrice:
    """The L2 norm. Without ``chains`` each weight is an entry of its own; with them the longest column counts."""

    chains: tuple[Chain, ...] = ()
    power: ClassVar[float] = 1 / 4
    # Where a column sums up weights its steps are short.
    tolerance: ClassVar[float] = 1e-6

    def norm(self, theta: Floats) -> float:
        """Return the root of the sum of squares, of the longest column."""
        return sqrt(float(np.square(self._longest(theta)[0]).sum()))

    def slopes(self, theta: Floats) -> Floats:
        """Return for each weight the entry of the longest column that it stands in."""
        entries, chain = self._longest(theta)
        return np.repeat(entries, [end - first for first, end in chain]) if chain else theta

    def parts(self, theta: Floats) -> Floats:
        """Return weight times slope: the parts of the squared norm."""
        return theta * self.slopes(theta)

    def proportions(self, theta: Floats) -> Floats:
        """Return the weights over their sum."""
        return theta / float(theta.sum())

    def _longest(self, theta: Floats) -> tuple[Floats, Chain]:
        columns = [(_entries(theta, chain), chain) for chain in self.chains] or [(theta, ())]
        return max(columns, key=lambda column: float(np.square(column[0]).sum()))


def _entries(theta: Floats, chain: Chain) -> Floats:
    return np.array([float(theta[first:end].sum()) for first, end in chain])


@lru_cache(maxsize=8)
def price_of(family: Family) -> Price:
    """Return the price of weights that each stand in entries of their own."""
    return SumPrice() if family == "laplace" else SquaresPrice()


def longest_chains(chains: frozenset[Chain]) -> tuple[Chain, ...]:
    """Return the columns without those that are never longer than another: (a + b)² is at least a² + b².

    >>> longest_chains(frozenset({((0, 1), (1, 2), (2, 3)), ((0, 1), (1, 3))}))
    (((0, 1), (1, 3)),)
    """
    cuts = {chain: {first for first, _ in chain} for chain in chains}
    return tuple(sorted(chain for chain in chains if not any(own < cuts[chain] for own in cuts.values())))
