"""Products of one-axis operators: A = A_1 x ... x A_d, one factor per attribute.

Everything separates by axis: least squares applies each factor's, the noise weights of a block are the product of its
factors', and so the sums of their squares (the variance) and of their fourth powers are products as well. Unions of
blocks need the inner products of the blocks' noise weights, which separate too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.base import (
    AxisOperator,
    AxisReader,
    FlatAxis,
    Moments,
    NeighbourName,
    OperatorDefaults,
    Way,
    along_axis,
    largest_exchange,
    largest_squared_exchange,
    queries_of_products,
    range_steps,
    read_flat_axis,
    union_bound,
    unknown_kind,
)
from veilcube.operators.matched import read_matched_axis
from veilcube.operators.tree import TreeAxis, read_tree_axis
from veilcube.operators.wavelet import read_haar_axis, read_nominal_axis
from veilcube.query import LinearQueries
from veilcube.schema import Box, Region, Schema
from veilcube.system import Floats, Integers

MOST_AXES = 32
# Up to this many measurements a query is written out in full to find the fourth powers of its noise weights.
MOST_DENSE_MEASUREMENTS = 1 << 22
# A query over an axis of so many cells is written out sooner than paths to its ends are followed.
_SHORT = 1 << 12

_AXIS_READERS: Mapping[str, AxisReader] = {
    "flat": read_flat_axis,
    "tree": read_tree_axis,
    "matched": read_matched_axis,
    "haar": read_haar_axis,
    "nominal": read_nominal_axis,
}


@dataclass(frozen=True)
class ProductOperator(OperatorDefaults):
    """One measurement for every combination of the axes' measurements."""

    axes: tuple[AxisOperator, ...]
    dimensions: tuple[str, ...]

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """The shape of the cube that it measures."""
        return tuple(axis.size for axis in self.axes)

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """The number of measurements of each axis."""
        return tuple(axis.rows for axis in self.axes)

    @property
    def words_to_apply(self) -> int:
        """How many 64-bit words ``apply`` holds at most beside the counts, its result included.

        A step along one axis holds what the last step gave, a copy of it in another order, and twice what it gives
        itself; one that works inside the array holds what it is given and one copy.
        """
        size, held, most = prod(self.cell_shape), 0, 0
        inside = any(axis.inside for axis in self.axes)
        for axis in self.axes if inside else reversed(self.axes):
            if not axis.is_flat:
                given = size // axis.size * axis.rows
                most = max(most, held + given if axis.inside else 2 * held + 2 * given)
                size = held = given
        return max(most, 2 * held)

    def apply(self, cells: Integers) -> Integers:
        """Return the exact measurements."""
        return _along_each_axis("apply", cells, self.axes)

    def adjoint(self, measurements: Floats) -> Floats:
        """Return the transposed map applied to measurements."""
        return _along_each_axis("adjoint", measurements, self.axes)

    def solve(self, measurements: Integers | Floats) -> Floats:
        """Return the least-squares estimate of the cells, axis by axis."""
        estimate: Floats = _along_each_axis("solve", measurements, self.axes)
        return estimate.astype(np.float64, copy=False)

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^-1 q for a query that weighs every cell of the cube."""
        return _along_each_axis("noise_weights", query, self.axes)

    @property
    def answers(self) -> "ProductOperator":
        """Itself: least squares separates by axis, and so does its noise."""
        return self

    @property
    def tree(self) -> TreeAxis | None:
        """The measured tree, where the only axis is one."""
        axis = self.axes[0]
        return axis if len(self.axes) == 1 and isinstance(axis, TreeAxis) else None

    def queries(self, schema: Schema) -> tuple[LinearQueries, Floats]:
        """Return a query for every combination of the axes' rows."""
        found = queries_of_products(schema, [axis.adjoint(np.eye(axis.rows)) for axis in self.axes])
        return found, np.ones(len(found))

    @cached_property
    def column_sum(self) -> int:
        """The largest L1 norm of a column: the product of the axes' largest."""
        return prod(axis.largest_column for axis in self.axes)

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return the largest L1 change of the measurements when one row is added or removed, or when one is exchanged.

        An exchanged row takes away one column a and brings another one b: ||a - b|| = ||a|| + ||b|| - 2 Σ min(a, b).
        For non-negative factors Σ min(Π a_i, Π b_i) >= Π Σ min(a_i, b_i), with equality where every entry of a row is
        0 or one fixed number, as in trees. So 2 (norm - product of ``least_shared``) bounds the change, and is
        attained by trees and flat axes (docs/proofs/linear.md). A cube of one cell has no other cell to move to; it
        keeps the bound without the shared part, since a measurement needs some noise. Factors with signs (wavelets)
        are compared entry by entry (``exchange``).
        """
        if neighbours == "add-remove":
            return self.column_sum
        if any(axis.inside for axis in self.axes) and prod(self.cell_shape) > 1:
            pairs = [axis.column_pairs() for axis in self.axes]
            known = [kinds for kinds in pairs if kinds is not None]
            return largest_exchange(known, self.column_sum) if len(known) == len(pairs) else 2 * self.column_sum
        shared = prod(axis.least_shared() for axis in self.axes) if prod(self.cell_shape) > 1 else 0
        return 2 * (self.column_sum - shared)

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the largest squared L2 change of the measurements for a row more or less, or for an exchanged one.

        Squared norms and inner products of columns multiply over the axes, so both are exact (docs/proofs/zcdp.md),
        but for products with so many kinds of pairs that they are bounded. A cube of one cell has no other cell to
        move to; it keeps the bound of columns that share nothing, since a measurement needs some noise.
        """
        largest = prod(axis.largest_square for axis in self.axes)
        if neighbours == "add-remove":
            return largest
        return largest_squared_exchange([axis.column_products() for axis in self.axes]) or 2 * largest

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Return the variance of the least-squares estimate of each block."""
        return _multiply([axis.variance_of_ranges(low[:, i], high[:, i]) for i, axis in enumerate(self.axes)])

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of each block's noise weights; the second is its variance."""
        axes = enumerate(self.axes)
        return reduce(mul, (axis.moments_of_steps(*range_steps(low[:, i], high[:, i])) for i, axis in axes))

    def variance_of_region(self, region: Region) -> float:
        """Return the variance of the least-squares estimate of the count in a region, exactly.

        The variance of a union of disjoint boxes is the sum over pairs of boxes of the product over axes of
        q'(A'A)^-1 r, with q and r the boxes' cells on that axis.
        """
        if not region.boxes:
            return 0.0
        if len(region.boxes) == 1:
            return prod(float(moments.second) for moments in self._moments_of_axes(region.boxes[0]))
        return float(self._inner_products(region).sum())

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of a region.

        Exact for one box, and for any region while the measurements are few enough to write its weights out; beyond
        that, the fourth and sixth are Minkowski's bounds (Σ_boxes ||w_box||_p)^p, and say so; the second is exact.
        """
        if not region.boxes:
            return Moments(np.zeros(()), np.zeros(()), np.zeros(()))
        if len(region.boxes) > 1 and prod(self.measurement_shape) <= MOST_DENSE_MEASUREMENTS:
            return Moments.of_weights(self.noise_weights(region.mask().astype(np.float64)).ravel())
        boxes = [reduce(mul, self._moments_of_axes(box)) for box in region.boxes]
        if len(boxes) == 1:
            return boxes[0]
        return union_bound(np.asarray(self.variance_of_region(region)), boxes)

    def _moments_of_axes(self, box: Box) -> Iterator[Moments]:
        """Yield the moments of each axis; a run of cells of a long one needs the nodes about its ends only."""
        for i, axis in enumerate(self.axes):
            run = box.run(i)
            if run is None or axis.size <= _SHORT:
                yield axis.moments_of_query(box.mask(i).astype(np.float64))
            else:
                found = axis.moments_of_steps(*range_steps(np.array([run.start]), np.array([run.stop - 1])))
                yield Moments(found.second[0], found.fourth[0], found.sixth[0], bounded=found.bounded)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        axes = [axis.to_dict() for axis in self.axes]
        return {"kind": "product", "axes": axes, "dimensions": list(self.dimensions)}

    def covariances(self, regions: Sequence[Region]) -> Floats:
        """Return the covariances of the estimates of several regions: inner products of their noise weights."""
        owner = np.repeat(np.arange(len(regions)), [len(region.boxes) for region in regions])
        joined = Region(self.cell_shape, tuple(box for region in regions for box in region.boxes))
        belongs = (owner[np.newaxis, :] == np.arange(len(regions))[:, np.newaxis]).astype(np.float64)
        between: Floats = belongs @ self._inner_products(joined) @ belongs.T
        return between

    def _inner_products(self, region: Region) -> Floats:
        """Return the covariances of the boxes' estimates, a matrix."""
        products = np.ones((len(region.boxes), len(region.boxes)))
        for i, axis in enumerate(self.axes):
            masks = [box.mask(i) for box in region.boxes]
            distinct = {mask.tobytes(): mask for mask in masks}
            position = {key: number for number, key in enumerate(distinct)}
            weights = axis.noise_weights(np.array(list(distinct.values()), dtype=np.float64).reshape(-1, axis.size))
            which = np.array([position[mask.tobytes()] for mask in masks], dtype=np.int64)
            products *= (weights @ weights.T)[np.ix_(which, which)]
        return products


def read_axis(data: object) -> AxisOperator:
    """Rebuild one axis from the plain data of its ``to_dict``."""
    if not isinstance(data, Mapping):
        raise TypeError("an axis must be a mapping")
    reader = _AXIS_READERS.get(str(data["kind"]))
    if reader is None:
        raise unknown_kind()
    return reader(data)


def read_product(data: Mapping[str, object]) -> ProductOperator:
    """Rebuild from ``to_dict``; no array is made, so sizes can be checked before memory is taken."""
    axes, dimensions = data["axes"], data["dimensions"]
    if not isinstance(axes, list) or not isinstance(dimensions, list) or not 1 <= len(axes) <= MOST_AXES:
        raise ValueError(f"a product has a list of 1 to {MOST_AXES} axes")
    if len(axes) != len(dimensions) or not all(isinstance(name, str) for name in dimensions):
        raise ValueError("a product has one name for each axis")
    return ProductOperator(tuple(read_axis(axis) for axis in axes), tuple(dimensions))


def flat_product(shape: Sequence[int], dimensions: Sequence[str]) -> ProductOperator:
    """Return the identity as a product."""
    return ProductOperator(tuple(FlatAxis(size) for size in shape), tuple(dimensions))


def _along_each_axis(way: Way, array: NDArray[Any], axes: Sequence[AxisOperator]) -> NDArray[Any]:
    """Map an array along each axis in turn, in place where the axes can work inside it."""
    if any(axis.inside for axis in axes):
        return _inside_each_axis(way, array, axes)
    # The last axis first, each then moved to the front, so that all come round.
    result = array
    for axis in reversed(axes):
        result = np.moveaxis(getattr(axis, way)(result), -1, 0)
    return np.ascontiguousarray(result)


def _inside_each_axis(way: Way, array: NDArray[Any], axes: Sequence[AxisOperator]) -> NDArray[Any]:
    result = array
    for place, axis in enumerate(axes):
        if axis.is_flat:
            continue
        if axis.inside is not None:
            result = along_axis(axis.inside, way, result, place, may_overwrite=result is not array)
        else:
            result = np.moveaxis(getattr(axis, way)(np.moveaxis(result, place, -1)), -1, place)
    return np.ascontiguousarray(result)


def _multiply(factors: Sequence[Floats]) -> Floats:
    product = factors[0].copy()
    for factor in factors[1:]:
        product *= factor
    return product
