"""Many quantiles of one attribute with one budget: by recursive splitting, or read from a tree or a staged tree.

Claims: the split is epsilon-differentially private, epsilon the sum of the levels' budgets (docs/proofs/rank.md,
Theorem 4); what is drawn and what it costs stand in ``veilcube.privacy.quantile_split``. The tree is the linear
mechanism (docs/proofs/linear.md, Theorem 1), a staged tree spends epsilon along every path
(docs/proofs/staged-tree.md, Theorem 1); their quantiles are post-processing. A noisy number of rows, of sensitivity 1,
may choose between two of them (docs/proofs/rank.md, Theorem 5). All are stated for one row that comes or goes; an
exchanged row is two such steps, a person with at most m rows m of them, and each step gets its part of epsilon.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from scipy.optimize import isotonic_regression

from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import NoiseSampler
from veilcube.curator.mechanisms.protected.base import Protection, Samplers
from veilcube.curator.mechanisms.staged import StagedTreeMechanism
from veilcube.curator.sampling import RandomWords, draw_cheapest, drawable
from veilcube.errors import PrivacyError
from veilcube.laws import normal_quantile
from veilcube.operators import HalvingTree
from veilcube.planner import Plan, QuantileMethod, QuantilePlan, QuantileWay, quantile_widths
from veilcube.polya_tree import WIDENING, MeasuredTree, Reconciled, learn, node_values
from veilcube.privacy import (
    SLOTS_IN_ALL,
    PrivacyStatement,
    QuantileSplit,
    SplitNode,
    slots_for,
    split_costs,
    spread_rows,
)
from veilcube.system import Floats, Integers

PROOFS: Mapping[str, str] = {
    "split": "docs/proofs/rank.md#theorem-4",
    "tree": "docs/proofs/linear.md#theorem-1",
    "staged": "docs/proofs/staged-tree.md#theorem-1",
    "by total": "docs/proofs/rank.md#theorem-5",
}


@dataclass(frozen=True)
class QuantileMechanism:
    """Finds quantiles in the way that was planned."""

    way: QuantileWay
    statement: PrivacyStatement

    @classmethod
    def claiming(cls, way: QuantileWay, protection: Protection) -> "QuantileMechanism":
        """Return the mechanism that finds quantiles in a way that was planned for all rows that move with a unit."""
        return cls(way, protection.statement(way.epsilon, way.event(protection.moved_rows), PROOFS[way.name]))

    def require_drawable(self) -> None:
        """Refuse, before it is paid for, a split with a draw whose epsilon is too small."""
        for plan in self.way.plans:
            if plan.is_split:
                require_drawable(plan.split, plan.budgets)

    def draw(self, counts: Integers, confidence: float, samplers: Samplers) -> list[int]:
        """Return what is stored: the places alone if draws of a split were planned, else all that was read."""

        def count_rows(scale: Fraction) -> int:
            return int(counts.sum()) + int(samplers.draw_noise(scale, (1,))[0])

        found = _measure(self.way.plan_for(count_rows), counts, confidence, samplers.draw_noise)
        return found.places if self.way.is_split else found.flat


def _measure(plan: QuantilePlan, counts: Integers, confidence: float, draw_noise: NoiseSampler) -> "ReadQuantiles":
    quantiles = plan.split.quantiles
    if plan.method is QuantileMethod.TREE and plan.tree is not None:
        return read_quantiles_from_tree(counts, quantiles, plan.tree, confidence, draw_noise)
    if plan.method is QuantileMethod.STAGED and plan.staged is not None:
        return read_quantiles_from_staged_tree(counts, quantiles, plan.staged, confidence, draw_noise)
    return ReadQuantiles.of_draws(draw_quantiles(counts, plan.split, plan.budgets), plan, counts.size, confidence)


def draw_quantiles(
    counts: Integers,
    split: QuantileSplit,
    budgets: Sequence[Fraction],
    *,
    slots: int | None = None,
    source: RandomWords | None = None,
) -> list[int]:
    """Draw the place in the domain of every quantile; ``budgets`` holds epsilon for each level.

    ``counts`` are the rows at each value of the domain, ascending. The answers ascend too, since each is drawn between
    two others. The last draw on each path splits nothing further and is made among values instead of slots: fewer
    places to choose from, and a value that holds the quantile misses by nothing.
    """
    if len(budgets) != split.levels:
        raise PrivacyError("the budgets of quantiles must be one epsilon for each level of their split")
    each = (slots_for(counts.size) if split.levels > 1 else 1) if slots is None else slots
    rows = spread_rows(counts, each)
    drawn = [0] * len(split.quantiles)
    for node in split.nodes:
        # A slot belongs to the node below its quantile, so that no row is in two nodes of a level.
        first = 0 if node.after is None else drawn[node.after] + 1
        last = rows.size - 1 if node.before is None else drawn[node.before]
        is_empty = first > last
        drawn[node.index] = last if is_empty else _draw_one(rows, first, last, each, node, budgets[node.level], source)
    return [place // each for place in drawn]


def require_drawable(split: QuantileSplit, budgets: Sequence[Fraction]) -> None:
    """Refuse, before it is paid for, a split with a draw whose epsilon is too small; the rates depend on no table."""
    for node in split.nodes:
        drawable(split_costs(np.zeros(1, dtype=np.int64), node, budgets[node.level]).rate)


@dataclass(frozen=True)
class ReadQuantiles:
    """The place of each quantile, the first and last place it may have, and by how many rows it may be missed."""

    places: list[int]
    first: list[int]
    last: list[int]
    rows: list[int]

    @classmethod
    def of_draws(cls, places: list[int], plan: QuantilePlan, size: int, confidence: float) -> "ReadQuantiles":
        """Return draws of a split among so many places, which know of no ends but the domain's."""
        number = len(places)
        reach = plan.reach(max(size, SLOTS_IN_ALL), confidence).astype(np.int64)
        return cls(places, [0] * number, [size - 1] * number, reach.tolist())

    @classmethod
    def of_flat(cls, values: Sequence[int]) -> "ReadQuantiles":
        """Return what ``flat`` is of."""
        number = len(values) // 4
        return cls(*(list(values[start : start + number]) for start in range(0, 4 * number, number)))

    @property
    def flat(self) -> list[int]:
        """All of it, one list after the other: as it is stored."""
        return self.places + self.first + self.last + self.rows


def read_quantiles_from_tree(
    counts: Integers, quantiles: Sequence[Fraction], tree: Plan, confidence: float, draw_noise: NoiseSampler
) -> ReadQuantiles:
    """Measure a tree of counts with noise and read the quantiles off its least-squares estimate."""
    exact = tree.operator.apply(counts)
    noisy = exact + draw_noise(tree.noise.parameter, tree.operator.measurement_shape)
    up_to = np.cumsum(tree.operator.solve(noisy).ravel())
    return _read(up_to, quantiles, quantile_widths(tree, quantiles, confidence))


def read_quantiles_from_staged_tree(
    counts: Integers, quantiles: Sequence[Fraction], staged: Plan, confidence: float, draw_noise: NoiseSampler
) -> ReadQuantiles:
    """Measure a staged tree with noise and read the quantiles off the posterior means of its cells.

    Intervals come from draws of the joint posterior. They are as right as its prior, that neighbouring cells are often
    alike, and are widened since it may be wrong; those of a plain tree hold whatever the data are.
    """
    mechanism = StagedTreeMechanism()
    # Who calls this has charged for the quantiles as a whole: what is paid for here is a part of that.
    receipt = Receipt.uncharged(mechanism.claim(staged))
    measured = mechanism.measure(Cube(staged.schema, counts), staged, receipt, draw_noise)
    belief = learn(MeasuredTree.of(HalvingTree.of(staged.schema), node_values(measured, with_variances=True)))
    found = Reconciled(staged.schema.shape, belief)
    up_to = np.cumsum(found.cells)
    return _read(up_to, quantiles, _posterior_widths(found, quantiles, confidence))


def _posterior_widths(found: Reconciled, quantiles: Sequence[Fraction], confidence: float) -> Iterable[Floats]:
    """Yield, for each quantile, half the width of an interval for prefix - q·total at every place.

    Its variance follows from those of the prefixes and their covariances with the total, the last prefix.
    """
    draws = found.errors
    total, squares, products = np.zeros((3, draws.shape[1]))
    for draw in draws:
        up_to = np.cumsum(draw, dtype=np.float64)
        total += up_to
        squares += np.square(up_to)
        products += up_to * up_to[-1]
    number = len(draws)
    means = total / number
    variances = (squares - number * np.square(means)) / (number - 1)
    covariances = (products - number * means * means[-1]) / (number - 1)
    times = WIDENING * normal_quantile(confidence)
    for quantile in quantiles:
        share = float(quantile)
        around = variances - 2 * share * covariances + share**2 * variances[-1]
        yield times * np.sqrt(np.maximum(around, 0.0)) + found.step


def _read(up_to: Floats, quantiles: Sequence[Fraction], all_widths: Iterable[Floats]) -> ReadQuantiles:
    """Read quantiles off estimated numbers of rows up to each place.

    These need not ascend or stay within 0 and the total; the nearest ones that do are read (isotonic regression).
    An interval holds every place that the width of its test does not rule out: the true place r has
    prefix(r) - q·total >= 0 > prefix(r - 1) - q·total before the noise.
    """
    found, last_place = ReadQuantiles([], [], [], []), up_to.size - 1
    ascending = isotonic_regression(np.clip(up_to, 0.0, max(float(up_to[-1]), 0.0))).x
    for quantile, widths in zip(quantiles, all_widths, strict=True):
        share = float(quantile)
        place = min(int(np.searchsorted(ascending, share * max(float(up_to[-1]), 0.0))), last_place)
        ahead = up_to - share * up_to[-1]
        may_hold, may_follow = np.flatnonzero(ahead >= -widths), np.flatnonzero(ahead < widths)
        found.places.append(place)
        found.first.append(min(int(may_hold[0]) if may_hold.size else last_place, place))
        found.last.append(max(min(int(may_follow[-1]) + 1 if may_follow.size else 0, last_place), place))
        found.rows.append(ceil(widths[place]))
    return found


def _draw_one(
    rows: Integers, first: int, last: int, slots: int, node: SplitNode, epsilon: Fraction, source: RandomWords | None
) -> int:
    inside = rows[first : last + 1]
    if not node.is_last or slots == 1:
        return first + draw_cheapest(split_costs(inside, node, epsilon), source=source)
    value = first // slots
    starts = np.maximum(np.arange(value, last // slots + 1) * slots - first, 0)
    chosen = draw_cheapest(split_costs(np.add.reduceat(inside, starts), node, epsilon), source=source)
    return first + int(starts[chosen])
