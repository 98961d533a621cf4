"""An Adult-like table of people who never lived, as a 4-D cube: age 64 x hours/3 32 x education 16 x marital 8.

The census extract that the cube is named after is not handed out with the arrays, so this table stands in for it unless
a file of the real cube is given. Every probability below was made up by hand to have the features that make such a cube
hard: 95% of the cells are empty, a few hold dozens (a 40-hour week at the commonest schooling), education
has gaps between its common levels, marital status and hours depend on age, and neighbouring categories are not alike.
No figure measured on it is a figure on Adult.
"""

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.dpbench.arrays import Counts

SHAPE = (64, 32, 16, 8)
NAMES = ("age", "hours", "education", "marital")
ROWS = 32_561
SEED = 4

_FIRST_AGE, _LAST_AGE = 17, 80
# Hours that people name, with weights; the rest is spread over all hours.
_USUAL_HOURS = {
    40: 47,
    50: 9,
    45: 6,
    60: 5,
    35: 4,
    20: 4,
    30: 4,
    55: 2,
    25: 2,
    48: 2,
    38: 1,
    15: 1,
    70: 1,
    10: 1,
    65: 1,
}
_STUDENT_HOURS = {20: 24, 40: 18, 15: 11, 25: 11, 30: 11, 10: 7, 35: 6, 16: 3, 12: 3, 8: 2}
_SPREAD_OF_HOURS = 10
_EDUCATION = (0.2, 0.5, 1, 2, 1.6, 2.8, 3.6, 1.3, 32, 22, 4.2, 3.3, 16.5, 5.3, 1.8, 1.3)
_SCHOOL_LEAVER = (0.1, 0.2, 0.5, 1.5, 3, 12, 20, 4, 26, 30, 1, 1, 1.2, 0, 0, 0)
# Marital status before 25, to 34, to 54 and after: the eighth cell is no status at all and stays empty.
_MARITAL = (
    (10, 0.2, 84, 2.5, 2, 0.1, 1.2, 0),
    (44, 0.3, 40, 10, 3.5, 0.4, 1.8, 0),
    (57, 0.1, 13, 22, 4.6, 1.9, 1.4, 0),
    (61, 0.1, 5, 16, 2, 15, 0.9, 0),
)
_MARITAL_FROM = (25, 35, 55)

Floats = NDArray[np.float64]


def adult_like_counts() -> Counts:
    """Return the cube of the synthetic table; the same every time."""
    generator = np.random.default_rng(SEED)
    age = _FIRST_AGE + _draw(np.tile(_age_weights(), (ROWS, 1)), generator)
    young = age < 22
    education = _draw(np.where(young[:, None], np.array(_SCHOOL_LEAVER), np.array(_EDUCATION)), generator)
    stage = np.searchsorted(_MARITAL_FROM, age, side="right")
    marital = _draw(np.array(_MARITAL)[stage], generator)
    # Those past working age work as little as those still at school; graduates put in the long weeks.
    is_part_time = young | (age >= 66)
    weights = np.where(is_part_time[:, None], _hour_weights(_STUDENT_HOURS), _hour_weights(_USUAL_HOURS))
    weights = weights * np.where((education >= 12)[:, None] & (np.arange(100) > 44), 1.8, 1.0)
    hours = _draw(weights, generator)
    counts = np.zeros(SHAPE, dtype=np.int64)
    np.add.at(counts, (age - _FIRST_AGE, np.minimum(hours // 3, SHAPE[1] - 1), education, marital), 1)
    return counts


def _age_weights() -> Floats:
    """Rise to the late thirties, fall, and pile up at the last age, which stands for all above it."""
    age = np.arange(_FIRST_AGE, _LAST_AGE + 1)
    weights = np.where(age < 37, 0.35 + 0.65 * (age - 16) / 21, np.exp(-(((age - 37) / 21.0) ** 2)))
    weights[-1] *= 4
    return weights


def _hour_weights(named: dict[int, int]) -> Floats:
    weights = np.full(100, _SPREAD_OF_HOURS / 99)
    weights[0] = 0
    for hour, weight in named.items():
        weights[hour] += weight
    return weights


def _draw(weights: Floats, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw one category for each row of weights."""
    steps = np.cumsum(weights, axis=1)
    drawn: NDArray[np.int64] = (steps <= generator.random(len(weights))[:, None] * steps[:, -1:]).sum(axis=1)
    return drawn
