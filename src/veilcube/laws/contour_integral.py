"""Densities of sums of Laplace noises by integrating the moment generating function along a contour.

With K the logarithm of the moment generating function of S and any real c in its strip of convergence, the density is
1/(2πi) ∫ exp(K(s) - s·z) ds along the vertical line through c. For z >= 0 every singularity to the right of the line is
a pole on the real axis, so the line may be bent around them into a hyperbola

    s(u) = c + w (i sinh u + β (cosh u - 1)),        -∞ < u < ∞

on which exp(-s·z) decays instead of turning. With c at the saddle point, K'(c) = z, the integrand is largest at c and
has the size of the density itself, so nothing cancels, however far out z is and however close two scales are; and an
equidistant rule in u converges geometrically (Weideman and Trefethen, 2007). On the lattice the same hyperbola, wrapped
around the origin by x = x0 (1 + T)/(1 - T) with x = exp(s) and 2T = s(u) - c, is a closed curve that begins and ends at
-x0. Both functions return the *excess* log f(z) + z/b over the exponential tail of the largest scale b: it grows like
log z only, so that differences of huge exponents are left to the caller, who can take them exactly.
"""

import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from veilcube.system import Floats, compile_loop

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Spacing of the nodes u, measured: the relative error stays below 1e-12 for one term and for a million.
_SPACING = 0.1
_NODES = _SPACING * (np.arange(1000) + 0.5)
_SINH = np.sinh(_NODES)
_COSH = np.cosh(_NODES)
# The sum over nodes ends where a term is below this share of the peak.
_NEGLIGIBLE = 1e-18
_SADDLE_STEPS = 24
_LEISURE = 30.0


def excess_of_sum(scales: Floats, terms: Floats, distances: Floats) -> Floats:
    """Log f(z) + z/b for each z >= 0 of ``distances``: f the density of Σ_j (terms[j] Laplace(scales[j])), b = max."""
    largest = float(scales.max())
    flat = np.ascontiguousarray(distances, dtype=np.float64).ravel() / largest
    excess = np.empty(flat.size)
    _fill_real(scales / largest, terms, flat, excess)
    return np.asarray(excess.reshape(distances.shape) - math.log(largest))


def excess_of_lattice_sum(rates: Floats, terms: Floats, distances: Floats) -> Floats:
    """Log P(S = k) + k·min(rates) for each integer k >= 0: S sums terms[j] discrete Laplace noises of scale 1/rates[j].

    Between the integers the curve is not closed and the result means nothing.
    """
    flat = np.ascontiguousarray(distances, dtype=np.float64).ravel()
    excess = np.empty(flat.size)
    variances = 1 / (2 * np.sinh(rates / 2) ** 2)
    _fill_lattice(variances, float(rates.min()), terms, flat, excess)
    return excess.reshape(distances.shape)


def _compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    return compile_loop(function, error_model="numpy")


@_compiled
def _bend(second: float, fourth: float) -> float:
    """β: 1/2 around a pole of low order, less where the integrand is nearly a normal law's, which decays on its own."""
    return 0.3 + 0.2 / (1 + second * second / fourth / 64)


@_compiled
def _log_of_square(step: complex) -> float:
    """log |1 + step|², not rounded to 1 + step first: the caller multiplies it by a large number."""
    return math.log1p(2 * step.real + step.real * step.real + step.imag * step.imag)


@_compiled
def _log_of_factors(shares: Floats, terms: Floats, move: complex) -> tuple[float, float]:
    """The real and the imaginary part of -Σ_j n_j log(1 - shares_j·move), how far K has moved from the saddle."""
    size, turn = 0.0, 0.0
    for share, n in zip(shares, terms):  # noqa: B905 - numba knows no strict
        less = share * move
        size -= 0.5 * n * _log_of_square(-less)
        turn -= n * math.atan2(-less.imag, 1 - less.real)
    return size, turn


@_compiled
def _log_room(room: float, taken: float) -> float:
    """log(room) where room = 1 - taken, from whichever of the two is known better."""
    return math.log(room) if taken > 0.5 else math.log1p(-taken)


@_compiled
def _real_saddle(ratios: Floats, terms: Floats, z: float) -> tuple[float, float]:
    """c and 1 - c² with K'(c) = z nearly: for one scale exactly, else by a monotone fixed-point iteration.

    K'(c) = 2c M(c)/(1 - c²) with M bounded, a quadratic in c for given M; any c is right, the saddle is best.
    """
    c, gap = 0.0, 1.0
    for _ in range(_SADDLE_STEPS if ratios.size > 1 else 1):
        weight = 0.0
        for r, n in zip(ratios, terms):  # noqa: B905 - numba knows no strict
            weight += n * r * r * gap / ((1 - r) * (1 + r) + r * r * gap)
        root = weight + math.hypot(weight, z)
        c, gap = z / root, 2 * weight / root
    return c, gap


@_compiled
def _fill_real(ratios: Floats, terms: Floats, distances: Floats, excess: Floats) -> None:
    """The continuous law in units of the largest scale: K(s) = -Σ n_j log(1 - r_j² s²) with r_j <= 1."""
    shares = np.empty(ratios.size)
    for point in range(distances.size):
        z = distances[point]
        c, gap = _real_saddle(ratios, terms, z)
        lead = z * (gap / (1 + c))
        second, fourth = 0.0, 0.0
        for j in range(ratios.size):
            r, n = ratios[j], terms[j]
            # 1 - r² c² from 1 - c² (``gap``), without cancellation when both are tiny.
            room = (1 - r) * (1 + r) + r * r * gap
            lead -= n * _log_room(room, r * r * c * c)
            near, far = r * (1 + r * c) / room, r / (1 + r * c)
            second += n * (near**2 + far**2)
            fourth += n * (near**4 + far**4)
            shares[j] = r * r / room
        width, bend = 1 / math.sqrt(second), _bend(second, fourth)
        total = 0.0
        for sinh, cosh in zip(_SINH, _COSH):  # noqa: B905 - numba knows no strict
            step = width * complex(bend * (cosh - 1), sinh)
            size, turn = _log_of_factors(shares, terms, step * (2 * c + step))
            grown, turn = math.exp(size - z * step.real), turn - z * step.imag
            total += grown * (math.cos(turn) * cosh + math.sin(turn) * bend * sinh)
            if grown * cosh < _NEGLIGIBLE:
                break
        excess[point] = lead + math.log(total * width * _SPACING / math.pi)


@_compiled
def _lattice_saddle(variances: Floats, terms: Floats, k: float) -> tuple[float, float]:
    """y = cosh s - 1 and 1 - V y (V the largest variance) with K'(s) = k nearly, iterated as for the continuous law."""
    largest = variances.max()
    y, gap = 0.0, 1.0
    for _ in range(_SADDLE_STEPS if variances.size > 1 else 1):
        m = 0.0
        for v, n in zip(variances, terms):  # noqa: B905 - numba knows no strict
            m += n * v * gap / ((largest - v) + v * gap)
        root = m * math.sqrt(k * k * (1 + 2 * largest) + (m * largest) ** 2) + m * m * largest
        y, gap = k * k / (k * k + root) / largest, root / (k * k + root)
    return y, gap


@_compiled
def _fill_lattice(variances: Floats, rate: float, terms: Floats, distances: Floats, excess: Floats) -> None:
    """The law on the integers: K = -Σ n_j log(1 - V_j y) with y = cosh s - 1; ``rate`` is the least decay."""
    largest = variances.max()
    shares = np.empty(variances.size)
    for point in range(distances.size):
        k = distances[point]
        y, gap = _lattice_saddle(variances, terms, k)
        sinh_s = math.sqrt(y * (2 + y))
        # k·(rate - s), where exp(rate - s) = 1 + ρ·gap/(1 + (x - 1)/q) for ρ = exp(rate) - 1 and q = 1 - exp(-rate).
        lead = k * math.log1p(math.expm1(rate) * gap / (1 + (y + sinh_s) / -math.expm1(-rate)))
        second, fourth = 0.0, 0.0
        for j in range(variances.size):
            v, n = variances[j], terms[j]
            room = (1 - v / largest) + v / largest * gap
            lead -= n * _log_room(room, v * y)
            curvature = v * (1 + y) / room + (v * sinh_s / room) ** 2
            second += n * curvature
            fourth += n * (curvature + curvature * curvature)
            shares[j] = v / room
        width, bend = min(1.0, 1 / math.sqrt(second)), _bend(second, fourth)
        total = _sum_around_origin(shares, terms, k, y, sinh_s, width, bend)
        excess[point] = lead + math.log(total * width * _SPACING / math.pi)


@_compiled
def _sum_around_origin(
    shares: Floats, terms: Floats, k: float, y: float, sinh_s: float, width: float, bend: float
) -> float:
    """The sum over the nodes of the closed curve through x = exp(s), relative to the integrand there.

    Past its last singularity, at |T| = 1, the curve only creeps up to its end, so there u hurries ahead of the nodes.
    """
    x = 1 + y + sinh_s
    hurry = width / _LEISURE
    total = 0.0
    for node, sinh_node, cosh_node in zip(_NODES, _SINH, _COSH):  # noqa: B905 - numba knows no strict
        u = node + hurry * sinh_node
        sinh, cosh = math.sinh(u), math.cosh(u)
        half = 0.5 * width * complex(bend * (cosh - 1), sinh)
        step = 2 * half / (1 - half)  # x moves to x (1 + step)
        rise = step * ((y + sinh_s) * (1 + x) / x + x * step) / (2 * (1 + step))
        size, turn = _log_of_factors(shares, terms, rise)
        grown, turn = math.exp(size - 0.5 * k * _log_of_square(step)), turn - k * math.atan2(step.imag, 1 + step.real)
        slope = (1 + hurry * cosh_node) * complex(cosh, -bend * sinh) / ((1 - half) * (1 + half))
        total += grown * (math.cos(turn) * slope.real - math.sin(turn) * slope.imag)
        if grown * (abs(slope.real) + abs(slope.imag)) < _NEGLIGIBLE:
            break
    return total
