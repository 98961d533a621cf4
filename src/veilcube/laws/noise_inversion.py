"""Tails of summed noise by integrating the moment generating function along a vertical line.

For a sum with K(s) the logarithm of its moment generating function and any real c in its strip of convergence, c > 0,

    P(S > w) = 1/(2πi) ∫_{c-i∞}^{c+i∞} exp(K(s) - s·w) ds/s         (a lattice law: over one period, with 1/(1 - e^-s))

With c near the saddle point the integrand has the size of the tail itself, so even a tail of 1e-12 keeps its relative
accuracy; an equidistant rule then errs only by what the law puts a whole period away (Abate and Whitt, 1992). Here V is
the variance of one noise variable and K(s) = -Σ_j n_j log(1 - 2V sinh²(w_j s/2)) for Laplace noise, finite for
w_j·s < 1/t; Gaussian noise has its own K, finite everywhere (``DiscreteGaussian.log_transform``).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from veilcube.laws.discrete_gaussian import Complexes
from veilcube.laws.noise import DiscreteLaplace, Noise
from veilcube.system import Floats, Integers

# exp(-depth) is what an integral leaves out, relative to its peak: on the lattice; with blurred weights; and where a
# smooth integrand is cut, when the oscillation of exp(-s·w)/s takes another factor of a thousand off the rest.
_LATTICE_DEPTH = 36.0
_DEPTH = 24.0
_SMOOTH_DEPTH = 12.0
# Logarithm of the smallest probability told apart from zero.
_UNDERFLOW = -690.0
# From this standard deviation on (in units of the largest weight) a uniform blur of one unit hides the lattice.
_SMOOTH_STDDEV = 16.0
# Below it, this many periods of the lattice are integrated, and a Kaiser-Bessel blur of this shape ends the integral.
_PERIODS = 16
_KAISER_SHAPE = 14.0
_KAISER_HALF_WIDTH = _KAISER_SHAPE / (2 * np.pi * _PERIODS)
# What a blurred integral errs by, relative to its integrand on the line, is below a tenth of exp(-this).
_SIGHT = 9.2
_ROWS_AT_ONCE = 64
_NEWTON_STEPS = 10
_MOST_STEPS = 70


def lattice_tail(noise: DiscreteLaplace, terms: Floats, threshold: Floats) -> Floats:
    """P(S_m >= x) for each pair of ``terms`` m >= 1 and ``threshold`` x >= 1, to a relative error below 1e-9.

    A few hundred nodes suffice for many terms at any scale and for any number of terms at a small scale; few terms at a
    large scale would need about forty nodes for each unit of standard deviation.
    """
    v = noise.variance
    # Left of one standard deviation the line would approach the pole at zero: any line is right, so keep it away.
    aim = np.maximum(threshold, np.sqrt(terms * v))
    # The saddle point solves x(1 - y) = m sqrt(y(2V + y)) with y = V(cosh s - 1), a quadratic without cancellation.
    root = terms * np.sqrt(aim * aim * (1 + 2 * v) + (terms * v) ** 2) + terms * terms * v
    y = aim * aim / (aim * aim + root)
    room = root / (aim * aim + root)
    line = 2 * np.arcsinh(np.sqrt(y / (2 * v)))
    exponent = -terms * np.log(room) - line * threshold
    seen = exponent > _UNDERFLOW
    result = np.zeros(threshold.shape)
    if np.any(seen):
        result[seen] = _lattice_integral(noise, terms[seen], threshold[seen], line[seen], room[seen])
    return result


def _lattice_integral(noise: DiscreteLaplace, terms: Floats, threshold: Floats, line: Floats, room: Floats) -> Floats:
    v = noise.variance
    tilted = v * np.cosh(line) / room
    spread = np.sqrt(terms * (tilted + (v * np.sinh(line) / room) ** 2))
    # |integrand| <= peak · (1 + tilted (1 - cos θ))^-m, so beyond this angle it is below exp(-depth).
    reach = 2 * np.arcsin(np.sqrt(np.minimum(1.0, np.expm1(np.minimum(_LATTICE_DEPTH / terms, 50.0)) / (2 * tilted))))
    period = 10 * spread + _LATTICE_DEPTH / line + _LATTICE_DEPTH / (noise.rate - line)
    nodes = int(np.max(np.ceil(reach * period / (2 * np.pi)))) + 4
    angle = reach[:, np.newaxis] * ((np.arange(nodes) + 0.5) / nodes)
    s = line[:, np.newaxis] + 1j * angle
    exponent = terms[:, np.newaxis] * noise.log_transform(s) - s * threshold[:, np.newaxis]
    integrand = np.exp(exponent) / -np.expm1(-s)
    return np.asarray(integrand.real.sum(axis=1) * reach / (nodes * np.pi))


def blurred_half_widths(noise: Noise, weights: Floats, counts: Floats, error_rate: float) -> Floats:
    """For each row n of ``counts`` a w with P(|Σ_j weights[j]·S_{n_j}| > w) <= error_rate; the largest weight is 1.

    The sum is blurred by an independent variable B with |B| <= b, which makes its distribution function continuous and
    lets the integral end; if P(|S + B| > q) = error_rate then P(|S| > q + b) <= error_rate, so q + b is returned. B is
    uniform with b = 1/2 where the standard deviation is 16 or more, else Kaiser-Bessel with b = 0.14.
    """
    smooth = noise.variance * (counts @ weights**2) >= _SMOOTH_STDDEV**2
    widths = np.empty(counts.shape[0])
    for blur in (_KAISER, _UNIFORM):
        rows = np.flatnonzero(smooth == (blur is _UNIFORM))
        for start in range(0, rows.size, _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            widths[part] = _WeightedSums(noise, weights, counts[part]).half_widths(blur, error_rate)
    return widths


@dataclass(frozen=True)
class _Blur:
    """A symmetric bounded variable B: half its width, where its integral ends, and its transform E exp(s·B)."""

    half_width: float
    last_angle: float
    transform: Callable[[Complexes], Complexes]


def _kaiser_transform(s: Complexes) -> Complexes:
    """The Kaiser-Bessel density I0(β sqrt(1 - (u/b)²)) has transform sinhc(sqrt(β² + (b·s)²)) up to a constant."""
    root = np.sqrt(_KAISER_SHAPE**2 + (_KAISER_HALF_WIDTH * s) ** 2)
    return np.asarray(np.sinh(root) / root * (_KAISER_SHAPE / np.sinh(_KAISER_SHAPE)))


_UNIFORM = _Blur(0.5, np.pi, lambda s: np.sinh(s / 2) / (s / 2))
_KAISER = _Blur(_KAISER_HALF_WIDTH, 2 * np.pi * _PERIODS, _kaiser_transform)


@dataclass(frozen=True)
class _WeightedSums:
    """Rows k of weighted sums Σ_j weights[j]·S_{counts[k, j]}, with the derivatives of each row's K(s)."""

    noise: Noise
    weights: Floats
    counts: Floats

    def half_widths(self, blur: _Blur, error_rate: float) -> Floats:
        """q + b for each row: safeguarded Newton steps on log P(|S + B| > w), down from Chernoff's bound.

        The integral tells nothing where its integrand is far larger than the error rate: there w counts as too small.
        """
        line = self._line(error_rate)
        nodes = self._nodes(blur, line)
        low = np.zeros(line.shape)
        peak = self._cumulant(line, 0)
        high = (peak + np.log(2 / error_rate)) / line + blur.half_width
        width = high
        for step in range(_MOST_STEPS):
            density, upper = nodes.density_and_tail(width)
            is_blind = peak - line * width > np.log(error_rate) + _SIGHT
            excess = np.where(is_blind, np.inf, np.log(np.maximum(upper, 1e-300) / error_rate))
            low, high = np.where(excess > 0, width, low), np.where(excess > 0, high, width)
            with np.errstate(all="ignore"):
                newton = width + excess * upper / density
            settled = (np.abs(newton - width) <= 1e-8 * width) | (high - low <= 1e-8 * width)
            if np.all(settled):
                break
            usable = (newton > low) & (newton < high) & (step < _NEWTON_STEPS)
            width = np.where(settled, width, np.where(usable, newton, (low + high) / 2))
        return np.asarray(width + blur.half_width)

    def _nodes(self, blur: _Blur, line: Floats) -> "_Nodes":
        period = 8 * np.sqrt(self._cumulant(line, 2)) + _DEPTH / line + _DEPTH / (self.noise.rate - line) + 4
        if blur is _UNIFORM:
            row, angle, spacing = self._nodes_up_to_decay(line, period)
        else:
            row, angle, spacing = self._nodes_where_seen(float(period.max()), blur.last_angle)
        s = line[row] + 1j * angle
        log_transform = np.zeros(s.shape, dtype=np.complex128)
        for weight, count in zip(self.weights, self.counts.T, strict=True):
            log_transform += count[row] * self.noise.log_transform(s * weight)
        values = np.exp(log_transform) * blur.transform(s) * (2 / np.pi * spacing)
        return _Nodes(row, np.searchsorted(row, np.arange(line.size)), s, values)

    def _nodes_where_seen(self, period: float, last_angle: float) -> tuple[Integers, Floats, Floats]:
        """One grid of angles for all rows; a row keeps those where its transform exceeds exp(-depth) of its peak.

        Between the returns of a lattice the transform of many terms vanishes, so most of the grid drops out. On the
        line it decays faster than on the imaginary axis, where the bound is taken because all rows share it there.
        """
        size = int(np.ceil(last_angle * period / (2 * np.pi)))
        angle = last_angle * (np.arange(size) + 0.5) / size
        decay = self.noise.decay(np.outer(self.weights, angle))
        row, column = np.nonzero(self.counts @ decay < _DEPTH)
        return row, angle[column], np.full(row.shape, last_angle / size)

    def _nodes_up_to_decay(self, line: Floats, period: Floats) -> tuple[Integers, Floats, Floats]:
        """A grid of its own for each row, up to the angle of ``_reach``."""
        reach = self._reach(line)
        sizes = np.ceil(reach * period / (2 * np.pi)).astype(np.int64) + 4
        row = np.repeat(np.arange(sizes.size), sizes)
        spacing = (reach / sizes)[row]
        place = np.arange(row.size) - (np.cumsum(sizes) - sizes)[row]
        return row, spacing * (place + 0.5), spacing

    def _line(self, error_rate: float) -> Floats:
        """The s where s·K'(s) - K(s), the tail's exponent at K'(s), is -log(error_rate) or 1/2, by bisection."""
        wanted = max(float(-np.log(error_rate)), 0.5)
        low = np.zeros(self.counts.shape[0])
        high = np.full(low.shape, self.noise.farthest_tilt(wanted))
        for _ in range(40):
            s = (low + high) / 2
            below = s * self._cumulant(s, 1) - self._cumulant(s, 0) < wanted
            low, high = np.where(below, s, low), np.where(below, high, s)
        return low

    def _reach(self, line: Floats) -> Floats:
        """The angle beyond which the integrand is below exp(-depth) of its peak, or half a period of the lattice."""
        tilted = self.noise.tilted_step(line[:, np.newaxis] * self.weights)
        low, high = np.zeros(line.shape), np.full(line.shape, np.pi)
        for _ in range(60):
            angle = (low + high) / 2
            decay = self.counts * np.log1p(2 * tilted * np.sin(angle[:, np.newaxis] * self.weights / 2) ** 2)
            near = decay.sum(axis=1) < _SMOOTH_DEPTH
            low, high = np.where(near, angle, low), np.where(near, high, angle)
        return high

    def _cumulant(self, s: Floats, order: int) -> Floats:
        """The derivative of K of this order (0, 1 or 2) at each row's real s."""
        scaled = s[:, np.newaxis] * self.weights
        if order == 0:
            return np.asarray((self.counts * self.noise.log_transform(scaled)).sum(axis=1))
        mean, variance = self.noise.tilted(scaled)
        if order == 1:
            return np.asarray((self.counts * self.weights * mean).sum(axis=1))
        return np.asarray((self.counts * self.weights**2 * variance).sum(axis=1))


@dataclass(frozen=True)
class _Nodes:
    """The integral as a sum of values·exp(-s·w)/s over nodes s, those of each row together from its ``starts`` on."""

    row: Integers
    starts: Integers
    s: Complexes
    values: Complexes

    def density_and_tail(self, width: Floats) -> tuple[Floats, Floats]:
        """For each row k the density of |S + B| at width[k], and P(|S + B| > width[k])."""
        terms = self.values * np.exp(-self.s * width[self.row])
        return np.add.reduceat(terms.real, self.starts), np.add.reduceat((terms / self.s).real, self.starts)
