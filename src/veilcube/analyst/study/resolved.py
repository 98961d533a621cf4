"""Densities on an interval, and probabilities of a range of integers, resolved from few evaluations.

A density is analytic between given corners and falls off on both sides, so Legendre polynomials on panels that end at
the corners converge geometrically. Each panel is resolved relative to its own largest value: far tails keep their
digits too. Probabilities of integers are sums of polynomials times exponentials between corners, so they are
interpolated in the same way through integers near the Gauss nodes; short panels are evaluated at every integer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy
from numpy.polynomial import legendre

from veilcube.system import Floats

_RESOLVED = 1e-12
_SHORT = 48


@dataclass(frozen=True, eq=False)
class ResolvedChances:
    """``chances[i]`` is the probability of the integer ``first + i``; they are not normalised."""

    first: int
    chances: Floats

    @cached_property
    def mass(self) -> float:
        """The sum of all probabilities."""
        return float(self.chances.sum())

    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation of the normalised probabilities."""
        points, _ = self.atoms()
        mean = float(self.chances @ points / self.mass)
        return mean, float(np.sqrt(self.chances @ (points - mean) ** 2 / self.mass))

    def atoms(self, _widest: float = np.inf) -> tuple[Floats, Floats]:
        """The integers and the mass of each; there is nothing finer."""
        return self.first + np.arange(self.chances.size, dtype=np.float64), self.chances

    def mass_up_to(self, point: float) -> float:
        """The sum over the integers up to a point, itself included."""
        return float(self.chances[: self._count_up_to(point)].sum())

    def mass_above(self, point: float) -> float:
        """The sum over the integers above a point."""
        return float(self.chances[self._count_up_to(point) :].sum())

    def lower_quantile(self, mass: float) -> float:
        """The largest integer that has at most ``mass`` below it."""
        return float(self.first + _index_beyond(self.chances, mass))

    def upper_quantile(self, mass: float) -> float:
        """The smallest integer that has at most ``mass`` above it."""
        return float(self.first + self.chances.size - 1 - _index_beyond(self.chances[::-1], mass))

    def _count_up_to(self, point: float) -> int:
        return int(np.clip(np.floor(point) - self.first + 1, 0, self.chances.size))


def resolve_chances(
    log_chance: Callable[[Floats], Floats], first: int, last: int, corners: Floats, rounding: float = 0.0
) -> ResolvedChances:
    """Return exp(log_chance) at every integer from first to last; between the whole ``corners`` it must be smooth.

    ``rounding`` is how far log_chance may be off, which no number of panels resolves.
    """
    tolerance = max(_RESOLVED, 4 * rounding)
    chances = np.empty(last - first + 1)
    inside = np.unique(corners[(corners > first) & (corners < last)]).astype(np.int64)
    # Neighbouring panels share the integer at their corner, which belongs to the smooth pieces on both sides.
    panels = list(pairwise([first, *inside.tolist(), last])) if last > first else [(first, last)]
    while panels:
        nodes = [_nodes_of(low, high) for low, high in panels]
        sizes = np.cumsum([each.size for each in nodes])[:-1]
        values = np.split(np.exp(log_chance(np.concatenate(nodes))), sizes)
        halves: list[tuple[int, int]] = []
        for (low, high), points, found in zip(panels, nodes, values, strict=True):
            filled = _interpolated(low, high, points, found, tolerance)
            if filled is None:
                middle = (low + high) // 2
                halves += [(low, middle), (middle, high)]
            else:
                chances[low - first : high - first + 1] = filled
        panels = halves
    return ResolvedChances(first, chances)


def _nodes_of(low: int, high: int) -> Floats:
    if high - low < _SHORT:
        return np.arange(low, high + 1, dtype=np.float64)
    return np.round((low + high) / 2 + (high - low) / 2 * _NODES)


def _interpolated(low: int, high: int, points: Floats, values: Floats, tolerance: float) -> Floats | None:
    """The values at all integers of a panel, or None where the nodes do not resolve the function."""
    if high - low < _SHORT:
        return values
    local = (2 * points - low - high) / (high - low)
    coefficients = np.linalg.solve(legendre.legvander(local, _ORDER - 1), values)
    if np.abs(coefficients[-2:]).max() > tolerance * np.abs(coefficients).max():
        return None
    everywhere = (2 * np.arange(low, high + 1, dtype=np.float64) - low - high) / (high - low)
    return np.maximum(legendre.legval(everywhere, coefficients), 0.0)


def _index_beyond(chances: Floats, mass: float) -> int:
    """The first index whose running sum exceeds the mass; rounding may have left tiny negative probabilities."""
    running = np.maximum.accumulate(np.cumsum(chances))
    return min(int(np.searchsorted(running, mass, side="right")), chances.size - 1)


_ORDER = 20
_NODES, _WEIGHTS = legendre.leggauss(_ORDER)
# Values at the nodes to Legendre coefficients: Gauss quadrature of the products is exact at this order.
_TO_COEFFICIENTS = legendre.legvander(_NODES, _ORDER - 1).T * _WEIGHTS * (np.arange(_ORDER)[:, np.newaxis] + 0.5)
_EPS = float(np.finfo(np.float64).eps)
_MOST_ROUNDS = 60
_MOST_PANELS = 4096
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True, eq=False)
class ResolvedDensity:
    """Panels in ascending order: their ends, and one row of Legendre coefficients for each; not normalised."""

    low: Floats
    high: Floats
    coefficients: Floats

    @cached_property
    def masses(self) -> Floats:
        """The integral over each panel."""
        return np.asarray((self.high - self.low) * self.coefficients[:, 0])

    @cached_property
    def mass(self) -> float:
        """The integral over all panels."""
        return float(self.masses.sum())

    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation of the normalised density."""
        points, weights = self.atoms()
        mean = float((weights * points).sum() / self.mass)
        return mean, float(np.sqrt((weights * (points - mean) ** 2).sum() / self.mass))

    def atoms(self, widest: float = np.inf) -> tuple[Floats, Floats]:
        """The points and masses of a quadrature of the density times what is smooth over the width ``widest``.

        Panels that hold nothing to speak of are left out of it.
        """
        panels = np.flatnonzero(self.masses > _NEGLIGIBLE * self.mass)
        width = (self.high - self.low)[panels]
        pieces = np.maximum(np.ceil(width / widest), 1).astype(np.int64)
        panel, ends = np.repeat(panels, pieces), np.cumsum(pieces)
        place = np.arange(panel.size) - np.repeat(ends - pieces, pieces)
        many = np.repeat(pieces, pieces)
        local = (2 * place[:, np.newaxis] + 1 + _NODES) / many[:, np.newaxis] - 1
        half = (np.repeat(width, pieces) / 2)[:, np.newaxis]
        points = (self.low[panel])[:, np.newaxis] + half * (1 + local)
        heights = legendre.legval(local, self.coefficients[panel].T[:, :, np.newaxis], tensor=False)
        return points.ravel(), (heights * _WEIGHTS * half / many[:, np.newaxis]).ravel()

    def mass_up_to(self, point: float) -> float:
        """The integral up to a point, with the digits of the lower tail."""
        if point <= self.low[0]:
            return 0.0
        panel = int(np.searchsorted(self.high, point))
        if panel == self.high.size:
            return self.mass
        return float(self.masses[:panel].sum()) + self._part_below(panel, self._local(panel, point))

    def mass_above(self, point: float) -> float:
        """The integral from a point on, with the digits of the upper tail."""
        return self._mirrored().mass_up_to(-point)

    def lower_quantile(self, mass: float) -> float:
        """The point below which ``mass`` lies."""
        cumulated = np.cumsum(self.masses)
        panel = min(int(np.searchsorted(cumulated, mass)), cumulated.size - 1)
        rest = mass - (float(cumulated[panel - 1]) if panel else 0.0)
        if rest >= self.masses[panel]:
            return float(self.high[panel])
        local = float(
            scipy.optimize.brentq(lambda u: self._part_below(panel, u) - rest, -1.0, 1.0, xtol=1e-15, rtol=1e-14)
        )
        return float((self.low[panel] + self.high[panel]) / 2 + local * (self.high[panel] - self.low[panel]) / 2)

    def upper_quantile(self, mass: float) -> float:
        """The point above which ``mass`` lies."""
        return -self._mirrored().lower_quantile(mass)

    def _mirrored(self) -> "ResolvedDensity":
        """The density of minus the variable: its lower tail is this one's upper tail."""
        signs = (-1.0) ** np.arange(_ORDER)
        return ResolvedDensity(-self.high[::-1], -self.low[::-1], self.coefficients[::-1] * signs)

    def _local(self, panel: int, point: float) -> float:
        return float((2 * point - self.low[panel] - self.high[panel]) / (self.high[panel] - self.low[panel]))

    def _part_below(self, panel: int, local: float) -> float:
        """The integral over the panel from its low end to the local coordinate in [-1, 1]."""
        integral = legendre.legint(self.coefficients[panel], lbnd=-1)
        return float(legendre.legval(local, integral) * (self.high[panel] - self.low[panel]) / 2)


def resolve_density(log_density: Callable[[Floats], Floats], edges: Floats, rounding: float = 0.0) -> ResolvedDensity:
    """Return exp(log_density) on the panels between the ascending ``edges``, halved until they resolve it.

    ``rounding`` is how far log_density may be off, which no number of panels resolves.
    """
    low, high = edges[:-1], edges[1:]
    done: list[tuple[Floats, Floats, Floats]] = []
    panels = 0
    for _ in range(_MOST_ROUNDS):
        half = (high - low) / 2
        points = ((low + high) / 2)[:, np.newaxis] + half[:, np.newaxis] * _NODES
        heights = log_density(points)
        coefficients = np.exp(heights) @ _TO_COEFFICIENTS.T
        last = np.abs(coefficients[:, -2:]).max(axis=1)
        # A node far from zero is itself rounded, which moves the logarithm by the slope times that.
        misplaced = _EPS * np.maximum(np.abs(low), np.abs(high)) * np.abs(heights[:, -1] - heights[:, 0]) / (2 * half)
        tolerance = np.maximum(_RESOLVED, 4 * (rounding + misplaced))
        settled = last <= tolerance * np.abs(coefficients).max(axis=1)
        # A panel of a few roundings cannot be halved any further.
        settled |= half <= 1e-14 * np.maximum(np.abs(low), np.abs(high))
        panels += 2 * int(np.count_nonzero(~settled)) + int(np.count_nonzero(settled))
        if panels > _MOST_PANELS:
            settled[:] = True
        done.append((low[settled], high[settled], coefficients[settled]))
        if np.all(settled):
            break
        low, middle, high = low[~settled], (low + high)[~settled] / 2, high[~settled]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    lows, highs, rows = (np.concatenate(parts) for parts in zip(*done, strict=True))
    order = np.argsort(lows)
    return ResolvedDensity(lows[order], highs[order], rows[order])
