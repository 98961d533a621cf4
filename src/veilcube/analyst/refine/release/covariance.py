"""The covariance S of the least-squares estimates of all cells, as a bilinear form between sums of boxes.

S is never written out. On a product strategy it is the product over the attributes of (A_i'A_i)^-1, so the covariance
of two boxes is a product of one number per attribute; with marginals it is a sum of such products, one for each
measured component; on cells and regions it is the overlap of the boxes, less what the regions' totals tell. All are in
units of the variance of one noise. ``spread`` applies S to a cube of weights, by the operator's own transforms.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from scipy.sparse import csr_array

from veilcube.analyst.estimate import AdaptiveEstimate, is_adaptive, widening_of
from veilcube.analyst.refine.facts import AxisSets, Boxes, BoxSums
from veilcube.operators import (
    AnswerMoments,
    AxisOperator,
    Blocks,
    CellsAndRegions,
    MarginalsOperator,
    Moments,
    ProductOperator,
)
from veilcube.record import ReleaseRecord
from veilcube.schema import Region
from veilcube.system import Floats, Integers

_ENTRIES_AT_ONCE = 1 << 22
_DENSE_ENTRIES = 1 << 26


class CellMetric(Protocol):
    """A covariance S between sums of boxes, and applied to weights of cells."""

    def spread(self, weights: Floats) -> Floats:
        """Return S u for a weight u of every cell."""

    def of_boxes(self, left: Boxes, right: Boxes) -> Floats:
        """Return the covariances of the counts of two lists of boxes, the left one short: (left, right)."""

    def of_each(self, boxes: Boxes) -> Floats:
        """Return the variance of the count of each box, none of them with gaps; refuses boxes that are not measured."""


class CellCovariance(CellMetric, Protocol):
    """The covariance of least-squares cells, with the noise that it comes from."""

    @property
    def moments(self) -> AnswerMoments:
        """The noise of unrefined answers."""

    def widening(self, cells: Integers) -> Floats:
        """Return the factor of the standard deviations of questions, by their number of cells, where theory ends."""


def between(covariance: CellMetric, left: BoxSums, right: BoxSums, out: Floats | None = None) -> Floats:
    """Return the covariances of two lists of sums, (left, right), a few rows at a time: those of the shorter list."""
    if out is None and len(left.boxes) > len(right.boxes):
        return np.ascontiguousarray(between(covariance, right, left).T)
    found = np.empty((len(left), len(right))) if out is None else out
    at_once = max(1, _ENTRIES_AT_ONCE // max(1, len(right.boxes)))
    for start in range(0, len(left), at_once):
        rows = np.arange(start, min(start + at_once, len(left)))
        part = left.take(rows)
        block = covariance.of_boxes(part.boxes, right.boxes)
        if part.shares is not None:
            block = part.shares @ block
        found[rows] = block if right.shares is None else (right.shares @ block.T).T
    return found


def variances(covariance: CellMetric, sums: BoxSums) -> Floats:
    """Return the variance of each sum."""
    if sums.shares is None and not sums.boxes.gapped:
        return covariance.of_each(sums.boxes)
    singles = (sums.take(np.array([row])) for row in range(len(sums)))
    return np.array([float(between(covariance, one, one)[0, 0]) if len(one.boxes) else 0.0 for one in singles])


Measured = TypeVar("Measured", ProductOperator, MarginalsOperator)


@dataclass(frozen=True)
class LinearCovariance(Generic[Measured]):
    """What the covariances of one linear measurement share: their operator tells all but the pairs of boxes."""

    operator: Measured

    @property
    def moments(self) -> AnswerMoments:
        """The noise of unrefined answers."""
        return self.operator

    def widening(self, cells: Integers) -> Floats:
        """Return 1: the intervals of one linear measurement are proved."""
        return np.ones(cells.shape)

    def spread(self, weights: Floats) -> Floats:
        """Return (A'A)^+ u, by the operator's transforms."""
        return self.operator.solve(self.operator.noise_weights(weights))

    def of_each(self, boxes: Boxes) -> Floats:
        """Return the variance of each box."""
        return self.operator.variance_of_rectangles(boxes.low, boxes.high)


class ProductCovariance(LinearCovariance[ProductOperator]):
    """S of a product strategy: the product of its axes'."""

    def of_boxes(self, left: Boxes, right: Boxes) -> Floats:
        """Return the products over the axes of q'(A'A)^-1 r."""
        found = np.ones((len(left), len(right)))
        for axis, ours, theirs in zip(self.operator.axes, left.axes, right.axes, strict=True):
            found *= _axis_products(axis, ours[0], theirs[0])[np.ix_(ours[1], theirs[1])]
        return found


class MarginalsCovariance(LinearCovariance[MarginalsOperator]):
    """S of marginals: Σ_R c_R / π_R over the measured components R, as ``operators.marginals.components`` writes it."""

    def of_boxes(self, left: Boxes, right: Boxes) -> Floats:
        """Return Σ_R c_R / π_R with c_R between two boxes: the shares of both on every axis, times a ratio on R's."""
        shares, ratios = np.ones((len(left), len(right))), []
        for ours, theirs in zip(left.axes, right.axes, strict=True):
            product = np.outer(ours[0].lengths, theirs[0].lengths)
            size = float(ours[0].size)
            ratio = size * (overlaps(ours[0], theirs[0]) * size / product - 1)
            shares *= (product / size**2)[np.ix_(ours[1], theirs[1])]
            ratios.append(ratio[np.ix_(ours[1], theirs[1])])
        total = np.zeros_like(shares)
        for component, precision in self.operator.precisions.items():
            factor = np.full_like(shares, 1 / precision)
            for axis in component:
                factor *= ratios[axis]
            total += factor
        return np.asarray(shares * total)


class AdaptiveCovariance:
    """S of cells and regions: v1 I - Σ_p v1 a_p t_p t_p', t_p the cells of region p; in units of v1."""

    def __init__(self, answers: CellsAndRegions, *, is_chosen: bool) -> None:
        self._answers, self._is_chosen = answers, is_chosen
        self._shares: tuple[Boxes, csr_array | Floats] | None = None

    @property
    def moments(self) -> AnswerMoments:
        """The noise of unrefined answers."""
        return self

    def widening(self, cells: Integers) -> Floats:
        """Return more than 1 where the regions were chosen by the noise of the cells."""
        return widening_of(cells) if self._is_chosen else np.ones(cells.shape)

    def noise_weights(self, query: Floats) -> Floats:
        """Return by how much each noise enters the answer to a query that weighs every cell, in units of the cells'."""
        return np.asarray(self._answers.noise_weights(query) / np.sqrt(self._unit))

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of each block, the higher ones perhaps from above."""
        return self._in_units(self._answers.moments_of_rectangles(low, high))

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of a region; shape ()."""
        return self._in_units(self._answers.moments_of_region(region))

    @property
    def _unit(self) -> float:
        # Noise so small that its variance is not a number above 0 enters no answer.
        return self._answers.cell_variance or np.inf

    def _in_units(self, moments: Moments) -> Moments:
        powers = (moments.second / self._unit, moments.fourth / self._unit**2, moments.sixth / self._unit**3)
        return Moments(*powers, bounded=moments.bounded)

    def spread(self, weights: Floats) -> Floats:
        """Return u less its totals' shares of each region."""
        pull = self._answers.gains * self._answers.totals(weights)
        return np.asarray(weights - pull[self._answers.regions.chosen])

    def of_each(self, boxes: Boxes) -> Floats:
        """Return m - Σ_p a_p m_p² of each box, m_p its cells in region p."""
        cells = (boxes.high - boxes.low + 1).prod(axis=1).astype(np.float64)
        return np.asarray(cells - self._held_by(boxes).power(2) @ self._answers.gains)

    def of_boxes(self, left: Boxes, right: Boxes) -> Floats:
        """Return the overlaps less Σ_p a_p (cells of the left box in p) (cells of the right box in p)."""
        found = shared_cells(left, right)
        held = self._held_by(left)
        weighted = held.multiply(self._answers.gains[np.newaxis, :]).tocsr()
        return np.asarray(found - _dense(weighted @ self._remembered(right)))

    def _remembered(self, boxes: Boxes) -> "csr_array | Floats":
        """Return the cells of boxes in each region, transposed: once for boxes that many others are compared with."""
        if self._shares is None or self._shares[0] is not boxes:
            held = self._held_by(boxes).T
            is_small = held.shape[0] * held.shape[1] <= _DENSE_ENTRIES
            self._shares = boxes, held.toarray() if is_small else csr_array(held)
        return self._shares[1]

    def _held_by(self, boxes: Boxes) -> csr_array:
        """Return how many cells of each region each box holds."""
        if self._answers.blocks is not None:
            return self._held_by_grid(boxes, self._answers.blocks)
        regions, labels = self._answers.regions.regions, self._answers.regions.chosen
        found: list[tuple[Integers, Integers]] = []
        for row in range(len(boxes)):
            if row in boxes.gapped:
                inside = labels[np.ix_(*(boxes.gapped[row].indices(axis) for axis in range(labels.ndim)))]
            else:
                ends = zip(boxes.low[row], boxes.high[row], strict=True)
                inside = labels[tuple(slice(first, last + 1) for first, last in ends)]
            counts = np.bincount(inside.ravel()) if inside.size else np.empty(0, dtype=np.int64)
            met = np.flatnonzero(counts)
            found.append((met, counts[met]))
        starts = np.cumsum([0, *(len(met) for met, _ in found)])
        columns = np.concatenate([np.empty(0, dtype=np.int64), *(met for met, _ in found)])
        counts = np.concatenate([np.empty(0), *(many for _, many in found)])
        return csr_array((counts, columns, starts), shape=(len(boxes), regions))

    @staticmethod
    def _held_by_grid(boxes: Boxes, grid: Blocks) -> csr_array:
        """Return the same for a grid, whose regions are products of one run of cells per attribute."""
        held = np.ones((len(boxes), 1))
        for edges, (sets, which) in zip(grid.edges, boxes.axes, strict=True):
            on_axis = overlaps(sets, _runs(edges))[which]
            products = held[:, :, np.newaxis] * on_axis[:, np.newaxis, :]
            held = products.reshape(len(boxes), held.shape[1] * on_axis.shape[1])
        return csr_array(held)


def _runs(edges: Integers) -> AxisSets:
    size = int(edges[-1])
    return AxisSets(size, edges[:-1], edges[1:] - 1, np.empty((0, size)))


def _dense(product: "csr_array | Floats") -> Floats:
    return np.asarray(product.toarray() if isinstance(product, csr_array) else product, dtype=np.float64)


def _axis_products(axis: AxisOperator, left: AxisSets, right: AxisSets) -> Floats:
    """Return q'(A'A)^-1 r of each two sets of one attribute."""
    if axis.is_flat:
        return overlaps(left, right)
    if not len(left.masks) + len(right.masks):
        ours, theirs = (axis.range_weights(sets.low, sets.high) for sets in (left, right))
        if ours is not None and theirs is not None:
            return _dense(csr_array(ours @ theirs.T))
    return _inner_products(left, right, lambda rows: axis.solve(axis.noise_weights(rows)))


def shared_cells(left: Boxes, right: Boxes) -> Floats:
    """Return how many cells each two boxes share."""
    found = np.ones((len(left), len(right)))
    for ours, theirs in zip(left.axes, right.axes, strict=True):
        found *= overlaps(ours[0], theirs[0])[np.ix_(ours[1], theirs[1])]
    return found


def overlaps(left: AxisSets, right: AxisSets) -> Floats:
    """Return how many cells each two sets of one attribute share."""
    if len(left.masks) or len(right.masks):
        return _inner_products(left, right, lambda rows: rows)
    low = np.maximum(left.low[:, np.newaxis], right.low)
    high = np.minimum(left.high[:, np.newaxis], right.high)
    return np.asarray(np.maximum(high - low + 1, 0), dtype=np.float64)


def _inner_products(left: AxisSets, right: AxisSets, transform: Callable[[Floats], Floats]) -> Floats:
    """Return q' T r of each two sets for a transform T of rows over the cells, a few rows at a time."""
    found = np.empty((len(left), len(right)))
    at_once = max(1, _ENTRIES_AT_ONCE // left.size)
    for start in range(0, len(left), at_once):
        rows = np.arange(start, min(start + at_once, len(left)))
        found[rows] = right.sums(transform(left.weights(rows)))
    return found


def covariance_of(record: ReleaseRecord) -> CellCovariance | None:
    """Return the covariance of a release's least-squares cells, in units of the noise of its first measurement.

    None for staged trees, which have no least-squares estimate.
    """
    if is_adaptive(record):
        fitted = AdaptiveEstimate(record)
        return AdaptiveCovariance(fitted.answers, is_chosen=fitted.is_chosen)
    if len(record.measurements) != 1:
        return None
    measurement = record.measurements[0]
    if measurement.product is not None:
        return ProductCovariance(measurement.product)
    return MarginalsCovariance(measurement.tables) if measurement.tables is not None else None
