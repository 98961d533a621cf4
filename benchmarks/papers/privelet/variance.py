"""Measured variance over many releases of small cubes beside the exact formula, for every shape of query.

Each release gives, for a shape, the mean over its queries of squared error / exact variance; the mean of those over the
releases should be 1, and their spread tells its standard error. A bar of 3% means something only if it is more than two
standard errors wide, so the standard error stands beside every figure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.privelet.questions import nodes_below
from benchmarks.papers.privelet.verdict import Verdict
from veilcube.schema import Region

TOLERANCE = 0.03
QUERIES_OF_A_SHAPE = 40
SEED = 4

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SmallCube:
    """A cube of few cells, and how it is released."""

    title: str
    schema: vc.Schema
    strategy: vc.Wavelet
    neighbours: str = "add-remove"


@dataclass(frozen=True)
class Spread:
    """Measured over exact variance of one shape of query on one cube, with its standard error."""

    cube: str
    shape: str
    releases: int
    queries: int
    ratio: float
    stderr: float


_TREE = {"a": ["b", "c", "d"], "e": ["f", "g"], "h": ["i"]}
_THREE = vc.Schema([vc.Ordinal("x", 0, 4), vc.Nominal("y", ["p", "q", "r"]), vc.Nominal("z", hierarchy=_TREE)])
_SQUARE = vc.Schema([vc.Ordinal("x", 0, 7), vc.Ordinal("y", 0, 7)])
SMALL_CUBES = (
    SmallCube("5 x 3 x 6 with a hierarchy", _THREE, vc.Wavelet(flat=())),
    SmallCube("5 x 3 x 6 with a hierarchy, y flat", _THREE, vc.Wavelet(flat=("y",)), "replace"),
    SmallCube("8 x 8", _SQUARE, vc.Wavelet(flat=())),
    SmallCube("13", vc.Schema([vc.Ordinal("x", 0, 12)]), vc.Wavelet(flat=()), "replace"),
)


def measure_spreads(small: SmallCube, releases: int) -> list[Spread]:
    """Release a cube many times and compare."""
    random = np.random.default_rng(SEED)
    counts = random.poisson(20, small.schema.shape)
    cube, chosen = vc.Cube(small.schema, counts), vc.plan(small.schema, 1.0, small.strategy, None, small.neighbours)
    shapes = dict(query_shapes(small.schema, random))
    exact = {name: chosen.stddev(vc.Workload(small.schema, regions)) ** 2 for name, regions in shapes.items()}
    masks = {name: np.array([region.mask().ravel() for region in regions]) for name, regions in shapes.items()}
    found: dict[str, list[float]] = {name: [] for name in shapes}
    for _ in range(releases):
        (measurement,) = vc.release(cube, plan=chosen).record.measurements
        errors = (measurement.operator.solve(measurement.values) - counts).ravel()
        for name, chosen_cells in masks.items():
            found[name].append(float(np.mean((chosen_cells @ errors) ** 2 / exact[name])))
    return [
        Spread(small.title, name, releases, len(shapes[name]), float(np.mean(ratios)), _stderr(ratios))
        for name, ratios in found.items()
    ]


def query_shapes(schema: vc.Schema, random: np.random.Generator) -> Iterator[tuple[str, list[Region]]]:
    """Yield queries by shape: blocks, unions of two, products of sets, and of nodes where there is a hierarchy."""
    ranges = vc.Workload.random_ranges(schema, QUERIES_OF_A_SHAPE, seed=SEED)
    blocks = [_block(schema, *ends) for ends in zip(ranges.low.tolist(), ranges.high.tolist(), strict=True)]
    yield "ranges", blocks
    yield "unions", [one.union(other) for one, other in pairwise(blocks)]
    yield "sets", [_product(schema, [_some(random, size) for size in schema.shape]) for _ in range(QUERIES_OF_A_SHAPE)]
    if any(isinstance(attribute, vc.Nominal) for attribute in schema):
        yield "nodes", [_nodes(schema, random) for _ in range(QUERIES_OF_A_SHAPE)]


def _block(schema: vc.Schema, low: Sequence[int], high: Sequence[int]) -> Region:
    runs = zip(schema.shape, low, high, strict=True)
    return _product(schema, [_run(size, first, last) for size, first, last in runs])


def _nodes(schema: vc.Schema, random: np.random.Generator) -> Region:
    """Choose a node below the root of every nominal attribute; others are not bound."""
    masks = []
    for attribute in schema:
        if isinstance(attribute, vc.Nominal):
            nodes = list(nodes_below(attribute.hierarchy.root))
            node = nodes[random.integers(len(nodes))]
            masks.append(_run(attribute.size, node.first, node.end - 1))
        else:
            masks.append(np.ones(attribute.size, dtype=np.bool_))
    return _product(schema, masks)


def _product(schema: vc.Schema, masks: Sequence[Mask]) -> Region:
    region = Region.on_axis(schema.shape, 0, masks[0])
    for axis, mask in enumerate(masks[1:], 1):
        region = region.intersect(Region.on_axis(schema.shape, axis, mask))
    return region


def _run(size: int, first: int, last: int) -> Mask:
    cells = np.arange(size)
    return (cells >= first) & (cells <= last)


def _some(random: np.random.Generator, size: int) -> Mask:
    """Choose a random set of cells that is not empty."""
    chosen: Mask = random.random(size) < 0.5
    chosen[random.integers(size)] = True
    return chosen


def _stderr(ratios: Sequence[float]) -> float:
    return float(np.std(ratios, ddof=1)) / sqrt(len(ratios))


def judge_spreads(spreads: Sequence[Spread]) -> list[Verdict]:
    """Return how far each measured variance is from the exact one, with the bar of 3%."""
    return [
        Verdict(
            "variance",
            f"{spread.cube}, {spread.shape}: measured / exact variance",
            spread.ratio,
            low=1 - TOLERANCE,
            high=1 + TOLERANCE,
            note=f"± {spread.stderr:.4f} (standard error, {spread.releases:,} releases, {spread.queries} queries)"
            + ("" if 2 * spread.stderr < TOLERANCE else "; too few releases to tell 3%"),
        )
        for spread in spreads
    ]
