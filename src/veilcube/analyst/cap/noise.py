"""How far a weighted sum of noises with unlike scales reaches: exactly for continuous noise, with room for the lattice.

Discrete Laplace noise of scale t differs from a continuous Laplace variable of the same scale, drawn together with it,
by at most 3/2. A sum of independent Laplace variables of different scales a_i has the tail ½ Σ c_i exp(-x/a_i), with
c_i = Π_(l≠i) a_i²/(a_i² - a_l²), from the partial fractions of its characteristic function (docs/proofs/cap.md,
Lemma 3).
"""

import numpy as np

from veilcube.system import Floats

_OFF_THE_LATTICE = 1.5
_STEPS = 60


def reach(weights: Floats, scales: Floats, chance: float) -> float:
    """Return a number that the weighted sum exceeds with no more than this chance; products must be different.

    >>> round(reach(np.array([1.0]), np.array([100.0]), 0.05), 1)
    231.8
    """
    used = weights > 0
    if not used.any():
        return 0.0
    sizes = weights[used] * scales[used]
    squares = sizes**2
    gaps = squares[:, np.newaxis] - squares
    np.fill_diagonal(gaps, squares)
    parts = (squares[:, np.newaxis] / gaps).prod(axis=1)
    # Beyond this the largest term alone, times the sum of all parts, is less than the chance.
    low, high = 0.0, float(sizes.max()) * np.log(np.abs(parts).sum() / chance)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        over = float(parts @ np.exp(-middle / sizes)) / 2
        low, high = (middle, high) if over > chance else (low, middle)
    return float(high) + _OFF_THE_LATTICE * float(weights[used].sum())


def rough_reach(weights: Floats, scales: Floats, chance: float) -> float:
    """Return such a number where products may be equal: by Chernoff's bound, which is larger."""
    sizes = weights * scales
    largest = float(sizes.max())
    tilts = np.linspace(0.02, 0.98, 49) / largest
    logs = -np.log1p(-((tilts[:, np.newaxis] * sizes) ** 2)).sum(axis=1)
    return float(((np.log(1 / chance) + logs) / tilts).min()) + _OFF_THE_LATTICE * float(weights.sum())
