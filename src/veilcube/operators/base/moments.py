"""Moments of the noise of answers: what an interval needs to know of millions of noise weights.

An answer's noise is Σ w_i X_i over the measurements, X_i independent of one law. The sums of the powers of the weights
give its cumulants: Σ w_i² the variance, in units of that of one X_i, and Σ w_i⁴ and Σ w_i⁶ its distance from the normal
law.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from veilcube.schema import Region
from veilcube.system import Floats, Integers


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of the second, fourth and sixth powers of the noise weights of answers: arrays of one shape.

    The second is always exact; ``bounded`` says that the others are bounds from above. ``terms`` says of answers that
    are plain sums of noises how many each sums up: the law of such a sum is known exactly.
    """

    second: Floats
    fourth: Floats
    sixth: Floats
    bounded: bool = field(default=False, kw_only=True)
    terms: Integers | None = field(default=None, kw_only=True)

    @classmethod
    def of_sums(cls, terms: Integers) -> "Moments":
        """Return the moments of answers that sum up so many noises, each with weight 1."""
        powers = np.asarray(terms, dtype=np.float64)
        return cls(powers, powers, powers, terms=np.asarray(terms, dtype=np.int64))

    @classmethod
    def of_weights(cls, weights: Floats) -> "Moments":
        """Sum the powers along the last axis."""
        squares = np.square(weights)
        quartics = np.square(squares)
        sums = (squares, quartics, squares * quartics)
        return cls(*(np.asarray(powers.sum(axis=-1), dtype=np.float64) for powers in sums))

    def __mul__(self, other: "Moments") -> "Moments":
        second, fourth, sixth = self.second * other.second, self.fourth * other.fourth, self.sixth * other.sixth
        return Moments(second, fourth, sixth, bounded=self.bounded or other.bounded)


class AnswerMoments(Protocol):
    """What the intervals of least-squares answers need: the noise of each, however it was measured."""

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^-1 q for a query that weighs every cell of the cube."""

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of the noise weights of each block, inclusive indices (queries, attributes)."""

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of a region, the higher ones perhaps from above; shape ()."""


class LinearAnswers(AnswerMoments, Protocol):
    """What least-squares answers with intervals need of an operator."""

    def solve(self, measurements: Integers) -> Floats:
        """Return the least-squares estimate of the cells from noisy measurements."""


class WeighsNoise(Protocol):
    """An operator that can write out the noise of a least-squares answer, and knows its variance without."""

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^-1 q for a query that weighs every cell of the cube."""

    def solve(self, measurements: Integers) -> Floats:
        """Return the least-squares estimate of the cells from noisy measurements."""

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Return the variance of the least-squares estimate of each block, inclusive indices (queries, attributes)."""

    def variance_of_region(self, region: Region) -> float:
        """Return the variance of the least-squares estimate of the count in a region."""


def union_bound(second: Floats, parts: Sequence[Moments], factors: Sequence[float] | None = None) -> Moments:
    """Return the moments of a weighted sum of parts whose variance is known: Minkowski's bound for the higher ones."""
    scales = [abs(factor) for factor in factors] if factors is not None else [1.0] * len(parts)
    fourth = sum(scale * part.fourth ** (1 / 4) for scale, part in zip(scales, parts, strict=True))
    sixth = sum(scale * part.sixth ** (1 / 6) for scale, part in zip(scales, parts, strict=True))
    # The powers of any weights are bounded by those of their sum of squares as well.
    return Moments(second, np.minimum(fourth**4, second**2), np.minimum(sixth**6, second**3), bounded=True)


@dataclass(frozen=True, eq=False)
class BoundedMoments:
    """The moments of any operator from its variances alone: Σ w⁴ <= (Σ w²)² and Σ w⁶ <= (Σ w²)³.

    Intervals from them are wide enough whatever the weights: at 95% up to 8% wider than need be.
    """

    operator: WeighsNoise

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^-1 q for a query that weighs every cell of the cube."""
        return self.operator.noise_weights(query)

    def solve(self, measurements: Integers) -> Floats:
        """Return the least-squares estimate of the cells from noisy measurements."""
        return self.operator.solve(measurements)

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the variance of each block and what bounds its higher moments."""
        return _bounded(self.operator.variance_of_rectangles(low, high))

    def moments_of_region(self, region: Region) -> Moments:
        """Return the variance of a region and what bounds its higher moments."""
        return _bounded(np.asarray(self.operator.variance_of_region(region), dtype=np.float64))


def _bounded(second: Floats) -> Moments:
    return Moments(second, second**2, second**3, bounded=True)
