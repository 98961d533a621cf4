"""Soft thresholding of noisy wavelet coefficients."""

import numpy as np
import pytest
from numpy.typing import NDArray

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.estimate.linear.thresholded import AxisBands, Bands, find_thresholds
from veilcube.errors import QueryError

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 63), vc.Nominal("sex", ["f", "m"])])


def one_band(values: NDArray[np.float64], variance: float) -> float:
    rows = AxisBands(np.zeros(values.size, dtype=np.int64), np.array([False]))
    return float(find_thresholds(Bands.of(values, [rows]), variance)[0])


def by_sorting(values: NDArray[np.float64], variance: float) -> float:
    """Return the threshold as the corrected Figure 8 finds it: sorted coefficients and a quadratic equation."""
    sorted_values = np.sort(np.abs(values))[::-1]
    signal = float((values**2).sum() - variance * values.size)
    if signal <= 0:
        return np.inf
    edges = np.append(sorted_values[1:], 0.0)
    left = np.array([(np.maximum(sorted_values - edge, 0) ** 2).sum() for edge in edges])
    k = int(np.argmax(left >= signal)) + 1
    alpha, beta = (sorted_values[:k] ** 2).sum(), sorted_values[:k].sum()
    return float((alpha - signal) / (beta + np.sqrt(beta**2 - k * (alpha - signal))))


def test_threshold_of_the_worked_example() -> None:
    # ERRATA, golden values.
    assert one_band(np.array([5, -3, 2, -1, 0.5, 0]), 2.0) == pytest.approx(0.5994186832, abs=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_newtons_steps_find_what_sorting_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.laplace(size=rng.integers(1, 200)) * rng.choice([0.5, 1, 5, 100])
    assert one_band(values, 2.0) == pytest.approx(by_sorting(values, 2.0), rel=1e-9)


def test_a_band_of_noise_alone_is_set_to_zero() -> None:
    assert one_band(np.array([1.0, -1.0, 0.5]), 2.0) == np.inf


def test_totals_keep_their_place() -> None:
    counts = np.full((64, 2), 40)
    release = release_of(SCHEMA, counts, 1, 0, vc.Wavelet(flat=["sex"], threshold=True))
    for sex in ("f", "m"):
        plain = release.count(sex=sex, estimator="least_squares").value
        assert release.count(sex=sex, estimator="thresholded").value == pytest.approx(plain)


def test_smooth_tables_are_answered_better_than_by_least_squares() -> None:
    counts = np.broadcast_to(np.full((64, 1), 500), (64, 2))
    queries = vc.Workload.random_ranges(SCHEMA, 500, seed=1)
    truth = (queries.high - queries.low + 1).prod(axis=1) * 500
    errors: dict[str, list[float]] = {"least_squares": [], "thresholded": []}
    for seed in range(20):
        release = release_of(SCHEMA, counts, 1, seed, vc.Wavelet(flat=["sex"]))
        for name, found in errors.items():
            found.append(float(np.mean((release.answer(queries, estimator=name).value - truth) ** 2)))
    assert np.mean(errors["thresholded"]) < 0.7 * np.mean(errors["least_squares"])


def test_best_is_what_the_strategy_asked_for_and_the_plain_answer_stays() -> None:
    counts = np.arange(128).reshape(64, 2)
    for threshold, name in ((True, "thresholded"), ("separate", "thresholded_separately"), (False, "least_squares")):
        release = release_of(SCHEMA, counts, 1, 3, vc.Wavelet(flat=["sex"], threshold=threshold))
        assert release.count(age=(3, 40)) == release.count(age=(3, 40), estimator=name)
    assert release.count(age=(3, 40), estimator="least_squares") != release.count(age=(3, 40), estimator="thresholded")


def test_thresholds_that_disagree_with_least_squares_are_not_followed() -> None:
    wide = vc.Schema([vc.Ordinal("place", 0, 499), vc.Ordinal("income", 0, 15)])
    rng = np.random.default_rng(8)
    # Alike everywhere, and below the noise of any one place: thresholds remove what all places together show.
    counts = rng.poisson(np.broadcast_to(np.linspace(0, 4, 16), (500, 16)))
    release = release_of(wide, counts, 0.5, 9, vc.Wavelet(flat=["place"], threshold=True))
    rich = {"income": (12, 15)}
    assert release.count(**rich) == release.count(**rich, estimator="least_squares")
    assert abs(release.count(**rich, estimator="thresholded").value - counts[:, 12:].sum()) > 1000


def test_separate_thresholds_tell_sub_matrices_apart() -> None:
    rng = np.random.default_rng(4)
    counts = np.stack([np.full(64, 100), rng.integers(0, 10_000, 64)], axis=1)
    release = release_of(SCHEMA, counts, 1, 5, vc.Wavelet(flat=["sex"]))
    pooled = release.to_xarray(estimator="thresholded").sel(sex="f").to_numpy()
    separate = release.to_xarray(estimator="thresholded_separately").sel(sex="f").to_numpy()
    assert np.std(separate) < 0.5 * np.std(pooled)


def test_intervals_hold_the_value_and_are_never_narrower_than_the_guaranteed_ones() -> None:
    rng = np.random.default_rng(6)
    release = release_of(SCHEMA, rng.integers(0, 50, (64, 2)), 0.2, 7, vc.Wavelet(flat=["sex"]))
    queries = vc.Workload.random_ranges(SCHEMA, 300, seed=2)
    plain, shrunk = (release.answer(queries, estimator=name) for name in ("least_squares", "thresholded"))
    assert (shrunk.low <= np.minimum(plain.low, shrunk.value)).all()
    assert (shrunk.high >= np.maximum(plain.high, shrunk.value)).all()


def test_a_release_without_wavelets_is_refused_with_what_can_read_it() -> None:
    release = release_of(SCHEMA, np.ones((64, 2), dtype=np.int64), 1, 0)
    with pytest.raises(QueryError, match="'thresholded' cannot read this release; use one of best, least_squares"):
        release.count(age=3, estimator="thresholded")
