"""Whether facts fit the noise of the answers that they are imposed on."""

import numpy as np

from veilcube.analyst.refine.answers.answers import NoisyAnswers
from veilcube.analyst.refine.answers.intervals import are_independent
from veilcube.analyst.refine.answers.projection import Nearest
from veilcube.analyst.refine.facts import FactSystem, FactTest, judge_facts
from veilcube.system import Floats

# Excess kurtosis of Laplace noise, which independent noises are taken to be; dependent ones are taken as normal.
_LAPLACE = 3.0
# Relative to what they are computed from: rows that concern exact answers only, and residuals that rounding leaves.
_NO_NOISE = 1e-13
_ROUNDING = 1e-9


def judge_answers(noisy: NoisyAnswers, used: FactSystem, moved: Nearest, nearest: Nearest) -> FactTest | None:
    """Return how well facts fit the answers as they were before any fact moved them; None if no noise is known."""
    if not noisy.is_noise_known:
        return None
    tilted = used.weights @ noisy.factor
    stddevs = np.linalg.norm(tilted, axis=1)
    # What concerns exact answers only was refused if it does not hold.
    has_noise = stddevs > _NO_NOISE * (np.abs(used.weights) @ np.linalg.norm(noisy.factor, axis=1))
    residuals = used.weights @ noisy.value - used.constants
    sizes = np.abs(used.weights) @ np.abs(noisy.value) + np.abs(used.constants)
    is_broken = np.where(used.is_equality, np.abs(residuals), residuals) > _ROUNDING * sizes
    is_independent = are_independent(noisy.factor)
    fourth = _fourth(tilted, stddevs) if is_independent else np.zeros(len(used))
    distance, bound = moved.squared_distance + nearest.squared_distance, moved.bound + nearest.bound
    return judge_facts(
        used.facts,
        np.where(has_noise & is_broken, residuals, 0.0),
        stddevs,
        fourth,
        (distance, bound, _LAPLACE if is_independent else 0.0),
    )


def _fourth(tilted: Floats, stddevs: Floats) -> Floats:
    shares = tilted / np.where(stddevs > 0, stddevs, 1.0)[:, np.newaxis]
    return np.asarray(np.power(shares, 4).sum(axis=1))
