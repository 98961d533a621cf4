"""How a node's count divides between its two halves: a mixture of Beta laws, on a grid.

Given j units in a node, the left half holds i of them with probability π(i|j) = F((i+½)/j) - F((i-½)/j), where F is
the distribution function of the left share: a mixture of Beta(a, a) for many a (from all-or-nothing to nearly even),
an atom at one half, and atoms at all and at nothing, which learn on which side of sparse data its mass lies. The rest
of F is symmetric, so it is tabulated below ½ only, over q = log2(s / (½ - s)), in which all components are smooth. With
s = (i+½)/j that is log2(2i+1) - log2(j-2i-1): two looks into a table of logarithms. Small j, where most of the work is,
have their rows ready made.

Products with these rows run on the calling thread: the threads of a linear algebra library keep a core busy long after
such a product and wait for each other where another program has the core, which would cost more than all else.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from veilcube.operators import HalvingTree
from veilcube.system import Floats, compiled, compiled_fast

BLOCK = 512  # so many columns of all components stay in a near cache


def mixed(weights: Floats, rows: Floats) -> Floats:
    """Return ``weights @ rows``."""
    out = np.zeros((weights.shape[0], rows.shape[1]))
    _add_mixtures(np.ascontiguousarray(weights), rows, out)
    return out


def matched(mixtures: Floats, rows: Floats) -> Floats:
    """Return ``mixtures @ rows.T``."""
    out = np.zeros((mixtures.shape[0], rows.shape[0]))
    _add_matches(mixtures, rows, out)
    return out


@compiled
def _add_mixtures(weights: Floats, rows: Floats, out: Floats) -> None:
    for begin in range(0, rows.shape[1], BLOCK):
        for k in range(weights.shape[0]):
            for c in range(weights.shape[1]):
                _add_scaled(weights[k, c], rows[c, begin : begin + BLOCK], out[k, begin : begin + BLOCK])


@compiled
def _add_matches(mixtures: Floats, rows: Floats, out: Floats) -> None:
    for begin in range(0, rows.shape[1], BLOCK):
        for k in range(mixtures.shape[0]):
            block = mixtures[k, begin : begin + BLOCK]
            if block.any():
                for c in range(rows.shape[0]):
                    out[k, c] += _dot(block, rows[c, begin : begin + BLOCK])


@compiled_fast
def _add_scaled(factor: float, row: Floats, out: Floats) -> None:
    for x in range(row.size):
        out[x] += factor * row[x]


@compiled_fast
def _dot(first: Floats, second: Floats) -> float:
    total = 0.0
    for x in range(first.size):
        total += first[x] * second[x]
    return total


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
        return cls(weights, mixed(weights, component_rows()), mixed(weights[:, :BETAS], component_shares()))

    @property
    def left_shares(self) -> Floats:
        """The mean share of the left half in each class: the atoms alone may prefer a side."""
        means: Floats = 0.5 + 0.5 * (self.weights[:, ALL_LEFT] - self.weights[:, ALL_RIGHT])
        return means

    @classmethod
    def even(cls, tree: HalvingTree) -> "SplitLaw":
        """Return the mixture for a tree in which no component is preferred.

        On a line it leaves the atoms of one side out: a class of nodes at an end has one node there, too few to learn
        a side from. In a plane they tell on which side of the edges sparse data lies.
        """
        used = BETAS + 1 if tree.is_line else COMPONENTS
        weights = np.zeros((tree.classes, COMPONENTS))
        weights[:, :used] = 1 / used
        return cls.of(weights)


class Law(NamedTuple):
    """The split law's tables, as the kernels read them."""

    weights: Floats
    rows: Floats
    shares: Floats
    logs: Floats


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
    table = np.stack([scipy.special.betainc(shape, shape, shares) for shape in BETA_SHAPES])
    return table * (0.5 / table[:, -1:])


@lru_cache(maxsize=1)
def component_knots() -> Floats:
    """Return ``component_shares`` with knots first, for looks at all components of one share."""
    return np.ascontiguousarray(component_shares().T)


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
def share_at(shares: Floats, logs: Floats, twice: int, j: int) -> float:
    """Return F(twice / 2j) of Beta components whose table at the knots is ``shares``; their mass is twice its end."""
    mass: float = 2.0 * shares[-1]
    if twice <= 0:
        return 0.0
    if twice >= 2 * j:
        return mass
    if twice == j:
        return 0.5 * mass
    knot, part = place_of(logs, twice, j)
    below: float = shares[knot] + (shares[knot + 1] - shares[knot]) * part
    return below if twice < j else mass - below


@compiled
def place_of(logs: Floats, twice: int, j: int) -> tuple[int, float]:
    """Return the knot before the share twice / 2j, or before its mirror image if above ½, and how far it is on."""
    near, far = (twice, j - twice) if twice < j else (2 * j - twice, twice - j)
    near_log = logs[near] if near < logs.size else np.log2(near)
    far_log = logs[far] if far < logs.size else np.log2(far)
    place = (near_log - far_log + FARTHEST) * KNOTS_PER_UNIT
    knot = min(max(int(place), 0), KNOTS - 2)
    return knot, min(max(place - knot, 0.0), 1.0)


@compiled
def fill_row(shares: Floats, logs: Floats, j: int, low: int, high: int, out: Floats) -> None:
    """Write the Beta components' π(i|j) for i from ``low`` to ``high``."""
    before = share_at(shares, logs, 2 * low - 1, j)
    fill_shares(shares, logs, j, 2 * low + 1, 2, high - low + 1, out)
    for x in range(high - low, 0, -1):
        out[x] -= out[x - 1]
    out[0] -= before


@compiled
def fill_shares(shares: Floats, logs: Floats, j: int, twice: int, stride: int, count: int, out: Floats) -> None:
    """Write F(twice / 2j) for ``count`` values of ``twice``, ``stride`` apart."""
    if j >= logs.size:
        for x in range(count):
            out[x] = share_at(shares, logs, twice + stride * x, j)
        return
    inside = min(max((2 * j - twice + stride - 1) // stride, 0), count)
    outside = min(max((-twice) // stride + 1, 0), inside)
    out[:outside] = 0.0
    out[inside:count] = 2.0 * shares[-1]
    _fill_inside(shares, logs, j, twice + stride * outside, stride, out[outside:inside])


@compiled_fast
def _fill_inside(shares: Floats, logs: Floats, j: int, twice: int, stride: int, out: Floats) -> None:
    """Write F at shares between 0 and 1, in loops without branches that compile to vector instructions."""
    middle = min(max((j - twice + stride - 1) // stride, 0), out.size)  # from here on shares are ½ or more
    end, scale, mass = np.int32(shares.size - 2), float(KNOTS_PER_UNIT), 2.0 * shares[-1]
    for x in range(middle):
        place = (logs[twice + stride * x] - logs[j - twice - stride * x] + FARTHEST) * scale
        knot = min(max(np.int32(place), np.int32(0)), end)
        part = min(max(place - knot, 0.0), 1.0)
        out[x] = shares[knot] + (shares[knot + 1] - shares[knot]) * part
    for x in range(middle, out.size):
        place = (logs[2 * j - twice - stride * x] - logs[twice + stride * x - j] + FARTHEST) * scale
        knot = min(max(np.int32(place), np.int32(0)), end)
        part = min(max(place - knot, 0.0), 1.0)
        out[x] = mass - (shares[knot] + (shares[knot + 1] - shares[knot]) * part)
    if middle < out.size and twice + stride * middle == j:
        out[middle] = 0.5 * mass  # the middle itself, where the logarithm has no value


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


@compiled
def split_row(law: Law, kind: int, j: int, low: int, high: int, room: Floats) -> Floats:
    """Return π(i|j) for i from ``low`` to ``high``: a view of a ready row, or computed into ``room``."""
    if j < READY_ROWS:
        start = j * (j + 1) // 2
        return law.rows[kind, start + low : start + high + 1]
    fill_row(law.shares[kind], law.logs, j, low, high, room)
    add_atoms(law.weights[kind], j, low, high, room)
    return room[: high - low + 1]
