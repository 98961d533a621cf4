"""The design of a refined tree: which levels, which share of the budget each gets, and where it stops.

All of it follows from public facts. Levels, weights and thresholds are explained in docs/decisions/0004-refined-tree.md
with the measurements behind them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from veilcube.errors import PlanError
from veilcube.operators import HalvingTree, NodeCounts, Operator
from veilcube.operators.block_levels import BlockLevels
from veilcube.operators.halving import halving_depth
from veilcube.planner.weights import multipliers_of
from veilcube.privacy import Event, LaplaceEvent, ParallelEvent, SequentialEvent, scale_for
from veilcube.privacy.noise import DiscreteLaplace
from veilcube.schema import Ordinal, Schema

MOST_CELLS = 2**18
DEEPEST = 22
MOST_AXES = 2
BITS_OF_A_LINE, BITS_OF_A_BLOCK = 3, 4
THRESHOLD_OF_A_LINE = 7.0
THRESHOLDS_OF_A_BLOCK = (1.5, 2.5)


@dataclass(frozen=True)
class RefinedDesign:
    """Levels from coarse to fine, the last being the cells; their shares of the budget; and the stops' thresholds.

    A node of level k is refined no further if its count seems to be below ``thresholds[k]`` noise scales.
    """

    levels: tuple[int, ...]
    weights: tuple[Fraction, ...]
    thresholds: tuple[float, ...]

    def scales(self, epsilon: Fraction, sensitivity: int) -> tuple[Fraction, ...]:
        """Return the noise scale of each step."""
        return tuple(scale_for(epsilon * weight, sensitivity) for weight in self.weights)

    def refund_scales(self, epsilon: Fraction, sensitivity: int) -> tuple[Fraction, ...]:
        """Return the scale with which nodes that stop at each step but the last are measured once more."""
        return tuple(
            scale_for(epsilon * (1 - sum(self.weights[: step + 1])), sensitivity)
            for step in range(len(self.weights) - 1)
        )

    def measured(self, schema: Schema, epsilon: Fraction, sensitivity: int) -> list[tuple[Operator, DiscreteLaplace]]:
        """Return the largest measurements that may be published: each level, and those above it for its refunds."""
        tree = HalvingTree.of(schema)
        found: list[tuple[Operator, DiscreteLaplace]] = []
        for level, scale in zip(self.levels, self.scales(epsilon, sensitivity), strict=True):
            found.append((NodeCounts(tree, level, tree.nodes(level)), DiscreteLaplace(scale)))
        for level, scale in zip(self.levels, self.refund_scales(epsilon, sensitivity), strict=False):
            above = range(level, tree.depth + 1)
            found += [(NodeCounts(tree, high, tree.nodes(high)), DiscreteLaplace(scale)) for high in above]
        return found

    def event(self, epsilon: Fraction, sensitivity: int) -> Event:
        """Return what is done: at each step some nodes are measured for the last time and the others go on."""
        scales = self.scales(epsilon, sensitivity)
        event: Event = LaplaceEvent(sensitivity, scales[-1])
        for scale, refund in reversed(list(zip(scales, self.refund_scales(epsilon, sensitivity), strict=False))):
            rest = ParallelEvent((LaplaceEvent(sensitivity, refund), event))
            event = SequentialEvent((LaplaceEvent(sensitivity, scale), rest))
        return event


def refined_design(tree: HalvingTree, weights: Sequence[Fraction] | None = None) -> RefinedDesign:
    """Return the design for a tree: fan-out 8 over one attribute, 16 over several."""
    is_line = sum(axis.bits > 0 for axis in tree.axes) <= 1
    bits = BITS_OF_A_LINE if is_line else BITS_OF_A_BLOCK
    levels = tuple(range(max(tree.depth - 1, 0) // bits * bits, -1, -bits))
    shares = _normalised(weights) if weights is not None else _shares(len(levels), is_line)
    if len(shares) != len(levels):
        raise PlanError(f"{len(shares)} weights do not fit this refined tree, which has {len(levels)} levels")
    return RefinedDesign(levels, shares, _thresholds(len(levels) - 1, is_line))


def _shares(steps: int, is_line: bool) -> tuple[Fraction, ...]:
    """Return each level's share of the budget.

    On a line the coarsest level bounds the error of every prefix and gets more; in a block the finer levels do, since a
    rectangle cuts more of their nodes.
    """
    if is_line:
        parts = [3, *[2] * (steps - 1)]
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


def can_refine(schema: Schema) -> bool:
    """Whether a refined tree over this schema is small enough for its posterior."""
    return schema.cells <= MOST_CELLS and halving_depth(schema) <= DEEPEST


def refined_operator(schema: Schema, weights: Sequence[Fraction] | None = None) -> BlockLevels:
    """Return what a refined tree measures on a cube of this schema if nothing stops: its error is planned with that."""
    if not can_refine(schema):
        raise PlanError(
            f"a refined tree holds at most {MOST_CELLS:,} cells that {DEEPEST} halvings tell apart, and the cube has "
            f"{schema.cells:,} in {halving_depth(schema)}; use Tree(refine=False)"
        )
    tree = HalvingTree.of(schema)
    design = refined_design(tree, weights)
    return BlockLevels(tree, design.levels, multipliers_of(list(design.weights)))
