"""Answers refined by equalities: variance and coverage over many draws of Laplace noise."""

import numpy as np

from veilcube.analyst.refine import best_refinement, refine

MATRIX = np.array([[1, 1, 1, 1, 0, -1, 0], [0, 0, 0, 0, 1, 1, -1], [1, 1, 0, 0, 0, 0, 0]], dtype=float).T


def test_variance_and_coverage_match_a_simulation_with_laplace_noise():
    rng = np.random.default_rng(5)
    truth = np.array([30.0, 50, 41, 10, 15, 131, 146])
    scales = np.array([1.0, 2, 1, 3, 1, 2, 1])
    draws = truth + rng.laplace(scale=scales, size=(400_000, 7))
    refinement = best_refinement(MATRIX, 2 * scales**2)
    simulated = refinement.apply(draws, [0, 0, 80])
    refined = refine(draws[0], B=MATRIX, c=(0, 0, 80), covariance=2 * scales**2)
    np.testing.assert_allclose(refined.value, simulated[0], atol=1e-9)
    np.testing.assert_allclose(simulated.var(axis=0) / refined.stddev**2, 1, atol=0.02)
    np.testing.assert_allclose(simulated.mean(axis=0), truth, atol=0.02)
    half = (refined.high - refined.low) / 2
    np.testing.assert_allclose((np.abs(simulated - truth) <= half).mean(axis=0), 0.95, atol=0.01)
