"""Densities of sums of Laplace noise against a histogram of drawn sums."""

from itertools import pairwise

import numpy as np
from scipy.integrate import quad

from veilcube.laws.laplace_sums import laplace_sum


def test_a_histogram_of_simulated_sums_agrees() -> None:
    rng = np.random.default_rng(11)
    sums = rng.laplace(0, 4, (400_000, 3)).sum(axis=1) + rng.laplace(0, 3, (400_000, 2)).sum(axis=1)
    edges = np.linspace(-40, 40, 41)
    counted = np.histogram(sums, edges)[0] / sums.size
    law = laplace_sum({4: 3, 3: 2})
    expected = [quad(lambda z: float(law.density(z)), a, b)[0] for a, b in pairwise(edges)]
    spread = np.sqrt(np.array(expected) / sums.size)
    assert np.max(np.abs(counted - expected) / spread) < 4.5
