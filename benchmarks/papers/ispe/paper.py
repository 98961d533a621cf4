"""The paper's own estimates, for reproduction only: MMSE (Algorithm 4) with and without neighbourhood reference.

Observations of Algorithm 3 about the cells of a query inside one region: their noisy sum; the region's noisy total less
its other cells; and, with neighbourhood reference (NR), for a single cell also the noisy counts of the cells beside it
in the same region, as if they were the same count. NR uses noisy cells twice and calls unlike cells alike: its
intervals are wrong, and it is no part of the library. A range by NR is the sum of its cells here, for Algorithm 3 has
neighbours for single cells only.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.ispe.trials import Answerer, Reading
from veilcube.laws.laplace_sums import laplace_sum
from veilcube.operators import RegionCounts
from veilcube.operators.base.block_sums import BlockSums
from veilcube.operators.partition.cells_and_regions import CellsAndRegions
from veilcube.partitions import smoothed_difference_stddev

NOISY, NEIGHBOURS, MMSE = "noisy cells", "MMSE(NR)", "MMSE"
CONSISTENCY, UNWEIGHTED = "least squares", "unweighted consistency"
# The paper's parameters: budgets 0.15 and 0.05, 5 passes, neighbours that differ by less than 6.
SPLIT, PASSES, XI = 0.75, 5, 6.0
# The posterior of a cell is summed over so many points, an eighth of a noise scale apart where observations agree.
POINTS = 121
KNOWN_POINTS = 501
REACH = 8.0

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def multiple_of(count: float, passes: int, epsilon: float, split: float) -> float:
    """Return a threshold that is a number of rows as a multiple of the noise between two smoothed cells of a plane."""
    stddev = np.sqrt(2) / (epsilon * split)
    return count / smoothed_difference_stddev(passes, 2, stddev)


def paper_strategy(epsilon: float, split: float = SPLIT, passes: int = PASSES, xi: float = XI) -> vc.Adaptive:
    """Return region growing with the paper's threshold, a number of rows whatever the noise is."""
    threshold = multiple_of(xi, passes, epsilon, split)
    return vc.Adaptive(partition="grow", split=split, smooth=passes, threshold=threshold)


def noisy_cells(release: vc.Release) -> Answerer:
    """Answer by the noisy cells alone, with their part of the budget."""
    values, _, _ = _parts(release)
    return _summing(values.astype(np.float64))


def unweighted_consistency(release: vc.Release) -> Answerer:
    """Answer by least squares that takes all noise for equal, as consistency was published."""
    values, regions, totals = _parts(release)
    return _summing(CellsAndRegions(regions, 1.0, 1.0).solve(values, totals))


def neighbourhood_reference(release: vc.Release) -> Answerer:
    """Answer by the sum of the cells' posterior means with neighbourhood reference."""
    return _summing(neighbourhood_cells(release))


def neighbourhood_cells(release: vc.Release) -> Floats:
    """Return the posterior mean of every cell of a plane from all observations of Algorithm 3."""
    grid, weights = _neighbourhood_posteriors(release)
    means: Floats = (weights * grid).sum(axis=0) / weights.sum(axis=0)
    return means


def neighbourhood_intervals(release: vc.Release, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of every cell's equal-tailed credible interval, as the paper would have it."""
    grid, weights = _neighbourhood_posteriors(release)
    below = weights.cumsum(axis=0) / weights.sum(axis=0)
    tail = (1 - confidence) / 2
    ends = [np.argmax(below >= level, axis=0)[np.newaxis] for level in (tail, 1 - tail)]
    low, high = (np.take_along_axis(grid, end, axis=0)[0] for end in ends)
    return low, high


def _neighbourhood_posteriors(release: vc.Release) -> tuple[Floats, Floats]:
    """Return counts for every cell, along the first axis, and how likely its observations make each of them."""
    values, regions, totals = _parts(release)
    of_cells, of_regions = _scales(release)
    cells, labels = values.astype(np.float64), regions.chosen
    sums = CellsAndRegions(regions, 1.0, 1.0).totals(cells)
    of_siblings = (totals - sums)[labels] + cells
    shown = np.stack([cells, *_neighbours(cells, labels)])
    # The total of a large region says too little about one cell to move its posterior away from the cells.
    deviation = np.sqrt(2 * (regions.sizes - 1) * of_cells**2 + 2 * of_regions**2)[labels]
    near = np.concatenate([shown, [np.where(deviation <= REACH * of_cells, of_siblings, np.nan)]])
    low, high = np.nanmin(near, axis=0) - REACH * of_cells, np.nanmax(near, axis=0) + REACH * of_cells
    grid = low + (high - low) * np.linspace(0, 1, POINTS).reshape(-1, 1, 1)
    fit = np.zeros_like(grid)
    for one in shown:
        # What is not there says nothing.
        fit -= np.where(np.isnan(one), 0.0, np.abs(one - grid) / of_cells)
    for size in np.unique(regions.sizes).tolist():
        here = regions.sizes[labels] == size
        away = np.abs(of_siblings[here] - grid[:, here])
        fit[:, here] += _log_density(_noises(of_cells, size - 1, of_regions), away)
    return grid, np.exp(fit - fit.max(axis=0))


def _log_density(noises: dict[float, int], away: Floats) -> Floats:
    """Return the logarithm of the density of summed noises, between points of it: it bends little."""
    reach = 2.0 ** np.ceil(np.log2(max(float(away.max()), 1.0)))
    known = np.linspace(0, reach, KNOWN_POINTS)
    return np.interp(away, known, _known_densities(tuple(noises.items()), reach))


@lru_cache(maxsize=4096)
def _known_densities(noises: tuple[tuple[float, int], ...], reach: float) -> Floats:
    return laplace_sum(dict(noises)).log_density(np.linspace(0, reach, KNOWN_POINTS))


def _neighbours(cells: Floats, labels: Integers) -> Iterator[Floats]:
    """Yield, for each of four directions, the cell beside each one; not a number where that is in another region."""
    for axis in (0, 1):
        for step in (1, -1):
            beside, region = np.roll(cells, step, axis), np.roll(labels, step, axis)
            edge = [slice(None), slice(None)]
            edge[axis] = slice(0, 1) if step == 1 else slice(-1, None)
            region[tuple(edge)] = -1
            yield np.where(region == labels, beside, np.nan)


def exact_mmse(release: vc.Release) -> Answerer:
    """Answer region by region, by the exact posterior mean of two observations."""
    return lambda asked: mmse_answers(release, asked)


def mmse_answers(release: vc.Release, asked: vc.Workload) -> Floats:
    """Answer each query region by region, by the exact posterior mean of its two observations."""
    values, regions, totals = _parts(release)
    of_cells, of_regions = _scales(release)
    sums = CellsAndRegions(regions, 1.0, 1.0).totals(values.astype(np.float64))
    answers = np.zeros(len(asked))
    for row, (low, high) in enumerate(zip(asked.low, asked.high, strict=True)):
        box = tuple(slice(first, last + 1) for first, last in zip(low, high, strict=True))
        labels, cells = regions.chosen[box].ravel(), values[box].ravel().astype(np.float64)
        held = np.bincount(labels, minlength=regions.regions)
        inside = np.bincount(labels, weights=cells, minlength=regions.regions)
        for region in np.flatnonzero(held).tolist():
            others = int(regions.sizes[region] - held[region])
            total = totals[region] - (sums[region] - inside[region])
            own = (float(inside[region]), {of_cells: int(held[region])})
            answers[row] += vc.posterior([own, (float(total), _noises(of_cells, others, of_regions))]).mean
    return answers


def paper_readings(mmse_for: tuple[str, ...]) -> Sequence[Reading]:
    """Return the readings of the paper; the exact posterior takes milliseconds, so some kinds of queries only."""
    return (
        Reading(NOISY, noisy_cells),
        Reading(NEIGHBOURS, neighbourhood_reference),
        Reading(MMSE, exact_mmse, mmse_for),
    )


def _parts(release: vc.Release) -> tuple[Integers, RegionCounts, Integers]:
    cells, regions = release.record.measurements
    assert isinstance(regions.operator, RegionCounts)
    return cells.values, regions.operator, regions.values


def _scales(release: vc.Release) -> tuple[float, float]:
    cells, regions = (float(measurement.noise.parameter) for measurement in release.record.measurements)
    return cells, regions


def _summing(cells: Floats) -> Answerer:
    sums = BlockSums(cells)
    return lambda asked: sums(asked.low, asked.high)


def _noises(of_cells: float, cells: int, of_regions: float) -> dict[float, int]:
    """Return the noises of some cells and one region, which may have the same scale."""
    if of_cells == of_regions:
        return {of_cells: cells + 1}
    return {of_regions: 1, of_cells: cells} if cells else {of_regions: 1}
