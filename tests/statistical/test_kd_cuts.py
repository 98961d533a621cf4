"""How often noise alone is cut by the kd-tree partition."""

import numpy as np

from veilcube.partitions import kd_regions

SCALE = 10.0


STDDEV = SCALE * np.sqrt(2)


def noisy(truth: np.ndarray, seed: int) -> np.ndarray:
    return truth + np.random.default_rng(seed).laplace(0, SCALE, truth.shape)


def test_noise_alone_is_cut_seldom() -> None:
    """A block of uniform counts is cut with probability at most 5% (by either rule)."""
    cut = sum(kd_regions(noisy(np.full((24, 24), 50.0), seed), STDDEV).max() > 0 for seed in range(300))
    assert cut <= 15


def test_noise_judged_too_small_is_cut_often() -> None:
    """The same test fails for a wrong claim about the noise, so it measures something."""
    cut = sum(kd_regions(noisy(np.full((24, 24), 50.0), seed), STDDEV / 2).max() > 0 for seed in range(50))
    assert cut >= 45
