"""The design of a staged tree: which levels, which share of the budget each gets, and where it stops.

All of it follows from public facts. Levels, weights and thresholds are explained in docs/decisions/0004-staged-tree.md
with the measurements behind them. Joint noise of a block shares out its budget between the heights of its binary tree,
by the height alone: within 1% of the least-squares optimum for prefixes and random ranges together
(docs/decisions/0014-joint-noise.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import ClassVar

from veilcube.errors import PlanError
from veilcube.laws import DiscreteLaplace, JointLaplace, SharpenedLaplace
from veilcube.operators import BlockLevels, HalvingTree, NodeCounts, Operator, halving_depth
from veilcube.planner.design import LeastSquaresErrors, Parts, Planned, multipliers_of
from veilcube.privacy import Event, LaplaceEvent, ParallelEvent, SequentialEvent, scale_for
from veilcube.schema import Ordinal, Schema

# A block that nothing was measured of yet, in percent: its root gets what is left, since it bounds the error of every
# prefix beyond the block.
OF_CELLS, OF_PAIRS, OF_A_HEIGHT, TALLEST = 24, 2, 7, 11
# Below a node that was measured: the cells, their pairs, each height between, and the two at the top.
CELLS, PAIRS, BETWEEN, TOP = 45, 3, 13, (15, 15)


def shares_with_root(height: int) -> tuple[Fraction, ...]:
    """Return the share of each height of a block, cells first, that was not measured before."""
    if not 0 <= height <= TALLEST:
        raise ValueError(f"shares are known for blocks of height 0 to {TALLEST}")
    below = (OF_CELLS, OF_PAIRS, *[OF_A_HEIGHT] * (height - 2))[:height]
    return _shares_of((*below, 100 - sum(below)))


def shares_below(level: int) -> tuple[Fraction, ...]:
    """Return the share of each height below a measured node of some level, cells first.

    The node's halves, and from 16 cells on their halves, are left out: its own measurement and those below tell enough.
    """
    height = level - 2 if level > 3 else level - 1
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

    def scales(self, epsilon: Fraction, sensitivity: int) -> tuple[Fraction, ...]:
        """Return the noise scale of each step."""
        return tuple(scale_for(epsilon * (1 - self.survey) * weight, sensitivity) for weight in self.weights)

    def refund_scales(self, epsilon: Fraction, sensitivity: int) -> tuple[Fraction, ...]:
        """Return the scale with which nodes that stop at each step but the last are measured once more.

        Where a node's own value is sharpened, that is the scale of what is added.
        """
        return tuple(scale_for(epsilon * self._left_after(step), sensitivity) for step in range(len(self.weights) - 1))

    def survey_scale(self, epsilon: Fraction, sensitivity: int) -> Fraction:
        """Return the noise scale of the survey."""
        return scale_for(epsilon * self.survey, sensitivity)

    def surveyed_scales(self, level: int, epsilon: Fraction, sensitivity: int) -> tuple[Fraction, ...]:
        """Return the scales, by height, of the nodes of a level all of which the survey finds rich."""
        shares = shares_with_root(level)
        return tuple(scale_for(epsilon * (1 - self.survey) * share, sensitivity) for share in shares)

    def joint_scales(self, step: int, epsilon: Fraction, sensitivity: int) -> tuple[Fraction, ...]:
        """Return the scales, by height, of the blocks below nodes that a step finds rich; none if it looks for none."""
        if self.rich == inf or not 1 < self.levels[step] <= TALLEST_BLOCK:
            return ()
        shares = shares_below(self.levels[step])
        return tuple(scale_for(epsilon * self._left_after(step) * share, sensitivity) for share in shares)

    def rich_count(self, level: int, epsilon: Fraction, sensitivity: int) -> float:
        """Return from which count on a whole node of a level is rich."""
        return self.rich * float(sensitivity / epsilon) * float(2**level)

    def _left_after(self, step: int) -> Fraction:
        return (1 - self.survey) * (1 - sum(self.weights[: step + 1], start=Fraction(0)))

    def measured(self, plan: Planned) -> Parts:
        """Return the largest measurements that may be published: each level, and those above it for its refunds."""
        epsilon, sensitivity, tree = plan.epsilon, plan.step_sensitivity, HalvingTree.of(plan.schema)
        found: list[tuple[Operator, DiscreteLaplace]] = []

        def add(level: int, noise: DiscreteLaplace) -> None:
            found.append((NodeCounts(tree, level, tree.nodes(level)), noise))

        scales = self.scales(epsilon, sensitivity)
        looks: list[DiscreteLaplace] = [DiscreteLaplace(scale) for scale in scales]
        if self.survey:
            add(self.levels[0], DiscreteLaplace(self.survey_scale(epsilon, sensitivity)))
            looks[0] = SharpenedLaplace.of(self.survey_scale(epsilon, sensitivity), scales[0])
        for level in self.surveyed:
            for height, scale in enumerate(self.surveyed_scales(level, epsilon, sensitivity)):
                add(height, JointLaplace(scale))
        for level, look in zip(self.levels, looks, strict=True):
            add(level, look)
        for step, scale in enumerate(self.refund_scales(epsilon, sensitivity)):
            renewed = dict(zip(self.levels[: step + 1], looks, strict=False))
            for above in range(self.levels[step], tree.depth + 1):
                before = renewed.get(above)
                add(above, SharpenedLaplace.of(before.scale, scale) if before else DiscreteLaplace(scale))
            for height, joint in enumerate(self.joint_scales(step, epsilon, sensitivity)):
                add(height, JointLaplace(joint))
        return found

    def event(self, plan: Planned) -> Event:
        """Return what is done: at each step some nodes are measured for the last time and the others go on."""
        epsilon, sensitivity = plan.epsilon, plan.step_sensitivity
        scales = self.scales(epsilon, sensitivity)
        refunds = self.refund_scales(epsilon, sensitivity)
        event: Event = LaplaceEvent(sensitivity, scales[-1])
        for step in range(len(refunds) - 1, -1, -1):
            joint = self.joint_scales(step, epsilon, sensitivity)
            last = (LaplaceEvent(sensitivity, refunds[step]), *_all_at_once(joint, sensitivity))
            event = SequentialEvent((LaplaceEvent(sensitivity, scales[step]), ParallelEvent((*last, event))))
        if not self.survey:
            return event
        survey = LaplaceEvent(sensitivity, self.survey_scale(epsilon, sensitivity))
        rich: list[Event] = []
        for level in self.surveyed:
            rich += _all_at_once(self.surveyed_scales(level, epsilon, sensitivity), sensitivity)
        return SequentialEvent((survey, ParallelEvent((*rich, event))))


def _all_at_once(scales: Sequence[Fraction], sensitivity: int) -> tuple[Event, ...]:
    """Return the event of joint noise, whose levels' costs add up; none without scales."""
    return (SequentialEvent(tuple(LaplaceEvent(sensitivity, scale) for scale in scales)),) if scales else ()


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
