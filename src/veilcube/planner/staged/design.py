"""The design of a staged tree: which levels, which share of the budget each gets, and where it stops.

All of it follows from public facts. Levels, weights and thresholds are explained in docs/decisions/0004-staged-tree.md
with the measurements behind them. Joint noise of a block shares out its budget between the heights of its binary tree,
by the height alone: within 1% of the least-squares optimum for prefixes and random ranges together
(docs/decisions/0014-joint-noise.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import inf
from typing import ClassVar

from veilcube.errors import PlanError
from veilcube.laws import Noise
from veilcube.operators import BlockLevels, HalvingTree, NodeCounts, Operator, halving_depth
from veilcube.planner.design import Family, LeastSquaresErrors, Parts, Planned, Spending, multipliers_of
from veilcube.privacy import Event, ParallelEvent, SequentialEvent
from veilcube.schema import Ordinal, Schema

# A block that nothing was measured of yet, in percent: its root gets what is left, since it bounds the error of every
# prefix beyond the block.
OF_CELLS, OF_PAIRS, OF_A_HEIGHT, TALLEST = 24, 2, 7, 11
# Below a node that was measured: the cells, their pairs, each height between, and the two at the top.
CELLS, PAIRS, BETWEEN, TOP = 45, 3, 13, (15, 15)
# Gaussian noise is independent on each height, and no more than rho is shared out: the cells, each height between, and
# the two at the top; and below a node that was measured: the cells, each height, and its halves.
GAUSSIAN_CELLS, GAUSSIAN_BETWEEN, GAUSSIAN_TOP = 10, 4, 3
GAUSSIAN_CELLS_BELOW, GAUSSIAN_BELOW, GAUSSIAN_HALVES = 8, 3, 1


def shares_with_root(height: int, family: Family = "laplace") -> tuple[Fraction, ...]:
    """Return the share of the budget of each height of a block, cells first, that was not measured before."""
    if not 0 <= height <= TALLEST:
        raise ValueError(f"shares are known for blocks of height 0 to {TALLEST}")
    if family == "gaussian":
        between, top = [GAUSSIAN_BETWEEN] * (height - 2), [GAUSSIAN_TOP] * min(height, 2)
        return _shares_of((GAUSSIAN_CELLS, *between, *top))
    below = (OF_CELLS, OF_PAIRS, *[OF_A_HEIGHT] * (height - 2))[:height]
    return _shares_of((*below, 100 - sum(below)))


def shares_below(level: int, family: Family = "laplace") -> tuple[Fraction, ...]:
    """Return the share of the budget of each height below a measured node of some level, cells first.

    The node's halves, and from 16 cells on their halves, are left out: its own measurement and those below tell enough.
    """
    height = level - 2 if level > 3 else level - 1
    if family == "gaussian":
        top = [] if level > 3 else [GAUSSIAN_HALVES]
        return _shares_of((GAUSSIAN_CELLS_BELOW, *[GAUSSIAN_BELOW] * (height - len(top)), *top))
    between = [PAIRS, *[BETWEEN] * (height - 3)] if height > 2 else []
    return _shares_of((CELLS, *between, *TOP[: min(height, 2)]))


def _shares_of(parts: tuple[int, ...]) -> tuple[Fraction, ...]:
    return tuple(Fraction(part, sum(parts)) for part in parts)


MOST_CELLS = 2**18
DEEPEST = 22
MOST_AXES = 2
BITS_OF_A_LINE, BITS_OF_A_BLOCK = 3, 4
THRESHOLD_OF_A_LINE = 6.5
THRESHOLDS_OF_A_BLOCK = (2.1, 3.5)
# A node of a line that holds so many rows a cell, in units of sensitivity / epsilon, is measured whole and at once.
RICH_ON_A_LINE = 4.0
# A survey tells which nodes are rich. It is worth its share where that is far beyond its noise and trees are not tall.
SURVEYED_LEVEL, SURVEY = 9, Fraction(1, 200)
# Joint noise of taller blocks takes long to draw.
TALLEST_BLOCK = 9
STEPS_OF_A_SHORT_LINE = 3
# Nodes that stop are measured together only if they seem to hold less than this part of what would let them go on.
SMALL = 0.5


@dataclass(frozen=True)
class StagedDesign(LeastSquaresErrors):
    """Levels from coarse to fine, the last being the cells; their shares of the budget; and the stops' thresholds.

    A node of level k goes on no further if its count, by its mean square, seems to be below ``thresholds[k]``
    noise scales. If it seems to hold less than the part ``small`` of that, it is measured once more together with
    neighbours of which the same is true; else its own value is sharpened. If it seems to hold more than ``rich``
    rows a cell, in units of sensitivity / epsilon, all below it is measured at once with joint noise. A ``survey``
    of the first level with that share of the budget, if any, finds such nodes before the steps; ``surveyed`` are
    the levels of the nodes that are then measured at once: the first one and some above it.
    """

    levels: tuple[int, ...]
    weights: tuple[Fraction, ...]
    thresholds: tuple[float, ...]
    rich: float = inf
    survey: Fraction = Fraction(0)
    surveyed: tuple[int, ...] = ()
    small: float = SMALL
    # By how much its answers may be counted on to be better than planned (docs/benchmarks.md, dpbench).
    gain: ClassVar[float] = 1.3
    foreseen: ClassVar[str] = "planned as if nothing stopped early"

    def laws(self, spending: Spending) -> tuple[Noise, ...]:
        """Return the noise of each step."""
        return tuple(map(spending.law, self._shares(spending)))

    def refund_laws(self, spending: Spending) -> tuple[Noise, ...]:
        """Return the noise with which nodes that stop at each step but the last are measured once more.

        Where a node's own Laplace value is sharpened, that is the noise of what is added.
        """
        return tuple(map(spending.law, self._refund_shares(spending)))

    def survey_law(self, spending: Spending) -> Noise:
        """Return the noise of the survey."""
        return spending.law(self.survey)

    def surveyed_laws(self, level: int, spending: Spending) -> tuple[Noise, ...]:
        """Return the noise, by height, of the nodes of a level all of which the survey finds rich."""
        return tuple(map(spending.joint_law, self._surveyed_shares(level, spending)))

    def joint_laws(self, step: int, spending: Spending) -> tuple[Noise, ...]:
        """Return the noise, by height, of the blocks below nodes that a step finds rich; none if it looks for none."""
        return tuple(map(spending.joint_law, self._joint_shares(step, spending)))

    def rich_count(self, level: int, spending: Spending) -> float:
        """Return from which count on a whole node of a level is rich."""
        return self.rich * spending.unit * float(2**level)

    def _shares(self, spending: Spending) -> tuple[Fraction, ...]:
        return tuple((1 - self.survey) * share for share in spending.shares(self.weights))

    def _refund_shares(self, spending: Spending) -> tuple[Fraction, ...]:
        spent = accumulate(self._shares(spending)[:-1])
        return tuple(1 - self.survey - before for before in spent)

    def _surveyed_shares(self, level: int, spending: Spending) -> tuple[Fraction, ...]:
        return tuple((1 - self.survey) * share for share in shares_with_root(level, spending.family))

    def _joint_shares(self, step: int, spending: Spending) -> tuple[Fraction, ...]:
        if self.rich == inf or not 1 < self.levels[step] <= TALLEST_BLOCK:
            return ()
        left = self._refund_shares(spending)[step]
        return tuple(left * share for share in shares_below(self.levels[step], spending.family))

    def measured(self, plan: Planned) -> Parts:
        """Return the largest measurements that may be published: each level, and those above it for its refunds."""
        spending, tree = plan.step_spending, HalvingTree.of(plan.schema)
        found: list[tuple[Operator, Noise]] = []

        def add(level: int, noise: Noise) -> None:
            found.append((NodeCounts(tree, level, tree.nodes(level)), noise))

        looks = list(self.laws(spending))
        if self.survey:
            add(self.levels[0], self.survey_law(spending))
            looks[0] = spending.sharper_law(self.survey_law(spending), self._shares(spending)[0])
        for level in self.surveyed:
            for height, noise in enumerate(self.surveyed_laws(level, spending)):
                add(height, noise)
        for level, look in zip(self.levels, looks, strict=True):
            add(level, look)
        for step, refund in enumerate(self._refund_shares(spending)):
            renewed = dict(zip(self.levels[: step + 1], looks, strict=False))
            for above in range(self.levels[step], tree.depth + 1):
                before = renewed.get(above)
                add(above, spending.sharper_law(before, refund) if before else spending.law(refund))
            for height, joint in enumerate(self.joint_laws(step, spending)):
                add(height, joint)
        return found

    def event(self, plan: Planned) -> Event:
        """Return what is done: at each step some nodes are measured for the last time and the others go on."""
        spending = plan.step_spending
        *shares, last = self._shares(spending)
        event: Event = spending.event(last)
        for step, refund in reversed(list(enumerate(self._refund_shares(spending)))):
            final = (spending.event(refund), *_all_at_once(self._joint_shares(step, spending), spending))
            event = SequentialEvent((spending.event(shares[step]), ParallelEvent((*final, event))))
        if not self.survey:
            return event
        rich: list[Event] = []
        for level in self.surveyed:
            rich += _all_at_once(self._surveyed_shares(level, spending), spending)
        return SequentialEvent((spending.event(self.survey), ParallelEvent((*rich, event))))


def _all_at_once(shares: Sequence[Fraction], spending: Spending) -> tuple[Event, ...]:
    """Return the event of a block measured at once, whose levels' costs add up; none without shares."""
    return (SequentialEvent(tuple(spending.event(share) for share in shares)),) if shares else ()


def staged_design(tree: HalvingTree, weights: Sequence[Fraction] | None = None) -> StagedDesign:
    """Return the design for a tree: fan-out 8 over one attribute, 16 over several."""
    is_line = tree.is_line
    bits = BITS_OF_A_LINE if is_line else BITS_OF_A_BLOCK
    levels = tuple(range(max(tree.depth - 1, 0) // bits * bits, -1, -bits))
    shares = _normalised(weights) if weights is not None else _shares(len(levels), is_line)
    if len(shares) != len(levels):
        raise PlanError(f"{len(shares)} weights do not fit this staged tree, which has {len(levels)} levels")
    thresholds = _thresholds(len(levels) - 1, is_line)
    if not is_line:
        return StagedDesign(levels, shares, thresholds)
    above = range(SURVEYED_LEVEL, min(tree.depth, TALLEST) + 1) if levels[0] == SURVEYED_LEVEL else range(0)
    surveyed = tuple(level for level in above if tree.is_whole(level).any())
    return StagedDesign(levels, shares, thresholds, RICH_ON_A_LINE, SURVEY if surveyed else Fraction(0), surveyed)


def _shares(steps: int, is_line: bool) -> tuple[Fraction, ...]:
    """Return each level's share of the budget.

    On a line the coarsest level bounds the error of every prefix and gets more; in a block the finer levels do, since a
    rectangle cuts more of their nodes.
    """
    if is_line:
        parts = [7, *[4] * (steps - 1)] if steps > STEPS_OF_A_SHORT_LINE else [3, *[2] * (steps - 1)]
    else:
        parts = [6 + 2 * step for step in range(steps - 1)]
        parts.append(3 * parts[-1] // 2 if parts else 1)
    return tuple(Fraction(part, sum(parts)) for part in parts)


def gaussian_weights(weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return the weights of the levels under Gaussian noise that go with these of Laplace noise.

    Level k answers for the error c_k / m_k². That is least for m_k as the cube root of c_k where the weights add up,
    and as its fourth root where their squares do: the weights to the power of 3/4.
    """
    parts = [round(1000 * float(weight) ** 0.75) for weight in weights]
    return tuple(Fraction(part, sum(parts)) for part in parts)


def _normalised(weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return weights that sum to 1 exactly: decimals may miss it by a hair, and that hair must not be spent."""
    total = sum(weights, start=Fraction(0))
    return tuple(weight / total for weight in weights)


def _thresholds(stops: int, is_line: bool) -> tuple[float, ...]:
    """Return below how many noise scales nodes stop: on a line, where few queries cut a node, sooner."""
    if is_line:
        return (THRESHOLD_OF_A_LINE,) * stops
    first, last = THRESHOLDS_OF_A_BLOCK
    return tuple(first + (last - first) * (step / (stops - 1) if stops > 1 else 0.5) for step in range(stops))


def has_like_neighbours(schema: Schema) -> bool:
    """Whether neighbouring cells may be expected to be alike: the cube is a line or a plane of ordinal attributes."""
    wide = [attribute for attribute in schema if attribute.size > 1]
    return 1 <= len(wide) <= MOST_AXES and all(isinstance(attribute, Ordinal) for attribute in wide)


def can_stage(schema: Schema) -> bool:
    """Whether a staged tree over this schema is small enough for its posterior."""
    return schema.cells <= MOST_CELLS and halving_depth(schema) <= DEEPEST


def staged_operator(schema: Schema, weights: Sequence[Fraction] | None = None) -> BlockLevels:
    """Return what a staged tree measures on a cube of this schema if nothing stops: its error is planned with that."""
    if not can_stage(schema):
        raise PlanError(
            f"a staged tree holds at most {MOST_CELLS:,} cells that {DEEPEST} halvings tell apart, and the cube has "
            f"{schema.cells:,} in {halving_depth(schema)}; use Tree(refine=False)"
        )
    tree = HalvingTree.of(schema)
    design = staged_design(tree, weights)
    return BlockLevels(tree, design.levels, multipliers_of(list(design.weights)))
