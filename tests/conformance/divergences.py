"""Exact divergences between the outputs of neighbouring tables: of independent whole numbers with noise of known laws.

An output is a list of measurements. Those of a neighbour have other centres, whole numbers away (the shifts), and the
same noise. Rényi divergences of independent numbers add up. The hockey-stick divergence at epsilon is the mean of
max(0, 1 - exp(epsilon - loss)), where the privacy loss log P/Q of Gaussian numbers with one sigma² follows from one
whole number, the sum of shift times noise: its law is computed by convolution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, expm1, log, tanh

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import logsumexp, ndtr

from veilcube.laws import DiscreteGaussian, DiscreteLaplace

# Beyond so many sigmas Gaussian noise has less than 1e-18 of its probability. That, and what convolutions by Fourier
# transforms lose, is added to every delta that is found.
SIGMAS = 9
LEFT_OUT = 1e-10
MOST_LOSSES = 50_000
# Laplace noise of a larger scale is summed up by a formula. Gaussian noise of a larger sigma is taken as normal, and
# each of its numbers as if it were half a number further off.
LARGEST_SUMMED = 500
# Laplace noise ends after so many scales in sums that converge at least as fast as its mass.
TAIL_SCALES = 45


@dataclass(frozen=True)
class Renyi:
    """Rényi divergences of one order between noise around 0 and around whole numbers, each computed once."""

    order: float
    _known: dict[tuple[DiscreteGaussian | DiscreteLaplace, int], float] = field(default_factory=dict)

    def of_shifts(self, law: DiscreteGaussian | DiscreteLaplace, shifts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the divergence of each shift."""
        sizes, places = np.unique(np.abs(shifts), return_inverse=True)
        for shift in sizes.tolist():
            if (law, shift) not in self._known:
                self._known[law, shift] = self._of_shift(law, shift)
        return np.array([self._known[law, shift] for shift in sizes.tolist()])[places].reshape(shifts.shape)

    def _of_shift(self, law: DiscreteGaussian | DiscreteLaplace, shift: int) -> float:
        if law.family == "gaussian" and law.stddev > LARGEST_SUMMED:
            # Sums of the terms below around any centre are the same then, but for a part of exp(-2 pi² sigma²).
            return self.order * shift**2 / (2 * float(law.parameter))
        if law.family == "gaussian":
            # The terms are those of a Gaussian around (1 - order) * shift.
            centre, reach = round((1 - self.order) * shift), _reach(law)
            outputs = np.arange(centre - reach, centre + reach + 1)
        elif law.scale > LARGEST_SUMMED:
            return laplace_renyi(self.order, float(law.scale), shift)
        else:
            reach = ceil(TAIL_SCALES * law.scale) + shift
            outputs = np.arange(-reach, reach + 1)
        ours, theirs = law.log_pmf(outputs), law.log_pmf(outputs - shift)
        return float(logsumexp(self.order * ours + (1 - self.order) * theirs)) / (self.order - 1)


def laplace_renyi(order: float, scale: float, shift: int) -> float:
    """Return the divergence of discrete Laplace noise by the sums of its terms: up to 0, from the shift on, between.

    With p = exp(-1 / scale) the terms are (1 - p) / (1 + p) times p to the power order |y| + (1 - order) |y - shift|: a
    geometric series on each side, and between the two a finite one.
    """
    if shift == 0:
        return 0.0
    rate = 1 / scale
    sides = [(order - 1) * shift * rate - log(-expm1(-rate)), -order * shift * rate - log(-expm1(-rate))]
    if shift > 1:
        ratio = (2 * order - 1) * rate
        inner = log(-expm1(-ratio * (shift - 1))) - log(-expm1(-ratio))
        sides.append((order - 1) * shift * rate - ratio + inner)
    return (float(logsumexp(sides)) + log(tanh(rate / 2))) / (order - 1)


def loss_law(shifts: tuple[int, ...], sigma_squared: Fraction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of the privacy loss of Gaussian numbers with these shifts, and their probabilities."""
    law = DiscreteGaussian(sigma_squared)
    reach = _reach(law)
    masses = law.pmf(np.arange(-reach, reach + 1))
    summed, ends = np.ones(1), 0
    for shift in shifts:
        spread = np.zeros(2 * reach * shift + 1)
        spread[::shift] = masses
        summed, ends = np.clip(fftconvolve(summed, spread), 0, 1), ends + reach * shift
    products = np.arange(-ends, ends + 1)
    return (sum(shift**2 for shift in shifts) - 2 * products) / (2 * float(sigma_squared)), summed


def _reach(law: DiscreteGaussian) -> int:
    return ceil(SIGMAS * law.stddev) + 1


def has_short_loss(shifts: tuple[int, ...], sigma_squared: Fraction) -> bool:
    """Whether the sum of shift times noise takes so few values that its law is computed for each."""
    return 2 * _reach(DiscreteGaussian(sigma_squared)) * sum(shifts) < MOST_LOSSES


def is_normal(sigma_squared: Fraction) -> bool:
    """Whether noise is so large that it is taken as normal."""
    return sigma_squared > LARGEST_SUMMED**2


def hockey_stick(shifts: tuple[int, ...], sigma_squared: Fraction, epsilon: float) -> float:
    """Return the least delta for which these Gaussian numbers are (epsilon, delta)-indistinguishable, not too small."""
    losses, masses = loss_law(shifts, sigma_squared)
    excess = losses > epsilon
    return float(masses[excess] @ -np.expm1(epsilon - losses[excess])) + LEFT_OUT


# What may be published: after each step any of several next ones, none at the end.
Steps = frozenset["Step"]


@dataclass(frozen=True)
class Step:
    """Gaussian numbers of one sigma² with these shifts, and the steps that may follow once they are published."""

    shifts: tuple[int, ...]
    sigma_squared: Fraction
    then: Steps


class WorstDecisions:
    """The largest hockey-stick divergence over all ways to choose each step by the outputs of earlier ones.

    With e left of epsilon, a step adds the mean over its loss of what the worst next step adds with e - loss left. That
    function of e is kept on a grid, and losses are rounded up to it: what is found is never too small.
    """

    def __init__(self, epsilon: float, rho: float, points: int = 2**13) -> None:
        reach = epsilon + rho + 8 * np.sqrt(2 * rho)
        self._width = 2 * reach / points
        self._left = epsilon + self._width * np.arange(-points // 2, points // 2 + 1)
        self._at_epsilon = points // 2
        self._end = np.maximum(0, -np.expm1(self._left))
        self._known: dict[Steps, NDArray[np.float64]] = {frozenset(): self._end}
        self._laws: dict[tuple[tuple[int, ...], Fraction], tuple[int, NDArray[np.float64]]] = {}

    def of(self, steps: Steps) -> float:
        """Return the divergence at epsilon."""
        return float(self._values(steps)[self._at_epsilon]) + LEFT_OUT

    def _values(self, steps: Steps) -> NDArray[np.float64]:
        if steps not in self._known:
            self._known[steps] = np.max([self._after(step) for step in steps], axis=0)
        return self._known[steps]

    def _after(self, step: Step) -> NDArray[np.float64]:
        first, masses = self._rounded_law(step.shifts, step.sigma_squared)
        after = self._values(step.then)
        last = first + masses.size - 1
        # Far left all is lost, 1 at most; far right no more than at the last place.
        padded = np.pad(after, (max(last, 0), max(-first, 0)), constant_values=(1.0, after[-1]))
        mixed = np.asarray(fftconvolve(padded, masses, mode="valid"))
        start = max(last, 0) - last
        return np.clip(mixed[start : start + after.size], 0, 1)

    def _rounded_law(self, shifts: tuple[int, ...], sigma_squared: Fraction) -> tuple[int, NDArray[np.float64]]:
        """Return the probabilities of losses in units of the grid, rounded up, and the first of these losses."""
        key = shifts, sigma_squared
        if key not in self._laws:
            if is_normal(sigma_squared):
                self._laws[key] = self._normal_law(shifts, float(sigma_squared))
            elif len(shifts) == 1 or has_short_loss(shifts, sigma_squared):
                losses, masses = loss_law(shifts, sigma_squared)
                places = np.ceil(losses / self._width).astype(np.int64)
                self._laws[key] = int(places.min()), np.bincount(places - places.min(), weights=masses)
            else:
                half = len(shifts) // 2
                one, other = (self._rounded_law(part, sigma_squared) for part in (shifts[:half], shifts[half:]))
                self._laws[key] = one[0] + other[0], np.clip(fftconvolve(one[1], other[1]), 0, 1)
        return self._laws[key]

    def _normal_law(self, shifts: tuple[int, ...], sigma_squared: float) -> tuple[int, NDArray[np.float64]]:
        """Return the same for normal noise, whose losses are normal, with half a number more of each."""
        squared = sum(shift**2 for shift in shifts)
        mean, stddev = (squared + sum(shifts)) / (2 * sigma_squared), np.sqrt(squared / sigma_squared)
        first, last = (int(np.ceil((mean + side * SIGMAS * stddev) / self._width)) for side in (-1, 1))
        upto = ndtr((np.arange(first - 1, last + 1) * self._width - mean) / stddev)
        return first, np.diff(upto)


Shifts = tuple[tuple[int, ...], Fraction]


def moved(step: Shifts) -> Shifts:
    """Return a step without the numbers that stay where they are; of the others only the distance counts."""
    return tuple(sorted(abs(shift) for shift in step[0] if shift)), step[1]


def joined(courses: Sequence[Sequence[Shifts]]) -> Steps:
    """Return courses, each a list of shifts and sigma², as steps that may follow each other.

    A course that ends where another one goes on is left out: going on is never less.
    """
    tree: dict[Shifts, dict] = {}
    for course in courses:
        place = tree
        for shifts, sigma_squared in map(moved, course):
            if shifts:
                place = place.setdefault((shifts, sigma_squared), {})
    return _frozen(tree)


def _frozen(tree: Mapping[Shifts, Mapping]) -> Steps:
    return frozenset(Step(*key, _frozen(below)) for key, below in tree.items())
