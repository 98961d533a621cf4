"""Tails of sums of discrete Gaussian noise, by integrating the moment generating function along a vertical line.

As in ``laws.noise_inversion``, for the sum of m noises of one law and any real c > 0

    P(S >= x) = 1/(2·pi) ∫ exp(m·K(z) - z·x) / (1 - e^-z) dθ,     z = c + iθ,     θ from -pi to pi,

with c near the saddle point, where m·K'(c) = x, so that the integrand has the size of the tail itself. K is finite
everywhere. On the line the law of one noise, weighted by exp(c·x), is that of independent variables with two values
each, so its characteristic function is at most exp(-K''(c)·(1 - cos θ)) in size (docs/proofs/discrete-gaussian.md,
Theorem 3): that says where the integral may be cut.
"""

import numpy as np

from veilcube.laws.discrete_gaussian import DiscreteGaussian
from veilcube.system import Floats

# exp(-depth) is what the integral leaves out, relative to its peak.
_DEPTH = 36.0
# Probabilities below exp(-300) are told as zero.
_UNDERFLOW = 300.0
# A sum of rare noises has tails like Poisson's law: so many units beyond ten standard deviations are below exp(-36).
_UNITS_BEYOND = 40.0
# Below this parameter s·c is no longer near the mean K'(c), and the saddle point is searched.
_SMALLEST_SMOOTH = 0.5
_BISECTIONS = 60


def gaussian_lattice_tail(noise: DiscreteGaussian, terms: Floats, threshold: Floats) -> Floats:
    """P(S_m >= x) for each pair of ``terms`` m >= 1 and ``threshold`` x >= 1, to a relative error below 1e-9.

    Probabilities below exp(-300) come back as zero. A few hundred nodes suffice for any number of terms.
    """
    result = np.zeros(threshold.shape)
    # P(S >= x) <= exp(-x²/(2·m·s)), by Theorem 2.
    seen = threshold * threshold < 2 * _UNDERFLOW * terms * float(noise.sigma_squared)
    if np.any(seen):
        result[seen] = _lattice_integral(noise, terms[seen], threshold[seen])
    return result


def _lattice_integral(noise: DiscreteGaussian, terms: Floats, threshold: Floats) -> Floats:
    # Left of one standard deviation the line would approach the pole at zero: any line is right, so keep it away.
    line = _saddle_point(noise, np.maximum(threshold, np.sqrt(terms * noise.variance)) / terms)
    variance = terms * noise.tilted(line)[1]
    reach = 2 * np.arcsin(np.sqrt(np.minimum(1.0, _DEPTH / (2 * variance))))
    period = 10 * np.sqrt(variance) + _DEPTH / line + _UNITS_BEYOND
    nodes = int(np.max(np.ceil(reach * period / (2 * np.pi)))) + 4
    angle = reach[:, np.newaxis] * ((np.arange(nodes) + 0.5) / nodes)
    z = line[:, np.newaxis] + 1j * angle
    exponent = terms[:, np.newaxis] * noise.log_transform(z) - z * threshold[:, np.newaxis]
    integrand = np.exp(exponent) / -np.expm1(-z)
    return np.asarray(integrand.real.sum(axis=1) * reach / (nodes * np.pi))


def _saddle_point(noise: DiscreteGaussian, mean: Floats) -> Floats:
    """The c with K'(c) = mean, roughly: K'(c) lies between the whole numbers around s·c, near it for larger s."""
    s = float(noise.sigma_squared)
    if s >= _SMALLEST_SMOOTH:
        return mean / s
    low, high = np.zeros(mean.shape), (mean + 1) / s
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = noise.tilted(middle)[0] < mean
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high
