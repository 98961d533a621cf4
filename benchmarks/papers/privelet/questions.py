"""The paper's random queries: one to four predicates, a range of an ordinal attribute or a node of a nominal one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from veilcube.schema import Attribute
from veilcube.schema.hierarchy import Node

QUINTILES = 5

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Questions:
    """A workload, and the share of the cube's cells that each of its queries covers."""

    workload: vc.Workload
    coverage: NDArray[np.float64]


def random_questions(schema: vc.Schema, count: int, seed: int) -> Questions:
    """Draw queries with a uniform number of predicates, each on an attribute of its own."""
    random = np.random.default_rng(seed)
    sizes = np.array(schema.shape)
    predicates = random.integers(1, len(schema), count, endpoint=True)
    order = random.random((count, len(schema))).argsort(axis=1).argsort(axis=1)
    is_bound = order < predicates[:, np.newaxis]
    drawn = [_random_runs(attribute, random, count) for attribute in schema]
    low = np.where(is_bound, np.stack([first for first, _ in drawn], axis=1), 0)
    high = np.where(is_bound, np.stack([last for _, last in drawn], axis=1), sizes - 1)
    coverage = ((high - low + 1) / sizes).prod(axis=1)
    return Questions(vc.Workload.ranges(schema, low, high), coverage)


def _random_runs(attribute: Attribute, random: np.random.Generator, count: int) -> tuple[Integers, Integers]:
    """Draw inclusive runs: nodes below the root of a nominal attribute, ranges with uniform ends of an ordinal one."""
    if isinstance(attribute, vc.Nominal):
        runs = np.array([(node.first, node.end - 1) for node in nodes_below(attribute.hierarchy.root)])
        chosen = runs[random.integers(0, len(runs), count)]
        return chosen[:, 0], chosen[:, 1]
    ends = np.sort(random.integers(0, attribute.size, (count, 2)), axis=1)
    return ends[:, 0], ends[:, 1]


def nodes_below(node: Node) -> Iterator[Node]:
    """Yield all descendants of a node of a hierarchy."""
    for child in node.children:
        yield child
        yield from nodes_below(child)


def quintiles(values: NDArray[np.float64]) -> list[Integers]:
    """Return the positions of the values in five groups of one size, the smallest values first."""
    return np.array_split(np.argsort(values, kind="stable"), QUINTILES)
