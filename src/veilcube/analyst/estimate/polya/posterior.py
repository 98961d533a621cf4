"""The posterior mean, reconciled with what was measured: as sure as the data are smooth, and no surer.

It reads releases whose measured nodes form a tree: staged trees, trees over one attribute, and plain cells. Values are
posterior means under the Pólya-tree prior of ``veilcube.polya_tree``, corrected where least squares shows them to be
biased. Intervals come from draws of the errors of both. They are calibrated: the spread is widened by WIDENING, cells
that nobody measured alone are taken as being in one place and not spread out, and where an answer lies further from
least squares than its noise explains, the interval reaches to both (docs/known-limits.md, docs/benchmarks.md for the
coverage that this gives). They are not proofs: ``interval="guaranteed"`` gives those.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import BlockQueries, Estimates, Finding, queries_about_groups
from veilcube.analyst.estimate.guaranteed import Guarantee
from veilcube.laws import normal_quantile
from veilcube.operators import (
    AxisCodes,
    BlockSums,
    HalvingTree,
    TreeAxis,
    group_cells,
    halving_depth,
    levels_of_fanouts,
    node_multipliers,
)
from veilcube.polya_tree import (
    WIDENING,
    Belief,
    Heaps,
    MeasuredTree,
    NodeValues,
    Reconciled,
    is_normal,
    learn,
    node_values,
)
from veilcube.record import NoisyMeasurement, ReleaseRecord
from veilcube.schema import Region
from veilcube.system import Floats, Integers

MOST_CELLS = 2**18
DEEPEST = 26


def has_measured_tree(record: ReleaseRecord) -> bool:
    """Whether the measured nodes of a release form a tree that is small enough for the posterior."""
    if record.schema.cells > MOST_CELLS:
        return False
    if record.is_staged:
        trees = {nodes.tree for _, nodes in record.steps}
        is_moderate = len(trees) == 1 and all(tree.depth <= DEEPEST for tree in trees)
        return is_moderate and measured_tree(record).is_covered
    first = record.measurements[0]
    if len(record.measurements) != 1 or first.product is None:
        return False
    if first.cells is not None:
        return halving_depth(record.schema) <= DEEPEST
    axis = first.product.tree
    return axis is not None and sum(width for _, _, width in _digits(axis)) <= DEEPEST


def measured_tree(record: ReleaseRecord) -> MeasuredTree:
    """Return the tree of what a release measured."""
    first = record.measurements[0]
    if first.nodes is not None:
        return MeasuredTree.of(first.nodes.tree, node_values(record.measurements, with_variances=True))
    axis = None if first.product is None else first.product.tree
    if axis is not None:
        return _tree_of_axis(axis, first)
    tree = HalvingTree.of(record.schema)
    counts = first.values.reshape(-1)[tree.order]
    noise = first.noise
    law = noise.laplace_scale, noise.variance, False, is_normal(noise)
    return MeasuredTree.of(tree, [NodeValues(0, np.arange(tree.cells), counts, *law)])


def _tree_of_axis(axis: TreeAxis, measurement: NoisyMeasurement) -> MeasuredTree:
    """Match each measured run of cells with a node of the halving tree that the axis' own levels span."""
    tree, shape = HalvingTree((_codes(axis),)), axis.shape
    skipped = int(shape.virtual)
    bottom = np.flatnonzero((shape.child_start >= shape.inner) & (shape.child_count > 0))
    cells = np.concatenate([*(np.arange(shape.first[v], shape.end[v]) for v in bottom), np.empty(0, np.int64)])
    first = np.concatenate([shape.first[skipped:], cells])
    last = np.concatenate([shape.end[skipped:] - 1, cells])
    inner = node_multipliers(shape, axis.multipliers)[skipped:]
    multipliers = np.concatenate([inner, np.full(cells.size, axis.multipliers[-1])])
    differing = tree.positions[first] ^ tree.positions[last]
    levels = np.array([int(bits).bit_length() for bits in differing], dtype=np.int64)
    values, noise = measurement.values / multipliers, measurement.noise
    parts = []
    for level, multiplier in np.unique(np.stack([levels, multipliers.astype(np.int64)], axis=1), axis=0):
        rows = np.flatnonzero((levels == level) & (multipliers == multiplier))
        nodes = np.searchsorted(tree.starts(int(level)), first[rows])
        variance = noise.variance / float(multiplier) ** 2
        law = noise.laplace_scale / float(multiplier), variance, False, is_normal(noise)
        parts.append(NodeValues(int(level), nodes, values[rows], *law))
    return MeasuredTree.of(tree, parts)


def _codes(axis: TreeAxis) -> AxisCodes:
    """Return binary codes of the cells that keep every node of the axis' tree together: a digit for each level."""
    codes, bits = np.zeros(1, dtype=np.int64), 0
    for parent, siblings, width in _digits(axis):
        place = np.arange(parent.size) - (np.cumsum(siblings) - siblings)[parent]
        codes = codes[parent] << width | (place << width) // siblings[parent]
        bits += width
    return AxisCodes(axis.size, bits, tuple(codes.tolist()))


def _digits(axis: TreeAxis) -> Iterator[tuple[Integers, Integers, int]]:
    """Yield for each level below the whole axis its nodes' parents, the parents' numbers of children, and the bits."""
    if axis.fanouts is not None:
        levels = list(levels_of_fanouts(axis.size, axis.fanouts))
    else:
        levels = [np.concatenate([[0], np.cumsum(level)]) for level in axis.runs]
    for before, now in pairwise([np.array([0, axis.size]), *levels, np.arange(axis.size + 1)]):
        parent = np.searchsorted(before, now[:-1], side="right") - 1
        siblings = np.bincount(parent)
        yield parent, siblings, int(siblings.max() - 1).bit_length()


Draws = NDArray[np.float32]

# Counts lie on a grid: within a step of it nothing is known, which has this part of the squared step as variance.
WITHIN_A_STEP = 1 / 12
# An answer so many standard deviations of least squares away from it may be misled: its interval reaches as far beyond.
FAR = 1.5
# The 97.5% point of a normal variable of mean -2 standard deviations, cut at zero, in half-widths.
LEAST_ABOVE_ZERO = 0.6
# Keeps the mean of shares defined where nothing differs.
LEAST_WEIGHT = 1e-9


@dataclass(frozen=True)
class Posterior:
    """The posterior mean under a prior whose weights are learned from the release; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "posterior"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the measured nodes of the release form a tree of moderate size."""
        return has_measured_tree(record)

    def fit(self, record: ReleaseRecord) -> "PosteriorEstimate":
        """Return its answers about this release."""
        guarantee = Guarantee(record)
        belief = learn(measured_tree(record))
        return PosteriorEstimate(record.schema.shape, belief, guarantee if guarantee.is_cap else None)


class PosteriorEstimate:
    """Sums of reconciled posterior means, with intervals from draws, or guaranteed ones where these are narrower."""

    def __init__(self, shape: tuple[int, ...], belief: Belief, guarantee: Guarantee | None = None) -> None:
        self._reconciled, self._guarantee = Reconciled(shape, belief), guarantee
        self._cells = self._reconciled.cells.reshape(shape)
        self._cells.setflags(write=False)
        self._block_sums = BlockSums(self._cells)
        self._plain_sums = BlockSums(self._reconciled.plain.reshape(shape))

    @property
    def reconciled(self) -> Reconciled:
        """What the answers are made of."""
        return self._reconciled

    def cells(self) -> Floats:
        """Return the estimate of every cell."""
        return self._cells.copy()

    def findings(self, names: Sequence[str]) -> tuple[Finding, ...]:
        """Return how far the prior is from the measurements by kind of question, and these from each other by level."""
        reconciled, levels = self._reconciled, self._reconciled.differences.bands.levels
        squares = reconciled.differences.disagreement
        found = []
        for kind, is_in in _kinds(levels, names):
            if is_in.any():
                share = float(np.average(reconciled.bias.share[is_in], weights=squares[is_in] + LEAST_WEIGHT))
                found.append(Finding(kind, int(is_in.sum()), float(squares[is_in].mean()), share))
        for level, (nodes, disagreement) in reconciled.least_squares.contradictions().items():
            if disagreement > LEAST_WEIGHT:  # jointly drawn noise leaves nothing to compare
                found.append(Finding(f"counts of {2**level:,} cells beside finer ones", nodes, disagreement, 0.0))
        return tuple(found)

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        shape = self._cells.shape
        spread = np.sqrt(_variance_of_blocks(self._reconciled.errors, shape, low, high))
        plain_spread = np.sqrt(_variance_of_blocks(self._reconciled.plain_errors, shape, low, high))
        plain = (self._plain_sums(low, high), plain_spread)
        found = _estimates(self._block_sums(low, high), spread, plain, self._reconciled.step, confidence)
        return self._guarantee.cap_rectangles(found, low, high, confidence) if self._guarantee else found

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        found = self.grouped(region, ()).estimates(confidence)
        return self._guarantee.cap_region(found, region, confidence) if self._guarantee else found

    def grouped(self, region: Region, axes: Sequence[int]) -> "DrawnGroups":
        """Estimate the counts inside a region for every combination of cells of the given axes."""

        def drawn(draws: Draws) -> Floats:
            cubes = draws.reshape(-1, *self._cells.shape)
            return np.stack([group_cells(draw.astype(np.float64), region, axes)[0] for draw in cubes])

        counts, sizes = group_cells(self._cells, region, axes)
        plain, _ = group_cells(self._reconciled.plain.reshape(self._cells.shape), region, axes)
        errors, plain_errors = drawn(self._reconciled.errors), drawn(self._reconciled.plain_errors)
        cap = partial(self._capped_groups, region, tuple(axes)) if self._guarantee and axes else None
        found = DrawnGroups(counts, sizes, errors, plain, plain_errors, self._reconciled.step, cap)
        if region.rectangle() is not None:
            return found
        # Regions with gaps may follow heaps, which the prior lowers and their neighbours do not show.
        return replace(found, heaps=self._heaped_alike(region, axes))

    def _heaped_alike(self, region: Region, axes: Sequence[int]) -> Heaps:
        """Return the spread of the groups if rows are heaped alike where nobody measured."""
        shape = self._cells.shape
        groups = np.zeros(shape, dtype=np.int64)
        for axis in axes:
            along = np.arange(shape[axis]).reshape([-1 if other == axis else 1 for other in range(len(shape))])
            groups = groups * shape[axis] + along
        kept = tuple(shape[axis] for axis in axes)
        found = self._reconciled.heaped_alike(region.mask().ravel(), groups.ravel())
        return Heaps(found.alone.reshape(kept), found.together.reshape(kept))

    def _capped_groups(self, region: Region, axes: tuple[int, ...], found: Estimates, confidence: float) -> Estimates:
        """Return groups with guaranteed intervals where these are narrower, as the same questions asked alone have."""
        if self._guarantee is None or region.rectangle() is None:
            return found
        blocks, inside = queries_about_groups(region, axes)
        if not isinstance(blocks, BlockQueries):
            return found
        value, low, high, stddev = (
            part.reshape(-1)[inside] for part in (found.value, found.low, found.high, found.stddev)
        )
        some = Estimates(value, low, high, stddev)
        capped = self._guarantee.cap_rectangles(some, blocks.low, blocks.high, confidence)
        for whole, part in ((found.low, capped.low), (found.high, capped.high)):
            whole.reshape(-1)[inside] = part
        return found


def _kinds(levels: Integers, names: Sequence[str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield kinds of questions and the coefficients that are about them."""
    finest, along = levels.max(axis=0), levels > 0
    axes = np.count_nonzero(along, axis=1)
    yield "the total", axes == 0
    is_finest = np.all(~along | (levels == finest), axis=1)
    if np.count_nonzero(finest) == 1:
        is_wide = np.any(along & (2 * levels <= finest), axis=1)
        yield "wide ranges", is_wide
        yield "narrow ranges", (axes > 0) & ~is_wide & ~is_finest
        yield "neighbouring cells", (axes > 0) & is_finest & ~is_wide
        return
    for axis, name in enumerate(names):
        yield f"the marginal of {name}", (axes == 1) & along[:, axis]
    yield "blocks", (axes > 1) & ~is_finest
    yield "neighbouring cells", (axes > 1) & is_finest


def _variance_of_blocks(draws: Draws, shape: tuple[int, ...], low: Integers, high: Integers) -> Floats:
    total, squares = np.zeros(low.shape[0]), np.zeros(low.shape[0])
    for draw in draws:
        sums = BlockSums(draw.reshape(shape).astype(np.float64))(low, high)
        total += sums
        squares += np.square(sums)
    count = len(draws)
    variance: Floats = np.maximum(squares / count - np.square(total / count), 0.0) * count / (count - 1)
    return variance


@dataclass(frozen=True, eq=False)
class DrawnGroups:
    """Groups of cells with their estimates and drawn errors (draws first), beside those of least squares."""

    counts: Floats
    sizes: Integers
    draws: Floats
    plain: Floats
    plain_draws: Floats
    step: float
    cap: Callable[[Estimates, float], Estimates] | None = None
    heaps: Heaps | None = None  # None where the groups have no gaps, so that they follow no heaps

    def first(self, size: int) -> "DrawnGroups":
        """Return the first groups of a single axis only."""
        draws, plain_draws = self.draws[:, :size], self.plain_draws[:, :size]
        found = DrawnGroups(self.counts[:size], self.sizes[:size], draws, self.plain[:size], plain_draws, self.step)
        kept = None if self.heaps is None else Heaps(self.heaps.alone[:size], self.heaps.together[:size])
        return replace(found, heaps=kept)

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""
        steps = np.where(self.sizes > 0, self.step, 0.0)  # a group without cells is empty for sure
        plain = (self.plain, self.plain_draws.std(axis=0, ddof=1))
        spread = self.draws.std(axis=0, ddof=1)
        if self.heaps is not None:
            spread = np.hypot(spread, np.hypot(self.heaps.alone, self.plain - self.counts))
        found = _estimates(self.counts, spread, plain, steps, confidence)
        return self.cap(found, confidence) if self.cap else found

    def variance_of(self, weights: Floats) -> float:
        """Return the variance of a weighted sum of the groups, widened as the intervals are."""
        variance = _weighted(self.draws, weights).var(ddof=1) + np.square(_weighted(self._alike, weights)).sum()
        return float(WIDENING**2 * variance)

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return w such that the error of a weighted sum of the groups stays within ±w."""
        largest = float(np.abs(np.broadcast_to(weights, self.sizes.shape)[self.sizes > 0]).max(initial=0.0))
        variance = self.variance_of(weights) + WITHIN_A_STEP * (WIDENING * largest * self.step) ** 2
        apart = _weighted((self.plain - self.counts)[None], weights)
        reach = _reach_to_plain(apart, _weighted(self.plain_draws, weights).std(ddof=1))
        return max(normal_quantile(confidence) * sqrt(variance), float(np.abs(reach[0])))

    @property
    def _alike(self) -> Floats:
        """Return by what the groups may err together, causes first: heaps, steeper ones, a prior that lowers all."""
        if self.heaps is None:
            return np.zeros((1, *self.counts.shape))
        together = self.heaps.together
        return np.stack([together, together * _slope(together), self.plain - self.counts])

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        variances: Floats = _prefixes(self.draws, inside, outside).var(axis=0, ddof=1)
        variances = variances + np.square(_prefixes(self._alike, inside, outside)).sum(axis=0)
        return np.asarray(WIDENING**2 * variances)

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        largest = max(abs(inside), abs(outside))
        variances = self.prefix_variances(inside, outside) + WITHIN_A_STEP * (WIDENING * largest * self.step) ** 2
        apart = _prefixes((self.plain - self.counts)[None], inside, outside)[0]
        reach = _reach_to_plain(apart, _prefixes(self.plain_draws, inside, outside).std(axis=0, ddof=1))
        return np.maximum(normal_quantile(confidence) * np.sqrt(variances), np.abs(reach))


def _slope(weights: Floats) -> Floats:
    """Return a slope along the groups of one axis, up to 1, whose weighted mean is 0; of several axes there is none."""
    if weights.ndim != 1 or not weights.any():
        return np.zeros_like(weights)
    slope = np.arange(weights.size) - np.average(np.arange(weights.size), weights=weights)
    held = np.abs(slope[weights > 0]).max()
    return slope / held if held > 0 else np.zeros_like(weights)


def _weighted(draws: Floats, weights: Floats) -> Floats:
    sums: Floats = (draws * weights).reshape(len(draws), -1).sum(axis=1)
    return sums


def _prefixes(draws: Floats, inside: float, outside: float) -> Floats:
    upto = np.cumsum(draws, axis=1)
    sums: Floats = inside * upto + outside * (upto[:, -1:] - upto)
    return sums


def _reach_to_plain(apart: Floats, spread: Floats | float) -> Floats:
    """Return how far an interval must reach, and to which side, to hold least squares and its noise.

    That is 0 where least squares lies no further from the answer than its noise explains.
    """
    reach: Floats = np.where(np.abs(apart) > FAR * spread, apart + FAR * np.sign(apart) * spread, 0.0)
    return reach


def _estimates(
    value: Floats, spread: Floats, plain: tuple[Floats, Floats], step: float | Floats, confidence: float
) -> Estimates:
    value = np.asarray(value, dtype=np.float64)
    stddev = np.asarray(WIDENING * np.sqrt(np.square(spread) + WITHIN_A_STEP * np.square(step)))
    width, reach = normal_quantile(confidence) * stddev, _reach_to_plain(plain[0] - value, plain[1])
    low, high = np.minimum(value - width, value + reach), np.maximum(value + width, value + reach)
    # However far below zero noise put an estimate, the count may be as far above as the noise that is left.
    high = np.maximum(high, LEAST_ABOVE_ZERO * width)
    return Estimates(np.maximum(value, 0.0), np.maximum(low, 0.0), high, stddev)
