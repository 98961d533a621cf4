"""Lower bounds on epsilon from how often an event happened on two neighbouring tables (Clopper and Pearson 1934)."""

from math import exp, inf

import numpy as np
from scipy.special import betaincinv

from veilcube.system import Floats

# No count is looked at that spends more than this beyond its promise.
LARGEST_STEP = 20.0
# Of epsilons beyond 700 floats know no probabilities.
_LEAST_PROBABILITY = 1e-300


def clopper_pearson(hits: object, trials: int, error: float) -> tuple[Floats, Floats]:
    """Return bounds on a probability from below and from above, each of which fails with at most this probability.

    >>> low, high = clopper_pearson(0, 1000, 0.0005)
    >>> float(low), round(float(high), 5)
    (0.0, 0.00757)
    """
    counts = np.asarray(hits, dtype=np.float64)
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), trials - counts + 1, error), 0.0)
    high = np.where(counts < trials, betaincinv(counts + 1, np.maximum(trials - counts, 1), 1 - error), 1.0)
    return low, high


def epsilon_bound(ours: object, theirs: object, trials: int, delta: float, error: float) -> Floats:
    """Return what epsilon is at least if P(event) <= exp(epsilon) Q(event) + delta; wrong with at most ``error``.

    ``ours`` and ``theirs`` say how often the event happened in ``trials`` runs on either table.
    """
    low, _ = clopper_pearson(ours, trials, error / 2)
    _, high = clopper_pearson(theirs, trials, error / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -inf)
    return found


def detectable(epsilon: float, delta: float, trials: int, error: float) -> float:
    """Return the least true epsilon of one noisy count that so many trials find to exceed ``epsilon``, 19 times in 20.

    The best event on a count with discrete Laplace noise has the probabilities 1 / (1 + q) and q / (1 + q), with
    q = exp(-epsilon).
    """
    low, step = epsilon, 0.001
    while step < LARGEST_STEP and not _is_found(epsilon + step, epsilon, delta, trials, error):
        low, step = epsilon + step, 1.5 * step
    high = epsilon + step
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if _is_found(middle, epsilon, delta, trials, error) else (middle, high)
    return high


def _is_found(true: float, epsilon: float, delta: float, trials: int, error: float) -> bool:
    often = 1 / (1 + exp(-true))
    seldom = max(1 - often, _LEAST_PROBABILITY)
    # The logarithms of both frequencies err independently; together by 1.645 standard deviations in 1 of 20 audits.
    errors = (seldom / (trials * often)) ** 0.5, (often / (trials * seldom)) ** 0.5
    length = (errors[0] ** 2 + errors[1] ** 2) ** 0.5
    ours = trials * often * exp(-1.645 * errors[0] ** 2 / length)
    theirs = trials * min(seldom * exp(min(1.645 * errors[1] ** 2 / length, 600.0)), 1.0)
    return float(epsilon_bound(ours, theirs, trials, delta, error)) > epsilon


def show_epsilon(value: float) -> str:
    """Return a bound for people.

    >>> show_epsilon(1.23456), show_epsilon(inf)
    ('1.235', 'without bound')
    """
    return "without bound" if value == inf else f"{value:.4g}" if abs(value) >= 1e-12 else "0"
