"""From stored noisy integers to answers with intervals, by the law of the noise alone.

A moment's noise is one discrete Laplace or Gaussian variable, whose quantiles are exact. A mean is the ratio of two
noisy sums, of v - low (a) and of high - v (b), with independent noises X and Y of one law. For the true mean
low + p (high - low), the exact sums satisfy (1 - p) a = p b, so p is kept if |(1 - p) a - p b| is at most the
half-width h(p) of (1 - p) X - p Y (Fieller 1954). The kept values cover the truth with the wanted probability whatever
the data are.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.ledger import StoredAnswer
from veilcube.laws import Noise, half_widths, weighted_half_width
from veilcube.query import Answer, Answers
from veilcube.record import Moment
from veilcube.system import Floats

# Shares p at which half-widths are computed; between two of them the larger one is taken.
_SHARES = 65
_GROUPS_AT_ONCE = 1 << 14


def answer_moment(
    moment: Moment, stored: StoredAnswer, noise: Noise, confidence: float, order: Sequence[int] | None = None
) -> Answer | Answers:
    """Return what was stored for a question as an answer, or as labelled answers with their axes in ``order``."""
    sizes = tuple(cells.size for cells in moment.groups)
    integers = np.array(stored.values, dtype=object).reshape(len(moment.measures), *sizes)
    value, low, high, stddev = (
        _means(moment, integers, noise, confidence)
        if moment.is_mean
        else _moments(integers[0, ...], moment.unit, noise, confidence)
    )
    words = stored.statement.words
    if order is None:
        return Answer(float(value), float(low), float(high), confidence, float(stddev), words)
    places = [moment.by.index(axis) for axis in order]
    arrays = [np.ascontiguousarray(array.transpose(places)) for array in (value, low, high, stddev)]
    return Answers(arrays[0], arrays[1], arrays[2], arrays[3], confidence, words, _labels(moment, order))


def _labels(moment: Moment, order: Sequence[int]) -> Mapping[str, tuple[str, ...]]:
    cells = dict(zip(moment.by, moment.groups, strict=True))
    attributes = moment.schema.attributes
    return {attributes[axis].name: tuple(np.array(attributes[axis].labels())[cells[axis]].tolist()) for axis in order}


def _moments(
    integers: NDArray[np.object_], unit: Fraction, noise: Noise, confidence: float
) -> tuple[Floats, Floats, Floats, Floats]:
    value = _in_units(integers, unit)
    width = float(half_widths(noise, np.array([1]), confidence)[0]) * float(unit)
    return value, value - width, value + width, np.full(value.shape, noise.stddev * float(unit))


def _in_units(integers: NDArray[np.object_], unit: Fraction) -> Floats:
    scaled = [float(integer * unit) for integer in integers.ravel().tolist()]
    return np.array(scaled, dtype=np.float64).reshape(integers.shape)


def _means(
    moment: Moment, integers: NDArray[np.object_], noise: Noise, confidence: float
) -> tuple[Floats, Floats, Floats, Floats]:
    above, below = (integers[measure, ...].astype(np.float64) for measure in range(2))
    both = above + below
    is_positive = both > 0
    safe = np.where(is_positive, both, 1.0)
    share = np.where(is_positive, np.clip(above / safe, 0.0, 1.0), 0.5)
    low, high = _kept_shares(above, both, noise, confidence)
    spread = noise.stddev * np.sqrt((1 - share) ** 2 + share**2)
    stddev = np.where(is_positive, spread / safe, np.inf)
    first, last = moment.span
    start, width = float(first * moment.unit), float((last - first) * moment.unit)
    ends = np.minimum(low, share), np.maximum(high, share)
    return start + width * share, start + width * ends[0], start + width * ends[1], width * stddev


def _kept_shares(above: Floats, both: Floats, noise: Noise, confidence: float) -> tuple[Floats, Floats]:
    """Return the least and the largest p in [0, 1] with |a - p (a + b)| <= h(p); all of [0, 1] if there is none."""
    widths = _share_widths(noise, confidence)
    low, high = np.zeros(both.size), np.ones(both.size)
    for start in range(0, both.size, _GROUPS_AT_ONCE):
        piece = slice(start, start + _GROUPS_AT_ONCE)
        low[piece], high[piece] = _solved(above.ravel()[piece, None], both.ravel()[piece, None], widths)
    return low.reshape(both.shape), high.reshape(both.shape)


def _solved(above: Floats, both: Floats, widths: Floats) -> tuple[Floats, Floats]:
    """Solve between every two neighbouring shares, where the larger of their half-widths serves for all p."""
    grid = np.linspace(0.0, 1.0, _SHARES)
    width = np.maximum(widths[:-1], widths[1:])
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (above - width) / both, (above + width) / both
    # A sum of 0 leaves |a| <= h(p), which holds for every p or for none: both are no knowledge.
    first = np.where(both == 0, grid[:-1], np.maximum(np.minimum(one, other), grid[:-1]))
    last = np.where(both == 0, grid[1:], np.minimum(np.maximum(one, other), grid[1:]))
    is_kept = first <= last
    low, high = np.where(is_kept, first, np.inf).min(axis=1), np.where(is_kept, last, -np.inf).max(axis=1)
    is_lost = low > high
    return np.where(is_lost, 0.0, low), np.where(is_lost, 1.0, high)


@lru_cache(maxsize=64)
def _share_widths(noise: Noise, confidence: float) -> Floats:
    """Return h(p) at equally spaced p; p and 1 - p have the same."""
    shares = np.linspace(0.0, 0.5, _SHARES // 2 + 1)
    half = np.array([weighted_half_width(noise, [1 - p, p], [1, 1], confidence) for p in shares])
    return np.concatenate([half, half[-2::-1]])
