"""Intervals that hold whatever the data are: from the noise alone, without any prior.

A release of one linear measurement has them already: those of least squares. In a staged tree, what decided a stop is
no longer unbiased; but no decision looks at what is drawn for a cell's last measurement (a refund, or the last step).
Those last measurements belong to disjoint nodes, and what is drawn for them is independent of which nodes they are. A
sharpened value holds older noise as well, but lies between bounds that are fresh. A query that holds some nodes whole
and cuts others counts between Σ_whole n_v and Σ_whole n_v + Σ_cut n_v, so the lower end of an interval for the first
and the upper end for the second make an interval for the count (docs/proofs/intervals.md).

Where the last measurements were drawn jointly, ``JointReach`` takes the narrower of two bounds on their sum:
Chebyshev's inequality with its exact variance, and a union bound over the largest nodes that it fills
(docs/proofs/joint-noise.md). Of a block with Gaussian noise, least squares on the block takes the place of the cells'
values. Where all noise is Gaussian, noises of several laws add up to one sub-Gaussian sum (``gaussian_blocks``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimate, Estimates
from veilcube.analyst.estimate.guaranteed.gaussian_blocks import GaussianReach, sub_gaussian_reach
from veilcube.analyst.estimate.guaranteed.grouped_tables import GroupedBounds
from veilcube.analyst.estimate.linear import IdentityEstimate, LeastSquares
from veilcube.analyst.estimate.partition import blocks_of, is_adaptive
from veilcube.errors import QueryError
from veilcube.laws import Noise, half_widths, joint_variances
from veilcube.operators import HalvingTree
from veilcube.record import JointBlocks, NoisyMeasurement, ReleaseRecord, joint_blocks
from veilcube.schema import Region
from veilcube.system import Floats, Integers, compiled, share_out

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class JointReach:
    """All blocks of a release, and the number of the last measurement of each of their cells: (blocks, leaves)."""

    blocks: tuple[JointBlocks, ...]
    numbers: tuple[Integers, ...]

    @classmethod
    def of(cls, measurements: Sequence[NoisyMeasurement], numbers: Integers) -> "JointReach | None":
        """Collect them; ``numbers`` tells for each cell, in the tree's order, the last measurement that it is in."""
        blocks = tuple(joint_blocks(measurements))
        return cls(blocks, tuple(numbers[part.cells()] for part in blocks)) if blocks else None

    def reach(self, is_in: Flags, variance: Floats, missed: float) -> Floats:
        """Return w for each query, a row of ``is_in``, with P(|noise of its cells| > w) at most ``missed``.

        ``variance`` is that of ``variance(is_in)``.
        """
        filled = [_filled(is_in[:, places]) for places in self.numbers]
        share = missed / np.maximum(sum(counts.sum(axis=0) for counts in filled), 1)
        reached = np.zeros(is_in.shape[0])
        for blocks, counts in zip(self.blocks, filled, strict=True):
            for scale, count in zip(blocks.scales, counts, strict=True):
                # P(|x| > k) = 2 p^(k+1) / (1 + p) with p = exp(-1/t), below the share from this k on.
                surplus = np.log(2.0 / (1.0 + np.exp(-float(1 / scale))))
                reached += count * np.ceil(float(scale) * (surplus - np.log(share)))
        return np.minimum(reached, np.sqrt(variance / missed))

    def variance(self, is_in: Flags) -> Floats:
        """Return the variance of the noise of each query's cells."""
        total = np.zeros(is_in.shape[0])
        for blocks, places in zip(self.blocks, self.numbers, strict=True):
            total += joint_variances(tuple(map(float, blocks.scales))).of_sums(is_in[:, places])
        return total


def _filled(is_in: Flags) -> Integers:
    """Return how many nodes of each height (first axis) a query fills without filling the one above."""
    counts = [is_in.sum(axis=(1, 2))]
    while is_in.shape[2] > 1:
        is_in = is_in[..., 0::2] & is_in[..., 1::2]
        counts.append(is_in.sum(axis=(1, 2)))
    above = [2 * count for count in counts[1:]] + [np.zeros_like(counts[0])]
    alone: Integers = np.array(counts) - np.array(above)
    return alone


QUERIES_AT_ONCE = 256
QUICK_NODES = 2**13


class Guarantee:
    """The guaranteed intervals of one release."""

    def __init__(self, record: ReleaseRecord) -> None:
        self._bounds = _bounds_of(record)

    @property
    def is_cap(self) -> bool:
        """Whether calibrated intervals are held to these: on staged trees, if they cost about as little as answers do.

        On releases that measure once they are those of least squares, another estimator that anybody can ask.
        """
        bounds = self._bounds
        return isinstance(bounds, _LastMeasurements) and bounds.joint is None and bounds.values.size <= QUICK_NODES

    def cap_rectangles(self, found: Estimates, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Return estimates of blocks, with guaranteed intervals where these are narrower."""
        return _narrower(found, self._bounds.rectangles(low, high, confidence))

    def cap_region(self, found: Estimates, region: Region, confidence: float) -> Estimates:
        """Return the estimate of a region, with the guaranteed interval if that is narrower."""
        return _narrower(found, self._bounds.region(region, confidence))

    def rectangles(self, found: Estimates, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Return estimates of blocks with guaranteed intervals."""
        return _around(found, self._bounds.rectangles(low, high, confidence))

    def region(self, found: Estimates, region: Region, confidence: float) -> Estimates:
        """Return the estimate of a region with its guaranteed interval."""
        return _around(found, self._bounds.region(region, confidence))


def _bounds_of(record: ReleaseRecord) -> "Estimate | GroupedBounds | _LastMeasurements":
    """Return what proved intervals come from; where regions were chosen by the noise of the cells, the cells alone."""
    if is_adaptive(record) and blocks_of(record) is None:
        return IdentityEstimate(record.measurements[0])
    if any(part.grouped is not None for part in record.measurements):
        return GroupedBounds.of(record)
    unbiased = LeastSquares()
    return unbiased.fit(record) if unbiased.can_read(record) else _LastMeasurements.of(record)


def _narrower(found: Estimates, bounds: Estimates) -> Estimates:
    """Return guaranteed intervals where they are narrower and hold the value: one that does not may have missed."""
    is_held = (bounds.low <= found.value) & (found.value <= bounds.high)
    is_narrower = is_held & (bounds.high - bounds.low < 2.0 * (found.high - found.value))
    low = np.where(is_narrower, np.maximum(bounds.low, 0.0), found.low)
    high = np.where(is_narrower, bounds.high, found.high)
    return Estimates(found.value, low, high, found.stddev, found.estimator)


def _around(found: Estimates, bounds: Estimates) -> Estimates:
    """Return estimates with other bounds, moved into them where they lie outside: no value contradicts its proof."""
    low, high = np.maximum(bounds.low, 0.0), np.maximum(bounds.high, 0.0)
    return Estimates(np.clip(found.value, low, high), low, high, bounds.stddev)


@dataclass(frozen=True, eq=False)
class _LastMeasurements:
    """The disjoint nodes that were measured last, with the first and last cell of each on every axis."""

    tree: HalvingTree
    owner: Integers
    values: Floats
    law_of: Integers
    laws: tuple[Noise, ...]
    first: Integers
    last: Integers
    joint: JointReach | GaussianReach | None

    @classmethod
    def of(cls, record: ReleaseRecord) -> "_LastMeasurements":
        parts = record.steps
        if not record.is_staged:
            raise QueryError("guaranteed intervals are known for linear strategies and staged trees only")
        tree = parts[0][1].tree
        owner, values, law_of, count = np.full(tree.cells, -1), [], [], 0
        laws = tuple(dict.fromkeys(part.noise for part, _ in parts))
        for part, operator in parts:  # in the order of publication: later measurements take over
            borders = np.append(tree.starts(operator.level), tree.cells)
            sizes = np.diff(borders)[operator.chosen]
            within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            cells = np.repeat(borders[operator.chosen], sizes) + within
            owner[cells] = count + np.repeat(np.arange(sizes.size), sizes)
            values.append(part.values.astype(np.float64))
            law_of.append(np.full(sizes.size, laws.index(part.noise)))
            count += sizes.size
        if (owner < 0).any():
            raise QueryError("some cells of the release were never measured, so no interval is guaranteed")
        kept, numbers = np.unique(owner, return_inverse=True)
        coordinates = np.stack(np.unravel_index(tree.order, tree.shape), axis=1)
        first = np.full((kept.size, len(tree.shape)), np.iinfo(np.int64).max)
        last = np.full((kept.size, len(tree.shape)), -1)
        np.minimum.at(first, numbers, coordinates)
        np.maximum.at(last, numbers, coordinates)
        joint, measured = _reach_of_blocks(record.measurements, numbers), np.concatenate(values)[kept]
        if isinstance(joint, GaussianReach):
            for places, estimates in joint.cells():
                measured[places] = estimates
        return cls(tree, numbers, measured, np.concatenate(law_of)[kept], laws, first, last, joint)

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        if self.joint is None:
            found = _Touched.none(len(low), len(self.laws))

            def count(start: int, stop: int) -> None:
                part = slice(start, stop)
                nodes = (self.first, self.last, self.values, self.law_of)
                sums = (found.below[part], found.above[part])
                _touch(low[part], high[part], *nodes, *sums, found.whole[part], found.touched[part])

            share_out(count, len(low), len(low) * self.values.size)
            return self._between(found, (np.zeros(len(low)), np.zeros(len(low))), (None, None), confidence)
        bounds = []
        for start in range(0, len(low), QUERIES_AT_ONCE):
            lows, highs = low[start : start + QUERIES_AT_ONCE, None], high[start : start + QUERIES_AT_ONCE, None]
            is_whole = np.all((lows <= self.first) & (self.last <= highs), axis=2)
            is_cut = np.all((lows <= self.last) & (self.first <= highs), axis=2) & ~is_whole
            bounds.append(self._bounds(is_whole, is_cut, confidence))
        return _joined(bounds)

    def region(self, region: Region, confidence: float) -> Estimates:
        is_inside = region.mask().reshape(-1)[self.tree.order]
        inside = np.bincount(self.owner, weights=is_inside, minlength=self.values.size)
        sizes = np.bincount(self.owner, minlength=self.values.size)
        is_whole = np.asarray(inside == sizes)
        whole, cut = np.atleast_2d(is_whole), np.atleast_2d((inside > 0) & ~is_whole)
        single = self._bounds(whole, cut, confidence)
        return Estimates(single.value[0], single.low[0], single.high[0], single.stddev[0])

    def _bounds(self, is_whole: NDArray[np.bool_], is_cut: NDArray[np.bool_], confidence: float) -> Estimates:
        """Return the bounds of queries that hold and cut these nodes."""
        is_touched = is_whole | is_cut
        by_law = np.eye(len(self.laws))[self.law_of]
        counts = [np.rint(flags @ by_law).astype(np.int64) for flags in (is_whole, is_touched)]
        found = _Touched(is_whole @ self.values, is_touched @ self.values, *counts)
        of_joint = (self._joint_variance(is_whole), self._joint_variance(is_touched))
        return self._between(found, of_joint, (is_whole, is_touched), confidence)

    def _between(
        self,
        found: "_Touched",
        of_joint: tuple[Floats, Floats],
        flags: tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None],
        confidence: float,
    ) -> Estimates:
        """Return for each query the lower end of its whole nodes and the upper end of all that it touches."""
        low = found.below - self._half_widths(found.whole, flags[0], of_joint[0], confidence)
        # Negative noise on the nodes that are cut may leave the upper end below the lower one.
        high = np.maximum(found.above + self._half_widths(found.touched, flags[1], of_joint[1], confidence), low)
        of_law = [0.0 if noise.in_block else noise.variance for noise in self.laws]
        stddev = np.sqrt(found.touched @ np.array(of_law) + of_joint[1])
        return Estimates(0.5 * (low + high), low, high, stddev)

    def _joint_variance(self, is_in: NDArray[np.bool_]) -> Floats:
        return self.joint.variance(is_in) if self.joint is not None else np.zeros(is_in.shape[0])

    def _half_widths(
        self, counts: Integers, is_in: NDArray[np.bool_] | None, of_joint: Floats, confidence: float
    ) -> Floats:
        """Return how far the summed noise of so many nodes of each law goes.

        Independent noises of one law have an exact half-width; those of several laws share out the probability of an
        error, unless they are Gaussian and a bound on their sum is narrower.
        """
        alone = [number for number in np.unique(self.law_of) if not self.laws[number].in_block]
        missed, widths = 1.0 - confidence, np.zeros(len(counts))
        if self.joint is not None and is_in is not None:
            # What is known of joint noise are bounds, so it gets half of the probability, or all of it.
            missed = missed / 2 if alone else missed
            widths += self.joint.reach(is_in, of_joint, missed)
        split = 1.0 - missed / max(len(alone), 1)
        for number in alone:
            noise, terms = self.laws[number], counts[:, number]
            if noise.before is not None:
                widths += _reach_of_sharpened(noise, terms, 1.0 - split)
            else:
                widths += half_widths(noise, terms, split)
        if any(noise.family == "laplace" for noise in self.laws):
            return widths
        parameters = np.array([float(self.laws[number].parameter) for number in alone])
        return np.minimum(widths, sub_gaussian_reach(counts[:, alone] @ parameters + of_joint, 1.0 - confidence))


def _reach_of_blocks(measurements: Sequence[NoisyMeasurement], numbers: Integers) -> JointReach | GaussianReach | None:
    """Return what is known of the noise of cells in blocks; None without blocks."""
    blocks = joint_blocks(measurements)
    if not any(part.is_gaussian for part in blocks):
        return JointReach.of(measurements, numbers)
    if not all(part.is_gaussian for part in blocks):
        raise QueryError("no interval is guaranteed for a release whose blocks have noise of two kinds")
    return GaussianReach.of(blocks, numbers)


class _Touched(NamedTuple):
    """Sums of the nodes that queries hold whole and that they touch, and how many of each law: (queries, laws)."""

    below: Floats
    above: Floats
    whole: Integers
    touched: Integers

    @classmethod
    def none(cls, queries: int, laws: int) -> "_Touched":
        """Return room for so many queries."""
        counts = (np.zeros((queries, laws), dtype=np.int64) for _ in range(2))
        return cls(np.zeros(queries), np.zeros(queries), *counts)


@compiled
def _touch(
    low: Integers,
    high: Integers,
    first: Integers,
    last: Integers,
    values: Floats,
    law_of: Integers,
    below: Floats,
    above: Floats,
    whole: Integers,
    touched: Integers,
) -> None:
    for query in range(low.shape[0]):
        for node in range(values.size):
            is_touched, is_whole = True, True
            for axis in range(low.shape[1]):
                if low[query, axis] > last[node, axis] or first[node, axis] > high[query, axis]:
                    is_touched = False
                    break
                if first[node, axis] < low[query, axis] or last[node, axis] > high[query, axis]:
                    is_whole = False
            if is_touched:
                above[query] += values[node]
                touched[query, law_of[node]] += 1
                if is_whole:
                    below[query] += values[node]
                    whole[query, law_of[node]] += 1


def _reach_of_sharpened(noise: Noise, terms: Integers, missed: float) -> Floats:
    """Return w with P(sum > w) and P(sum < -w) at most half of ``missed``, whatever decided that nodes were sharpened.

    Each noise lies between minus one and plus one fresh geometric variable of the scale that was added, and that is at
    most an exponential one: their sum is at most a gamma variable (docs/proofs/intervals.md).
    """
    reach: Floats = float(noise.charged) * scipy.special.gammainccinv(np.maximum(terms, 1), missed / 2)
    return np.where(terms > 0, reach, 0.0)


def _joined(bounds: list[Estimates]) -> Estimates:
    def joined(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in bounds] or [np.zeros(0)])

    return Estimates(joined("value"), joined("low"), joined("high"), joined("stddev"))
