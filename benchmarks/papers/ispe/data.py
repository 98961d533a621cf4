"""The tables: smooth, random, and two in the likeness of census columns; all made here, about nobody, always the same.

Other tables may be given as .npy files of counts, which are never part of this repository.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.peers.dpbench.arrays import InputError, read_counts

SMOOTH, RANDOM = "smooth", "random"
AGE_HOURS, AGE_EDUCATION = "age x hours", "age x education"
ROWS = 48_842
AGES, HOURS, EDUCATIONS = 74, 99, 16
MOST_CELLS = 10**6
# Shares of the degrees, in the order of years of schooling: two of them hold half of the people.
_DEGREES = np.array([2, 5, 10, 19, 15, 28, 37, 13, 323, 223, 42, 33, 164, 54, 17, 12]) / 997

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """A table of counts by two ordinal attributes."""

    name: str
    names: tuple[str, str]
    counts: Counts = field(repr=False)

    @cached_property
    def schema(self) -> vc.Schema:
        """The attributes, numbered from 0."""
        sizes = zip(self.names, self.counts.shape, strict=True)
        return vc.Schema([vc.Ordinal(name, 0, size - 1) for name, size in sizes])

    @cached_property
    def cube(self) -> vc.Cube:
        """The counts, ready to be released."""
        return vc.Cube(self.schema, self.counts)


def made_tables() -> tuple[Table, ...]:
    """Return the four tables."""
    return (
        Table(SMOOTH, ("x", "y"), smooth_counts()),
        Table(RANDOM, ("x", "y"), np.random.default_rng(1).integers(0, 40, (64, 96), endpoint=True)),
        Table(AGE_HOURS, ("age", "hours"), age_hours_counts()),
        Table(AGE_EDUCATION, ("age", "education"), age_education_counts()),
    )


def smooth_counts() -> Counts:
    """Return two broad bumps on a low ground."""
    x, y = np.indices((64, 96)) / np.array([64, 96]).reshape(2, 1, 1)
    first = 60 * np.exp(-(((x - 0.3) / 0.18) ** 2) - ((y - 0.35) / 0.2) ** 2)
    second = 35 * np.exp(-(((x - 0.7) / 0.2) ** 2) - ((y - 0.7) / 0.15) ** 2)
    counts: Counts = np.rint(first + second + 2).astype(np.int64)
    return counts


def age_hours_counts() -> Counts:
    """Return people by age and weekly hours: most say 40, and two of three others round to fives."""
    random = np.random.default_rng(2)
    ages = _ages(random)
    is_part_time = random.random(ROWS) < np.select([ages < 8, ages > 48], [0.55, 0.5], 0.12)
    full = random.normal(44 + 3 * np.exp(-(((ages - 28) / 15) ** 2)), 9)
    hours = np.where(is_part_time, random.gamma(4, 5.5, ROWS), full)
    is_rounded = random.random(ROWS) < 0.66
    hours = np.where(is_rounded, 5 * np.rint(hours / 5), np.rint(hours))
    says_forty = random.random(ROWS) < np.where(is_part_time, 0.05, 0.55)
    hours = np.clip(np.where(says_forty, 40, hours), 1, HOURS).astype(np.int64)
    return _counted(ages, hours - 1, (AGES, HOURS))


def age_education_counts() -> Counts:
    """Return people by age and degree: few degrees hold most people, and the young do not have the higher ones yet."""
    random = np.random.default_rng(3)
    ages = _ages(random)
    degrees = random.choice(EDUCATIONS, ROWS, p=_DEGREES / _DEGREES.sum())
    earliest = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3, 3, 5, 7, 8, 10])
    is_early = ages < earliest[degrees]
    degrees = np.where(is_early, random.choice([6, 8, 9], ROWS, p=[0.25, 0.4, 0.35]), degrees)
    return _counted(ages, degrees, (AGES, EDUCATIONS))


def _ages(random: np.random.Generator) -> NDArray[np.int64]:
    """Return years above 17, up to 73: thinning out from forty on."""
    drawn = 57 * random.beta(1.5, 2.6, 2 * ROWS) * random.choice([1.0, 1.35], 2 * ROWS, p=[0.9, 0.1])
    ages: NDArray[np.int64] = drawn.astype(np.int64)
    return np.minimum(ages[:ROWS], AGES - 1)


def _counted(first: NDArray[np.int64], second: NDArray[np.int64], shape: tuple[int, int]) -> Counts:
    cells = np.ravel_multi_index((first, second), shape)
    counts: Counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)
    return counts


def read_tables(paths: Sequence[Path]) -> tuple[Table, ...]:
    """Read tables of any two sizes from .npy files, each under the name of its file."""
    return tuple(_read_table(path) for path in paths)


def _read_table(path: Path) -> Table:
    try:
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
    except (OSError, ValueError, EOFError, AttributeError):
        shape = ()
    counts = read_counts(path, shape)
    if counts.ndim != 2 or min(shape) < 2 or counts.size > MOST_CELLS:
        raise InputError(
            f"{path} has shape {shape}; give a table of two axes, each of 2 cells or more, with {MOST_CELLS:,} at most"
        )
    return Table(path.stem, ("x", "y"), counts)
