"""The exact posterior of one count from several noisy observations of it (the E step of ISPE, Theorems 4.1 and 4.2).

Observation i says: the count θ plus a sum of independent Laplace noises equals v_i. With a flat prior and independent
observations the posterior of θ is the normalised product Π_i f_i(v_i - θ). Every f_i is log-concave, so the posterior
has one peak, and it is analytic between the v_i: panels that end there resolve it to all digits. With L the logarithm
of the product, they cover all θ where L is within ``_DEPTH`` of its peak. L is taken relative to its value at an origin
θ0, with the tails exp(-|v_i - θ|/b_i) of all observations added up exactly, so observations that contradict each other
by a million standard deviations lose no digits.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from veilcube.analyst.study.resolved import ResolvedChances, ResolvedDensity, resolve_chances, resolve_density
from veilcube.errors import QueryError
from veilcube.laws import NoiseSum, laplace_sum, lattice_laplace_sum
from veilcube.system import Floats, read_flag, read_numbers

# exp(-depth) is what is left out on each side, far below the tails of any level below 1.
_DEPTH = 50.0
_PANELS_PER_SIDE = 7
_GRID = 33
_MOST_ZOOMS = 64
_DOUBLINGS_AT_ONCE = 8
_LARGEST_VALUE = 2.0**53
# More integers are not summed one by one: there the noise is so wide that the continuous law is the same to 9 digits.
MOST_INTEGERS = 1 << 20


@dataclass(frozen=True)
class Posterior:
    """What the observations say about the count: mean, standard deviation, intervals and the density itself.

    >>> belief = posterior([(25.6289, {20: 2}), (-52.9904, {20: 3})])
    >>> round(belief.mean, 5), round(belief.stddev, 5)
    (-5.81882, 33.22288)
    """

    mean: float
    stddev: float
    _product: "_Product" = field(repr=False)
    _shape: ResolvedDensity | ResolvedChances = field(repr=False)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the equal-tailed credible interval: (1 - level)/2 of the posterior lies on either side of it.

        For discrete noise its ends are integers, and at most so much lies on either side.
        """
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            raise QueryError(f"level must lie strictly between 0 and 1, not {level!r}: 0.95 is usual")
        tail = (1 - float(level)) / 2 * self._shape.mass
        origin = self._product.origin
        return origin + self._shape.lower_quantile(tail), origin + self._shape.upper_quantile(tail)

    @property
    def is_discrete(self) -> bool:
        """Whether the count is taken to be an integer."""
        return self._product.discrete

    def atoms(self, widest: float) -> tuple[float, Floats, Floats]:
        """Return an origin, and points from there with masses that add up to 1, for sums of what varies over widest."""
        points, masses = self._shape.atoms(widest)
        return self._product.origin, points, masses / self._shape.mass

    def cdf(self, x: float) -> float:
        """Return the posterior probability that the count is at most x."""
        if isinstance(x, bool) or not isinstance(x, Real) or not x <= math.inf:
            raise QueryError("a distribution function is asked for at a number, which may be infinite: give one")
        if not -sys.float_info.max <= x <= sys.float_info.max:
            return float(x > 0)
        offset = float(x) - self._product.origin
        if x <= self.mean:
            return self._shape.mass_up_to(offset) / self._shape.mass
        return 1 - self._shape.mass_above(offset) / self._shape.mass

    def density(self, x: ArrayLike) -> Floats:
        """Return the posterior density at each x; for discrete noise the probability, zero between the integers."""
        points = read_numbers(x, "the points of a density")
        if not self._product.discrete:
            return np.asarray(np.exp(self._product.log_relative(points - self._product.origin)) / self._shape.mass)
        whole = np.round(points)
        chances = np.exp(self._product.log_relative(whole - self._product.origin)) / self._shape.mass
        return np.where(points == whole, chances, 0.0)


def posterior(observations: Iterable[tuple[float, Mapping[float, int]]], *, discrete: bool = False) -> Posterior:
    """Return the posterior of a count from independent observations ``(value, {scale: how many noises, ...})``.

    Each value is the count plus the sum of that many independent Laplace noises of each scale. With ``discrete`` the
    noises are discrete Laplace and the count is an integer: the law a release really uses, which matters for scales
    below about ten.
    """
    product = _read(observations, read_flag(discrete, "discrete"))
    peak, product = _climb(product)
    low, high = _ends(product, peak)
    corners = np.concatenate([offsets for _, offsets in product.groups])
    rounding = product.rounding(np.array([low, peak, high]))
    shape: ResolvedDensity | ResolvedChances
    if discrete:
        if high - low >= MOST_INTEGERS:
            raise QueryError(
                f"a discrete posterior may spread over at most {MOST_INTEGERS:,} integers, and this one is wider: "
                "leave discrete out, at such scales the continuous law is the same to nine digits"
            )
        shape = resolve_chances(product.log_relative, int(low), int(high), corners, rounding)
    else:
        sides = [np.linspace(low, peak, _PANELS_PER_SIDE), np.linspace(peak, high, _PANELS_PER_SIDE)]
        edges = np.concatenate([*sides, corners[(corners > low) & (corners < high)]])
        shape = resolve_density(product.log_relative, np.unique(edges), rounding)
    mean, stddev = shape.moments()
    return Posterior(product.origin + mean, stddev, product, shape)


@dataclass(frozen=True, eq=False)
class _Tails:
    """-Σ_i |a_i - δ|/b_i up to a constant: a concave broken line with its top at δ = 0, one of the a_i.

    Each piece is held by the higher of its ends (``anchors``, ``heights``), so that near the top nothing cancels:
    between two observations of equal scales the line is level, exactly, however far apart they are.
    """

    knots: Floats
    anchors: Floats
    heights: Floats
    slopes: Floats

    def __call__(self, delta: Floats) -> Floats:
        piece = np.searchsorted(self.knots, delta)
        return np.asarray(self.heights[piece] + self.slopes[piece] * (delta - self.anchors[piece]))


def _broken_line(offsets: Floats, scales: Floats) -> _Tails:
    knots, index = np.unique(offsets, return_inverse=True)
    slopes = np.array([math.fsum(np.where(index >= piece, 1, -1) / scales) for piece in range(knots.size + 1)])
    origin = int(np.searchsorted(knots, 0.0))
    rises = slopes[1:-1] * np.diff(knots)
    heights = np.zeros(knots.size)
    heights[origin + 1 :] = np.cumsum(rises[origin:])
    heights[:origin] = -np.cumsum(rises[:origin][::-1])[::-1]
    # Piece i ends at knot i on its right and begins at knot i - 1; left of the origin the right end is the higher one.
    held = np.where(np.arange(knots.size + 1) <= origin, np.arange(knots.size + 1), np.arange(-1, knots.size))
    return _Tails(knots, knots[held], heights[held], slopes)


@dataclass(frozen=True, eq=False)
class _Product:
    """L as a function of the offset δ = θ - origin, for each distinct law the offsets v_i - origin that have it."""

    origin: float
    groups: tuple[tuple[NoiseSum, Floats], ...]
    tails: _Tails
    discrete: bool
    top: float = 0.0

    def log_relative(self, delta: Floats) -> Floats:
        """L less a constant that is the same for all δ, and less ``top``; for discrete noise δ must be whole."""
        excess = np.full(delta.shape, -self.top)
        for law, offsets in self.groups:
            excess += law.log_excess(np.abs(offsets - delta[..., np.newaxis])).sum(axis=-1)
        return np.asarray(excess + self.tails(delta))

    def rounding(self, delta: Floats) -> float:
        """How far L may be off at these δ because its terms are large: a sum of very many noises has a large excess."""
        sizes = [np.abs(law.log_excess(np.abs(offsets - delta[:, np.newaxis]))).sum() for law, offsets in self.groups]
        return float(np.finfo(np.float64).eps * sum(sizes))

    def snapped(self, delta: Floats) -> Floats:
        """The offsets at which L may be asked for."""
        return np.round(delta) if self.discrete else delta

    @property
    def smallest_stddev(self) -> float:
        """The standard deviation of the sharpest observation."""
        return math.sqrt(min(law.variance for law, _ in self.groups))


def _read(observations: Iterable[tuple[float, Mapping[float, int]]], discrete: bool) -> _Product:
    values: list[float] = []
    laws: list[NoiseSum] = []
    if not isinstance(observations, Iterable):
        raise QueryError("observations must be a list of pairs such as (12.5, {20: 2}), of value and noises: give one")
    for observation in observations:
        if not isinstance(observation, tuple | list) or len(observation) != 2:
            raise QueryError("an observation must be a pair such as (12.5, {20: 2}), of value and noises: correct it")
        value, noises = observation
        if isinstance(value, bool) or not isinstance(value, Real) or not -_LARGEST_VALUE <= value <= _LARGEST_VALUE:
            raise QueryError("an observed value must be a finite number from -2^53 to 2^53: correct it")
        if discrete and float(value) != round(float(value)):
            raise QueryError(f"with discrete noise an observed value is whole, not {value!r}: leave discrete out")
        values.append(float(value))
        laws.append(lattice_laplace_sum(noises) if discrete else laplace_sum(noises))
    if not values:
        raise QueryError("a posterior needs at least one observation, and the list is empty: give one")
    origin = _weighted_median(np.array(values), np.array([1 / law.largest_scale for law in laws]))
    tails = _broken_line(np.array(values) - origin, np.array([law.largest_scale for law in laws]))
    grouped: dict[NoiseSum, list[float]] = {}
    for value, law in zip(values, laws, strict=True):
        grouped.setdefault(law, []).append(value - origin)
    return _Product(origin, tuple((law, np.array(offsets)) for law, offsets in grouped.items()), tails, discrete)


def _weighted_median(values: Floats, weights: Floats) -> float:
    """The observed value where the tails alone, -Σ|v_i - θ|/b_i, are largest."""
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(running, running[-1] / 2)])


def _climb(product: _Product) -> tuple[float, _Product]:
    """The offset of the peak to a fraction of the sharpest observation, and the product with its value there as top.

    The peak lies between the smallest and the largest observed value, for every factor falls beyond both.
    """
    offsets = np.concatenate([each for _, each in product.groups])
    low, high = float(offsets.min()), float(offsets.max())
    close = 0.1 * product.smallest_stddev / math.sqrt(offsets.size)
    for _ in range(_MOST_ZOOMS):
        grid = product.snapped(np.linspace(low, high, _GRID))
        heights = product.log_relative(grid)
        best = int(np.argmax(heights))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, _GRID - 1)])
        if high - low <= max(close, 1e-14 * abs(high), 2.0 * product.discrete):
            break
    return float(grid[best]), replace(product, top=float(heights[best]))


def _ends(product: _Product, peak: float) -> tuple[float, float]:
    """Offsets on both sides of the peak where L has fallen by the depth, but not by more than twice the depth.

    So near that no panel between them can hide a fall from its nodes; integers are as near as they can be.
    """
    unit = max(product.smallest_stddev, float(product.discrete), 1e-12 * abs(peak))
    ends = []
    for side in (-1.0, 1.0):
        steps = np.concatenate([[0.0], unit * 2.0 ** np.arange(_DOUBLINGS_AT_ONCE)])
        for _ in range(_MOST_ZOOMS):
            grid = product.snapped(peak + side * steps)
            fall = -product.log_relative(grid)
            if fall[-1] < _DEPTH:
                steps = steps * 2.0**_DOUBLINGS_AT_ONCE
                continue
            first = int(np.argmax(fall >= _DEPTH))
            if fall[first] <= 2 * _DEPTH or abs(grid[first] - grid[first - 1]) <= product.discrete:
                break
            steps = np.linspace(steps[first - 1], steps[first], _GRID)
        ends.append(float(grid[first]))
    return ends[0], ends[1]
