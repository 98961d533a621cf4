"""Tables about nobody, made here and the same every time, each hard in its own way; with questions and true counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.many.coded import Axes, CodedTable, Conjunctions, Questions, Whole

SEED = 11
ROWS = 50_000
ROWS_OF_RICH = 1_400_000
MOST_ATTRIBUTES_ASKED = 4
DISTINCT_ROWS_OF_SPARSE = 40
LATENT_CLASSES = 6
ZIPF = 1.3

Random: TypeAlias = np.random.Generator
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """How a table is made: its attributes (ordered or not, by a letter o or n for each) and its rows."""

    sizes: tuple[int, ...]
    letters: str
    rows: int
    make: Callable[[tuple[int, ...], int, Random], Whole]


def make_table(name: str, rows: int | None = None) -> CodedTable:
    """Make the table of a recipe, with other than its own number of rows if told."""
    recipe = RECIPES[name]
    random = np.random.default_rng([SEED, list(RECIPES).index(name)])
    codes = np.asfortranarray(recipe.make(recipe.sizes, rows or recipe.rows, random), dtype=np.int64)
    columns = tuple(f"a{axis}" for axis in range(len(recipe.sizes)))
    return CodedTable(name, columns, recipe.sizes, tuple(letter == "o" for letter in recipe.letters), codes)


def make_questions(table: CodedTable, number: int) -> Questions:
    """Return all tables of 2 and 3 attributes, and so many random conjunctions on 1 to 4."""
    random = np.random.default_rng([SEED, len(table.columns), number])
    axes = range(len(table.columns))
    most = min(MOST_ATTRIBUTES_ASKED, len(table.columns))
    return Questions(
        {f"{width}way": list(combinations(axes, width)) for width in (2, 3)},
        {f"range{width}": random_conjunctions(table, width, number, random) for width in range(1, most + 1)},
    )


def random_conjunctions(table: CodedTable, width: int, number: int, random: Random) -> Conjunctions:
    """Draw ranges of any length on ordered attributes, single values of others, and count the rows that meet them."""
    sizes = np.array(table.sizes)
    low = np.zeros((number, len(sizes)), dtype=np.int64)
    high = np.tile(sizes - 1, (number, 1))
    truth = np.empty(number, dtype=np.int64)
    counted: dict[Axes, Whole] = {}
    for row in range(number):
        axes = tuple(sorted(random.choice(len(sizes), width, replace=False).tolist()))
        for axis in axes:
            length = int(random.integers(sizes[axis])) if table.is_ordered[axis] else 0
            low[row, axis] = random.integers(sizes[axis] - length)
            high[row, axis] = low[row, axis] + length
        if axes not in counted:
            counted[axes] = table.count_by(axes)
        truth[row] = counted[axes][tuple(slice(low[row, axis], high[row, axis] + 1) for axis in axes)].sum()
    return Conjunctions(low, high, truth)


def _rich(sizes: tuple[int, ...], rows: int, random: Random) -> Whole:
    """Short attributes that all follow one hidden number, some closely and some loosely."""
    hidden = random.normal(size=rows)
    columns = []
    for size, pull in zip(sizes, np.linspace(0.9, 0.4, len(sizes)), strict=True):
        place = pull * hidden + np.sqrt(1 - pull**2) * random.normal(size=rows)
        columns.append(np.clip((0.5 + 0.22 * place) * size, 0, size - 1).astype(np.int64))
    return np.stack(columns, axis=1)


def _sparse(sizes: tuple[int, ...], rows: int, random: Random) -> Whole:
    """Few different rows, the first of them far more often than the last."""
    different = np.stack([random.integers(size, size=DISTINCT_ROWS_OF_SPARSE) for size in sizes], axis=1)
    weights = 1 / np.arange(1, DISTINCT_ROWS_OF_SPARSE + 1)
    found: Whole = different[random.choice(DISTINCT_ROWS_OF_SPARSE, rows, p=weights / weights.sum())]
    return found


def _wide(sizes: tuple[int, ...], rows: int, random: Random) -> Whole:
    """Hidden classes, each with its own distribution of every attribute, which are independent inside a class."""
    classes = random.choice(LATENT_CLASSES, rows, p=random.dirichlet(np.full(LATENT_CLASSES, 2.0)))
    return np.stack([_draw(random.dirichlet(np.full(size, 0.4), LATENT_CLASSES)[classes], random) for size in sizes], 1)


def _skewed(sizes: tuple[int, ...], rows: int, random: Random) -> Whole:
    """Zipf's law on every attribute; half of the values have the rank of the first attribute's."""
    shared = random.random(rows)
    columns = []
    for size in sizes:
        weights = np.arange(1, size + 1) ** -ZIPF
        steps = np.cumsum(weights / weights.sum())
        place = np.where(random.random(rows) < 0.5, shared, random.random(rows))
        ranks = np.minimum(np.searchsorted(steps, place, side="right"), size - 1)
        columns.append(random.permutation(size)[ranks])
    return np.stack(columns, axis=1)


def _independent(sizes: tuple[int, ...], rows: int, random: Random) -> Whole:
    return np.stack([random.choice(size, rows, p=random.dirichlet(np.full(size, 2.0))) for size in sizes], axis=1)


def _deterministic(sizes: tuple[int, ...], rows: int, random: Random) -> Whole:
    """Seven attributes, of which the second, fourth and sixth are functions of others."""
    first, third, fifth, seventh = (random.choice(sizes[axis], rows, p=_slope(sizes[axis])) for axis in (0, 2, 4, 6))
    second = first * sizes[1] // sizes[0]
    fourth = (first + third) % sizes[3]
    sixth = (third * sizes[5] // sizes[2] + fifth) % sizes[5]
    return np.stack([first, second, third, fourth, fifth, sixth, seventh], axis=1)


def _slope(size: int) -> Floats:
    weights: Floats = np.linspace(2, 1, size)
    shares: Floats = weights / weights.sum()
    return shares


def _draw(weights: Floats, random: Random) -> Whole:
    """Draw one value for each row of weights."""
    steps = np.cumsum(weights, axis=1)
    drawn: Whole = (steps <= random.random(len(weights))[:, None] * steps[:, -1:]).sum(axis=1)
    return drawn


RECIPES: dict[str, Recipe] = {
    "rich": Recipe((8, 6, 5, 4, 3, 2), "oonnnn", ROWS_OF_RICH, _rich),
    "sparse": Recipe((24, 20, 12, 8, 2), "ooonn", ROWS, _sparse),
    "wide": Recipe((50, 16, 12, 9, 4, 24, 6, 10, 5, 4), "ononnonnnn", ROWS, _wide),
    "skewed": Recipe((40, 24, 12, 8), "onon", ROWS, _skewed),
    "independent": Recipe((40, 20, 8), "oon", ROWS, _independent),
    "deterministic": Recipe((30, 10, 12, 2, 4, 6, 5), "ooonnnn", ROWS, _deterministic),
}


def chosen_recipes(names: Sequence[str]) -> list[str]:
    """Return the recipes that were asked for, or all."""
    return [name for name in RECIPES if not names or name in names]
