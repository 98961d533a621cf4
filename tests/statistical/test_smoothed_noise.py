"""The standard deviation of smoothed noise, over a large draw of it."""

import math

import numpy as np
import pytest

from veilcube.partitions import smooth, smoothed_difference_stddev


def test_simulated_laplace_noise_agrees_within_half_a_percent() -> None:
    noise = smooth(np.random.default_rng(5).laplace(0, 10, (700, 700)), 5)
    differences = np.diff(noise[8:-8, 8:-8], axis=1)
    expected = smoothed_difference_stddev(5, 2, 10 * math.sqrt(2))
    assert float(differences.std()) == pytest.approx(expected, rel=0.005)
