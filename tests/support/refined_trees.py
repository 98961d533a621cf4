"""Refined trees with something to refine on small cubes, and releases of them."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from support.seeded import SeededWords
from veilcube.analyst import Release
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import RefinedTreeMechanism
from veilcube.curator.noise import discrete_laplace, joint_laplace
from veilcube.operators import HalvingTree
from veilcube.operators.block_levels import BlockLevels
from veilcube.planner import Strategy, Tree, plan
from veilcube.planner.refined_tree import RefinedDesign
from veilcube.planner.weights import multipliers_of
from veilcube.release import ReleaseRecord
from veilcube.schema import Schema


class EveryLevel(Tree):
    """A refined tree that measures every level below the root, the coarser ones with less noise."""

    def design(self, schema: Schema) -> RefinedDesign:
        steps = max(HalvingTree.of(schema).depth, 1)
        weights = tuple(Fraction(2 * (steps - step), steps * (steps + 1)) for step in range(steps))
        return RefinedDesign(tuple(range(steps - 1, -1, -1)), weights, (1.0,) * (steps - 1))

    def operator(self, schema: Schema) -> BlockLevels:
        design = self.design(schema)
        return BlockLevels(HalvingTree.of(schema), design.levels, multipliers_of(list(design.weights)))


class RichLevels(EveryLevel):
    """The same with a survey, and with joint noise below every node that holds a row a cell or so."""

    def design(self, schema: Schema) -> RefinedDesign:
        plain = super().design(schema)
        if plain.levels[0] < 2:
            return replace(plain, rich=0.5)
        tree = HalvingTree.of(schema)
        whole = tuple(level for level in range(plain.levels[0], tree.depth + 1) if tree.is_whole(level).any())
        return replace(plain, rich=0.5, survey=Fraction(1, 5), surveyed=whole)


def refined_release(
    schema: Schema, counts: ArrayLike, epsilon: object = 1, seed: int = 0, strategy: Strategy | None = None
) -> Release:
    """Return a refined release of given counts, with seeded noise."""
    chosen = plan(schema, epsilon, strategy or EveryLevel())
    claim = RefinedTreeMechanism().claim(chosen)
    source = SeededWords(seed)

    def draw(scale: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
        return discrete_laplace(scale, shape, source=source)

    def draw_jointly(scales: Sequence[Fraction], trees: int) -> NDArray[np.int64]:
        return joint_laplace(scales, trees, source=source)

    mechanism = RefinedTreeMechanism(draw_jointly)
    measured = mechanism.measure(Cube(schema, counts), chosen, Receipt.uncharged(claim), draw)
    return Release(ReleaseRecord(schema, claim, measured, chosen.to_dict(), "2026-01-01T00:00:00+00:00", "test"))
