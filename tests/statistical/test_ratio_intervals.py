"""Intervals of means, distribution functions and quantiles cover the truth as often as they say."""

import numpy as np
import pytest

from support.releases import release_of
from veilcube.schema import Ordinal, Schema

TRIALS = 200
SCHEMA = Schema([Ordinal("age", 0, 39), Ordinal("floor", 1, 5)])
SHAPE = np.exp(-((np.arange(40) - 15) ** 2) / 60)[:, None] * np.array([1.0, 0.5, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("rows", [400, 20_000])
def test_intervals_of_ratios_cover_as_often_as_they_say(rows: int) -> None:
    counts = np.floor(rows * SHAPE / SHAPE.sum()).astype(np.int64)
    by_age = counts.sum(axis=1)
    mean = (np.arange(40) * by_age).sum() / by_age.sum()
    below = np.cumsum(by_age) / by_age.sum()
    median = int(np.argmax(below >= 0.5))
    total = (np.arange(40) * by_age).sum()
    held = {"mean": 0, "median": 0, "cdf": 0, "sum": 0}
    for trial in range(TRIALS):
        release = release_of(SCHEMA, counts, epsilon="1/2", seed=trial)
        found = release.mean("age", estimator="least_squares")
        held["mean"] += found.low <= mean <= found.high
        quantile = release.quantile("age", 0.5, estimator="least_squares")
        held["median"] += quantile.low <= median <= quantile.high
        summed = release.sum("age", estimator="least_squares")
        held["sum"] += summed.low <= total <= summed.high
        shares = release.cdf("age", estimator="least_squares")
        held["cdf"] += shares.low[12] <= below[12] <= shares.high[12]
    # 200 trials at 95%: three standard deviations below is 90.4%. A quantile's interval covers more, being of cells.
    assert all(count / TRIALS >= 0.904 for count in held.values()), held
    assert held["sum"] / TRIALS <= 0.995


def test_an_interval_is_the_whole_domain_where_noise_drowns_the_count() -> None:
    counts = np.zeros(SCHEMA.shape, dtype=np.int64)
    counts[15, 0] = 3
    wide = 0
    for trial in range(20):
        found = release_of(SCHEMA, counts, epsilon="1/50", seed=trial).mean("age", estimator="least_squares")
        wide += (found.low, found.high) == (0.0, 39.0)
    assert wide >= 15


@pytest.mark.parametrize("rows", [2**24, 2**30, 2**34])
def test_means_and_shares_of_huge_tables_have_intervals_of_the_right_width(rows: int) -> None:
    counts = np.zeros(64, dtype=np.int64)
    counts[50], counts[51] = rows, rows // 3
    schema = Schema([Ordinal("a", 0, 63)])
    true, shares = counts @ np.arange(64) / counts.sum(), np.cumsum(counts) / counts.sum()
    held = []
    for seed in range(40):
        release = release_of(schema, counts, "1/2", seed)
        mean, share = (ask("a", estimator="least_squares") for ask in (release.mean, release.cdf))
        assert mean.high - mean.low == pytest.approx(2 * 1.96 * mean.stddev, rel=0.1)
        held += [mean.low <= true <= mean.high, share.low[50] <= shares[50] <= share.high[50]]
    assert np.mean(held) > 0.88
