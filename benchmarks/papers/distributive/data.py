"""Made-up tables of the paper's shapes: census incomes and ages, rows with a hidden parity, a clipped Gaussian."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import veilcube as vc

Integers = NDArray[np.int64]

INCOMES, AGES = 100, 80
CENSUS_ROWS = 10**6
# Section 8.3: "variance 20" can only mean a standard deviation of 20, as the figures show; the root is the narrow case.
WIDE, NARROW = 20.0, 20.0**0.5
PARITY = (0, 0, 0, 0, 0, 1, 1)


@dataclass(frozen=True)
class Series:
    """One point of a figure."""

    figure: str
    series: str
    x: float
    y: float


def incomes(rows: int = CENSUS_ROWS) -> vc.Cube:
    """Return incomes in 100 bands: a long tail, and a bump of rounded values."""
    generator = np.random.default_rng(2010)
    values = np.clip(generator.lognormal(3.0, 0.7, rows), 1, INCOMES).astype(np.int64)
    rounded = np.where(generator.random(rows) < 0.2, np.maximum(values // 10 * 10, 1), values)
    counts = np.bincount(rounded - 1, minlength=INCOMES)
    return vc.Cube(vc.Schema([vc.Ordinal("income", 1, INCOMES)]), counts)


def ages_and_incomes(rows: int = CENSUS_ROWS, copies: int = 200) -> vc.Cube:
    """Return ages by incomes, each row ``copies`` times over as in section 8.1.2."""
    generator = np.random.default_rng(2011)
    ages = np.clip(generator.normal(38, 16, rows), 0, AGES - 1).astype(np.int64)
    pay = np.clip(generator.lognormal(2.6, 0.6, rows) * (0.5 + ages / 60), 1, INCOMES).astype(np.int64) - 1
    counts = np.bincount(ages * INCOMES + pay, minlength=AGES * INCOMES).reshape(AGES, INCOMES) * copies
    return vc.Cube(vc.Schema([vc.Ordinal("age", 0, AGES - 1), vc.Ordinal("income", 1, INCOMES)]), counts)


def clipped_gaussian(rows: int, stddev: float, seed: int) -> Integers:
    """Return counts over 1..100 of a Gaussian around 50, values outside moved to the ends."""
    values = np.random.default_rng(seed).normal(50, stddev, rows)
    return np.bincount(np.clip(np.rint(values), 1, 100).astype(np.int64) - 1, minlength=100)


def parity_rows(rows: int, seed: int = 1) -> vc.Cube:
    """Return uniform rows of seven bits with the label of ``PARITY``, as a cube of eight binary attributes."""
    bits = np.random.default_rng(seed).integers(0, 2, (rows, len(PARITY)))
    labels = bits @ np.array(PARITY) % 2
    cells = np.concatenate((bits, labels[:, np.newaxis]), axis=1) @ (1 << np.arange(7, -1, -1))
    schema = vc.Schema([vc.Nominal(f"bit{place}", ["0", "1"]) for place in range(1, 9)])
    return vc.Cube(schema, np.bincount(cells, minlength=256).reshape(schema.shape))
