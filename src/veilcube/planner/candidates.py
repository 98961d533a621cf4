"""Which strategies are compared: those that a user's word allows, with every choice made for the workload."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from math import prod

import numpy as np

from veilcube.errors import CapacityError, PlanError
from veilcube.operators import LARGEST_MATCHED, require_few_tables
from veilcube.planner.design import Family, Identity, Strategy
from veilcube.planner.fitting import (
    LARGEST_CUBE_COUNTED,
    LEAST_ATTRIBUTES,
    LONGEST_OF_MODELS,
    has_room_for_cube,
    require_releasing_tables,
)
from veilcube.planner.grouped import GroupedTables, looks_at_rows
from veilcube.planner.marginals import Marginals
from veilcube.planner.matched import matched_strategies
from veilcube.planner.staged import can_stage, has_like_neighbours
from veilcube.planner.tree import MOST_CELLS_TO_SEARCH, Tree
from veilcube.query import Workload
from veilcube.schema import Nominal, Schema

# Fan-outs that are shown beside the tree that the search finds.
FANOUTS: Mapping[Family, tuple[int, ...]] = {"laplace": (4, 8, 16), "gaussian": (2, 4, 8)}
# A product of trees may take this many measurements for each cell, or so many in all, whichever is more.
MOST_PER_CELL = 4
ALWAYS_AFFORDABLE = 2**22
MOST_QUERIES_TO_MATCH = 200_000
LEAST_CELLS_TO_REFINE, MOST_CELLS_TO_REFINE = 2**6, 2**16
_FLAT_UP_TO = (1, 2, 4, 8, 16, 64)


def takes_grouped_tables(schema: Schema, *, is_given: bool) -> bool:
    """Whether "auto" takes grouped tables: from three attributes on, and for named questions if there is no cube."""
    return len(schema) >= LEAST_ATTRIBUTES and (not is_given or schema.cells > LARGEST_CUBE_COUNTED)


def candidates_for(
    strategy: Strategy | None,
    schema: Schema,
    workload: Workload,
    family: Family,
    *,
    is_given: bool,
    has_cube: bool = False,
) -> tuple[Strategy, ...]:
    """Return the strategies to compare; without a choice all that suit, marginals only if the workload was given.

    A release of marginals cannot answer everything, so nobody gets one unless their own questions are all it needs to
    answer.
    """
    if strategy is not None:
        return strategy.candidates(schema, workload, family)
    has_room = has_cube or has_room_for_cube(schema)
    if not has_room and max(schema.shape) > LONGEST_OF_MODELS:
        # A model of all tables would take too long to fit: what answers without one goes first.
        fitting: tuple[Strategy, ...] = tuple(
            filter(partial(_has_room_for_tables, schema), _marginals(schema, workload, family))
        )
        return fitting or GroupedTables().candidates(schema, workload, family)
    if takes_grouped_tables(schema, is_given=is_given) or not has_room:
        found = GroupedTables(full_cells=looks_at_rows(schema)).candidates(schema, workload, family)
        return (*found, *_marginals(schema, workload, family)) if is_given else found
    return _all_candidates(schema, workload, family, is_given)


def _has_room_for_tables(schema: Schema, tables: Strategy) -> bool:
    try:
        require_releasing_tables(schema, prod(tables.operator(schema).measurement_shape))
    except CapacityError:
        return False
    return True


@lru_cache(maxsize=32)
def _all_candidates(schema: Schema, workload: Workload, family: Family, is_given: bool) -> tuple[Strategy, ...]:
    found: list[Strategy] = [Identity(), *_trees(schema, workload, family)]
    if _suits_refining(schema):
        found.insert(0, Tree().resolve(schema, workload, family))
    if is_given:
        found += [*_marginals(schema, workload, family), *_matched(schema, workload, family)]
    return tuple(found)


def _suits_refining(schema: Schema) -> bool:
    is_fit = LEAST_CELLS_TO_REFINE <= schema.cells <= MOST_CELLS_TO_REFINE
    return is_fit and has_like_neighbours(schema) and can_stage(schema)


def _trees(schema: Schema, workload: Workload, family: Family) -> list[Strategy]:
    """Return the tree that the search finds, and trees of fixed fan-outs beside it; none that is the identity."""
    best = _affordable_tree(schema, workload, family)
    if best is None or _is_flat(best):
        return []
    trees = [best]
    if max(schema.shape) <= MOST_CELLS_TO_SEARCH:
        flat = {name: branches for name, branches in _branches(best).items() if branches == "flat"}
        named = [dict.fromkeys(_ordinals(schema), fanout) | flat for fanout in FANOUTS[family]]
        trees += [Tree(branching=branching, refine=False).resolve(schema, workload, family) for branching in named]
    trees.append(_with_equal_weights(best))
    distinct: dict[str, Strategy] = {}
    for tree in trees:
        if not _is_flat(tree):
            distinct.setdefault(str(tree.to_dict()), tree)
    return list(distinct.values())


def _ordinals(schema: Schema) -> list[str]:
    return [attribute.name for attribute in schema if not isinstance(attribute, Nominal)]


def _is_flat(tree: Tree) -> bool:
    return all(branches == "flat" for branches in _branches(tree).values())


def _with_equal_weights(tree: Tree) -> Tree:
    """Return the same tree with the budget divided evenly among the levels."""
    weights = tree.weights if isinstance(tree.weights, Mapping) else {}
    even = {name: (Fraction(1, len(shares)),) * len(shares) for name, shares in weights.items()}
    return replace(tree, weights=even)


def _affordable_tree(schema: Schema, workload: Workload, family: Family) -> Tree | None:
    """Return the best tree that does not measure too much: short attributes stay flat where it would."""
    limit = max(MOST_PER_CELL * schema.cells, ALWAYS_AFFORDABLE)
    for short in _FLAT_UP_TO:
        named = {attribute.name: "flat" for attribute in schema if attribute.size <= short}
        tree = Tree(branching=named, refine=False).resolve(schema, workload, family)
        if prod(tree.operator(schema).measurement_shape) <= limit:
            return tree
    return None


def _branches(tree: Tree) -> Mapping[str, object]:
    return tree.branching if isinstance(tree.branching, Mapping) else {}


def _matched(schema: Schema, workload: Workload, family: Family) -> list[Strategy]:
    """Return the strategies optimised for the questions, if the attributes are short enough for that."""
    if max(schema.shape) > LARGEST_MATCHED or len(workload) > MOST_QUERIES_TO_MATCH:
        return []
    return list(matched_strategies(schema, workload, family))


def _marginals(schema: Schema, workload: Workload, family: Family) -> list[Strategy]:
    """Return marginals over as many attributes as the questions need, if that is fewer than there are."""
    lengths = workload.high - workload.low + 1
    k = max(int((lengths < np.array(schema.shape)).sum(axis=1).max()), 1)
    if k >= len(schema):
        return []
    try:
        require_few_tables(len(schema), k)
    except PlanError:
        return []
    return [Marginals(k).resolve(schema, workload, family)]
