"""Where a mechanism that is audited may take its noise from: exact draws, handed to it as its argument ``noise``.

A mechanism that does so can be replayed and enumerated; one that draws its own noise can only be run many times. A
value that noise is added to is passed along (``add``), so that a replay can compare it with that of a neighbour.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, inf
from typing import Any, Protocol

import numpy as np

from veilcube.curator.sampling import SystemWords, discrete_gaussian, discrete_laplace
from veilcube.privacy import EpsilonLike
from veilcube.system import show

DRAWN_AT_ONCE = 1 << 12
LARGEST_WORD = 2.0**64


class MechanismNoise(Protocol):
    """What a mechanism may ask for. Numbers come back as they were asked: one, or a list."""

    def laplace(self, scale: EpsilonLike, size: int | None = None) -> Any:
        """Draw whole numbers from the discrete Laplace law."""

    def gaussian(self, variance: EpsilonLike, size: int | None = None) -> Any:
        """Draw whole numbers from the discrete Gaussian law of parameter ``variance``."""

    def add(
        self,
        values: Any,
        scale: EpsilonLike | None = None,
        variance: EpsilonLike | None = None,
        sensitivity: EpsilonLike | None = None,
    ) -> Any:
        """Return values, each plus noise: Laplace noise of a ``scale``, or Gaussian noise of a ``variance``."""

    def choose(self, scores: Sequence[float], epsilon: EpsilonLike, sensitivity: EpsilonLike = 1) -> int:
        """Draw a place by the exponential mechanism: with weight exp(epsilon score / (2 sensitivity))."""

    def coin(self, probability: float) -> bool:
        """Throw a coin."""


def given_law(scale: EpsilonLike | None, variance: EpsilonLike | None) -> tuple[str, EpsilonLike]:
    """Return the family of noise, and its parameter as it was given."""
    if scale is not None and variance is None:
        return "laplace", scale
    if variance is not None and scale is None:
        return "gaussian", variance
    raise ValueError("noise is added with a scale (Laplace) or a variance (Gaussian): give one of them")


def read_law(scale: EpsilonLike | None, variance: EpsilonLike | None) -> tuple[str, Fraction]:
    """Return the family of noise and its parameter."""
    family, given = given_law(scale, variance)
    return family, read_parameter(given)


def read_parameter(given: Any) -> Fraction:
    """Return a scale or a variance as a fraction; a float counts as its shortest decimal text, and 0 is no noise."""
    try:
        found: Fraction = Fraction(repr(float(given)) if isinstance(given, float | np.floating) else given)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"the scale or variance of noise must be a number of at least 0, not {show(given)}") from None
    if found < 0:
        raise ValueError("the scale or variance of noise must be at least 0; with 0 there is no noise at all")
    return found


def choice_weights(scores: Sequence[float], epsilon: EpsilonLike, sensitivity: EpsilonLike) -> list[float]:
    """Return the probabilities of the exponential mechanism."""
    width = 2 * float(read_parameter(sensitivity))
    rate = float(read_parameter(epsilon)) / width if width else inf
    highest = max(float(score) for score in scores)
    weights = [1.0 if float(score) == highest else exp(rate * (float(score) - highest)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def each(values: Any, change: Callable[[Any], Any]) -> Any:
    """Return a number, or a list of numbers, each changed."""
    return change(values) if np.isscalar(values) or isinstance(values, Fraction) else [change(one) for one in values]


class LiveNoise:
    """Noise as production code draws it, many numbers of one law at a time."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, EpsilonLike], list[int]] = {}
        self._words: list[int] = []

    def _one(self, family: str, given: EpsilonLike) -> int:
        kept = self._kept.get((family, given))
        if not kept:
            draw = discrete_laplace if family == "laplace" else discrete_gaussian
            parameter = read_parameter(given)
            drawn = draw(parameter, DRAWN_AT_ONCE).tolist() if parameter else [0] * DRAWN_AT_ONCE
            kept = self._kept[family, given] = drawn
        return kept.pop()

    def _drawn(self, family: str, given: EpsilonLike, size: int | None) -> Any:
        if size is None:
            return self._one(family, given)
        return [self._one(family, given) for _ in range(size)]

    def laplace(self, scale: EpsilonLike, size: int | None = None) -> Any:
        """Draw whole numbers from the discrete Laplace law."""
        return self._drawn("laplace", scale, size)

    def gaussian(self, variance: EpsilonLike, size: int | None = None) -> Any:
        """Draw whole numbers from the discrete Gaussian law."""
        return self._drawn("gaussian", variance, size)

    def add(
        self,
        values: Any,
        scale: EpsilonLike | None = None,
        variance: EpsilonLike | None = None,
        sensitivity: EpsilonLike | None = None,
    ) -> Any:
        """Return values, each plus noise."""
        family, given = given_law(scale, variance)
        return each(values, lambda value: value + self._one(family, given))

    def choose(self, scores: Sequence[float], epsilon: EpsilonLike, sensitivity: EpsilonLike = 1) -> int:
        """Draw a place by the exponential mechanism."""
        upto = np.cumsum(choice_weights(scores, epsilon, sensitivity))
        return min(int(np.searchsorted(upto, self._uniform(), side="right")), upto.size - 1)

    def coin(self, probability: float) -> bool:
        """Throw a coin."""
        return self._uniform() < probability

    def _uniform(self) -> float:
        if not self._words:
            self._words = SystemWords().words(DRAWN_AT_ONCE).tolist()
        return self._words.pop() / LARGEST_WORD
