"""Intervals of the exact posterior of a count cover as often as they say."""

import math

import numpy as np

from veilcube.analyst.study.observations import posterior


def test_intervals_cover_as_often_as_they_say() -> None:
    """Simulated cells and partition totals of the worked example's kind, flat over the true count."""
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(600):
        cells = float(rng.laplace(0, 20, 2).sum())
        rest = float(rng.laplace(0, 20, 2).sum() + rng.laplace(0, 10))
        low, high = posterior([(cells, {20: 2}), (rest, {20: 2, 10: 1})]).interval(0.8)
        covered += low <= 0 <= high
    assert abs(covered / 600 - 0.8) < 4 * math.sqrt(0.8 * 0.2 / 600)
