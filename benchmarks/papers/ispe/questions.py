"""What is asked: cells, small ranges and large ranges, and ranges of one size; the same of every arm."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.ispe.data import Table
from benchmarks.peers.dpbench.arrays import exact_answers

CELLS, SMALL, LARGE = "cells", "small ranges", "large ranges"
KINDS = (CELLS, SMALL, LARGE)
# Each side of a range, as shares of its axis.
SIDES: Mapping[str, tuple[float, float]] = {CELLS: (0.0, 0.0), SMALL: (0.02, 0.12), LARGE: (0.3, 0.9)}
# The planner plans for random ranges of seed 0.
SEED = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Questions:
    """Queries of one kind about one table, and their exact answers."""

    kind: str
    workload: vc.Workload
    truth: Floats = field(repr=False)


def questions_for(table: Table, queries: int) -> tuple[Questions, ...]:
    """Return so many queries of each kind."""
    return tuple(_drawn(table, kind, *SIDES[kind], queries) for kind in KINDS)


def questions_of_size(table: Table, share: float, queries: int) -> Questions:
    """Return queries whose every side is a share of its axis, one cell at least."""
    return _drawn(table, f"{share:g}", share, share, queries)


def _drawn(table: Table, kind: str, least: float, largest: float, queries: int) -> Questions:
    random = np.random.default_rng(SEED)
    sizes = np.array(table.counts.shape)
    sides = random.uniform(least, largest, (queries, len(sizes))) * sizes
    lengths = np.clip(np.rint(sides).astype(np.int64), 1, sizes)
    low = random.integers(0, sizes - lengths, endpoint=True)
    workload = vc.Workload.ranges(table.schema, low, low + lengths - 1)
    truth = exact_answers(table.counts, workload.low, workload.high).astype(np.float64)
    return Questions(kind, workload, truth)
