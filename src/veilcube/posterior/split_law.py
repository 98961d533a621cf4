"""How a node's count divides between its two halves: a mixture of Beta laws, on a grid.

Given j units in a node, the left half holds i of them with probability π(i|j) = F((i+½)/j) - F((i-½)/j), where F is
the distribution function of the left share: a mixture of Beta(a, a) for many a (from all-or-nothing to nearly even),
an atom at one half, and atoms at all and at nothing, which learn on which side of sparse data its mass lies. The
rest of F is symmetric, so it is tabulated below ½ only, over
q = log2(s / (½ - s)), in which all components are smooth. With s = (i+½)/j that is log2(2i+1) - log2(j-2i-1): two looks
into a table of logarithms. Small j, where most of the work is, have their rows ready made.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from veilcube.operators.parallel import compiled, compiled_fast

Floats = NDArray[np.float64]

BETA_SHAPES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, *(4.0**power for power in range(1, 13)))
BETAS = len(BETA_SHAPES)
COMPONENTS = BETAS + 3
HALF, ALL_LEFT, ALL_RIGHT = BETAS, BETAS + 1, BETAS + 2

KNOTS_PER_UNIT = 32
FARTHEST = 30.0
KNOTS = int(2 * FARTHEST * KNOTS_PER_UNIT) + 1
READY_ROWS = 128
READY_ENTRIES = READY_ROWS * (READY_ROWS + 1) // 2
LOGARITHMS = 1 << 17


@dataclass(frozen=True, eq=False)
class SplitLaw:
    """The mixture of each class of nodes: weights (classes, components), and the tables that the kernels read."""

    weights: Floats
    rows: Floats
    shares: Floats

    @classmethod
    def of(cls, weights: Floats) -> "SplitLaw":
        """Tabulate mixtures with these weights."""
        rows = weights @ component_rows()
        return cls(weights, rows, weights[:, :BETAS] @ component_shares())

    @property
    def left_shares(self) -> Floats:
        """The mean share of the left half in each class: the atoms alone may prefer a side."""
        means: Floats = 0.5 + 0.5 * (self.weights[:, ALL_LEFT] - self.weights[:, ALL_RIGHT])
        return means

    @classmethod
    def even(cls, classes: int) -> "SplitLaw":
        """Return the mixture in which no component is preferred."""
        return cls.of(np.full((classes, COMPONENTS), 1 / COMPONENTS))


@lru_cache(maxsize=1)
def logarithms() -> Floats:
    """Return log2 of 0, 1, 2, ... (what stands for log2 of 0 is never read)."""
    table = np.zeros(LOGARITHMS)
    table[1:] = np.log2(np.arange(1, LOGARITHMS))
    return table


@lru_cache(maxsize=1)
def component_shares() -> Floats:
    """Return F of each Beta component at the knots, which lie below ½ and end there."""
    odds = np.exp2(np.linspace(-FARTHEST, FARTHEST, KNOTS))
    shares = 0.5 * odds / (1 + odds)
    table = np.stack([betainc(shape, shape, shares) for shape in BETA_SHAPES])
    return table * (0.5 / table[:, -1:])


@lru_cache(maxsize=1)
def component_rows() -> Floats:
    """Return π(i|j) of each component for all j below READY_ROWS, row after row in one triangle."""
    table = np.zeros((COMPONENTS, READY_ENTRIES))
    for component, shares in enumerate(component_shares()):
        _fill_rows(shares, logarithms(), table[component])
    for j in range(READY_ROWS):
        start = j * (j + 1) // 2
        table[HALF, start + j // 2] += 0.5
        table[HALF, start + (j + 1) // 2] += 0.5
        table[ALL_LEFT, start + j] = table[ALL_RIGHT, start] = 1.0
    return table


@compiled
def _fill_rows(shares: Floats, logs: Floats, out: Floats) -> None:
    out[0] = 1.0
    for j in range(1, READY_ROWS):
        start = j * (j + 1) // 2
        fill_row(shares, logs, j, 0, j, out[start : start + j + 1])


@compiled
def share_below(shares: Floats, logs: Floats, i: int, j: int) -> float:
    """Return F((i+½)/j) of Beta components whose table at the knots is ``shares``; their mass is twice its end."""
    twice = 2 * i + 1
    mass: float = 2.0 * shares[-1]
    if twice <= 0:
        return 0.0
    if twice >= 2 * j:
        return mass
    if twice == j:
        return 0.5 * mass
    near, far = (twice, j - twice) if twice < j else (2 * j - twice, twice - j)
    near_log = logs[near] if near < logs.size else np.log2(near)
    far_log = logs[far] if far < logs.size else np.log2(far)
    place = (near_log - far_log + FARTHEST) * KNOTS_PER_UNIT
    below: float
    if place <= 0.0:
        below = shares[0]
    elif place >= shares.size - 1:
        below = shares[-1]
    else:
        knot = int(place)
        below = shares[knot] + (shares[knot + 1] - shares[knot]) * (place - knot)
    return below if twice < j else mass - below


@compiled
def fill_row(shares: Floats, logs: Floats, j: int, low: int, high: int, out: Floats) -> None:
    """Write the Beta components' π(i|j) for i from ``low`` to ``high``."""
    before = share_below(shares, logs, low - 1, j)
    if j < logs.size:
        _fill_shares(shares, logs, j, low, high, out)
    else:
        for i in range(low, high + 1):
            out[i - low] = share_below(shares, logs, i, j)
    for x in range(high - low, 0, -1):
        out[x] -= out[x - 1]
    out[0] -= before


@compiled_fast
def _fill_shares(shares: Floats, logs: Floats, j: int, low: int, high: int, out: Floats) -> None:
    """Write F((i+½)/j), in loops without branches that compile to vector instructions."""
    middle = min(max((j + 1) // 2, low), high + 1)  # from here on 2i+1 is j or more
    end, scale, mass = np.int32(shares.size - 2), float(KNOTS_PER_UNIT), 2.0 * shares[-1]
    for i in range(low, middle):
        place = (logs[2 * i + 1] - logs[j - 2 * i - 1] + FARTHEST) * scale
        knot = min(max(np.int32(place), np.int32(0)), end)
        part = min(max(place - knot, 0.0), 1.0)
        out[i - low] = shares[knot] + (shares[knot + 1] - shares[knot]) * part
    for i in range(middle, min(high + 1, j)):
        place = (logs[2 * j - 2 * i - 1] - logs[2 * i + 1 - j] + FARTHEST) * scale
        knot = min(max(np.int32(place), np.int32(0)), end)
        part = min(max(place - knot, 0.0), 1.0)
        out[i - low] = mass - (shares[knot] + (shares[knot + 1] - shares[knot]) * part)
    if low <= j // 2 <= high and j % 2 == 1:
        out[j // 2 - low] = 0.5 * mass  # the middle itself, where the logarithm has no value
    if high >= j:
        out[j - low] = mass


@compiled
def add_atoms(weights: Floats, j: int, low: int, high: int, out: Floats) -> None:
    """Add the atoms at one half, at all and at nothing."""
    for middle in (j // 2, (j + 1) // 2):
        if low <= middle <= high:
            out[middle - low] += 0.5 * weights[HALF]
    if low == 0:
        out[0] += weights[ALL_RIGHT]
    if high == j:
        out[j - low] += weights[ALL_LEFT]
