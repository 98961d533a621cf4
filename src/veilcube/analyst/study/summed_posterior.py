"""The exact posterior of a sum of counts that were observed apart: the convolution of their posteriors.

Parts of a query that lie in different regions share neither cells nor totals, so with flat priors their posteriors are
independent: means and variances add up, and the law of the sum is the convolution, done by Fourier transforms on a
lattice. Posteriors on the integers are convolved as they are. Densities, and sums too wide for a lattice of integers,
are first put on a finer or coarser lattice, each mass shared out among four points so that its first three moments
stay; the distribution function of the sum is then right to about a millionth.

Every part is log-concave and so is the sum: beyond 40 standard deviations it has less than exp(-39), which is all that
a period of 80 wraps around.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, sqrt

import numpy as np
import scipy

from veilcube.analyst.study.observations import Posterior
from veilcube.analyst.study.resolved import ResolvedChances
from veilcube.system import Floats

_PERIOD = 80.0
_MOST_INTEGERS = 1 << 17
_POINTS = 1 << 14
# The masses of a density are taken so close together that they resolve what the lattice does.
_STEPS_BETWEEN_PANELS = 6


@dataclass(frozen=True, eq=False)
class SummedPosterior:
    """What is known about the sum of several counts, each with a posterior of its own."""

    parts: Sequence[Posterior] = field(repr=False)

    @cached_property
    def mean(self) -> float:
        """The mean of the sum."""
        return fsum(part.mean for part in self.parts)

    @cached_property
    def stddev(self) -> float:
        """The standard deviation of the sum."""
        return sqrt(fsum(part.stddev**2 for part in self.parts))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the equal-tailed credible interval; for discrete noise its ends are integers."""
        if len(self.parts) == 1:
            return self.parts[0].interval(level)
        if self.stddev == 0:
            return self.mean, self.mean
        is_whole = all(part.is_discrete for part in self.parts) and _PERIOD * self.stddev <= _MOST_INTEGERS
        step = 1.0 if is_whole else _PERIOD * self.stddev / _POINTS
        middle, masses = _convolved(
            self.parts, step, scipy.fft.next_fast_len(int(_PERIOD * self.stddev / step) + 64, real=True)
        )
        law: ResolvedChances | _LatticeDensity
        law = ResolvedChances(-(masses.size // 2), masses) if is_whole else _LatticeDensity(masses, step)
        tail = (1 - level) / 2 * law.mass
        return middle + law.lower_quantile(tail), middle + law.upper_quantile(tail)


@dataclass(frozen=True, eq=False)
class _LatticeDensity:
    """A smooth density by its masses on a lattice, whose middle is at zero."""

    masses: Floats
    step: float

    @property
    def mass(self) -> float:
        """The integral of the density."""
        return float(self._integral(self._points[-1]))

    def lower_quantile(self, mass: float) -> float:
        """The point below which ``mass`` lies."""
        reached = np.maximum.accumulate(self._integral(self._points))
        place = min(max(int(np.searchsorted(reached, mass)), 1), self.masses.size - 1)
        low, high = self._points[place - 1], self._points[place]
        if (self._integral(low) - mass) * (self._integral(high) - mass) >= 0:
            return float(high)
        return float(scipy.optimize.brentq(lambda point: float(self._integral(point)) - mass, low, high))

    def upper_quantile(self, mass: float) -> float:
        """The point above which ``mass`` lies."""
        mirrored = np.roll(self.masses[::-1], 1 - self.masses.size % 2)
        return -_LatticeDensity(mirrored, self.step).lower_quantile(mass)

    @cached_property
    def _points(self) -> Floats:
        return np.asarray((np.arange(self.masses.size) - self.masses.size // 2) * self.step, dtype=np.float64)

    @cached_property
    def _integral(self) -> "scipy.interpolate.PPoly":
        return scipy.interpolate.CubicSpline(self._points, self.masses / self.step).antiderivative()


def _convolved(parts: Sequence[Posterior], step: float, size: int) -> tuple[float, Floats]:
    """Return the masses of the sum on a periodic lattice of ``size`` points, and where its middle point lies."""
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    origins = []
    for part in parts:
        origin, points, masses = part.atoms(_STEPS_BETWEEN_PANELS * step)
        place = float(np.round((part.mean - origin) / step))
        product *= scipy.fft.rfft(_on_lattice(points / step - place, masses, size))
        origins += [origin, place * step]
    return fsum(origins), np.roll(scipy.fft.irfft(product, size), size // 2)


def _on_lattice(places: Floats, masses: Floats, size: int) -> Floats:
    """Share each mass out among the four lattice points around it, so that constants up to cubes keep their mean."""
    whole = np.floor(places)
    u = places - whole
    shares = (
        -u * (u - 1) * (u - 2) / 6,
        (u + 1) * (u - 1) * (u - 2) / 2,
        -(u + 1) * u * (u - 2) / 2,
        (u + 1) * u * (u - 1) / 6,
    )
    found = np.zeros(size)
    for offset, share in zip((-1, 0, 1, 2), shares, strict=True):
        found += np.bincount((whole + offset).astype(np.int64) % size, weights=share * masses, minlength=size)
    return found
