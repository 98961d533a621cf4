"""The search for a strategy that fits given queries: parametrised rows, closed-form error and gradient, L-BFGS.

A design is A = [diag(d); C] with columns of norm 1, L1 for Laplace noise and L2 for Gaussian: each of n cells on its
own, and p << n shared rows with sparse support. HDMM's p-identity (McKenna et al., VLDB 2018) has the same shape with
dense rows. Free optimisation of those on small axes ends in hat functions, rows that rise and fall linearly and overlap
their neighbours by half, at two or three scales; so the search starts from hats, weighs the levels, and then lets every
entry go its own way.

Symbols: E = diag(d)^-2, K = (I + C E C')^-1, X = (A'A)^-1 = E - E C'K C E (Woodbury), G the second moments of the
queries, and the error is F = tr(X G). With H = C E G E, T = H C' and Q = K T K: F = tr(E G) - tr(K T) and
dF/dA = -2 A X G X, whose rows are C X G X = K H - Q C E for the shared ones, and whose diagonal needs
diag(X G X) = diag(E G E - 2 E C'K H + E C'Q C E). Only entries on the support are computed.

L-BFGS (Nocedal & Wright, algorithm 7.5) is ours since scipy's inner products go through BLAS, whose threads wait for
one another at every call: on a machine with other work that took longer than the objective itself.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veilcube.planner.design import Family
from veilcube.planner.matched.gram import SecondMoments
from veilcube.planner.matched.loops import Columns, add_inner_products, fill_core, fill_slopes, invert
from veilcube.system import Floats, Integers, share_out

MEMORY = 15
FIRST_MOVE = 0.1
# The search ends when this many steps together lower the objective by less than this.
PATIENCE, LEAST_GAIN = 5, 2e-5
_SHORTEST_STEP = 1e-6

Objective = Callable[[Floats], tuple[float, Floats]]


def descend_gradient(objective: Objective, start: Floats, steps: int) -> Floats:
    """Return where L-BFGS leads from a start in at most ``steps`` steps; the objective gives a value and a gradient."""
    point = start
    value, slopes = objective(point)
    history: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    values = deque([value], maxlen=PATIENCE + 1)
    for _ in range(steps):
        direction = _direction(point, slopes, history)
        descent, length = _dot(slopes, direction), 1.0
        while True:
            moved = point + length * direction
            new_value, new_slopes = objective(moved)
            if new_value <= value + 1e-4 * length * descent:
                break
            length /= 2
            if length < _SHORTEST_STEP:
                return point
        step, change = moved - point, new_slopes - slopes
        curvature = _dot(step, change)
        if curvature > 1e-12 * np.sqrt(_dot(step, step) * _dot(change, change)):
            history.append((step, change, curvature))
        point, value, slopes = moved, new_value, new_slopes
        values.append(value)
        if len(values) > PATIENCE and values[0] - value < LEAST_GAIN:
            break
    return point


def _direction(point: Floats, slopes: Floats, history: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Return the step of the two-loop recursion; the first one moves the steepest number by a tenth of its kind."""
    if not history:
        steepest = float(np.abs(slopes).max())
        typical = max(float(np.sqrt(np.mean(np.square(point)))), FIRST_MOVE)
        return slopes * (-FIRST_MOVE * typical / steepest if steepest > 0 else 0.0)
    result, shares = slopes.copy(), []
    for step, change, curvature in reversed(history):
        shares.append(_dot(step, result) / curvature)
        result -= shares[-1] * change
    _, change, curvature = history[-1]
    result *= curvature / _dot(change, change)
    for (step, change, curvature), share in zip(history, reversed(shares), strict=True):
        result += (share - _dot(change, result) / curvature) * step
    return -result


def _dot(left: Floats, right: Floats) -> float:
    return float((left * right).sum())


# No cell keeps less of the budget than this for itself, so that queries which were not named can be answered too.
LEAST_OWN = 0.01
SPACINGS = (8.0, 14.0, 20.0)
RATIOS = (8.0, 18.0)
SMALL = 256
NOTABLE_SHARE = 0.05
WEIGHED_STARTS, REFINED_STARTS = 3, 2
WEIGHING_STEPS, FIRST_STEPS = 6, 32
# A number that starts at 0 would stay there, for the slope in its root is 0.
_LEAST_START = 1e-6


@dataclass(frozen=True, eq=False)
class Design:
    """A = [diag(own); C], C by columns: cell j's entries stand at ``pointers[j]`` up to ``pointers[j + 1]``.

    ``level`` groups the entries of C whose weights are first chosen together; ``family`` is the noise that the norm of
    columns is for.
    """

    own: Floats
    pointers: Integers
    rows: Integers
    entries: Floats
    level: Integers
    shared: int
    family: Family = "laplace"

    @property
    def columns(self) -> Columns:
        """C as compiled loops take it."""
        return self.pointers, self.rows, self.entries

    @property
    def cells(self) -> Integers:
        """The cell of each entry of C."""
        return np.repeat(np.arange(len(self.own)), np.diff(self.pointers))

    @property
    def largest_sum(self) -> float:
        """The largest sum of a column: 1 where columns are normed by it."""
        if self.family == "laplace":
            return 1.0
        return float((self.own + np.bincount(self.cells, self.entries, len(self.own))).max())

    @property
    def raw_own(self) -> Floats:
        """What ``of_raw`` makes the cells' own entries of, with the shared entries as they are."""
        if self.family == "laplace":
            return self.own - LEAST_OWN
        return np.sqrt(np.maximum(np.square(self.own) - LEAST_OWN**2, 0.0))

    def of_raw(self, own: Floats, entries: Floats) -> tuple["Design", Floats]:
        """Return the design whose columns share out what ``LEAST_OWN`` leaves as these numbers do, and their norms."""
        cells = self.cells
        if self.family == "laplace":
            sums = own + np.bincount(cells, entries, len(own))
            scale = (1.0 - LEAST_OWN) / sums
            return replace(self, own=LEAST_OWN + own * scale, entries=entries * scale[cells]), sums
        norms = np.sqrt(np.square(own) + np.bincount(cells, np.square(entries), len(own)))
        scale = sqrt(1.0 - LEAST_OWN**2) / norms
        return replace(self, own=np.sqrt(LEAST_OWN**2 + np.square(own * scale)), entries=entries * scale[cells]), norms


def identity_design(size: int, family: Family = "laplace") -> Design:
    """Return the design without shared rows."""
    none = np.zeros(0, dtype=np.int64)
    return Design(np.ones(size), np.zeros(size + 1, dtype=np.int64), none, np.zeros(0), none, 0, family)


def hat_design(size: int, counts: Sequence[int], family: Family = "laplace") -> Design:
    """Return levels of ``counts`` hats each, equally weighed; one hat is the total.

    The knots of a level are equally spaced from the first edge of the axis to the last; a cell lies between two knots
    and its centre divides its weight between them.
    """
    cells, rows, entries, level, before = [], [], [], [], 0
    for number, count in enumerate(counts):
        place = (np.arange(size) + 0.5) / size * (count - 1)
        knot = np.minimum(place.astype(np.int64), max(count - 2, 0))
        for offset in range(min(count, 2)):
            cells.append(np.arange(size))
            rows.append(before + knot + offset)
            entries.append(1.0 - np.abs(place - knot - offset))
            level.append(np.full(size, number))
        before += count
    if not cells:
        return identity_design(size, family)
    columns = np.concatenate(cells), np.concatenate(rows), np.concatenate(entries), np.concatenate(level)
    return _from_entries(size, before, *columns, family)


def set_design(sets: NDArray[np.bool_], family: Family = "laplace") -> Design:
    """Return the design whose shared rows are given sets of cells."""
    rows, cells = np.nonzero(sets)
    ones, level = np.ones(len(rows)), np.zeros(len(rows), dtype=np.int64)
    return _from_entries(sets.shape[1], len(sets), cells, rows, ones, level, family)


def _from_entries(
    size: int, shared: int, cells: Integers, rows: Integers, entries: Floats, level: Integers, family: Family
) -> Design:
    order = np.lexsort((rows, cells))
    pointers = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=size))]).astype(np.int64)
    raw = Design(np.ones(size), pointers, rows[order].astype(np.int64), entries[order], level[order], shared, family)
    return raw.of_raw(raw.own, raw.entries)[0]


def hat_counts(size: int, *, with_total: bool) -> list[tuple[int, ...]]:
    """Return the numbers of hats per level to start from: a few spacings and ratios, each ladder cut anywhere.

    Small axes are cheap, so they get shorter ladders down to two hats; ``with_total`` adds the total to each.
    """
    found: dict[tuple[int, ...], None] = {(): None}
    fewest = 2 if size <= SMALL else 3
    for spacing in SPACINGS:
        for ratio in RATIOS:
            ladder: tuple[int, ...] = ()
            count = round(size / spacing) + 1
            while fewest <= count < size:
                ladder = (*ladder, count)
                found[ladder] = None
                count = round((count - 1) / ratio) + 1
    return [*found, *((*ladder, 1) for ladder in found)] if with_total else list(found)


def search(moments: SecondMoments, sets: NDArray[np.bool_] | None, steps: int, family: Family = "laplace") -> Design:
    """Return the best design found for second moments G: starts compared, weighed, refined, the best refined longer."""
    size = len(moments.diagonal)
    # The share of queries that hold both ends, and so all cells where they are ranges.
    with_total = size <= SMALL or moments.both_ends >= NOTABLE_SHARE
    starts = [hat_design(size, counts, family) for counts in hat_counts(size, with_total=with_total)]
    if sets is not None and len(sets):
        starts.append(set_design(sets, family))
    weighed = [weigh_levels(start, moments) for start in _best(starts, moments, WEIGHED_STARTS)]
    refined = [refine(design, moments, FIRST_STEPS) for design in _best(weighed, moments, REFINED_STARTS)]
    best = refine(_best(refined, moments, 1)[0], moments, steps)
    return _best([identity_design(size, family), best], moments, 1)[0]


def _best(designs: Sequence[Design], moments: SecondMoments, count: int) -> list[Design]:
    return sorted(designs, key=lambda design: expected_error(design, moments))[:count]


def weigh_levels(design: Design, moments: SecondMoments) -> Design:
    """Return the design with the best weight for each level, the shapes of its rows kept."""
    if not design.shared:
        return design
    levels = int(design.level.max()) + 1

    def scaled(logarithms: Floats) -> Floats:
        return np.asarray(design.entries * np.exp(logarithms)[design.level], dtype=np.float64)

    def objective(logarithms: Floats) -> tuple[float, Floats]:
        entries = scaled(logarithms)
        value, _, slopes = _logarithm_and_slopes(design, design.own, entries, moments)
        return value, np.bincount(design.level, slopes * entries, levels).astype(np.float64)

    return design.of_raw(design.own, scaled(descend_gradient(objective, np.zeros(levels), WEIGHING_STEPS)))[0]


def refine(design: Design, moments: SecondMoments, steps: int) -> Design:
    """Return the design with every entry optimised on its own, in at most ``steps`` steps of L-BFGS.

    The variables are the square roots of the entries before scaling, so that no bound is needed.
    """
    if not design.shared:
        return design
    size = len(design.own)

    def objective(roots: Floats) -> tuple[float, Floats]:
        squares = np.square(roots)
        value, own, entries = _logarithm_and_slopes(design, squares[:size], squares[size:], moments)
        return value, 2.0 * roots * np.concatenate([own, entries])

    raw = np.concatenate([design.raw_own, design.entries])
    squares = np.square(descend_gradient(objective, np.sqrt(np.maximum(raw, _LEAST_START)), steps))
    return design.of_raw(squares[:size], squares[size:])[0]


def _logarithm_and_slopes(
    design: Design, own: Floats, entries: Floats, moments: SecondMoments
) -> tuple[float, Floats, Floats]:
    """Return log F of the design of raw numbers (``Design.of_raw``), and its slopes in them."""
    found, norms = design.of_raw(own, entries)
    error, own_slopes, entry_slopes = error_and_slopes(found, moments)
    cells = design.cells
    if design.family == "laplace":
        common = (own * own_slopes + np.bincount(cells, entries * entry_slopes, len(own))) / norms
        scale = (1.0 - LEAST_OWN) / (error * norms)
        return float(np.log(error)), (own_slopes - common) * scale, (entry_slopes - common[cells]) * scale[cells]
    share = sqrt(1.0 - LEAST_OWN**2)
    own_slopes = own_slopes * (own * share / (norms * found.own))  # the floor of own does not move with it
    common = (own * own_slopes + np.bincount(cells, entries * entry_slopes, len(own))) / np.square(norms)
    scale = share / (error * norms)
    return (
        float(np.log(error)),
        (own_slopes - own * common) * scale,
        (entry_slopes - entries * common[cells]) * scale[cells],
    )


def expected_error(design: Design, moments: SecondMoments) -> float:
    """Return F = tr((A'A)^-1 G), the weighted mean variance of the queries in units of the noise's."""
    return _middle(design, moments).error


def error_and_slopes(design: Design, moments: SecondMoments) -> tuple[float, Floats, Floats]:
    """Return F, its slopes in the cells' own entries, and in the shared ones."""
    middle = _middle(design, moments)
    own_slopes, entry_slopes = np.empty(len(design.own)), np.empty(len(design.entries))
    core = np.empty_like(middle.inner)
    share_out(
        lambda first, last: fill_core(middle.inner, middle.product, middle.met, core, first, last),
        design.shared,
        design.shared**3,
    )

    def part(first: int, last: int) -> None:
        fill_slopes(
            design.own, moments.diagonal, design.columns, middle.spread, middle.inner, core, own_slopes, entry_slopes,
            first, last,
        )  # fmt: skip

    share_out(part, len(design.own), len(design.entries) * max(1, design.shared))
    return middle.error, own_slopes, entry_slopes


@dataclass(frozen=True, eq=False)
class _Middle:
    """F with what its slopes need: H' (cells, shared), K, T, and which pairs of shared rows meet in a cell."""

    error: float
    spread: Floats
    inner: Floats
    product: Floats
    met: NDArray[np.bool_]


def _middle(design: Design, moments: SecondMoments) -> _Middle:
    inner, product = np.eye(design.shared), np.zeros((design.shared, design.shared))
    spread = moments.spread(design.own, design.columns, design.shared)
    add_inner_products(design.own, design.columns, spread, inner, product)
    met = inner != 0.0
    invert(inner)
    plain = float((moments.diagonal / np.square(design.own)).sum())
    return _Middle(plain - float((inner * product).sum()), spread, inner, product, met)
