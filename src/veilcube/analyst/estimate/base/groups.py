"""Groups of cells on a linear strategy: their counts, the noise of any weighted sum of them, and its intervals.

The groups share measurements, so their errors are correlated; every question goes back to the noise weights of the
measurements, which ``GroupNoise`` knows, and intervals follow from the moments of these weights.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base.protocol import Estimates
from veilcube.laws import Noise, answer_half_widths
from veilcube.operators import Moments
from veilcube.system import Floats


def half_widths_of_moments(noise: Noise, moments: Moments, confidence: float) -> NDArray[np.float64]:
    """Return w such that noise with these moments of its weights stays within ±w with ``confidence``."""
    return answer_half_widths(noise, moments.second, moments.fourth, moments.sixth, confidence, bounded=moments.bounded)


def with_intervals(value: NDArray[np.float64], moments: Moments, noise: Noise, confidence: float) -> Estimates:
    """Return estimates with the interval and the standard deviation that the moments of their noise give."""
    width = half_widths_of_moments(noise, moments, confidence)
    stddev: NDArray[np.float64] = np.sqrt(moments.second * noise.variance)
    return Estimates(value, value - width, value + width, stddev)


class GroupNoise(Protocol):
    """The noise of linear statistics of the groups of a marginal, as moments of its weights."""

    def of_each(self) -> Moments:
        """Return the moments of every group's count, in the shape of the groups."""

    def of_weighted(self, weights: Floats) -> Moments:
        """Return the moments of one weighted sum of all groups; shape ()."""

    def of_prefixes(self, inside: float, outside: float, steps: int) -> Moments:
        """Return for k = 0..steps-1 those of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""


@dataclass(frozen=True, eq=False)
class LinearGroups:
    """Estimated counts of groups, with the noise of their sums; ``sizes`` are their cells."""

    counts: Floats
    sizes: NDArray[np.int64]
    noise: Noise
    group_noise: GroupNoise
    whole_length: int | None = None

    def first(self, size: int) -> "LinearGroups":
        """Return the first groups of a single axis only; those behind must lie outside the region."""
        return LinearGroups(
            self.counts[:size], self.sizes[:size], self.noise, self.group_noise, self.whole_length or self.sizes.size
        )

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""
        each = self.group_noise.of_each()
        if self.whole_length is not None:
            kept = slice(0, self.sizes.size)
            each = Moments(each.second[kept], each.fourth[kept], each.sixth[kept], bounded=each.bounded)
        return with_intervals(self.counts, each, self.noise, confidence)

    def variance_of(self, weights: Floats) -> float:
        """Return the noise variance of a weighted sum of the groups."""
        return float(self.group_noise.of_weighted(self._whole(weights)).second) * self.noise.variance

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return w such that the noise of a weighted sum of the groups stays within ±w with ``confidence``."""
        return float(half_widths_of_moments(self.noise, self.group_noise.of_weighted(self._whole(weights)), confidence))

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        return self.group_noise.of_prefixes(inside, outside, self.sizes.size).second * self.noise.variance

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        moments = self.group_noise.of_prefixes(inside, outside, self.sizes.size)
        return half_widths_of_moments(self.noise, moments, confidence)

    def _whole(self, weights: Floats) -> Floats:
        """Return weights for all groups, zero for those that ``first`` left out."""
        full = np.broadcast_to(weights, self.sizes.shape).astype(np.float64)
        if self.whole_length is None:
            return full
        return np.concatenate([full, np.zeros(self.whole_length - full.size)])
