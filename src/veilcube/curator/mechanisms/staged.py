"""The staged tree: counts of coarse nodes first, of finer ones only where it pays, the budget refunded elsewhere.

Claim: a row lies in one node of each level. The step that measures some nodes of a level with noise of scale
d / (ε w) costs it ε w; what its cells have left when a node stops sharpens the node's own value, or measures it once
more together with neighbours; below a rich node all levels are measured at once with joint noise, whose costs add up to
what is left. Which nodes stop or are rich depends on earlier outputs only, and every cell's path spends exactly ε:
docs/proofs/staged-tree.md, Theorem 1. With Gaussian noise shares of ρ take the place of those of ε, and what is
measured again or on several levels has independent noise: docs/proofs/gaussian-trees.md, Theorem 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import SAMPLERS, MechanismFor, NoiseSampler, claim_for, redeem_for
from veilcube.curator.sampling import joint_laplace, sharpened_laplace
from veilcube.errors import PlanError
from veilcube.laws import Noise, SharpenedLaplace
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.planner import Plan, Spending, StagedDesign
from veilcube.polya_tree import Belief, MeasuredTree, learn, node_values
from veilcube.privacy import PrivacyStatement
from veilcube.record import NoisyMeasurement
from veilcube.system import Integers

PROOFS = {"laplace": "docs/proofs/staged-tree.md#theorem-1", "gaussian": "docs/proofs/gaussian-trees.md#theorem-1"}
# Measured on 2**16 and 2**18 cells: 116 and 64.
WORDS_PER_CELL = 128
# How often the prior behind a decision learns from what was published; more rounds gained nothing.
ROUNDS_TO_DECIDE = 2
# Draws the leaves' noise of binary trees from their scales by height; the conformance suite passes recorders.
JointSampler: TypeAlias = Callable[[Sequence[Fraction], int], Integers]
# Draws what takes the place of noise whose rates, one over each scale, add up, for one over another scale more.
Sharpener: TypeAlias = Callable[[Integers, Sequence[Fraction], Fraction], Integers]


@dataclass(frozen=True)
class StagedTreeMechanism(MechanismFor[StagedDesign]):
    """Measures step by step and decides from what it has published where to go on."""

    design = StagedDesign
    planned_by = "Tree(refine=True)"
    draw_jointly: JointSampler = joint_laplace
    sharpen: Sharpener = sharpened_laplace

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's epsilon, by steps whose costs add up to it along every path."""
        return claim_for(plan, PROOFS)

    def words_to_measure(self, plan: Plan) -> int:
        """Return a multiple of the cells: what was published, and beliefs about every node while it decides."""
        return WORDS_PER_CELL * plan.schema.cells

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler | None = None
    ) -> tuple[NoisyMeasurement, ...]:
        """Return the measurements of all steps; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim(plan))
        tree, design, spending = HalvingTree.of(plan.schema), self.design_of(plan), plan.step_spending
        draw = draw_noise or SAMPLERS[plan.family]
        refinement = _Course(cube.exact_counts, tree, draw, self.draw_jointly, self.sharpen)
        active = np.arange(tree.nodes(design.levels[0]))
        if design.survey:
            active = _without_surveyed(refinement, design, active, spending)
        laws, refunds = design.laws(spending), design.refund_laws(spending)
        for step, (level, law) in enumerate(zip(design.levels, laws, strict=True)):
            refinement.look(level, active, law)
            if step == len(refunds) or not active.size:
                break
            threshold = design.thresholds[step] * law.laplace_scale
            stops = refinement.stops(level, active, threshold)
            refinement.refund(level, active[stops], design.small * threshold, refunds[step])
            goes_on = active[~stops]
            joint = design.joint_laws(step, spending)
            if joint:
                is_rich = refinement.is_rich(level, goes_on, design.rich_count(level, spending))
                refinement.measure_below(level, goes_on[is_rich], joint)
                goes_on = goes_on[~is_rich]
            active = _children(tree, level, goes_on, design.levels[step + 1])
        return refinement.published


def _without_surveyed(refinement: "_Course", design: StagedDesign, active: Integers, spending: Spending) -> Integers:
    """Survey the first level, measure the highest nodes that are rich all over at once, and return the others."""
    level, tree = design.levels[0], refinement.tree
    refinement.look(level, active, design.survey_law(spending))
    is_rich = refinement.is_rich(level, active, design.rich_count(level, spending))
    for above, nodes in _highest(tree, level, active[is_rich], design.surveyed[-1], is_whole=True):
        refinement.measure_below(above, nodes, design.surveyed_laws(above, spending))
    return active[~is_rich]


class _Course:
    """What has been measured so far."""

    def __init__(
        self,
        exact: Integers,
        tree: HalvingTree,
        draw_noise: NoiseSampler,
        draw_jointly: JointSampler,
        sharpen: Sharpener,
    ) -> None:
        self._exact, self.tree = exact, tree
        self._draw_noise, self._draw_jointly, self._sharpen = draw_noise, draw_jointly, sharpen
        self._published: list[NoisyMeasurement] = []
        self._decisive: list[NoisyMeasurement] = []
        # Of every level that decisions look at: the last values, and the scales behind them, whose rates add up.
        self._looks: dict[int, tuple[Integers, tuple[Fraction, ...]]] = {}
        self._belief: Belief
        self._believed = 0

    @property
    def published(self) -> tuple[NoisyMeasurement, ...]:
        """All measurements, in their order."""
        return tuple(self._published)

    def look(self, level: int, nodes: Integers, law: Noise) -> None:
        """Publish the noisy counts of some nodes of one level for decisions; renew those that they have already."""
        if not nodes.size:
            return
        part = self._renewed(level, nodes, law)
        if law.family == "laplace":  # only Laplace noise is sharpened: fresh Gaussian noise tells as much
            before = self._looks[level][1] if level in self._looks else ()
            values = np.zeros(self.tree.nodes(level), dtype=np.int64)
            values[nodes] = part.values
            self._looks[level] = values, (*before, law.parameter)
        self._published.append(part)
        self._decisive.append(part)

    def refund(self, level: int, stopped: Integers, small: float, law: Noise) -> None:
        """Spend what is left on nodes that stopped: on neighbours of small counts together, on each other one alone.

        A node that has a value already, from this step or an earlier one, gets a sharper one in its place.

        Refunds never take part in a decision: so their fresh noise, and that of the last step, is independent of which
        nodes are measured, which intervals that hold for all data rely on.
        """
        is_small = self.is_small(level, stopped, small)
        chosen = dict(_highest(self.tree, level, stopped[is_small], self.tree.depth))
        chosen[level] = np.sort(np.concatenate([chosen.get(level, stopped[:0]), stopped[~is_small]]))
        for above, nodes in sorted(chosen.items()):
            if nodes.size:
                self._published.append(self._renewed(above, nodes, law))

    def _renewed(self, level: int, nodes: Integers, law: Noise) -> NoisyMeasurement:
        if level in self._looks:
            return self._sharper(level, nodes, law.parameter)
        return self._measured(level, nodes, law)

    def _measured(self, level: int, nodes: Integers, law: Noise) -> NoisyMeasurement:
        operator = NodeCounts(self.tree, level, nodes.size, nodes)
        values = self._draw_noise(law.parameter, operator.measurement_shape)
        values += operator.apply(self._exact)
        return NoisyMeasurement(operator, values, law)

    def _sharper(self, level: int, nodes: Integers, added: Fraction) -> NoisyMeasurement:
        """Return values of nodes that take the place of those that decisions looked at."""
        operator = NodeCounts(self.tree, level, nodes.size, nodes)
        exact, (values, scales) = operator.apply(self._exact), self._looks[level]
        sharper = self._sharpen(values[nodes] - exact, scales, added)
        before = 1 / sum((1 / scale for scale in scales), start=Fraction(0))
        return NoisyMeasurement(operator, exact + sharper, SharpenedLaplace.of(before, added))

    def measure_below(self, level: int, nodes: Integers, laws: Sequence[Noise]) -> None:
        """Publish all nodes in some whole nodes of a level, up to as many heights as there are laws, at once.

        Joint noise of a node is the sum of its cells'. Like a refund it takes no part in a decision.
        """
        if not nodes.size:
            return
        if not self.tree.is_whole(level)[nodes].all():
            raise PlanError("joint noise is for nodes with a cell at each of their positions")
        height = len(laws) - 1
        below = _children(self.tree, level, nodes, height)
        is_joint = laws[0].is_joint
        noise = (
            self._draw_jointly([law.parameter for law in laws], below.size) if is_joint else np.zeros(0, dtype=np.int64)
        )
        for above in range(height, -1, -1):  # the cells last: the last measurement of a cell is the finest one
            chosen = _children(self.tree, height, below, above)
            if not is_joint:
                self._published.append(self._measured(above, chosen, laws[above]))
                continue
            operator = NodeCounts(self.tree, above, chosen.size, chosen)
            values = noise.reshape(chosen.size, -1).sum(axis=1) + operator.apply(self._exact)
            self._published.append(NoisyMeasurement(operator, values, laws[above]))

    def stops(self, level: int, active: Integers, threshold: float) -> NDArray[np.bool_]:
        """Return which nodes seem to hold too little to go on: judged by published values only.

        What stopping costs grows with the square of the count, so its mean square counts: a node that holds much with a
        small probability goes on.
        """
        below: NDArray[np.bool_] = self._belief_now().sizes[self._numbers(level, active)] < threshold
        return below

    def is_small(self, level: int, stopped: Integers, threshold: float) -> NDArray[np.bool_]:
        """Return which nodes seem to hold so little that neighbours may be measured together."""
        return self.stops(level, stopped, threshold)

    def is_rich(self, level: int, active: Integers, least: float) -> NDArray[np.bool_]:
        """Return which nodes are whole and seem to hold so much that no part of them will stop."""
        if not active.size:
            return np.zeros(0, dtype=bool)
        means = self._belief_now().means[self._numbers(level, active)]
        rich: NDArray[np.bool_] = (means > least) & self.tree.is_whole(level)[active]
        return rich

    def _belief_now(self) -> Belief:
        """Return the posterior of all counts, from what decisions may look at."""
        if self._believed != len(self._decisive):
            measured = MeasuredTree.of(self.tree, node_values(self._decisive))
            self._belief, self._believed = learn(measured, ROUNDS_TO_DECIDE), len(self._decisive)
        return self._belief

    def _numbers(self, level: int, nodes: Integers) -> Integers:
        return self._belief_now().measured.node_at(level)[nodes]


def _highest(
    tree: HalvingTree, level: int, nodes: Integers, top: int, *, is_whole: bool = False
) -> list[tuple[int, Integers]]:
    """Return, by level up to ``top``, the highest nodes all of whose nodes at ``level`` are among the given ones.

    With ``is_whole`` they have a cell at each of their positions as well.
    """
    whole = np.zeros(tree.nodes(level), dtype=bool)
    whole[nodes] = True
    found = []
    for above in range(level, top + 1):
        if above == top:
            highest = whole
        else:
            parents = tree.ancestors(above, above + 1)
            wider = np.ones(tree.nodes(above + 1), dtype=bool)
            np.logical_and.at(wider, parents, whole)
            if is_whole:
                wider &= tree.is_whole(above + 1)
            highest, whole = whole & ~wider[parents], wider
        if highest.any():
            found.append((above, np.flatnonzero(highest)))
    return found


def _children(tree: HalvingTree, level: int, nodes: Integers, below: int) -> Integers:
    """Return the nodes of a finer level that lie in some nodes."""
    goes_on = np.zeros(tree.nodes(level), dtype=bool)
    goes_on[nodes] = True
    return np.flatnonzero(goes_on[tree.ancestors(below, level)])
