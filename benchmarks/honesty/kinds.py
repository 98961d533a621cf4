"""Kinds of data that intervals must hold on, chosen to be unlike each other and unlike what anything was tuned on.

All tables are made up. A kind is a function of a generator; the same seed gives the same table.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Counts: TypeAlias = NDArray[np.int64]
Kind: TypeAlias = Callable[[np.random.Generator], Counts]

LINE, PLANE, SOLID, HYPER = 1024, (64, 64), (16, 16, 16), (8, 8, 8, 8)


def _grid(shape: tuple[int, ...]) -> list[NDArray[np.float64]]:
    """Return each axis from 0 to nearly 1, as arrays that broadcast."""
    return list(np.meshgrid(*(np.arange(size) / size for size in shape), indexing="ij", sparse=True))


def _rounded(rates: NDArray[np.float64]) -> Counts:
    return np.rint(rates).astype(np.int64)


def constant(random: np.random.Generator) -> Counts:
    return np.full(LINE, 50, dtype=np.int64)


def ramp_line(random: np.random.Generator) -> Counts:
    return _rounded(np.linspace(0, 100, LINE))


def steps_line(random: np.random.Generator) -> Counts:
    return np.repeat(random.integers(0, 200, 16), LINE // 16)


def seasonal_line(random: np.random.Generator) -> Counts:
    place = np.arange(LINE)
    return random.poisson(40 * (1 + 0.8 * np.sin(place / 7 * 2 * np.pi)) * (1 + place / LINE))


def heaped_ages(random: np.random.Generator) -> Counts:
    ages = np.arange(128)
    rates = 400 * np.exp(-ages / 60)
    return random.poisson(np.where(ages % 5 == 0, 2.5 * rates, 0.7 * rates))


def rounded_incomes(random: np.random.Generator) -> Counts:
    incomes = np.clip(random.lognormal(10.2, 0.8, 30_000), 0, 102_399)
    rounded = np.where(random.random(incomes.size) < 0.5, np.rint(incomes / 5_000) * 5_000, incomes)
    return np.bincount(np.clip(rounded // 100, 0, LINE - 1).astype(int), minlength=LINE)


def spikes_line(random: np.random.Generator) -> Counts:
    counts = np.zeros(LINE, dtype=np.int64)
    counts[random.choice(LINE, 10, replace=False)] = random.integers(50, 2_000, 10)
    return counts


def holes_line(random: np.random.Generator) -> Counts:
    counts = np.full(LINE, 60, dtype=np.int64)
    counts[random.choice(LINE, 20, replace=False)] = 0
    return counts


def alternating_line(random: np.random.Generator) -> Counts:
    return np.where(np.arange(LINE) % 2, 40, 0).astype(np.int64)


def zipf_permuted_line(random: np.random.Generator) -> Counts:
    return random.permutation(_rounded(20_000 / np.arange(1, LINE + 1)))


def empty_line(random: np.random.Generator) -> Counts:
    return np.zeros(LINE, dtype=np.int64)


def one_row_line(random: np.random.Generator) -> Counts:
    counts = empty_line(random)
    counts[random.integers(LINE)] = 1
    return counts


def ramp_wide(random: np.random.Generator) -> Counts:
    first, second = _grid((32, 128))
    return _rounded(50 * (first + second))


def ramp_plane(random: np.random.Generator) -> Counts:
    first, second = _grid(PLANE)
    return _rounded(50 * (first + second))


def ramp_across(random: np.random.Generator) -> Counts:
    first, second = _grid(PLANE)
    return _rounded(60 * (1 + first - second))


def quadratic_plane(random: np.random.Generator) -> Counts:
    first, second = _grid(PLANE)
    return _rounded(200 * ((first - 0.5) ** 2 + (second - 0.3) ** 2))


def product_plane(random: np.random.Generator) -> Counts:
    first, second = _grid(PLANE)
    return _rounded(80 * np.exp(-3 * first) * (1 + 4 * second * (1 - second)))


def bump_plane(random: np.random.Generator) -> Counts:
    first, second = _grid(PLANE)
    return _rounded(300 * np.exp(-((first - 0.5) ** 2 + (second - 0.5) ** 2) / 0.02))


def age_by_income(random: np.random.Generator) -> Counts:
    age, income = _grid((100, 100))
    rates = np.exp(-(((age - 0.4) / 0.25) ** 2)) * np.exp(-(((income - 0.2 - 0.4 * age) / 0.15) ** 2))
    return np.asarray(random.poisson(1e6 * rates / rates.sum()))


def strips_plane(random: np.random.Generator) -> Counts:
    shares = np.zeros(64)
    shares[:7] = [1, 0.06, 0.005, 0.001, 0.0004, 0.0002, 0.0001]
    return random.poisson(np.outer(random.lognormal(8.7, 0.8, 64), shares))


def alternating_plane(random: np.random.Generator) -> Counts:
    first, second = np.indices(PLANE)
    return np.where((first + second) % 2, 20, 0).astype(np.int64)


def comb_plane(random: np.random.Generator) -> Counts:
    first, _ = np.indices(PLANE)
    return np.where(first % 4 == 0, 60, 0).astype(np.int64)


def sparse_plane(random: np.random.Generator) -> Counts:
    counts = np.zeros(PLANE, dtype=np.int64)
    counts.flat[random.choice(counts.size, 41, replace=False)] = random.integers(20, 400, 41)
    return counts


def zipf_permuted_plane(random: np.random.Generator) -> Counts:
    return random.permutation(_rounded(30_000 / np.arange(1, 4097))).reshape(PLANE)


def map_with_borders(random: np.random.Generator) -> Counts:
    first, second = np.indices(PLANE)
    inside = (first - 32) ** 2 + (second - 28) ** 2 < 24**2
    city = 400 * np.exp(-((first - 20) ** 2 + (second - 35) ** 2) / 8)
    return random.poisson(np.where(inside, 8 + city, 0))


def plateau_with_holes(random: np.random.Generator) -> Counts:
    counts = np.full(PLANE, 40, dtype=np.int64)
    counts.flat[random.choice(counts.size, 60, replace=False)] = 0
    return counts


def ramp_solid(random: np.random.Generator) -> Counts:
    return _rounded(sum(_grid(SOLID), np.zeros(SOLID)) * 20)


def sparse_solid(random: np.random.Generator) -> Counts:
    counts = np.zeros(SOLID, dtype=np.int64)
    counts.flat[random.choice(counts.size, 41, replace=False)] = random.integers(20, 400, 41)
    return counts


def ramp_hyper(random: np.random.Generator) -> Counts:
    return _rounded(sum(_grid(HYPER), np.zeros(HYPER)) * 15)


def heaped_hyper(random: np.random.Generator) -> Counts:
    heaps = [np.where(np.arange(size) % 4 == 0, 3.0, 0.4) for size in HYPER]
    return np.asarray(random.poisson(np.einsum("i,j,k,l->ijkl", *heaps)))


def sparse_hyper(random: np.random.Generator) -> Counts:
    counts = np.zeros(HYPER, dtype=np.int64)
    counts.flat[random.choice(counts.size, 41, replace=False)] = random.integers(20, 400, 41)
    return counts


KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        *(constant, ramp_line, steps_line, seasonal_line, heaped_ages, rounded_incomes, spikes_line, holes_line),
        *(alternating_line, zipf_permuted_line, empty_line, one_row_line),
        *(ramp_wide, ramp_plane, ramp_across, quadratic_plane, product_plane, bump_plane, age_by_income, strips_plane),
        *(alternating_plane, comb_plane, sparse_plane, zipf_permuted_plane, map_with_borders, plateau_with_holes),
        *(ramp_solid, sparse_solid, ramp_hyper, heaped_hyper, sparse_hyper),
    )
}


def table_of(name: str, seed: int = 1) -> Counts:
    """Return the table of a kind."""
    return KINDS[name](np.random.default_rng([seed, *name.encode()])).astype(np.int64)
