"""Probabilities of all integers of a range, from their logarithms at few of them.

Between given corners the probabilities are sums of polynomials times exponentials, so they are interpolated on panels
by Legendre polynomials through integers near the Gauss nodes; panels are halved until they resolve the function, and
short ones are evaluated at every integer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ORDER = 20
_NODES, _ = legendre.leggauss(_ORDER)
_RESOLVED = 1e-12
_SHORT = 48


@dataclass(frozen=True, eq=False)
class ResolvedChances:
    """``chances[i]`` belongs to the integer ``first + i``; they are not normalised."""

    first: int
    chances: Floats

    @cached_property
    def mass(self) -> float:
        """The sum of all chances."""
        return float(self.chances.sum())

    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation of the normalised chances."""
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
    """The first index whose running sum exceeds the mass; rounding may have left tiny negative chances."""
    running = np.maximum.accumulate(np.cumsum(chances))
    return min(int(np.searchsorted(running, mass, side="right")), chances.size - 1)
