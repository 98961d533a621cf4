"""Census-shaped tables about nobody: correlated, skewed, the same every time, of any number of rows.

Ages fall off, occupations follow Zipf's law within groups that follow it too, and lean by gender and age; incomes are
lognormal about a median that depends on age, gender and the occupation's group, and top-coded. Children have the first
occupation and no income.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import veilcube as vc

GENDERS = ("Female", "Male")
ROWS_PER_BATCH = 1_000_000
AGE_BANDS = 3
CHILDHOOD = 0.14
MEDIAN_INCOME = 0.05
SPREAD_OF_INCOMES = 0.7
# What is drawn once for a whole census comes from streams that no batch of rows uses.
PAY_STREAM, OCCUPATION_STREAM = (0, 1), (0, 2)

Codes: TypeAlias = NDArray[np.int16]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Census:
    """The shape of a census and the seed of its rows; every batch of rows has a stream of its own."""

    name: str
    ages: int
    occupations: int
    groups: int
    incomes: int
    rows: int
    seed: int

    @cached_property
    def schema(self) -> vc.Schema:
        """Age, gender, occupation with its three levels (all, groups, occupations) and income."""
        tree = {
            f"group {group:02d}": [f"occupation {group:02d}.{job:02d}" for job in range(size)]
            for group, size in enumerate(self.group_sizes.tolist())
        }
        return vc.Schema(
            [
                vc.Ordinal("age", 0, self.ages - 1),
                vc.Nominal("gender", list(GENDERS)),
                vc.Nominal("occupation", hierarchy=tree),
                vc.Ordinal("income", 0, self.incomes - 1),
            ]
        )

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """Occupations in each group: the last groups are more than twice as large as the first."""
        share = np.linspace(0, 1, self.groups + 1)
        bounds = np.rint(self.occupations * (0.6 * share + 0.4 * share**2)).astype(np.int64)
        return bounds[1:] - bounds[:-1]

    def batches(self) -> Iterator[tuple[Codes, Codes, Codes, Codes]]:
        """Yield all rows as codes of the four attributes, a million at a time."""
        for number, start in enumerate(range(0, self.rows, ROWS_PER_BATCH)):
            random = np.random.default_rng([self.seed, number])
            yield self._draw(random, min(ROWS_PER_BATCH, self.rows - start))

    def count(self) -> vc.Cube:
        """Count the rows without writing them anywhere."""
        counts = np.zeros(self.schema.cells, dtype=np.int64)
        for columns in self.batches():
            np.add.at(counts, np.ravel_multi_index(columns, self.schema.shape), 1)
        return vc.Cube(self.schema, counts.reshape(self.schema.shape))

    def write_parquet(self, path: Path) -> None:
        """Write the rows, genders and occupations by name."""
        gender, occupation = pa.array(GENDERS), pa.array(self.schema.attributes[2].labels())
        text = pa.dictionary(pa.int16(), pa.string())
        layout = pa.schema([("age", pa.int16()), ("gender", text), ("occupation", text), ("income", pa.int16())])
        with pq.ParquetWriter(path, layout) as writer:
            for ages, genders, jobs, incomes in self.batches():
                columns = [
                    pa.array(ages),
                    pa.DictionaryArray.from_arrays(pa.array(genders), gender),
                    pa.DictionaryArray.from_arrays(pa.array(jobs), occupation),
                    pa.array(incomes),
                ]
                writer.write_table(pa.table(columns, schema=layout))

    def _draw(self, random: np.random.Generator, rows: int) -> tuple[Codes, Codes, Codes, Codes]:
        age = np.searchsorted(self._age_law, random.random(rows), side="right")
        gender = random.integers(0, len(GENDERS), rows)
        band = np.minimum(age * AGE_BANDS // self.ages, AGE_BANDS - 1)
        stratum = gender * AGE_BANDS + band
        # One search for all strata: each one's law lies in its own unit of the line.
        found = np.searchsorted(self._occupation_laws.ravel(), stratum + random.random(rows), side="right")
        job = found - stratum * self.occupations
        income = self._incomes(random, age, gender, job)
        is_child = age < CHILDHOOD * self.ages
        job[is_child], income[is_child] = 0, 0
        return age.astype(np.int16), gender.astype(np.int16), job.astype(np.int16), income.astype(np.int16)

    def _incomes(
        self, random: np.random.Generator, age: NDArray[np.int64], gender: NDArray[np.int64], job: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        career = np.sin(np.pi * np.minimum(age / self.ages * 1.2, 1.0))
        median = self._group_pay[self._group_of[job]] + 0.9 * career + 0.25 * (gender - 1)
        drawn = (
            MEDIAN_INCOME * self.incomes * np.exp(median - 0.5 + SPREAD_OF_INCOMES * random.standard_normal(age.size))
        )
        return np.minimum(drawn, self.incomes - 1).astype(np.int64)

    @cached_property
    def _group_of(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.groups), self.group_sizes)

    @cached_property
    def _group_pay(self) -> Floats:
        return np.random.default_rng([self.seed, *PAY_STREAM]).normal(0, 0.5, self.groups)

    @cached_property
    def _age_law(self) -> Floats:
        age = np.linspace(0, 1, self.ages)
        return _distribution(np.exp(-((age / 0.6) ** 2)))

    @cached_property
    def _occupation_laws(self) -> Floats:
        """The distribution function of the occupation for each gender and band of ages, plus the stratum's number."""
        random = np.random.default_rng([self.seed, *OCCUPATION_STREAM])
        within = np.concatenate([random.permutation(_zipf(size, 1.2)) for size in self.group_sizes.tolist()])
        popular = random.permutation(_zipf(self.groups, 1.0))[self._group_of] * within
        by_gender, by_age = random.normal(0, 0.8, self.groups), random.normal(0, 0.5, self.groups)
        laws = [
            _distribution(popular * np.exp(gender * by_gender + band * by_age)[self._group_of])
            for gender in (-0.5, 0.5)
            for band in np.linspace(-1, 1, AGE_BANDS)
        ]
        return np.array(laws) + np.arange(len(laws))[:, np.newaxis]


def _zipf(size: int, exponent: float) -> Floats:
    return _normalised(np.arange(1, size + 1, dtype=np.float64) ** -exponent)


def _normalised(weights: Floats) -> Floats:
    shares: Floats = weights / weights.sum()
    return shares


def _distribution(weights: Floats) -> Floats:
    """Return the distribution function, exactly 1 at its end, so that no draw falls behind it."""
    law = np.cumsum(_normalised(weights))
    law[-1] = 1.0
    return law


BRAZIL = Census("Brazil", ages=101, occupations=512, groups=22, incomes=1001, rows=10_000_000, seed=1)
UNITED_STATES = Census("US", ages=96, occupations=511, groups=23, incomes=1020, rows=8_000_000, seed=2)
SMALL = Census("small", ages=24, occupations=48, groups=6, incomes=96, rows=200_000, seed=3)
