"""Answers refined by inequalities: coverage is kept and the error falls, over many draws of noise."""

import numpy as np
import pytest

from veilcube.analyst.refine import refine


@pytest.mark.slow
def test_coverage_is_kept_and_the_error_falls_on_counts_near_their_bounds():
    rng = np.random.default_rng(3)
    truth = np.array([0.0, 1, 1, 6, 8])
    facts = ["0 <= a <= b <= d", "c >= 0", "a + b + c + d = t"]
    covered, old, new = [], [], []
    for _ in range(150):
        given = truth + rng.normal(scale=3, size=5)
        refined = refine(dict(zip("abcdt", given, strict=True)), facts, covariance=9.0)
        covered.append((refined.low - 1e-9 <= truth) & (truth <= refined.high + 1e-9))
        assert (refined.low <= refined.value + 1e-9).all()
        assert (refined.value <= refined.high + 1e-9).all()
        old.append((given - truth) ** 2)
        new.append((refined.value - truth) ** 2)
    assert (np.mean(covered, axis=0) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 150)).all()
    assert (np.mean(new, axis=0) <= np.mean(old, axis=0)).all()
    assert np.mean(new) < 0.6 * np.mean(old)
