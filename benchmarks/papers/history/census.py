"""A census-shaped table about nobody: nine correlated, skewed attributes with the domain sizes of the paper's table.

Every attribute has a law of its own (ages fall off, places and occupations follow Zipf's law, salaries are lognormal)
and a hidden normal score that says where in that law a person falls. The scores share two hidden traits, so attributes
are correlated; a salary also rises and falls again with age. The same seed gives the same rows on every machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import veilcube as vc

Codes: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

NAMES = ("age", "gender", "education", "birthplace", "race", "workclass", "marital", "occupation", "salary")
SIZES = (79, 2, 17, 51, 9, 7, 6, 50, 50)
ORDINAL = {"age": (16, 94), "education": (1, 17), "salary": (0, 49)}
# How much of each score the two hidden traits make up; the rest is the attribute's own.
TRAITS: Floats = np.array(
    [[0.65, 0.10], [0.10, 0.30], [0.15, 0.70], [0.10, 0.35], [0.05, 0.40], [0.20, 0.45], [0.70, 0.05], [0.15, 0.70],
     [0.35, 0.60]]
)  # fmt: skip
CAREER = 0.4


@dataclass(frozen=True)
class PeopleTable:
    """So many rows, drawn with a seed."""

    rows: int = 500_000
    seed: int = 7

    @cached_property
    def schema(self) -> vc.Schema:
        """The public description: numbers for age, education and salary, names for the others."""
        return vc.Schema(
            [
                vc.Ordinal(name, *ORDINAL[name])
                if name in ORDINAL
                else vc.Nominal(name, [f"{name} {number:02d}" for number in range(size)])
                for name, size in zip(NAMES, SIZES, strict=True)
            ]
        )

    @cached_property
    def codes(self) -> Codes:
        """The rows as cell numbers, (rows, attributes)."""
        random = np.random.default_rng([self.seed, 0])
        traits = random.standard_normal((self.rows, TRAITS.shape[1]))
        own = random.standard_normal((self.rows, len(NAMES))) * np.sqrt(1 - np.square(TRAITS).sum(axis=1))
        scores = traits @ TRAITS.T + own
        age, salary = NAMES.index("age"), NAMES.index("salary")
        scores[:, salary] -= CAREER * (np.square(scores[:, age]) - 1)
        scores[:, salary] /= np.sqrt(1 + 2 * CAREER**2)
        ranks = norm.cdf(scores)
        found = [np.searchsorted(np.cumsum(law)[:-1], ranks[:, axis]) for axis, law in enumerate(self.laws)]
        return np.column_stack([order[cells] for order, cells in zip(self._orders, found, strict=True)])

    @cached_property
    def laws(self) -> tuple[Floats, ...]:
        """The share of each cell of each attribute, in the order of the hidden scores."""
        years = np.linspace(0, 1, SIZES[0])
        shapes = {
            "age": np.exp(-((years / 0.62) ** 2.5)),
            "gender": np.array([0.52, 0.48]),
            "education": np.exp(-(((np.arange(SIZES[2]) - 9) / 3.2) ** 2)) + 0.02,
            "salary": np.exp(-((np.log(np.arange(SIZES[8]) + 1.0) - 2.3) ** 2) / 1.1),
        }
        falling = {"birthplace": 1.4, "race": 1.9, "workclass": 1.6, "marital": 1.1, "occupation": 0.8}
        for name, exponent in falling.items():
            shapes[name] = np.arange(1, SIZES[NAMES.index(name)] + 1, dtype=np.float64) ** -exponent
        return tuple(shapes[name] / shapes[name].sum() for name in NAMES)

    @cached_property
    def _orders(self) -> tuple[Codes, ...]:
        """Which cell stands at each place of the law: names have no order, so theirs are shuffled."""
        random = np.random.default_rng([self.seed, 1])
        return tuple(
            np.arange(size) if name in ORDINAL else random.permutation(size)
            for name, size in zip(NAMES, SIZES, strict=True)
        )

    def marginal(self, *axes: int) -> Codes:
        """Count the rows by some attributes."""
        return count_by(self.codes, self.schema.shape, axes)


def count_by(codes: Codes, shape: Sequence[int], axes: Sequence[int]) -> Codes:
    """Return the counts of rows, given as cell numbers, for every combination of cells of some attributes."""
    sizes = tuple(shape[axis] for axis in axes)
    flat = np.ravel_multi_index(tuple(codes[:, axis] for axis in axes), sizes)
    return np.bincount(flat, minlength=prod(sizes)).reshape(sizes)


def random_attribute_ranges(schema: vc.Schema, queries: int, seed: int, attributes: int = 2) -> vc.Workload:
    """Draw the paper's questions: an interval on each of some attributes, those and ends equally likely."""
    random = np.random.default_rng(seed)
    sizes = np.array(schema.shape)
    low = np.zeros((queries, len(schema)), dtype=np.int64)
    high = np.broadcast_to(sizes - 1, low.shape).copy()
    chosen = np.argsort(random.random(low.shape), axis=1)[:, :attributes]
    ends = np.sort(random.integers(0, sizes[chosen][:, :, np.newaxis], size=(queries, attributes, 2)), axis=2)
    np.put_along_axis(low, chosen, ends[:, :, 0], axis=1)
    np.put_along_axis(high, chosen, ends[:, :, 1], axis=1)
    return vc.Workload.ranges(schema, low, high)
