"""Many quantiles with one budget: by a recursive split, from a tree of counts or from a staged tree.

Symbols: as in ``veilcube.privacy.quantile_split``. Where rows lie evenly around a quantile, a draw of a node with the
share f and the budget epsilon_l misses by Laplace noise of scale 2g/epsilon_l rows, g = max(f, 1 - f). A quantile is
drawn between two that were drawn before and takes over their errors, (1-f) of the lower and f of the upper one. So its
error is a sum of independent noises, one for each level down to its own, and the mean square over all quantiles is
Σ_l c_l/epsilon_l², which is least for epsilon_l in proportion to the cube root of c_l. Its mean size is
E|X| = (2/π) ∫ (1 - φ(t))/t² dt over t > 0, φ(t) = Π_l 1/(1 + (b_l t)²) with the scales b_l of its noises.

A tree of counts misses a quantile q at the cell r by the noise of prefix(r) - q·total, nearly normal, whose variance is
exact; r is taken as if rows lay evenly. Both figures follow from public facts alone: the number of cells, the
quantiles, epsilon and the rows that a unit may bring. Neither sees that a value which many rows share is hard to miss,
which helps both.

A staged tree read by its posterior gains from cells that are like their neighbours, which only matters where noise
hides the cells: it wins up to about MOST_ROWS_IN_NOISE for the product epsilon · rows / cells, and loses to a plain
tree far above (docs/decisions/0008-distributive.md has the measurements). The number of rows may be private, so a
``QuantileChoice`` buys a noisy one with a small share of epsilon first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import log, pi, sqrt
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from veilcube.errors import PlanError, QueryError
from veilcube.laws import widest_deviations
from veilcube.planner.planned import Plan
from veilcube.planner.planning import plan
from veilcube.planner.staged import can_stage
from veilcube.planner.tree import Tree
from veilcube.privacy import (
    ChoiceEvent,
    EpsilonLike,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    QuantileSplit,
    SequentialEvent,
    read_epsilon,
    scale_for,
)
from veilcube.query import Workload
from veilcube.schema import Ordinal, Schema
from veilcube.system import Floats, Integers, show

# The budgets of levels are whole multiples of this part of epsilon.
_PARTS = 10_000
# Planning a larger tree takes seconds, and it misses by more than one of this size: it is planned if it might win.
_CELLS_PLANNED_AT_ONCE = 2**16
MOST_CELLS_OF_A_TREE = 2**22
# Fewer cells leave little to refine; on more, the posterior takes seconds and gained nothing that could be measured.
_CELLS_TO_REFINE = range(2**6, 2**14 + 1)
# Up to how many rows a cell, in units of 1/epsilon, a staged tree misses by less: measured, like the part of its
# least-squares error that its posterior leaves where rows are few.
MOST_ROWS_IN_NOISE = 120
_POSTERIOR_LEAVES = 0.6
# The share of epsilon for a noisy number of rows: its scale is below a thirtieth of the border's rows on 64 cells.
SHARE_OF_TOTAL = Fraction(1, 200)
# Steps of the integral for E|X|, a trapezoid rule in log t: its error is below one in a thousand.
_STEPS = np.exp(np.linspace(-9.0, 9.0, 300))
# Of a normal variable, the mean size is this part of its standard deviation.
_MEAN_OF_NORMAL = sqrt(2 / pi)
# Places around a quantile, as shares of the cells.
_PLACES = np.linspace(-0.05, 0.05, 33)


# What a staged tree was called before; programs that say so, and ledgers that remember it so, go on.
_EARLIER_WORD = "refined"


class QuantileMethod(StrEnum):
    """``split``: recursive draws. ``tree``: read from counts of nested ranges. ``staged``: from those of some only."""

    SPLIT = "split"
    TREE = "tree"
    STAGED = "staged"


# Measures how many rows there are with noise of a scale, once that is paid for.
NoisyRows: TypeAlias = Callable[[Fraction], int]


@dataclass(frozen=True)
class QuantilePlan:
    """How quantiles will be found, and by how many rows each way is expected to miss on average.

    ``budgets`` holds epsilon for one row at each level of the split; ``tree`` and ``staged`` plan the counts for one
    row as well, if they were needed.
    """

    split: QuantileSplit
    epsilon: Fraction
    method: QuantileMethod
    budgets: tuple[Fraction, ...]
    expected_misses: Mapping[str, float]
    tree: Plan | None
    staged: Plan | None = None

    @property
    def expected_miss(self) -> float:
        """The mean number of rows that the chosen method is expected to miss by."""
        return self.expected_misses[self.method]

    @property
    def name(self) -> str:
        """The word that stored questions call it by."""
        return str(self.method)

    @property
    def names(self) -> tuple[str, ...]:
        """The same word, and what older ledgers have in its place."""
        return (self.name, _EARLIER_WORD) if self.method is QuantileMethod.STAGED else (self.name,)

    @property
    def is_split(self) -> bool:
        """Whether places are drawn, and nothing else: their intervals then follow from the plan alone."""
        return self.method is QuantileMethod.SPLIT

    @property
    def plans(self) -> "tuple[QuantilePlan, ...]":
        """Everything that may be carried out."""
        return (self,)

    def plan_for(self, count_rows: NoisyRows) -> "QuantilePlan":
        """Return what is carried out; no number of rows is asked for."""
        return self

    def event(self, steps: int) -> Event:
        """Return what is done to the data where so many rows may come or go with one unit."""
        counted = {QuantileMethod.TREE: self.tree, QuantileMethod.STAGED: self.staged}.get(self.method)
        if counted is not None:
            return _for_steps(counted.event, steps)
        return SequentialEvent(tuple(ChoiceEvent(budget * steps) for budget in self.budgets))

    def reach(self, places: int, confidence: float) -> Floats:
        """Return, for each quantile, a number of rows that the split misses it by at most with this probability.

        A draw among m places has P(miss > b x) <= m exp(-x), b its scale; with x = ln(levels·m/(1 - confidence)) all
        draws above a quantile stay within their share at once. It holds for any table, and is far above the mean.
        """
        exponent = log(self.split.levels * places / (1 - confidence))
        scales = _noises_by_level(self.split) / np.array([float(budget) for budget in self.budgets])
        return np.asarray(np.ceil(scales.sum(axis=1) * exponent))


@dataclass(frozen=True)
class QuantileChoice:
    """Two ways to find quantiles and a noisy number of rows, paid for first, that decides between them.

    ``few`` and ``many`` both spend what ``total_scale``, the scale of the noise on the number of rows, leaves of
    ``epsilon``; up to ``border`` rows ``few`` is taken.
    """

    epsilon: Fraction
    total_scale: Fraction
    border: Fraction
    few: QuantilePlan
    many: QuantilePlan

    @property
    def split(self) -> QuantileSplit:
        """The quantiles that are looked for."""
        return self.many.split

    @property
    def name(self) -> str:
        """The word that stored questions call it by."""
        return "by total"

    @property
    def names(self) -> tuple[str, ...]:
        """The same word."""
        return (self.name,)

    @property
    def is_split(self) -> bool:
        """Whether places are drawn, and nothing else: never, since it is not known before."""
        return False

    @property
    def plans(self) -> tuple[QuantilePlan, ...]:
        """Everything that may be carried out."""
        return self.few, self.many

    def plan_for(self, count_rows: NoisyRows) -> QuantilePlan:
        """Return what is carried out, by a noisy number of rows."""
        return self.way_for(count_rows(self.total_scale))

    def event(self, steps: int) -> Event:
        """Return what is done to the data where so many rows may come or go with one unit.

        The way that is not taken is as if done to no rows at all, so the two are parallel.
        """
        either = ParallelEvent((self.few.event(steps), self.many.event(steps)))
        return SequentialEvent((LaplaceEvent(steps, self.total_scale), either))

    def way_for(self, noisy_rows: int) -> QuantilePlan:
        """Return the way that should miss by less where there are about ``noisy_rows`` rows."""
        return self.few if noisy_rows <= self.border else self.many


QuantileWay: TypeAlias = QuantilePlan | QuantileChoice


def _for_steps(event: Event, steps: int) -> Event:
    """Return an event of Laplace noise that was planned for one row as one for so many rows: the noise is the same."""
    match event:
        case LaplaceEvent(sensitivity, scale):
            return LaplaceEvent(sensitivity * steps, scale)
        case GaussianEvent(sensitivity_squared, sigma_squared):
            return GaussianEvent(sensitivity_squared * steps**2, sigma_squared)
        case SequentialEvent(events):
            return SequentialEvent(tuple(_for_steps(inner, steps) for inner in events))
        case ParallelEvent(events):
            return ParallelEvent(tuple(_for_steps(inner, steps) for inner in events))
        case ChoiceEvent(epsilon):
            return ChoiceEvent(epsilon * steps)


def read_method(method: object) -> str:
    """Return the way to find quantiles that is meant: "auto" or one of ``QuantileMethod``."""
    if not isinstance(method, str) or method not in {"auto", *QuantileMethod, _EARLIER_WORD}:
        raise QueryError(
            f"method={show(method)} is not a way to find quantiles; use 'auto', 'split', 'tree' or 'staged'"
        )
    return QuantileMethod.STAGED if method == _EARLIER_WORD else method


def plan_quantiles(
    cells: int,
    quantiles: Sequence[object],
    epsilon: EpsilonLike,
    *,
    method: str = "auto",
    steps: int = 1,
    rows: int | None = None,
) -> QuantilePlan:
    """Choose how to find quantiles over ``cells`` cells; reads no data, spends no budget.

    ``steps`` is how many rows may come and go when one unit changes: twice as many where units are exchanged. ``rows``
    is about how many there are, if that is public: without it a staged tree is planned only if it is asked for.

    >>> plan_quantiles(1_000_000, [0.5], 1).method, plan_quantiles(100, [i / 100 for i in range(1, 100)], 1).method
    (<QuantileMethod.SPLIT: 'split'>, <QuantileMethod.TREE: 'tree'>)
    >>> plan_quantiles(100, [i / 100 for i in range(1, 100)], 1, rows=1000).method
    <QuantileMethod.STAGED: 'staged'>
    """
    method = read_method(method)
    split, budget = QuantileSplit.read(quantiles), read_epsilon(epsilon)
    noises = _noises_by_level(split)
    budgets = tuple(part * budget / steps for part in _shares(noises))
    misses = {str(QuantileMethod.SPLIT): _mean_miss(noises / np.array([float(budget) for budget in budgets]))}
    tree = _tree_worth_planning(cells, split, budget / steps, method, misses[QuantileMethod.SPLIT])
    if tree is not None:
        misses[str(QuantileMethod.TREE)] = _tree_miss(tree, split.quantiles)
    may_refine = rows is not None and rows <= _border(cells, budget / steps)
    staged = _staged_worth_planning(cells, budget / steps, method, may_refine=may_refine)
    if staged is not None:
        misses[str(QuantileMethod.STAGED)] = _POSTERIOR_LEAVES * _tree_miss(staged, split.quantiles)
    chosen = method if method in misses else min(misses, key=lambda name: misses[name])
    return QuantilePlan(split, budget, QuantileMethod(chosen), budgets, MappingProxyType(misses), tree, staged)


def plan_by_total(cells: int, quantiles: Sequence[object], epsilon: EpsilonLike, *, steps: int = 1) -> QuantileWay:
    """Return two ways to choose between by a noisy number of rows; a single one where that number cannot matter."""
    budget = read_epsilon(epsilon)
    rest = budget * (1 - SHARE_OF_TOTAL)
    few = plan_quantiles(cells, quantiles, rest, steps=steps, rows=0)
    if few.method is not QuantileMethod.STAGED:
        return plan_quantiles(cells, quantiles, budget, steps=steps)
    many = plan_quantiles(cells, quantiles, rest, steps=steps)
    return QuantileChoice(budget, scale_for(budget * SHARE_OF_TOTAL, steps), _border(cells, rest / steps), few, many)


def _border(cells: int, epsilon: Fraction) -> Fraction:
    """Return up to how many rows noise hides the cells."""
    return MOST_ROWS_IN_NOISE * cells / epsilon


def _staged_worth_planning(cells: int, epsilon: Fraction, method: str, *, may_refine: bool) -> Plan | None:
    """Return the staged tree that must or may be used; None if another way was asked for or it cannot be better."""
    is_asked = method == QuantileMethod.STAGED and cells > 1
    if not is_asked and not (method == "auto" and may_refine and cells in _CELLS_TO_REFINE):
        return None
    schema = Schema([Ordinal("place", 1, cells)])
    if not can_stage(schema):
        raise PlanError("a staged tree for quantiles has at most 2**18 cells; use method='split' or coarser cells")
    return plan(schema, epsilon, Tree(), Workload.prefixes(schema))


def _tree_worth_planning(
    cells: int, split: QuantileSplit, epsilon: Fraction, method: str, split_miss: float
) -> Plan | None:
    """Return the tree that must or may be used; None if a split was asked for or is better anyway."""
    if method in {QuantileMethod.SPLIT, QuantileMethod.STAGED} or cells == 1:
        return None
    if method == QuantileMethod.TREE and cells > MOST_CELLS_OF_A_TREE:
        raise PlanError("a tree for quantiles has at most 2**22 cells; use method='split' or coarser cells")
    is_large = cells > _CELLS_PLANNED_AT_ONCE and method == "auto"
    if is_large and _tree_miss(_tree_over(_CELLS_PLANNED_AT_ONCE, epsilon), split.quantiles) >= split_miss:
        return None
    return _tree_over(cells, epsilon) if cells <= MOST_CELLS_OF_A_TREE else None


def _tree_over(cells: int, epsilon: Fraction) -> Plan:
    schema = Schema([Ordinal("place", 1, cells)])
    return plan(schema, epsilon, Tree(refine=False), Workload.prefixes(schema))


def _noises_by_level(split: QuantileSplit) -> Floats:
    """Return, for each quantile, the scale in rows of the noise that each level brings it, times epsilon_l."""
    scales = np.zeros((len(split.quantiles) + 1, split.levels))
    the_ends = len(split.quantiles)
    for node in split.nodes:
        below = scales[the_ends if node.after is None else node.after]
        above = scales[the_ends if node.before is None else node.before]
        share = float(node.share)
        # Both neighbours lie on one path of nodes, one a level, so noises of one column are the same noise.
        scales[node.index] = (1 - share) * below + share * above
        scales[node.index, node.level] = 2 * float(node.sensitivity)
    return scales[:the_ends]


def _shares(noises: Floats) -> tuple[Fraction, ...]:
    """Return exact shares of epsilon, one a level, that add up to 1."""
    wanted = np.cbrt(np.square(noises).mean(axis=0))
    parts = np.maximum((wanted / wanted.sum() * _PARTS).astype(np.int64), 1)
    parts[np.argmax(parts)] += _PARTS - parts.sum()
    return tuple(Fraction(int(part), _PARTS) for part in parts)


def _mean_miss(scales: Floats) -> float:
    """Return the mean over all quantiles of E|X|, X the sum of Laplace noises of the scales in one row."""
    deviations = np.sqrt(2 * np.square(scales).sum(axis=1))
    log_phi = np.zeros((scales.shape[0], _STEPS.size))
    for level in range(scales.shape[1]):
        log_phi -= np.log1p(np.square(np.outer(scales[:, level] / deviations, _STEPS)))
    integrals = np.trapezoid(-np.expm1(log_phi) / _STEPS, np.log(_STEPS), axis=1)
    # Below the first step 1 - φ(t) is t²/2; above the last one it is 1.
    ends = _STEPS[0] / 2 + 1 / _STEPS[-1]
    return float(np.mean(2 / pi * deviations * (integrals + ends)))


def quantile_widths(tree: Plan, quantiles: Sequence[Fraction], confidence: float) -> Iterator[Floats]:
    """Yield, for each quantile, half the width of an interval for prefix - q·total at every place of a tree.

    The noise is a sum of Laplace noises with weights. In units of its standard deviation, its quantile lies between
    those of a single Laplace noise and of a normal variable; the wider of the two is taken.
    """
    times = widest_deviations(confidence)
    places = np.arange(tree.schema.cells)
    prefix, rest, total = _variances(tree, places)
    for quantile in quantiles:
        yield times * np.sqrt(_variance_around(float(quantile), prefix, rest, total))


def _tree_miss(tree: Plan, quantiles: Sequence[Fraction]) -> float:
    """Return the mean miss where a quantile may lie anywhere near the place that evenly spread rows would give it.

    Some places, such as the middle, are far better measured than those beside them, so one place would not do.
    """
    cells = tree.schema.cells
    shares = np.repeat([float(quantile) for quantile in quantiles], _PLACES.size)
    places = (shares + np.tile(_PLACES, len(quantiles))) * cells
    variances = _variance_around(shares, *_variances(tree, np.clip(places.astype(np.int64), 0, cells - 1)))
    return float(np.mean(_MEAN_OF_NORMAL * np.sqrt(variances)))


def _variances(tree: Plan, places: Integers) -> tuple[Floats, Floats, float]:
    """Return the variances of the rows up to each place, of those beyond it, and of the total."""
    at, last = places[:, np.newaxis], tree.schema.cells - 1
    first, end = np.zeros_like(at), np.full_like(at, last)
    prefix = tree.operator.variance_of_rectangles(first, at)
    rest = np.where(places < last, tree.operator.variance_of_rectangles(np.minimum(at + 1, last), end), 0.0)
    total = tree.operator.variance_of_rectangles(first[:1], end[:1])[0]
    return prefix * tree.noise.variance, rest * tree.noise.variance, float(total) * tree.noise.variance


def _variance_around(share: Floats | float, prefix: Floats, rest: Floats, total: float) -> Floats:
    """Return the variance of prefix - share·total; the covariance follows from total = prefix + rest."""
    covariance = (prefix + total - rest) / 2
    return np.asarray(np.maximum(prefix - 2 * share * covariance + share**2 * total, 0.0))
