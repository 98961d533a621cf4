"""How wide intervals will be, before any data is touched, and the epsilon that makes them narrow enough."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, isfinite, log10, prod
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError, PrivacyError
from veilcube.laws import Noise, answer_half_widths, half_widths
from veilcube.operators import Moments, Operator
from veilcube.query import Workload
from veilcube.system import Floats

# A larger epsilon promises a person so little that no accuracy is worth planning it.
LARGEST_PLANNED_EPSILON = 100
# What is remembered keeps the arrays of its operators alive.
MOST_CELLS_REMEMBERED = 2**18
_FIRST, _LAST = 1000, 10_000  # epsilons are of four digits: first <= digits < last
_DIGITS = 4


def answer_variances(operator: Operator, workload: Workload) -> Floats:
    """Return the variance of the answer to each query, in units of the noise's."""
    is_block, variances = _blocks(workload), np.zeros(len(workload))
    variances[is_block] = operator.variance_of_rectangles(workload.low[is_block], workload.high[is_block])
    for row, region in workload.regions.items():
        variances[row] = operator.variance_of_region(region)
    return variances


def mean_variance(operator: Operator, workload: Workload) -> float:
    """Return the mean variance of the answers, in units of the noise's; remembered for cubes that are not large."""
    if prod(operator.cell_shape) <= MOST_CELLS_REMEMBERED and isinstance(operator, Hashable):
        return _remembered_mean(operator, workload)
    return workload.mean(answer_variances(operator, workload))


@lru_cache(maxsize=256)
def _remembered_mean(operator: Operator, workload: Workload) -> float:
    return workload.mean(answer_variances(operator, workload))


@dataclass(frozen=True, eq=False)
class AnswerNoise:
    """The noise of the least-squares answers to a workload, at any scale.

    ``blocks`` are the moments of the noise weights of the queries that are blocks of cells, and ``regions`` those of
    each of the others; ``workload`` says how much each query matters.
    """

    workload: Workload
    is_block: NDArray[np.bool_]
    blocks: Moments
    regions: Mapping[int, Moments]

    @classmethod
    def of(cls, operator: Operator, workload: Workload) -> "AnswerNoise":
        """Find the noise weights' moments, which do not depend on epsilon."""
        is_block, answers = _blocks(workload), operator.answers
        if answers is None:
            raise PlanError("the strategy does not tell the noise of its answers, so their intervals are not known")
        blocks = answers.moments_of_rectangles(workload.low[is_block], workload.high[is_block])
        regions = {row: answers.moments_of_region(region) for row, region in workload.regions.items()}
        return cls(workload, is_block, blocks, regions)

    def half_widths(self, noise: Noise, confidence: float) -> Floats:
        """Return half the width of each answer's interval under noise of this law."""
        widths = np.zeros(self.is_block.size)
        widths[self.is_block] = _widths(noise, self.blocks, confidence)
        for row, moments in self.regions.items():
            widths[row] = _widths(noise, moments, confidence)
        return widths

    def stddevs(self, noise: Noise) -> Floats:
        """Return the standard deviation of each answer under noise of this law."""
        variances = np.zeros(self.is_block.size)
        variances[self.is_block] = self.blocks.second
        for row, moments in self.regions.items():
            variances[row] = moments.second
        return np.sqrt(variances * noise.variance)

    def half_width(self, noise: Noise, confidence: float) -> float:
        """Return the root mean square of these, each with the weight of its query."""
        return root_mean_square(self.workload, self.half_widths(noise, confidence))


def root_mean_square(workload: Workload, values: Floats) -> float:
    """Return the root of the mean square over a workload, each query with its weight."""
    return float(np.sqrt(workload.mean(np.square(values))))


def _widths(noise: Noise, moments: Moments, confidence: float) -> Floats:
    if moments.terms is not None:
        return half_widths(noise, moments.terms.ravel(), confidence).reshape(moments.terms.shape)
    second, fourth, sixth = moments.second, moments.fourth, moments.sixth
    return answer_half_widths(noise, second, fourth, sixth, confidence, bounded=moments.bounded)


def _blocks(workload: Workload) -> NDArray[np.bool_]:
    """Tell which queries are blocks: the block around a query with gaps is no query, and a strategy may refuse it."""
    is_block = np.ones(len(workload), dtype=np.bool_)
    is_block[list(workload.regions)] = False
    return is_block


def read_target(error: object, confidence: object) -> tuple[float, float]:
    """Check a wanted error and its confidence."""
    for value in (error, confidence):
        if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
            raise PlanError("a wanted error and its confidence are numbers, such as error=50 and confidence=0.95")
    wanted, share = float(error), float(confidence)  # type: ignore[arg-type]
    if wanted <= 0:
        raise PlanError("an error of 0 or less is impossible with noise; ask for one above 0, such as error=50")
    if not 0 < share < 1:
        raise PlanError("confidence must lie between 0 and 1, for example 0.95")
    return wanted, share


def smallest_epsilon(
    answers: AnswerNoise, noise_at: Callable[[Fraction], Noise], error: float, confidence: float, *, least: Fraction
) -> Fraction:
    """Return the least epsilon, of four digits, whose intervals' half-widths have at most this root mean square.

    ``noise_at`` gives the noise at an epsilon, or refuses; no epsilon below ``least`` is tried.
    """

    def reached(epsilon: Fraction) -> float:
        try:
            noise = noise_at(epsilon)
        except PrivacyError:
            return inf
        return answers.half_width(noise, confidence)

    largest = Fraction(LARGEST_PLANNED_EPSILON)
    possible = reached(largest)
    if possible > error:
        raise PlanError(
            f"an error of {error:g} at confidence {confidence:g} needs an epsilon above {LARGEST_PLANNED_EPSILON}, "
            f"which protects nobody; the least that can be planned is {possible:.4g}"
        )
    low, high = _step_of(least), _step_of(largest)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(_epsilon_at(middle)) <= error else (middle + 1, high)
    return _epsilon_at(low)


def _step_of(epsilon: Fraction) -> int:
    """Return the number of the first epsilon of four digits that is not below this one."""
    exponent = floor(log10(epsilon))
    digits = ceil(epsilon / _power_of_ten(exponent + 1 - _DIGITS))
    return exponent * (_LAST - _FIRST) + digits - _FIRST


def _epsilon_at(step: int) -> Fraction:
    exponent, digits = divmod(step, _LAST - _FIRST)
    return _power_of_ten(exponent + 1 - _DIGITS) * (digits + _FIRST)


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(int(10**exponent)) if exponent >= 0 else Fraction(1, int(10**-exponent))
