"""General linear refinements: the checks of the paper's definitions, and the best one."""

import numpy as np
import pytest

from veilcube.analyst.refine import LinearRefinement, best_refinement, refine


def appendix(k):
    """Return the refinement of the paper's appendix, for k μ1 - μ2 = c."""
    return LinearRefinement([[1 / (k + 1), 1 / (k + 1)], [0, 1]], [1 / (k + 1), 0], [k, -1])


@pytest.mark.parametrize("k", [2, 5])
def test_the_appendix_is_unbiased_but_violates_its_own_constraint(k):
    assert appendix(k).is_unbiased()
    assert not appendix(k).is_constrained()
    assert np.asarray(appendix(k).apply([7.0, 9.0], k)) == pytest.approx([(16 + k) / (k + 1), 9])


@pytest.mark.parametrize("seed", range(20))
def test_the_best_refinement_is_constrained_and_unbiased_and_equals_refine(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(6, 3))
    matrix[:, 2] = matrix[:, 0] - 2 * matrix[:, 1] if seed % 2 else matrix[:, 2]
    root = rng.normal(size=(6, 6))
    truth, given = rng.normal(size=(2, 6))
    best = best_refinement(matrix, root @ root.T)
    assert best.is_unbiased()
    assert best.is_constrained()
    refined = refine(given, B=matrix, c=matrix.T @ truth, covariance=root @ root.T)
    np.testing.assert_allclose(best.apply(given, matrix.T @ truth), refined.value, atol=1e-7)
    np.testing.assert_allclose(best.covariance(root @ root.T), refined.covariance, atol=1e-7)


def test_an_offset_or_a_wrong_share_is_found():
    best = best_refinement([1, 1])
    shifted = LinearRefinement(best.A, best.D, best.B, [1, -1])
    assert shifted.is_constrained()
    assert not shifted.is_unbiased()
    half = LinearRefinement(best.A, 0.5 * np.asarray(best.D), best.B)
    assert not half.is_constrained()
    assert not half.is_unbiased()
    assert LinearRefinement([[0, 0], [0, 0]], [1, 0], [1, 1]).is_constrained()
    plain = LinearRefinement(np.eye(2), [0, 0], [1, 1])
    assert plain.is_unbiased()
    assert not plain.is_constrained()
