"""Intervals that hold whatever the data are: from the noise alone, without any prior.

A release of one linear measurement has them already: those of least squares. In a refined tree, what decided a stop is
no longer unbiased; but no decision ever looks at what is drawn for a cell's last measurement (a refund, or the last
step). Those last measurements belong to disjoint nodes, and what is drawn for them is independent of which nodes they
are. A sharpened value holds older noise as well, but lies between bounds that are fresh. With n_v their exact counts, a
query that holds some nodes whole and cuts others has a count between Σ_whole n_v and Σ_whole n_v + Σ_cut n_v, so the
lower end of an interval for the first and the upper end for the second make an interval for the count
(docs/proofs/intervals.md). Where the last measurements were drawn jointly, ``JointReach`` bounds their sum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv

from veilcube.analyst.estimate.base import Estimate, Estimates
from veilcube.analyst.estimate.cells_and_regions import blocks_of, is_adaptive
from veilcube.analyst.estimate.joint_reach import JointReach
from veilcube.analyst.estimate.least_squares import IdentityEstimate, LeastSquares
from veilcube.errors import QueryError
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.privacy.noise import DiscreteLaplace, JointLaplace, SharpenedLaplace
from veilcube.privacy.summed_noise import half_widths
from veilcube.release import ReleaseRecord
from veilcube.schema import Region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

QUERIES_AT_ONCE = 256


class Guarantee:
    """The guaranteed intervals of one release."""

    def __init__(self, record: ReleaseRecord) -> None:
        self._bounds = _bounds_of(record)

    def rectangles(self, found: Estimates, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Return estimates of blocks with guaranteed intervals."""
        return _around(found, self._bounds.rectangles(low, high, confidence))

    def region(self, found: Estimates, region: Region, confidence: float) -> Estimates:
        """Return the estimate of a region with its guaranteed interval."""
        return _around(found, self._bounds.region(region, confidence))


def _bounds_of(record: ReleaseRecord) -> "Estimate | _LastMeasurements":
    """Return what proved intervals come from; where regions were chosen by the noise of the cells, the cells alone."""
    if is_adaptive(record) and blocks_of(record) is None:
        return IdentityEstimate(record.measurements[0])
    unbiased = LeastSquares()
    return unbiased.fit(record) if unbiased.can_read(record) else _LastMeasurements.of(record)


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
    laws: tuple[DiscreteLaplace, ...]
    first: Integers
    last: Integers
    joint: JointReach | None

    @classmethod
    def of(cls, record: ReleaseRecord) -> "_LastMeasurements":
        parts = [(part, part.operator) for part in record.measurements if isinstance(part.operator, NodeCounts)]
        if len(parts) != len(record.measurements):
            raise QueryError("guaranteed intervals are known for linear strategies and refined trees only")
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
        joint = JointReach.of(record.measurements, numbers)
        return cls(tree, numbers, np.concatenate(values)[kept], np.concatenate(law_of)[kept], laws, first, last, joint)

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
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
        """Return for each query the lower end of its whole nodes and the upper end of all that it touches."""
        touched = (is_whole | is_cut).astype(np.float64)
        whole = is_whole.astype(np.float64)
        below, above = whole @ self.values, touched @ self.values
        low = below - self._half_widths(whole, self._joint_variance(whole), confidence)
        of_joint = self._joint_variance(touched)
        # Negative noise on the nodes that are cut may leave the upper end below the lower one.
        high = np.maximum(above + self._half_widths(touched, of_joint, confidence), low)
        of_law = [0.0 if isinstance(noise, JointLaplace) else noise.variance for noise in self.laws]
        stddev = np.sqrt(touched @ np.array(of_law)[self.law_of] + of_joint)
        return Estimates(0.5 * (low + high), low, high, stddev)

    def _joint_variance(self, weights: Floats) -> Floats:
        return self.joint.variance(weights > 0) if self.joint is not None else np.zeros(weights.shape[0])

    def _half_widths(self, weights: Floats, of_joint: Floats, confidence: float) -> Floats:
        """Return how far the summed noise of the chosen nodes goes.

        Independent noises of one law have an exact half-width; those of several laws share out the probability of an
        error.
        """
        alone = [number for number in np.unique(self.law_of) if not isinstance(self.laws[number], JointLaplace)]
        missed, widths = 1.0 - confidence, np.zeros(weights.shape[0])
        if self.joint is not None:
            # What is known of joint noise are bounds, so it gets half of the probability, or all of it.
            missed = missed / 2 if alone else missed
            widths += self.joint.reach(weights > 0, of_joint, missed)
        split = 1.0 - missed / max(len(alone), 1)
        for number in alone:
            noise = self.laws[number]
            terms = weights[:, self.law_of == number].sum(axis=1).astype(np.int64)
            if isinstance(noise, SharpenedLaplace):
                widths += _reach_of_sharpened(noise, terms, 1.0 - split)
            else:
                widths += half_widths(noise, terms, split)
        return widths


def _reach_of_sharpened(noise: SharpenedLaplace, terms: Integers, missed: float) -> Floats:
    """Return w with P(sum > w) and P(sum < -w) at most half of ``missed``, whatever decided that nodes were sharpened.

    Each noise lies between minus one and plus one fresh geometric variable of the scale that was added, and that is at
    most an exponential one: their sum is at most a gamma variable (docs/proofs/intervals.md).
    """
    reach: Floats = float(noise.added) * gammainccinv(np.maximum(terms, 1), missed / 2)
    return np.where(terms > 0, reach, 0.0)


def _joined(bounds: list[Estimates]) -> Estimates:
    def joined(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in bounds] or [np.zeros(0)])

    return Estimates(joined("value"), joined("low"), joined("high"), joined("stddev"))
