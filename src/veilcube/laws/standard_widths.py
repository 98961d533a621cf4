"""Half-widths of m equal Laplace variables plus a normal one at variance 1: a table for each confidence.

m need not be whole (``answer_noise`` says what for). Over 1/m and the normal share of the variance, bicubic splines
interpolate what Newton's method finds at their knots. The table at 95%, which nearly everybody asks for, is stored
beside this module (``python -m tools.standard_widths``): a command that answers one question is done in the time that
making it would take.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy

from veilcube.system import Floats, Integers

STORED_CONFIDENCE = 0.95
STORED_TABLE = Path(__file__).with_name("standard_widths_95.npy")
_POINTS = np.linspace(0, 1, 41)
# Cubic splines through all points, without knots at the second point and the last but one.
_KNOTS = np.concatenate([[0.0] * 4, _POINTS[2:-2], [1.0] * 4])
_NODES = 240
_NEWTON_STEPS = 60
# The gamma density is left out where it is below exp(-80) of its largest value.
_REACH = 80.0


@dataclass(frozen=True, eq=False)
class WidthTable:
    """The w with P(|S| <= w) = confidence, as coefficients of a bicubic spline."""

    coefficients: Floats

    def at(self, inverse: Floats, normal_share: Floats) -> Floats:
        """Return w where 1/m is ``inverse``, element by element."""
        (row, across), (column, down) = _basis(inverse), _basis(normal_share)
        widths = np.zeros(np.broadcast_shapes(inverse.shape, normal_share.shape))
        for i in range(4):
            for j in range(4):
                widths += self.coefficients[row + i, column + j] * across[i] * down[j]
        return widths


@lru_cache(maxsize=64)
def standard_widths(confidence: float) -> WidthTable:
    """Return the table for a confidence."""
    if confidence == STORED_CONFIDENCE:
        return WidthTable(np.load(STORED_TABLE, allow_pickle=False))
    return make_table(confidence)


def make_table(confidence: float) -> WidthTable:
    """Solve for the w at each pair of points, and interpolate."""
    widths = np.empty((len(_POINTS), len(_POINTS)))
    widths[0] = -scipy.special.ndtri((1 - confidence) / 2)
    terms, share = np.meshgrid(1 / _POINTS[1:], _POINTS, indexing="ij")
    widths[1:] = _solve(terms.ravel(), share.ravel(), confidence).reshape(terms.shape)
    spline = scipy.interpolate.RectBivariateSpline(_POINTS, _POINTS, widths)
    return WidthTable(spline.get_coeffs().reshape(widths.shape))


def _basis(x: Floats) -> tuple[Integers, list[Floats]]:
    """Return the first of the four cubic B-splines that reach x, and the values of the four (de Boor's recurrence)."""
    at = np.clip(x, 0.0, 1.0)
    last = np.clip(np.searchsorted(_KNOTS, at, side="right") - 1, 3, len(_KNOTS) - 5)
    values = [np.ones_like(at)]
    for degree in range(1, 4):
        lower, values = values, [np.zeros_like(at) for _ in range(degree + 1)]
        for i in range(degree):
            right, left = _KNOTS[last + i + 1], _KNOTS[last + i + 1 - degree]
            slope = lower[i] / (right - left)
            values[i] = values[i] + slope * (right - at)
            values[i + 1] = slope * (at - left)
    return last - 3, values


def _solve(terms: Floats, normal_share: Floats, confidence: float) -> Floats:
    """Newton's method on log P(|S| > w), which is concave in w, from the left: it never passes the solution by much.

    Given the gamma variable G behind the sum of m Laplace variables, S is normal: P(|S| > w) is the mean of
    erfc(w / sqrt(2 Var(S | G))).
    """
    gamma, probability = _gamma_nodes(terms)
    spread = np.sqrt(2 * ((1 - normal_share)[:, np.newaxis] * gamma + normal_share[:, np.newaxis]))
    width = np.full(terms.shape, -0.3 * scipy.special.ndtri((1 - confidence) / 2))
    for _ in range(_NEWTON_STEPS):
        standard = width[:, np.newaxis] / spread
        beyond = (probability * scipy.special.erfc(standard)).sum(axis=1)
        slope = (probability * np.exp(-(standard**2)) / spread).sum(axis=1) * 2 / np.sqrt(np.pi)
        step = np.log(beyond / (1 - confidence)) * beyond / slope
        width = np.maximum(width + step, 0.1 * width)
        if np.abs(step).max() < 1e-10:
            break
    return width


def _gamma_nodes(terms: Floats) -> tuple[Floats, Floats]:
    """Return nodes of G/m, G of the gamma law with shape m, and their probabilities: the trapezoidal rule in log G.

    In log G the density is analytic and falls off on both sides, so the rule converges exponentially.
    """
    reach = _REACH / terms + np.sqrt(2 * _REACH / terms)
    log_ratio = np.linspace(-reach, np.log1p(reach), _NODES, axis=-1)
    steps = log_ratio[:, 1] - log_ratio[:, 0]
    m = terms[:, np.newaxis]
    log_density = m * (log_ratio - np.exp(log_ratio) + np.log(m)) - scipy.special.gammaln(m)
    return np.exp(log_ratio), np.exp(log_density) * steps[:, np.newaxis]
