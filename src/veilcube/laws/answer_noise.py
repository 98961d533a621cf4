"""Half-widths of intervals from three moments of an answer's noise.

The noise of a linear answer is Σ w_i X_i with independent discrete Laplace or Gaussian X_i. A strategy gives, exactly
and at once, the sums of the second, fourth and sixth powers of the weights (they may be millions), and so the cumulants
k2, k4, k6 of the noise. Its law is taken to be that of m equal Laplace variables of scale a and one normal one, with
the same three cumulants: a² = k6/(20 k4), m = k4/(12 a⁴) >= 1, not necessarily whole, and the normal part has what is
left of the variance (never less than nothing: (Σw⁴)² <= Σw² Σw⁶). One weight, equal weights and very many weights are
exact. As in ``laws.summed_noise``, the noise is first blurred by a uniform variable as wide as the largest weight, here
bounded by (Σw⁶)^(1/6), and half that width is added, so that an interval is not too narrow for a lattice.
Noises of several laws add up their cumulants, each with its own law's. Gaussian noise has a k4 of nearly zero and a k6
at or below zero, but for very small sigma. A sum whose k6 is not positive has lighter tails than any Laplace part: it
is taken to be m = 3·k2²/k4 Laplace variables with the same k2 and k4 (the normal law where k4 is zero).
tests/unit/laws/test_answer_noise.py compares with exact inversions of the characteristic function.
"""

from dataclasses import dataclass, replace

import numpy as np

from veilcube.laws.noise import Noise
from veilcube.laws.normal_quantiles import normal_quantile
from veilcube.laws.standard_widths import WidthTable, standard_widths
from veilcube.system import Floats

# What three cumulants leave open, measured against exact inversions over many strategies and blocks: up to 0.24% too
# narrow for confidences from 0.65 to 0.98, up to 1% beyond 0.9995, elsewhere never (but up to 0.55% too wide at 0.5).
# Each range of confidences, by its upper end, is widened by what it may lack.
_MARGINS = ((0.65, 1.0), (0.98, 1.0025), (0.9995, 1.0), (1.0, 1.01))


@dataclass(frozen=True, eq=False)
class WidthRule:
    """What half-widths at one confidence are made with: also for programs that compute them elsewhere.

    ``margin`` is by what they are widened.
    """

    confidence: float
    table: WidthTable
    margin: float

    @property
    def deviations(self) -> float:
        """The half-width of the normal law at variance 1."""
        return normal_quantile(self.confidence)

    @classmethod
    def of(cls, confidence: float) -> "WidthRule":
        """Return the rule for a confidence."""
        level = min(confidence, 1 - 1e-12)
        margin = next(margin for upper, margin in _MARGINS if level <= upper)
        return cls(level, standard_widths(level), margin)


@dataclass(frozen=True, eq=False)
class NoiseCumulants:
    """The second, fourth and sixth cumulant of the noise of answers, and the largest weight that any noise has in them.

    ``bounded`` says that the fourth and sixth are bounds from above.
    """

    second: Floats
    fourth: Floats
    sixth: Floats
    largest_weight: Floats
    bounded: bool = False

    @classmethod
    def of(
        cls, noise: Noise, second: Floats, fourth: Floats, sixth: Floats, *, bounded: bool = False
    ) -> "NoiseCumulants":
        """Return those of noises of one law, from the sums of powers of their weights."""
        v2, v4, v6 = noise.cumulants()
        return cls(v2 * second, v4 * fourth, v6 * sixth, np.maximum(sixth, 0.0) ** (1 / 6), bounded)

    def __add__(self, other: "NoiseCumulants") -> "NoiseCumulants":
        """Return those of the sum of two independent noises, each with its own law."""
        powers = (self.second + other.second, self.fourth + other.fourth, self.sixth + other.sixth)
        largest = np.maximum(self.largest_weight, other.largest_weight)
        return NoiseCumulants(*powers, largest, self.bounded or other.bounded)

    def widened(self, factor: Floats) -> "NoiseCumulants":
        """Return the moments of the noise multiplied by ``factor``."""
        powers = (self.second * factor**2, self.fourth * factor**4, self.sixth * factor**6)
        return NoiseCumulants(*powers, self.largest_weight * factor, self.bounded)

    def with_weights_up_to(self, limit: float) -> "NoiseCumulants":
        """Return those of noises of which no weight is larger than this, which powers of many weights cannot tell."""
        return replace(self, largest_weight=np.minimum(self.largest_weight, limit))

    def half_widths(self, confidence: float) -> Floats:
        """Return w such that the noise stays within ±w with ``confidence``.

        If the higher cumulants are bounds, the law may be any from the normal one to the one they describe, and w
        suffices for both ends: at high confidence the one is wider, at low the other.
        """
        largest = self.largest_weight
        k2 = self.second + largest**2 / 12
        k4 = np.maximum(self.fourth - largest**4 / 120, 0.0)
        k6 = self.sixth + largest**6 / 252
        is_light = np.asarray(self.sixth <= 0)
        terms_inverse = np.where(is_light, _ratio(k4, 3 * k2**2), _ratio(12 * _ratio(k6, 20 * k4) ** 2, k4))
        laplace_share = np.where(is_light, 1.0, np.minimum(_ratio(20 * k4**2, 6 * k6 * k2), 1.0))
        rule = WidthRule.of(confidence)
        standard = rule.table.at(np.minimum(terms_inverse, 1.0), 1 - laplace_share)
        if self.bounded:
            standard = np.maximum(standard, rule.deviations)
        margin = np.where(is_light, 1.0, rule.margin)
        widths: Floats = margin * np.sqrt(k2) * standard + largest / 2
        # Chebyshev's bound, which is sharper where hardly any noise is left.
        return np.minimum(widths, np.sqrt(self.second / (1 - rule.confidence)))


def answer_half_widths(
    noise: Noise, second: Floats, fourth: Floats, sixth: Floats, confidence: float, *, bounded: bool = False
) -> Floats:
    """Return w such that noise with these sums of powers of its weights stays within ±w with ``confidence``.

    ``bounded`` says that the fourth and sixth powers are bounds from above (``NoiseCumulants.half_widths``).

    >>> from fractions import Fraction
    >>> from veilcube.laws import DiscreteLaplace
    >>> four_equal_weights = np.array([4.0])
    >>> answer_half_widths(DiscreteLaplace(Fraction(100)), *[four_equal_weights] * 3, 0.95).round(1)
    array([571.3])
    """
    return NoiseCumulants.of(noise, second, fourth, sixth, bounded=bounded).half_widths(confidence)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)
