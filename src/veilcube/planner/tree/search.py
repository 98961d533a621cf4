"""The search for the best product of trees: fan-outs, flat attributes and level weights, by exact variances.

For a product of trees with weights of norm 1 (their sum for Laplace noise, their L2 norm for Gaussian), the expected
squared error of a query is that of noise at sensitivity 1 times the product of its ranges' variances, so seen from one
attribute the workload is a list of ranges, each weighed by the other attributes' variances. The search goes round the
attributes: for each it tries every tree with its weights optimised, takes the best and goes on, until a round gains
next to nothing; then weights are rounded to small whole multipliers. It knows public facts only: schema and workload.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from veilcube.planner.design import Family
from veilcube.planner.tree.axis_options import (
    FEW_FANOUTS,
    MOST_CELLS_TO_OPTIMISE,
    MOST_CELLS_TO_SEARCH,
    ONE_FANOUT,
    AxisTree,
)
from veilcube.planner.tree.axis_search import AxisSearch, Option, Ranges, Wish
from veilcube.query import Workload
from veilcube.schema import Attribute, Ordinal, Region, Schema
from veilcube.system import Floats, Integers

MOST_QUERIES = 4000
MOST_BLOCKS = 16
MOST_ROUNDS = 5
WORTH_A_ROUND = 1e-3


class QuerySample:
    """The queries that guide a search: all, or a fixed random sample of them. Equal samples have equal digests.

    A query that is not one block of cells is taken for the blocks that it consists of, each with its weight.
    """

    def __init__(self, workload: Workload) -> None:
        is_block = np.all(workload.high >= workload.low, axis=1)
        is_block &= ~np.isin(np.arange(len(workload)), list(workload.regions))
        low, high, weights = workload.low[is_block], workload.high[is_block], workload.weights[is_block]
        self.of = len(workload)
        if len(low) > MOST_QUERIES:
            chosen = np.sort(np.random.default_rng(0).choice(len(low), MOST_QUERIES, replace=False))
            low, high, weights = low[chosen], high[chosen], weights[chosen]
        rows = list(workload.regions)[:MOST_QUERIES]
        pieces = [_blocks_of(workload.regions[row]) for row in rows]
        of_pieces = [np.full(len(piece[0]), workload.weights[row]) for row, piece in zip(rows, pieces, strict=True)]
        self.used = len(low) + len(pieces)
        self.low = np.concatenate([low, *(piece[0] for piece in pieces)])
        self.high = np.concatenate([high, *(piece[1] for piece in pieces)])
        self.weights = np.concatenate([weights, *of_pieces])
        numbers = np.array([self.of, self.used]).tobytes() + self.weights.tobytes()
        self._digest = sha256(numbers + self.low.tobytes() + self.high.tobytes()).digest()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, QuerySample)
            and self._digest == other._digest
            and (self.of, self.used) == (other.of, other.used)
        )

    def __hash__(self) -> int:
        return hash(self._digest)

    def __len__(self) -> int:
        return len(self.low)


def _blocks_of(region: Region) -> tuple[Integers, Integers]:
    """Return the blocks of cells of a region, inclusive; the first ones, where they are many."""
    low, high = [], []
    for box in region.boxes[:MOST_BLOCKS]:
        runs = [_runs(box.mask(axis)) for axis in range(len(region.shape))]
        for block in islice(product(*runs), MOST_BLOCKS):
            low.append([start for start, _ in block])
            high.append([end for _, end in block])
    shape = (-1, len(region.shape))
    return np.array(low, dtype=np.int64).reshape(shape), np.array(high, dtype=np.int64).reshape(shape)


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return [(int(start), int(end) - 1) for start, end in edges.reshape(-1, 2)]


@dataclass(frozen=True)
class Found:
    """The best trees, one for each attribute, and a sentence about what was searched."""

    axes: tuple[AxisTree, ...]
    searched: str


@lru_cache(maxsize=64)
def search_trees(schema: Schema, wishes: tuple[Wish, ...], queries: QuerySample, family: Family = "laplace") -> Found:
    """Return the product of trees with the least expected squared error over the queries, among what is wished."""
    axes = [
        AxisSearch(attribute, wish, Ranges.of(queries.low[:, position], queries.high[:, position]), family)
        for position, (attribute, wish) in enumerate(zip(schema, wishes, strict=True))
    ]
    chosen = [axis.start() for axis in axes]
    tried = 0
    if len(queries) and any(axis.is_searched for axis in axes):
        chosen, tried = _descend(axes, chosen, queries.weights)
    rounded = _round(axes, chosen, queries.weights)
    return Found(tuple(rounded), _sentence(axes, tried, queries, family))


def _descend(axes: Sequence[AxisSearch], chosen: list[Option], weights: Floats) -> tuple[list[Option], int]:
    """Go round the attributes, each against the others as they are, until a round gains next to nothing."""
    factors = [*(_per_query(axis, option) for axis, option in zip(axes, chosen, strict=True)), weights]
    kept: list[list[Option]] = [[] for _ in axes]
    tried, last = 0, np.inf
    for turn in range(MOST_ROUNDS):
        for position, axis in enumerate(axes):
            if not axis.is_searched:
                continue
            weight = _others(factors, position)
            if turn == 0:
                kept[position], some = axis.screen(chosen[position], weight)
                tried += some
            kept[position] = axis.improve(kept[position], weight)
            chosen[position] = kept[position][0]
            factors[position] = _per_query(axis, chosen[position])
        error = float(_others(factors, -1).mean())
        if error > last * (1 - WORTH_A_ROUND):
            break
        last = error
    return chosen, tried


def _round(axes: Sequence[AxisSearch], chosen: Sequence[Option], weights: Floats) -> list[AxisTree]:
    factors = [*(_per_query(axis, option) for axis, option in zip(axes, chosen, strict=True)), weights]
    rounded = []
    for position, (axis, option) in enumerate(zip(axes, chosen, strict=True)):
        tree, variances = axis.round(option, _others(factors, position))
        factors[position] = variances[axis.ranges.of_query]
        rounded.append(tree)
    return rounded


def _per_query(axis: AxisSearch, option: Option) -> Floats:
    return axis.variances(option)[axis.ranges.of_query]


def _others(factors: Sequence[Floats], position: int) -> Floats:
    """Return the product of the variances of all attributes but one, and of the weights, which stand last."""
    product: Floats = np.prod([factor for place, factor in enumerate(factors) if place != position], axis=0)
    return product


def _sentence(axes: Sequence[AxisSearch], tried: int, queries: QuerySample, family: Family) -> str:
    parts = [f"{tried} trees were tried, each with its weights optimised"] if tried else ["the trees were given"]
    if queries.used < queries.of:
        parts.append(f"{queries.used:,} of the {queries.of:,} queries guided the search")
    parts += [limit for axis in axes if (limit := _limit(axis.attribute, axis.wish, family)) is not None]
    return "; ".join(parts)


def _limit(attribute: Attribute, wish: Wish, family: Family) -> str | None:
    """Say what was left out on an attribute that is too large to search fully."""
    if wish.multipliers is not None or not isinstance(attribute, Ordinal) or attribute.size <= MOST_CELLS_TO_SEARCH:
        return None
    if attribute.size > MOST_CELLS_TO_OPTIMISE:
        return (
            f"'{attribute.name}' has more than {MOST_CELLS_TO_OPTIMISE:,} cells, so it was not searched: "
            f"fan-out {ONE_FANOUT[family]}, equal weights"
        )
    fanouts = ", ".join(map(str, FEW_FANOUTS[family]))
    return f"'{attribute.name}' has more than {MOST_CELLS_TO_SEARCH:,} cells, so only fan-outs {fanouts} were tried"
