"""Generated tables of visits that are unlike each other: who comes often, and for what."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import veilcube as vc

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 89), vc.Nominal("diagnosis", [f"D{number}" for number in range(12)])])
MOST_ROWS = 60


@dataclass(frozen=True)
class Visits:
    """A table with a row for each visit, and its counts without any cap."""

    table: pa.Table
    counts: np.ndarray
    persons: np.ndarray


def _visits(visits: np.ndarray, ages: np.ndarray, diagnosis: np.ndarray) -> Visits:
    who = np.repeat(np.arange(visits.size), visits)
    counts = np.zeros(SCHEMA.shape, dtype=np.int64)
    np.add.at(counts, (ages[who], diagnosis), 1)
    named = np.array([f"D{number}" for number in range(12)])[diagnosis]
    return Visits(pa.table({"patient": who, "age": ages[who], "diagnosis": named}), counts, visits)


def uniform(seed: int, patients: int = 4000) -> Visits:
    """Everybody comes about equally often, for anything at any age."""
    rng = np.random.default_rng(seed)
    visits = rng.integers(1, 9, patients)
    return _visits(visits, rng.integers(0, 90, patients), rng.integers(0, 12, visits.sum()))


def heavy_users(seed: int, patients: int = 4000) -> Visits:
    """Few patients come many times, all of them for one diagnosis that others rarely have."""
    rng = np.random.default_rng(seed)
    is_heavy = rng.random(patients) < 0.02
    visits = np.where(is_heavy, rng.integers(25, MOST_ROWS + 1, patients), rng.integers(1, 5, patients))
    heavy_rows = np.repeat(is_heavy, visits)
    diagnosis = rng.choice(12, visits.sum(), p=[0.005, *[0.995 / 11] * 11])
    diagnosis[heavy_rows & (rng.random(visits.sum()) < 0.95)] = 0
    return _visits(visits, rng.integers(0, 90, patients), diagnosis)


def growing_with_age(seed: int, patients: int = 4000) -> Visits:
    """The older, the more visits, and the more often for the last diagnoses."""
    rng = np.random.default_rng(seed)
    ages = rng.integers(0, 90, patients)
    visits = np.minimum(1 + rng.poisson(0.004 * ages**1.8), MOST_ROWS)
    towards = np.repeat(ages, visits) / 90
    diagnosis = np.minimum((12 * rng.beta(1 + 4 * towards, 3)).astype(np.int64), 11)
    return _visits(visits, ages, diagnosis)


TABLES = {"uniform": uniform, "heavy users": heavy_users, "growing with age": growing_with_age}
