"""Variance and correlation: what solves a linear equation once the means are known.

With the true mean m, the variance v solves Σ n ((x - m)² - v) = 0, which is linear in the counts n, so its noise is
known (as for means, in estimate/base/ratios.py). The mean is not known: it has an interval of its own, and what is
kept are all values that solve the equation for some mean inside. The errors of both steps add up to what the confidence
leaves. A mean enters squared, so it costs little width.

The correlation c solves Σ n ((x - a)(y - b) - c/2 ((x - a)² r + (y - b)² / r)) = 0 with the means a and b and r the
ratio of the standard deviations. The bracket is smallest there, so that an error of r also enters squared.
"""

from dataclasses import dataclass
from itertools import product
from math import acos, asin, cos, inf, isfinite, nan, pi, sqrt

import numpy as np

from veilcube.analyst.estimate import GroupedCounts, mean_of_groups, ratio_of_groups
from veilcube.analyst.questions.asking import Asking
from veilcube.errors import QueryError
from veilcube.query import Answer
from veilcube.schema import Calendar, Ordinal, Region
from veilcube.system import Floats

# What share of the error each step but the last may make; the last one decides how wide an interval is.
SHARE_OF_A_STEP = 0.1
POINTS = 9


@dataclass(frozen=True, eq=False)
class Centred:
    """Groups with the number that stands for each, and how far from it a value may lie in its bin."""

    groups: GroupedCounts
    numbers: Floats
    within: float

    @classmethod
    def of(cls, groups: GroupedCounts, ordinal: Ordinal, place: int) -> "Centred":
        """Lay an attribute's numbers along one of the axes of groups."""
        numbers, within = np.zeros(groups.counts.shape[place]), 0.0
        least, largest = _spans(ordinal)
        numbers[: ordinal.regular_size] = (least + largest) / 2
        within = float((largest - least).max()) / 2
        shape = [-1 if axis == place else 1 for axis in range(groups.counts.ndim)]
        return cls(groups, np.broadcast_to(numbers.reshape(shape), groups.counts.shape), within)

    def mean(self, error: float) -> tuple[float, float, float]:
        """Return the mean and the ends of its interval."""
        found = mean_of_groups(self.groups, self.numbers, 1 - error)
        return found.value, found.low, found.high

    @property
    def largest_variance(self) -> float:
        """No variance is larger than with half of the rows at either end."""
        held = self.numbers[self.groups.sizes > 0]
        return (float(held.max()) - float(held.min())) ** 2 / 4


def _spans(ordinal: Ordinal) -> tuple[Floats, Floats]:
    """Return the ends of what each cell may hold; dates are days, whose number only the correlation is free of."""
    division = ordinal.division
    if not isinstance(division, Calendar):
        return ordinal.spans()
    cells = range(ordinal.regular_size)
    ends = [(division.first_day(cell).toordinal(), division.last_day(cell).toordinal()) for cell in cells]
    least, largest = np.array(ends, dtype=np.float64).T
    return least, largest


def variance_of(release: Asking, attribute: str, region: Region, estimator: str, confidence: float) -> Answer:
    """Return the variance of an attribute among the rows of a region."""
    ordinal, groups = release._ordinal_groups(attribute, region, estimator)
    if ordinal.is_date:
        raise QueryError("dates have no variance; ask for quantiles instead")
    centred = Centred.of(groups, ordinal, 0)
    value, low, high, stddev = _variance(centred, 1 - confidence)
    # Values that lie within so much of the middles of their bins have a standard deviation no further away.
    low, high = max(sqrt(low) - centred.within, 0.0) ** 2, (sqrt(high) + centred.within) ** 2
    return Answer(value, min(low, value), max(high, value), confidence, stddev, release._words)


def _variance(centred: Centred, error: float) -> tuple[float, float, float, float]:
    """Return a variance, the ends of an interval that misses it no more often than ``error``, and its deviation."""
    mean, first, last = centred.mean(SHARE_OF_A_STEP * error)
    level = 1 - (1 - SHARE_OF_A_STEP) * error
    found = [
        mean_of_groups(centred.groups, np.square(centred.numbers - point), level)
        for point in (mean, *np.linspace(first, last, POINTS).tolist())
    ]
    # Between two points a mean of squares is lower than at them by at most the square of half a step.
    slack = ((last - first) / (POINTS - 1) / 2) ** 2
    low, high = min(one.low for one in found) - slack, max(one.high for one in found) + slack
    most = centred.largest_variance
    return min(found[0].value, most), min(max(low, 0.0), most), min(high, most), found[0].stddev


def correlation_of(
    release: Asking, names: tuple[str, str], region: Region, estimator: str, confidence: float
) -> Answer:
    """Return the correlation of two attributes among the rows of a region."""
    schema = release.schema
    axes = schema.axes(names)
    ordinals = [_ordinal(release, axis) for axis in axes]
    for axis, ordinal in zip(axes, ordinals, strict=True):
        region = region.intersect(Region.on_axis(schema.shape, axis, ordinal.mask(0, ordinal.regular_size)))
    if not region.cells:
        raise QueryError("the condition selects no cell of both attributes, so there is nobody to correlate; widen it")
    groups = release._estimate(estimator).grouped(region, axes)
    first, second = (Centred.of(groups, ordinal, place) for place, ordinal in enumerate(ordinals))
    value, low, high, stddev = _correlation(first, second, 1 - confidence)
    return Answer(value, min(low, value), max(high, value), confidence, stddev, release._words)


def _ordinal(release: Asking, axis: int) -> Ordinal:
    attribute = release.schema.attributes[axis]
    if not isinstance(attribute, Ordinal):
        raise QueryError(f"'{attribute.name}' has no order, so it has no correlation; ask for the marginal of both")
    return attribute


def _correlation(first: Centred, second: Centred, error: float) -> tuple[float, float, float, float]:
    """Return a correlation, the ends of its interval, and its deviation."""
    step = SHARE_OF_A_STEP * error
    (a, *ends_of_a), (b, *ends_of_b) = first.mean(step), second.mean(step)
    angle, steps = 0.0, 3
    if first.within or second.within:
        angle, steps = _angle(first, step) + _angle(second, step), 5
    places = list(product((a, *ends_of_a), (b, *ends_of_b)))
    level = 1 - (error - steps * step)
    low, high, value, stddev = 1.0, -1.0, nan, inf
    for at_a, at_b in places:
        x, y = np.square(first.numbers - at_a), np.square(second.numbers - at_b)
        spreads = ratio_of_groups(first.groups, y, x, 1 - step)
        if not (spreads.low > 0 and isfinite(spreads.high)):
            return (0.0 if np.isnan(value) else value), -1.0, 1.0, stddev
        both = (first.numbers - at_a) * (second.numbers - at_b)
        for ratio in (spreads.value, spreads.low, spreads.high):
            below = (x * sqrt(ratio) + y / sqrt(ratio)) / 2
            found = ratio_of_groups(first.groups, both, below, level, (-1.0, 1.0))
            low, high = min(low, found.low), max(high, found.high)
            if np.isnan(value):
                value, stddev = found.value, found.stddev
    return value, cos(min(acos(low) + angle, pi)), cos(max(acos(high) - angle, 0.0)), stddev


def _angle(centred: Centred, error: float) -> float:
    """Return by what angle values may turn away from the middles of their bins, seen as vectors around their mean."""
    if not centred.within:
        return 0.0
    deviation = sqrt(_variance(centred, error)[1])
    return asin(centred.within / deviation) if deviation > centred.within else pi
