"""Telling bias from noise: against brute force, and at both ends."""

import numpy as np
import pytest

from veilcube.polya_tree.reconciled import LAPLACE_TERMS, PRIOR, PRIOR_COEFFICIENTS, SIZES, prior_bias

RANDOM = np.random.default_rng(5)


def noise_of(count: int) -> np.ndarray:
    """Draw noise of variance 1: a normal variable whose variance is gamma-distributed."""
    return RANDOM.normal(size=count) * np.sqrt(RANDOM.gamma(LAPLACE_TERMS, 1 / LAPLACE_TERMS, size=count))


def one_group(count: int) -> np.ndarray:
    return np.zeros(count, dtype=np.int64)


def test_differences_that_are_noise_are_left_alone() -> None:
    found = prior_bias(3 * noise_of(4000), np.full(4000, 9.0), one_group(4000))
    assert found.share.mean() < 0.08
    assert found.variance.mean() < 0.1 * 9


def test_differences_far_beyond_the_noise_are_bias() -> None:
    found = prior_bias(noise_of(500) + 40, np.ones(500), one_group(500))
    assert found.share.min() > 0.97
    np.testing.assert_allclose(found.variance, 1.0, rtol=0.2)


def test_a_few_large_biases_among_many_small_ones_are_found() -> None:
    differences = noise_of(1000)
    differences[:10] = 25.0
    found = prior_bias(differences, np.ones(1000), one_group(1000))
    assert found.share[:10].min() > 0.9
    assert np.median(found.share[10:]) < 0.1


@pytest.mark.parametrize("ratio", [0.5, 2.0, 8.0])
def test_corrected_values_err_as_far_as_the_variance_says(ratio: float) -> None:
    bias = np.sqrt(ratio) * RANDOM.normal(size=20_000)
    noise = noise_of(20_000)
    found = prior_bias(bias + noise, np.ones(20_000), one_group(20_000))
    errors = bias - found.share * (bias + noise)
    assert np.mean(errors**2) == pytest.approx(found.variance.mean(), rel=0.05)
    assert np.mean(errors**2) < min(ratio, 1.0)  # better than either alone


def test_under_gaussian_noise_corrected_values_err_as_the_variance_says_and_five_deviations_are_bias() -> None:
    bias, noise = np.sqrt(8.0) * RANDOM.normal(size=20_000), RANDOM.normal(size=20_000)
    found = prior_bias(bias + noise, np.ones(20_000), one_group(20_000), is_normal=True)
    errors = bias - found.share * (bias + noise)
    assert np.mean(errors**2) == pytest.approx(found.variance.mean(), rel=0.05)
    far = np.concatenate([RANDOM.normal(size=990), np.full(10, 5.0)])
    shares = [prior_bias(far, np.ones(1000), one_group(1000), is_normal=law).share[990:].min() for law in (False, True)]
    assert shares[1] > 0.8 > shares[0] + 0.1  # long tails explain what normal noise cannot


def test_what_is_found_does_not_depend_on_the_unit_or_the_sign() -> None:
    differences, noise = noise_of(50) * 3, RANDOM.uniform(0.5, 2, 50)
    found = prior_bias(differences, noise, one_group(50))
    scaled = prior_bias(-1e6 * differences, 1e12 * noise, one_group(50))
    np.testing.assert_allclose(scaled.share, found.share, rtol=1e-9)
    np.testing.assert_allclose(scaled.variance, 1e12 * found.variance, rtol=1e-9)


def test_groups_learn_apart() -> None:
    differences = np.concatenate([noise_of(300), 30 + noise_of(300)])
    groups = np.repeat([0, 1], 300)
    found = prior_bias(differences, np.ones(600), groups)
    alone = prior_bias(differences[:300], np.ones(300), one_group(300))
    np.testing.assert_allclose(found.share[:300], alone.share, rtol=1e-9)


def test_a_single_difference_is_judged_by_the_prior() -> None:
    """Against the same learning with integrals over drawn variances."""
    d, variances = 1.7, np.random.default_rng(1).gamma(LAPLACE_TERMS, 1 / LAPLACE_TERMS, size=400_000)
    weights = PRIOR / PRIOR.sum()
    for _ in range(40):
        totals = variances[:, None] + SIZES
        likelihood = np.exp(-0.5 * d**2 / totals) / np.sqrt(totals) * weights
        belief = likelihood.mean(axis=0) / likelihood.mean(axis=0).sum()
        weights = (belief + PRIOR_COEFFICIENTS * PRIOR / PRIOR.sum()) / (1 + PRIOR_COEFFICIENTS)
    share = (likelihood * SIZES / totals).mean() / likelihood.mean()
    found = prior_bias(np.array([d]), np.ones(1), one_group(1))
    assert found.share[0] == pytest.approx(share, rel=0.03)


def test_nothing_breaks_at_the_ends_of_the_numbers() -> None:
    differences = np.array([0.0, 1e-300, 1e150, -1e150, 5.0])
    found = prior_bias(differences, np.array([1e-9, 1.0, 1e-9, 1e30, 1e300]), one_group(5))
    assert np.isfinite(found.share).all()
    assert np.isfinite(found.variance).all()
    assert ((found.share >= 0) & (found.share <= 1)).all()
    assert (found.variance >= 0).all()
