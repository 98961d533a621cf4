"""The refined tree: counts of coarse nodes first, of finer ones only where it pays, the budget refunded elsewhere.

Claim: a row lies in one node of each level. The step that measures some nodes of a level with noise of scale
d / (ε w) costs it ε w; a node that stops is measured once more with all that its cells have left. Which nodes stop
depends on earlier outputs only, and every cell's path spends exactly ε: docs/proofs/refined-tree.md, Theorem 1.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import NoiseSampler, claim_for, redeem_for
from veilcube.errors import PlanError
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.planner import Plan
from veilcube.planner.refined_tree import RefinedDesign
from veilcube.posterior import MeasuredTree, SplitLaw, node_values, propagate
from veilcube.privacy import PrivacyStatement
from veilcube.privacy.noise import DiscreteLaplace
from veilcube.release import NoisyMeasurement

PROOF = "docs/proofs/refined-tree.md#theorem-1"
Integers = NDArray[np.int64]


class RefinedTreeMechanism:
    """Measures step by step and decides from what it has published where to go on."""

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's epsilon, by steps whose costs add up to it along every path."""
        return claim_for(plan, PROOF)

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        """Return the measurements of all steps; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim(plan))
        tree = HalvingTree.of(plan.schema)
        refinement = _Refinement(cube.exact_counts, tree, draw_noise)
        design = _design_of(plan)
        active = np.arange(tree.nodes(design.levels[0]))
        scales = design.scales(plan.epsilon, plan.step_sensitivity)
        refunds = design.refund_scales(plan.epsilon, plan.step_sensitivity)
        for step, (level, scale) in enumerate(zip(design.levels, scales, strict=True)):
            refinement.measure(level, active, scale)
            if step == len(refunds) or not active.size:
                break
            stops = refinement.stops(level, active, design.thresholds[step] * float(scale))
            for above, nodes in _highest_stopped(tree, level, active[stops]):
                refinement.measure(above, nodes, refunds[step], is_refund=True)
            active = _children(tree, level, active[~stops], design.levels[step + 1])
        return refinement.published


def _design_of(plan: Plan) -> RefinedDesign:
    if not isinstance(plan.design, RefinedDesign):
        raise PlanError("the plan is not for a refined tree; plan with Tree(refine=True)")
    return plan.design


class _Refinement:
    """What has been measured so far."""

    def __init__(self, exact: Integers, tree: HalvingTree, draw_noise: NoiseSampler) -> None:
        self._exact, self._tree, self._draw_noise = exact, tree, draw_noise
        self._published: list[NoisyMeasurement] = []
        self._decisive: list[NoisyMeasurement] = []

    @property
    def published(self) -> tuple[NoisyMeasurement, ...]:
        """All measurements, in their order."""
        return tuple(self._published)

    def measure(self, level: int, nodes: Integers, scale: Fraction, *, is_refund: bool = False) -> None:
        """Publish the noisy counts of some nodes of one level.

        Refunds never take part in a decision: so their noise, and that of the last step, is independent of which nodes
        are measured, which intervals that hold for all data rely on.
        """
        if not nodes.size:
            return
        operator = NodeCounts(self._tree, level, nodes.size, nodes)
        values = self._draw_noise(scale, operator.measurement_shape)
        values += operator.apply(self._exact)
        self._published.append(NoisyMeasurement(operator, values, DiscreteLaplace(scale)))
        if not is_refund:
            self._decisive.append(self._published[-1])

    def stops(self, level: int, active: Integers, threshold: float) -> NDArray[np.bool_]:
        """Return which nodes seem to hold too little to go on: judged by published values only."""
        measured = MeasuredTree.of(self._tree, node_values(self._decisive))
        belief = propagate(measured, SplitLaw.even(self._tree.classes))
        below: NDArray[np.bool_] = belief.means[measured.node_at(level)[active]] < threshold
        return below


def _highest_stopped(tree: HalvingTree, level: int, stopped: Integers) -> list[tuple[int, Integers]]:
    """Return, by level, the highest nodes all of whose nodes at ``level`` stopped now."""
    whole = np.zeros(tree.nodes(level), dtype=bool)
    whole[stopped] = True
    found = []
    for above in range(level, tree.depth + 1):
        if above == tree.depth:
            top = whole
        else:
            parents = tree.ancestors(above, above + 1)
            wider = np.ones(tree.nodes(above + 1), dtype=bool)
            np.logical_and.at(wider, parents, whole)
            top, whole = whole & ~wider[parents], wider
        if top.any():
            found.append((above, np.flatnonzero(top)))
    return found


def _children(tree: HalvingTree, level: int, nodes: Integers, below: int) -> Integers:
    """Return the nodes of a finer level that lie in some nodes."""
    goes_on = np.zeros(tree.nodes(level), dtype=bool)
    goes_on[nodes] = True
    return np.flatnonzero(goes_on[tree.ancestors(below, level)])
