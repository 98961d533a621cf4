"""Refined releases over many draws of noise: the stated variances, and how often the intervals hold the truth."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

import veilcube as vc
from support.releases import release_of
from support.seeded import SeededWords
from veilcube.analyst import Release
from veilcube.curator.sampling import discrete_laplace
from veilcube.record import NoisyMeasurement

DRAWS = 60_000
# The bar; the error of a variance measured over so many draws is about 0.8%.
TOLERANCE = 0.02
SCHEMA = vc.Schema([vc.Ordinal("age", 0, 6), vc.Nominal("sex", ["f", "m"])])
COUNTS = np.random.default_rng(1).integers(5, 60, SCHEMA.shape)
FACTS = [
    f"total = {COUNTS.sum()}",
    f"count(age IN (1, 4)) = {COUNTS[[1, 4]].sum()}",
    f"count(age <= 3) - count(sex = 'f') = {COUNTS[:4].sum() - COUNTS[:, 0].sum()}",
]
QUESTIONS = vc.Workload.random_ranges(SCHEMA, 25, seed=3)
STRATEGIES = {
    "identity": vc.Identity(),
    "tree": vc.Tree(branching=2, refine=False),
    "wavelet": vc.Wavelet(flat=["sex"]),
    "blocks": vc.Adaptive(partition="blocks", side=2),
}


def measured(release: Release, values: list[NDArray[np.int64]]) -> Release:
    """Return the same release with other measured values."""
    parts = zip(release.record.measurements, values, strict=True)
    measurements = tuple(NoisyMeasurement(part.operator, own, part.noise) for part, own in parts)
    return Release(replace(release.record, measurements=measurements))


def noise_of_answers(release: Release, seed: int) -> NDArray[np.float64]:
    """Return what noise does to each refined answer, (draws, questions): refined answers are linear in what it adds."""
    source, total = SeededWords(seed), np.zeros((DRAWS, len(QUESTIONS)))
    exact = [part.values for part in release.record.measurements]
    without = vc.refine(release, FACTS).answer(QUESTIONS).value
    for number, part in enumerate(release.record.measurements):
        size = prod(part.operator.measurement_shape)
        answers = np.empty((size, len(QUESTIONS)))
        for row in range(size):
            unit = np.zeros(size, dtype=np.int64)
            unit[row] = 1000
            values = [
                own + unit.reshape(own.shape) * (which == number) if which == number else own
                for which, own in enumerate(exact)
            ]
            answers[row] = (vc.refine(measured(release, values), FACTS).answer(QUESTIONS).value - without) / 1000
        total += discrete_laplace(part.noise.scale, (DRAWS, size), source=source) @ answers
    return total


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_stated_variances_and_intervals_are_those_of_many_draws(name: str) -> None:
    release = release_of(SCHEMA, COUNTS, epsilon=0.5, strategy=STRATEGIES[name])
    refined = vc.refine(release, FACTS).answer(QUESTIONS)
    noise = noise_of_answers(release, seed=len(name))
    # There is no noise in this release, so refined answers of true facts are the truth.
    np.testing.assert_allclose(refined.value, _truth(), atol=1e-8)
    is_open = refined.stddev > 0
    assert np.abs(noise[:, ~is_open]).max(initial=0.0) < 1e-6
    ratios = noise[:, is_open].var(axis=0) / refined.stddev[is_open] ** 2
    assert np.abs(ratios.mean() - 1) < TOLERANCE
    assert np.abs(ratios - 1).max() < 2.5 * TOLERANCE
    half_widths = (refined.high - refined.low)[is_open] / 2
    coverage = (np.abs(noise[:, is_open]) <= half_widths + 1e-9).mean(axis=0)
    assert coverage.min() >= 0.945
    assert coverage.max() <= 0.965


def _truth() -> NDArray[np.float64]:
    blocks = zip(QUESTIONS.low, QUESTIONS.high, strict=True)
    return np.array([COUNTS[low[0] : high[0] + 1, low[1] : high[1] + 1].sum() for low, high in blocks], dtype=float)


@pytest.mark.slow
def test_intervals_under_inequalities_hold_at_least_as_often_as_stated_and_errors_shrink() -> None:
    limits = [f"0 <= count(age = {age})" for age in range(7)] + ["count(age = 0) <= count(age <= 2)"]
    held, before, after = [], [], []
    sparse = np.where(COUNTS > 40, COUNTS, 0)
    truth = np.array(
        [
            sparse[low[0] : high[0] + 1, low[1] : high[1] + 1].sum()
            for low, high in zip(QUESTIONS.low, QUESTIONS.high, strict=True)
        ]
    )
    for seed in range(120):
        release = release_of(SCHEMA, sparse, epsilon=0.1, seed=seed)
        plain = release.answer(QUESTIONS, estimator="least_squares")
        refined = vc.refine(release, [f"total = {sparse.sum()}", *limits]).answer(QUESTIONS)
        held.append((refined.low <= truth + 1e-6) & (truth - 1e-6 <= refined.high))
        before.append((plain.value - truth) ** 2)
        after.append((refined.value - truth) ** 2)
    assert np.mean(held) > 0.935
    assert np.mean(after) < np.mean(before)
    # Nor are they idly wide.
    assert np.mean(held) < 0.995
