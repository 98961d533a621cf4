"""z-scores: the half-width of an interval in standard deviations, for normal and Laplace errors and sums of those.

The discrete noise of one release has a sharper and exact form (``answer_noise``); this serves estimators, whose errors
are only known to lie between the two laws.
"""

from math import log1p, sqrt

import numpy as np
import scipy

from veilcube.system import Floats

_LAPLACE_EXCESS = 3.0


def normal_quantile(confidence: float) -> float:
    """Return z such that a normal variable lies within ±z standard deviations with this confidence.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return float(-scipy.special.ndtri((1 - confidence) / 2))


def widest_deviations(confidence: float) -> float:
    """Return what suffices for normal and for Laplace variables, and so for sums of independent ones of both.

    >>> round(widest_deviations(0.95), 4)
    2.1183
    """
    return max(normal_quantile(confidence), -log1p(-confidence) / sqrt(2))


def laplace_sum_deviations(fourth: Floats, confidence: float) -> Floats:
    """Return what suffices for Σ wⱼZⱼ with independent Laplace Z; ``fourth`` is Σw⁴ / (Σw²)², from 0 to 1.

    The excess kurtosis is κ = 3 Σw⁴ / (Σw²)². Cornish and Fisher's expansion moves the normal quantile z to
    z + κ (z³ - 3z) / 24. No such sum is taken to reach beyond a single Laplace variable, nor less far than a normal
    one.

    >>> laplace_sum_deviations(np.array([0.0, 0.5, 1.0]), 0.99).round(3)
    array([2.576, 3.161, 3.256])
    """
    normal = normal_quantile(confidence)
    widened = normal + _LAPLACE_EXCESS * fourth * (normal**3 - 3 * normal) / 24
    return np.asarray(np.clip(widened, normal, widest_deviations(confidence)))
