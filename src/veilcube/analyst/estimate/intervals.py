"""Intervals of linear answers from the moments of their noise weights."""

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimates
from veilcube.operators.moments import Moments
from veilcube.privacy.answer_noise import answer_half_widths
from veilcube.privacy.noise import DiscreteLaplace


def half_widths_of_moments(noise: DiscreteLaplace, moments: Moments, confidence: float) -> NDArray[np.float64]:
    """Return w such that noise with these moments of its weights stays within ±w with ``confidence``."""
    return answer_half_widths(noise, moments.second, moments.fourth, moments.sixth, confidence, bounded=moments.bounded)


def with_intervals(
    value: NDArray[np.float64], moments: Moments, noise: DiscreteLaplace, confidence: float
) -> Estimates:
    """Return estimates with the interval and the standard deviation that the moments of their noise give."""
    width = half_widths_of_moments(noise, moments, confidence)
    stddev: NDArray[np.float64] = np.sqrt(moments.second * noise.variance)
    return Estimates(value, value - width, value + width, stddev)
