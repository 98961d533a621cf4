"""Staged trees with something to refine on small cubes, and releases of them."""

from dataclasses import replace
from fractions import Fraction

from numpy.typing import ArrayLike

from support.releases import release_of
from veilcube.analyst import Release
from veilcube.operators import HalvingTree
from veilcube.operators.staged.block_levels import BlockLevels
from veilcube.planner import Strategy, Tree
from veilcube.planner.design.weights import multipliers_of
from veilcube.planner.staged.design import StagedDesign
from veilcube.schema import Schema


class EveryLevel(Tree):
    """A staged tree that measures every level below the root, the coarser ones with less noise."""

    def design(self, schema: Schema) -> StagedDesign:
        steps = max(HalvingTree.of(schema).depth, 1)
        weights = tuple(Fraction(2 * (steps - step), steps * (steps + 1)) for step in range(steps))
        return StagedDesign(tuple(range(steps - 1, -1, -1)), weights, (1.0,) * (steps - 1))

    def operator(self, schema: Schema) -> BlockLevels:
        design = self.design(schema)
        return BlockLevels(HalvingTree.of(schema), design.levels, multipliers_of(list(design.weights)))


class RichLevels(EveryLevel):
    """The same with a survey, and with joint noise below every node that holds a row a cell or so."""

    def design(self, schema: Schema) -> StagedDesign:
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
    return release_of(schema, counts, epsilon, seed, strategy or EveryLevel())
