"""The best division of a budget among groups of measurements, and its rounding to small whole multipliers."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from math import gcd, lcm, prod
from typing import TypeAlias

import numpy as np

from veilcube.planner.design.price import Price, price_of
from veilcube.system import Floats

# Returns the error at weights θ and its gradient; homogeneous of degree -2, as a variance is in the weights.
ErrorOf: TypeAlias = Callable[[Floats], tuple[float, Floats]]

# A group whose weight falls below this might as well not be measured.
LEAST_WEIGHT = 1e-6
LEAST_POWER = 0.02
LARGEST_TOTAL = 48
LARGEST_COMMON_DENOMINATOR = 10_000
WORTH_LARGER_NUMBERS = 3e-3


def balance_weights(
    error_of: ErrorOf, start: Floats, price: Price | None = None, *, rounds: int = 40
) -> tuple[Floats, float]:
    """Minimise norm(θ)² error(θ); return θ of norm 1 and the least value. Without a price the norm is Σ θ.

    With g the gradient, -θ_k g_k / 2 is the part of the error that group k answers for (Euler's theorem, degree -2),
    and at the optimum those parts are as the parts of the squared norm. The update multiplies each weight by a root of
    the one over the other: that would be exact in one step if the groups' errors were independent, Σ c_k / θ_k². A
    step that does not lower the error is taken back and halved in the exponent.
    """
    price = price_of("laplace") if price is None else price
    theta = start / price.norm(start)
    value, gradient = error_of(theta)
    if value == 0:  # queries about nobody have no error to divide
        return theta, value
    power = price.power
    for _ in range(rounds):
        moved = theta * np.maximum(-gradient / (2 * value) / price.slopes(theta), 1e-12) ** power
        moved = np.maximum(moved / price.norm(moved), LEAST_WEIGHT)
        moved /= price.norm(moved)
        lower, its_gradient = error_of(moved)
        if lower > value:
            power /= 2
            if power < LEAST_POWER:
                break
            continue
        has_settled = lower > value * (1 - price.tolerance)
        theta, value, gradient = moved, lower, its_gradient
        if has_settled:
            break
    return theta, value


def whole_multipliers(
    theta: Floats, error_of: Callable[[Floats], float], price: Price | None = None
) -> tuple[int, ...]:
    """Return the smallest whole multipliers whose error is within 0.3% of the least found; weights have norm 1."""
    price = price_of("laplace") if price is None else price
    wanted = price.proportions(theta)
    found: dict[tuple[int, ...], float] = {}
    for total in range(theta.size, max(LARGEST_TOTAL, 4 * theta.size) + 1):
        whole = in_lowest_terms(np.maximum(np.rint(wanted * total), 1).astype(int).tolist())
        if whole not in found:
            found[whole] = error_of(shares(whole, price))
    good_enough = min(found.values()) * (1 + WORTH_LARGER_NUMBERS)
    return min((whole for whole, error in found.items() if error <= good_enough), key=sum)


def multipliers_of(weights: Sequence[Fraction]) -> tuple[int, ...]:
    """Return whole multipliers in the proportions of the weights; rounded where those have no small denominator.

    >>> multipliers_of([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)])
    (3, 2, 1)
    """
    common = min(lcm(*(weight.denominator for weight in weights)), LARGEST_COMMON_DENOMINATOR)
    return in_lowest_terms([max(round(weight * common), 1) for weight in weights])


def within_column(axes: Sequence[tuple[int, ...]], largest: int) -> tuple[tuple[int, ...], ...]:
    """Return multipliers of several axes, rounded to smaller ones while the product of their sums is above a bound.

    Multipliers of 1 each may still be above it.

    >>> within_column([(3, 20, 25), (1,), (10, 30)], 400)
    ((3, 18, 23), (1,), (1, 3))
    """
    fitted, share = tuple(axes), 1.0
    while prod(map(sum, fitted)) > largest and any(max(own) > 1 for own in fitted):
        share *= 0.95
        fitted = tuple(in_lowest_terms([max(round(share * one), 1) for one in own]) for own in axes)
    return fitted


def in_lowest_terms(multipliers: Sequence[int]) -> tuple[int, ...]:
    """Return the least whole multipliers of the same proportions."""
    common = reduce(gcd, multipliers)
    return tuple(int(multiplier) // common for multiplier in multipliers)


def shares(multipliers: Sequence[int], price: Price | None = None) -> Floats:
    """Return multipliers as weights of norm 1; without a price, of sum 1."""
    weights = np.array(multipliers, dtype=np.float64)
    return weights / (sum(multipliers) if price is None else price.norm(weights))
