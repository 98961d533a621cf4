"""Intervals of shares, ratios, differences, linear queries, spread and groups cover the truth as often as they say."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from support.releases import gaussian_release_of, release_of
from veilcube.analyst import Release
from veilcube.query import LinearQueries
from veilcube.schema import Nominal, Ordinal, Schema
from veilcube.system import Integers

TRIALS = 40
# Each kind of question is asked several times a trial; most of its noise is its own.
LEAST = 0.93
SCHEMA = Schema(
    [
        Ordinal("age", 20, 49),
        Ordinal("pay", 0, 7),
        Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge", "Clerk"], "Sea": ["Pilot"]}),
    ]
)
AGES, PAYS = np.arange(20.0, 50.0), np.arange(8.0)


def table(rows: int) -> Integers:
    """Return counts in which pay rises with age, few are judges and nobody is a pilot."""
    at = np.exp(-np.square(AGES[:, None] / 7 - PAYS[None] - 1) / 3) * np.exp(-np.square(AGES[:, None] - 33) / 200)
    cells = at[:, :, None] * np.array([1.0, 0.6, 0.03, 0.3, 0.0])
    drawn = np.random.default_rng(1).multinomial(rows, (cells / cells.sum()).ravel())
    return drawn.reshape(cells.shape)


def released(strategy: str, counts: Integers, seed: int) -> Release:
    if strategy == "gaussian":
        return gaussian_release_of(SCHEMA, counts, "1/20", seed, "tree")
    return release_of(SCHEMA, counts, "1/2", seed, strategy=strategy)


def moments(counts: Integers, numbers: np.ndarray) -> tuple[float, float]:
    """Return the mean and the variance of numbers under counts."""
    mean = float((numbers * counts).sum() / counts.sum())
    return mean, float((np.square(numbers - mean) * counts).sum() / counts.sum())


def correlation(counts: Integers) -> float:
    """Return the correlation of age and pay under counts of both."""
    (age, of_age), (pay, of_pay) = (moments(counts.sum(axis=1), AGES), moments(counts.sum(axis=0), PAYS))
    both = ((AGES[:, None] - age) * (PAYS - pay) * counts).sum() / counts.sum()
    return float(both / np.sqrt(of_age * of_pay))


def means_of_groups(counts: Integers) -> list[float]:
    """Return the mean age of each group of jobs; of the last, nobody's."""
    by_age = counts.sum(axis=1)
    parts = (by_age[:, :2].sum(axis=1), by_age[:, 2:4].sum(axis=1))
    return [*(moments(part, AGES)[0] for part in parts), float("nan")]


def asked(release: Release, counts: Integers) -> Iterator[tuple[str, float, float, float]]:
    """Yield a kind of question, its interval and the truth."""
    by_age, by_job = counts.sum(axis=(1, 2)), counts.sum(axis=(0, 1))
    total = counts.sum()
    how = {"estimator": "least_squares"}
    old, nurses = counts[20:].sum(), counts[20:, :, 0].sum()
    found = release.share("age >= 40", **how)
    yield "share", found.low, found.high, old / total
    found = release.share(job="Nurse", where="age >= 40", **how)
    yield "share", found.low, found.high, nurses / old
    found = release.ratio("job = 'Nurse'", "age >= 40 OR job = 'Aide'", **how)
    either = counts[20:].sum() + counts[:20, :, 1].sum()
    yield "ratio", found.low, found.high, by_job[0] / either
    found = release.ratio("job = 'Nurse'", "job = 'Judge'", **how)
    yield "ratio", found.low, found.high, by_job[0] / by_job[2]
    found = release.difference("age >= 30", "age < 40", **how)
    yield "difference", found.low, found.high, counts[10:].sum() - counts[:20].sum()
    found = release.difference("job = 'Pilot'", "job = 'Judge' AND age < 30", **how)
    yield "difference", found.low, found.high, -counts[:10, :, 2].sum()
    found = release.contrast([(1, "age < 30"), (-0.5, "pay < 3"), (2, "job = 'Law'")], **how)
    exact = counts[:10].sum() - 0.5 * counts[:, :3].sum() + 2 * counts[:, :, 2:4].sum()
    yield "contrast", found.low, found.high, exact
    queries = LinearQueries.moments(SCHEMA, [{"age": 1}, {"age": 1, "pay": 1}], where="job = 'Care' OR age < 30")
    answers = release.answer(queries, **how)
    for one, exact in zip(answers, queries.apply(counts), strict=True):
        yield "moment", one.low, one.high, exact
    found = release.variance("age", **how)
    yield "variance", found.low, found.high, moments(by_age, AGES)[1]
    found = release.variance("age", where="job = 'Judge'", **how)
    yield "variance", found.low, found.high, moments(counts[:, :, 2].sum(axis=1), AGES)[1]
    for where, rows in ((None, counts.sum(axis=2)), ("job = 'Aide'", counts[:, :, 1])):
        found = release.correlation("pay", "age", where=where, **how)
        yield "correlation", found.low, found.high, correlation(rows)
    for one, exact in zip(release.group("job:Level 1", "mean", "age", **how), means_of_groups(counts), strict=True):
        if np.isfinite(exact):
            yield "mean", one.low, one.high, exact


def covered(strategy: str, rows: int) -> dict[str, float]:
    counts = table(rows)
    held: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for trial in range(TRIALS):
        for kind, low, high, exact in asked(released(strategy, counts, trial), counts):
            times[kind] += 1
            held[kind] += low - 1e-9 <= exact <= high + 1e-9
    return {kind: held[kind] / times[kind] for kind in times}


@pytest.mark.parametrize("strategy", ["identity", "wavelet", "gaussian"])
@pytest.mark.parametrize("rows", [1_500, pytest.param(60_000, marks=pytest.mark.slow)])
def test_intervals_about_several_counts_cover_as_often_as_they_say(strategy: str, rows: int) -> None:
    found = covered(strategy, rows)
    # Three standard deviations of 40 trials at 95% are 10%; many are asked twice.
    assert all(share >= 0.85 for share in found.values()), found
    assert np.mean(list(found.values())) >= LEAST, found
