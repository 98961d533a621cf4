"""Intervals of refined answers: how many standard deviations their noise reaches, as a sum of Laplace variables.

With independent noises s_j Z_j, a refined answer has the noise Σ w_j Z_j.
"""

import numpy as np

from veilcube.analyst.refine.answers.answers import NoisyAnswers
from veilcube.analyst.refine.answers.projection import Nearest
from veilcube.laws import laplace_sum_deviations, normal_quantile
from veilcube.system import Floats

_UNTOUCHED = 1e-12


def half_widths(before: Floats, after: Floats, confidence: float) -> Floats:
    """Return the half-width of each interval in standard deviations.

    ``before`` and ``after`` are factors of the covariance. Where the noises depend on each other (``before``
    is not diagonal) their weights are not known: normal noise.
    """
    if not are_independent(before):
        return np.full(len(before), normal_quantile(confidence))
    second = np.square(after).sum(axis=1)
    shares = np.square(after) / np.where(second > 0, second, 1.0)[:, np.newaxis]
    return laplace_sum_deviations(np.square(shares).sum(axis=1), confidence)


def are_independent(factor: Floats) -> bool:
    """Whether a factor of a covariance is that of independent noises: diagonal."""
    is_square = factor.shape[0] == factor.shape[1]
    return is_square and not np.count_nonzero(factor - np.diag(np.diagonal(factor)))


def reach_own(
    noisy: NoisyAnswers, moved: Nearest, low: Floats, high: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Return intervals that hold the one an answer came with, at the same confidence, where no equality touched it."""
    if noisy.own is None:
        return low, high
    change = np.linalg.norm(moved.factor - noisy.factor, axis=1)
    is_untouched = change <= _UNTOUCHED * np.linalg.norm(noisy.factor, axis=1)
    is_kept = is_untouched & (noisy.own.confidence == confidence)
    return (
        np.where(is_kept, np.fmin(low, noisy.own.low), low),
        np.where(is_kept, np.fmax(high, noisy.own.high), high),
    )
