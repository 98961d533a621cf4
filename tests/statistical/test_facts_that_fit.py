"""How often true facts are said not to fit: as often as noise makes them, whatever its law."""

import numpy as np
import pytest
from scipy.stats import chi2

import veilcube as vc
from support.releases import gaussian_release_of, release_of
from veilcube.analyst.refine import refine_release

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 11), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.random.default_rng(0).poisson(60, SCHEMA.shape)


def test_true_facts_warn_about_as_rarely_as_they_should() -> None:
    """A known marginal of 40 cells, each a single Laplace noise: 4 standard errors alone would warn in 13% of them."""
    schema = vc.Schema([vc.Ordinal("age", 0, 39)])
    counts = np.full(40, 1000)
    alarms = exceeding = 0
    for seed in range(200):
        release = release_of(schema, counts, epsilon=0.1, seed=seed)
        test = refine_release(release, None, "age", counts).fact_test
        alarms += not test.fits
        exceeding += test.deviations[0].standard_errors >= 4
    assert alarms <= 6
    assert exceeding >= 10


def test_chi_squares_of_true_facts_are_those_of_normal_noise_for_gaussian_releases() -> None:
    chances = []
    for seed in range(150):
        release = gaussian_release_of(SCHEMA, COUNTS, seed=seed)
        facts = [f"total = {COUNTS.sum()}", f"count(sex = 'F') = {COUNTS[:, 0].sum()}"]
        test = refine_release(release, facts).fact_test
        assert test.chance == pytest.approx(chi2.sf(test.chi_square, 2), rel=0.1)
        chances.append(test.chance)
    # Mean and spread of uniform numbers; a standard deviation that is 10% off moves the mean by 3 of these errors.
    assert abs(np.mean(chances) - 0.5) < 4 * np.sqrt(1 / 12 / 150)
