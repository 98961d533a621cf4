"""Guaranteed intervals of grouped tables hold as often as they say, and would not if they were half as wide."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from support.releases import gaussian_release_of, release_of
from veilcube.analyst import Release
from veilcube.analyst.estimate.guaranteed.grouped_tables import GroupedBounds
from veilcube.operators import BlockSums
from veilcube.schema import Nominal, Ordinal, Schema

Counts = NDArray[np.int64]
RELEASES, QUESTIONS = 150, 30
MAKERS: dict[str, Callable[..., Release]] = {"laplace": release_of, "gaussian": gaussian_release_of}


def full() -> tuple[Schema, Counts]:
    """So many rows that cells have nearly all of the budget: questions on one attribute or on all cut no group."""
    schema = Schema([Ordinal("a", 0, 4), Nominal("b", list("xyz")), Ordinal("c", 0, 3)])
    return schema, np.random.default_rng(1).poisson(300.0 * np.random.default_rng(2).exponential(size=(5, 3, 4)))


def grouped() -> tuple[Schema, Counts]:
    """So few rows that values are grouped, and cells are cut."""
    schema = Schema([Ordinal(name, 0, 79) for name in "abc"])
    random, counts = np.random.default_rng(3), np.zeros(schema.shape, dtype=np.int64)
    np.add.at(counts, tuple(random.binomial(79, share, 3000) for share in (0.2, 0.5, 0.9)), 1)
    counts[7, 70, :] += 5  # a spike that is nowhere else
    return schema, counts


def questions(schema: Schema, narrowed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    random = np.random.default_rng(narrowed)
    low = np.zeros((QUESTIONS, len(schema)), dtype=np.int64)
    high = np.tile(np.array(schema.shape) - 1, (QUESTIONS, 1))
    for row in range(QUESTIONS):
        for axis in random.choice(len(schema), narrowed, replace=False):
            length = int(random.integers(1, schema.shape[axis]))
            low[row, axis] = random.integers(0, schema.shape[axis] - length + 1)
            high[row, axis] = low[row, axis] + length - 1
    return low, high


def held(law: str, schema: Schema, counts: Counts, narrowed: int) -> NDArray[np.float64]:
    """Return for each release the share of 95% intervals that hold the truth, and of those half as wide: (2, all)."""
    low, high = questions(schema, narrowed)
    truth, found = BlockSums(counts.astype(np.float64))(low, high), []
    for seed in range(RELEASES):
        record = MAKERS[law](schema, counts, 1, 1000 * narrowed + seed, "grouped tables").record
        bounds = GroupedBounds.of(record).rectangles(low, high, 0.95)
        apart, reach = np.abs((bounds.low + bounds.high) / 2 - truth), (bounds.high - bounds.low) / 2
        found.append([np.mean(apart <= reach + 1e-9), np.mean(apart <= reach / 2)])
    return np.array(found).T


def upper_end(shares: NDArray[np.float64]) -> float:
    """Return what releases, which are independent, tell of the true share at most: three standard errors above."""
    return float(shares.mean() + 3 * shares.std(ddof=1) / np.sqrt(shares.size))


@pytest.mark.parametrize("narrowed", [1, 2, 3])
@pytest.mark.parametrize("law", MAKERS)
def test_sums_of_measured_cells_are_held_as_often_as_intervals_say_and_halves_are_not(law: str, narrowed: int) -> None:
    schema, counts = full()
    whole, halved = held(law, schema, counts, narrowed)
    assert upper_end(whole) >= 0.95
    assert upper_end(halved) < 0.95


@pytest.mark.slow
@pytest.mark.parametrize("narrowed", [1, 2, 3])
@pytest.mark.parametrize("law", MAKERS)
def test_questions_that_cut_groups_are_held_at_least_as_often_as_intervals_say(law: str, narrowed: int) -> None:
    schema, counts = grouped()
    whole, halved = held(law, schema, counts, narrowed)
    assert upper_end(whole) >= 0.95
    if narrowed == 1:  # single values are measured there too
        assert upper_end(halved) < 0.95
