"""Weighted marginals: every cell of every table over k attributes, each table with a whole multiplier.

A stacks, for each set S of k attributes, m_S times the sums over the attributes outside S. On one attribute of n cells
every vector is its mean part (constant) plus a residual part (of sum 0), so the cube falls into 2^d orthogonal
components, one for each set R of attributes on which the part is residual. A'A is diagonal there, with the eigenvalue

    λ_R = Σ_{S ⊇ R} m_S² Π_{i not in S} n_i,

which is 0 where R has more than k attributes: those components are not measured, their minimum-norm estimate is 0, and
a query that has any of them cannot be answered from the marginals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError, QueryError
from veilcube.operators.base import NeighbourName
from veilcube.operators.moments import Moments
from veilcube.schema import Region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Axes = tuple[int, ...]

MOST_TABLES = 1000
MOST_PARTS = 2**12
MOST_AXES = 32
LARGEST_MULTIPLIER = 2**31
LARGEST_CUBE = 2**48
# What is left of a query outside the measured components, relative to its size, before it counts as not measured.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class MarginalsOperator:
    """All tables over ``k`` attributes, in the order of ``itertools.combinations``, one after the other."""

    cell_shape: tuple[int, ...]
    attributes: tuple[str, ...]
    k: int
    multipliers: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.attributes) != len(self.cell_shape) or not 1 <= self.k <= len(self.cell_shape):
            raise PlanError(f"marginals over {self.k} attributes do not exist; the cube has {len(self.cell_shape)}")
        tables = require_few_tables(len(self.cell_shape), self.k)
        is_whole = all(type(times) is int and 1 <= times <= LARGEST_MULTIPLIER for times in self.multipliers)
        if len(self.multipliers) != tables or not is_whole:
            raise PlanError(f"marginals need {tables} whole multipliers from 1 to {LARGEST_MULTIPLIER:,}")

    @cached_property
    def tables(self) -> tuple[Axes, ...]:
        """The sets S of attributes that are measured."""
        return tuple(combinations(range(len(self.cell_shape)), self.k))

    @cached_property
    def components(self) -> tuple[Axes, ...]:
        """The sets R whose component of the cube is measured."""
        axes = range(len(self.cell_shape))
        return tuple(chosen for size in range(self.k + 1) for chosen in combinations(axes, size))

    @cached_property
    def eigenvalues(self) -> Floats:
        """λ_R for each measured component."""
        return component_eigenvalues(self.cell_shape, self.tables, self.components) @ np.square(
            np.array(self.multipliers, dtype=np.float64)
        )

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """One axis: the cells of all tables."""
        return (int(self._starts[-1]),)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The name of the one axis."""
        return ("marginal_cell",)

    @cached_property
    def _starts(self) -> Integers:
        return np.cumsum([0, *(prod(self._sizes(table)) for table in self.tables)])

    def _sizes(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.cell_shape[axis] for axis in axes)

    def apply(self, cells: Integers) -> Integers:
        """Return multiplier times count of every cell of every table."""
        measured = np.empty(self.measurement_shape, dtype=np.int64)
        for table, times, part in zip(self.tables, self.multipliers, self._parts(measured), strict=True):
            part[...] = times * cells.sum(axis=_outside(table, cells.ndim))
        return measured

    def adjoint(self, measurements: Floats) -> Floats:
        """Return for each cell the sum over the tables of multiplier times measurement."""
        summed = np.zeros(self.cell_shape)
        for table, times, part in zip(self.tables, self.multipliers, self._parts(measurements), strict=True):
            summed += times * _spread(part, table, summed.ndim)
        return summed

    def solve(self, measurements: Integers | Floats) -> Floats:
        """Return the least-squares estimate of least norm: Σ_R (projection on R of A'y) / λ_R."""
        parts = list(zip(self.tables, self.multipliers, self._parts(measurements), strict=True))
        estimate = np.zeros(self.cell_shape)
        for component, eigenvalue in zip(self.components, self.eigenvalues.tolist(), strict=True):
            means = np.zeros(self._sizes(component))
            for table, times, part in parts:
                if set(component) <= set(table):
                    inside = tuple(position for position, axis in enumerate(table) if axis not in component)
                    means += times * part.mean(axis=inside)
            for axis in range(means.ndim):
                means -= means.mean(axis=axis, keepdims=True)
            estimate += _spread(means / eigenvalue, component, estimate.ndim)
        return estimate

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^+ q for a query that weighs every cell; refuses one that the marginals do not determine."""
        solved, found = np.zeros(self.cell_shape), 0.0
        for component, eigenvalue in zip(self.components, self.eigenvalues.tolist(), strict=True):
            part = query.mean(axis=_outside(component, query.ndim))
            for axis in range(part.ndim):
                part = part - part.mean(axis=axis, keepdims=True)
            found += float(np.square(part).sum()) * (query.size / part.size)
            solved += _spread(part / eigenvalue, component, query.ndim)
        self._require_measured(float(np.square(query).sum()), found)
        weights = np.empty(self.measurement_shape)
        for table, times, rows in zip(self.tables, self.multipliers, self._parts(weights), strict=True):
            rows[...] = times * solved.sum(axis=_outside(table, query.ndim))
        return weights

    @cached_property
    def column_sum(self) -> int:
        """The L1 norm of every column: a row of the table is counted once in each marginal."""
        return sum(self.multipliers)

    def sensitivity(self, neighbours: NeighbourName) -> int:
        """Return the largest L1 change of the measurements when one row is added or removed, or when one is exchanged.

        An exchanged row can change all attributes of more than one cell at once, and so leaves its cell in every
        table that has such an attribute. A cube of one cell keeps the bound, since a measurement needs some noise.
        """
        if neighbours == "add-remove":
            return self.column_sum
        moved = sum(
            times
            for table, times in zip(self.tables, self.multipliers, strict=True)
            if any(size > 1 for size in self._sizes(table))
        )
        return 2 * (moved or self.column_sum)

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Return the variance of the least-squares estimate of each block; refuses blocks that are not determined."""
        lengths = np.maximum(high - low + 1, 0).astype(np.float64)
        is_narrowed = (lengths < np.array(self.cell_shape)) & (lengths > 0).all(axis=1, keepdims=True)
        most = int(is_narrowed.sum(axis=1).max(initial=0))
        if most > self.k:
            raise QueryError(self._refusal(f"a condition on {most} attributes at once"))
        return component_norms(self.cell_shape, self.components, lengths, 1 / self.eigenvalues)

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of each block's noise weights; the second is its variance."""
        lengths = np.maximum(high - low + 1, 0).astype(np.float64)
        return Moments(self.variance_of_rectangles(low, high), *self._higher_powers(lengths))

    def variance_of_region(self, region: Region) -> float:
        """Return the variance of the least-squares estimate of the count in a region, by pairs of its boxes."""
        if not region.boxes:
            return 0.0
        constant, residual = self._pair_products(region)
        total = found = 0.0
        for component, eigenvalue in zip(self.components, self.eigenvalues.tolist(), strict=True):
            factors = [residual[i] if i in component else constant[i] for i in range(len(self.cell_shape))]
            norm = float(np.prod(factors, axis=0).sum())
            found += norm
            total += norm / eigenvalue
        self._require_measured(float(region.cells), found)
        return max(total, 0.0)

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of a region.

        Exact for one box; for a union the higher ones are bounded by powers of the variance.
        """
        second = np.asarray(self.variance_of_region(region))
        if len(region.boxes) != 1:
            return Moments(second, second**2, second**3, bounded=True)
        fourth, sixth = self._higher_powers(np.array([region.boxes[0].sizes], dtype=np.float64))
        return Moments(second, fourth.reshape(()), sixth.reshape(()))

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {
            "kind": "marginals",
            "shape": list(self.cell_shape),
            "attributes": list(self.attributes),
            "k": self.k,
            "multipliers": list(self.multipliers),
        }

    def _parts(self, measured: NDArray[np.generic]) -> list[NDArray[Any]]:
        """Return the table of each set of attributes as a view of the measurements."""
        pieces = pairwise(self._starts.tolist())
        return [
            measured[start:end].reshape(self._sizes(table))
            for (start, end), table in zip(pieces, self.tables, strict=True)
        ]

    def _higher_powers(self, lengths: Floats) -> tuple[Floats, Floats]:
        """Sum the fourth and sixth powers of the noise weights of boxes with so many cells on each axis.

        A cell's weight depends only on which of its coordinates lie inside the box: 2^k kinds of cells in each table.
        """
        shares = lengths / np.array(self.cell_shape, dtype=np.float64)
        fourth, sixth = np.zeros(len(lengths)), np.zeros(len(lengths))
        for table, times in zip(self.tables, self.multipliers, strict=True):
            summed = times * lengths[:, _outside(table, lengths.shape[1])].prod(axis=1)
            inner = lengths[:, table]
            for inside in product((True, False), repeat=self.k):
                cells = np.where(np.array(inside), inner, np.array(self._sizes(table)) - inner).prod(axis=1)
                squares = np.square(summed * self._kind_weight(table, inside, shares))
                fourth += cells * squares**2
                sixth += cells * squares**3
        return fourth, sixth

    def _kind_weight(self, table: Axes, inside: Sequence[bool], shares: Floats) -> Floats:
        """Sum over R within S of Π_{i in R} (1 if inside else 0, less the share) Π_{i in S, not R} share, over λ_R."""
        weight = np.zeros(len(shares))
        for component, eigenvalue in zip(self.components, self.eigenvalues.tolist(), strict=True):
            if set(component) <= set(table):
                term = np.full(len(shares), 1 / eigenvalue)
                for axis, is_inside in zip(table, inside, strict=True):
                    term = term * (float(is_inside) - shares[:, axis] if axis in component else shares[:, axis])
                weight += term
        return weight

    def _pair_products(self, region: Region) -> tuple[list[Floats], list[Floats]]:
        """Per axis and pair of boxes the inner products of the mean parts and of the residual parts of their cells."""
        constant, residual = [], []
        for axis, size in enumerate(self.cell_shape):
            masks = np.stack([box.mask(axis) for box in region.boxes]).astype(np.float64)
            counts = masks.sum(axis=1)
            constant.append(np.outer(counts, counts) / size)
            residual.append(masks @ masks.T - constant[-1])
        return constant, residual

    def _require_measured(self, size: float, found: float) -> None:
        if size - found > _ROUNDING * size:
            raise QueryError(self._refusal(f"a condition that ties more than {self.k} attributes together"))

    def _refusal(self, asked: str) -> str:
        return (
            f"the release holds marginals over {self.k} attributes, which do not determine {asked}; "
            f"ask about at most {self.k}"
        )


def require_few_tables(attributes: int, k: int) -> int:
    """Return how many sets of k attributes there are; refuses so many that nothing could be planned for them."""
    tables = comb(attributes, k)
    if tables > MOST_TABLES:
        raise PlanError(f"there are {tables:,} marginals over {k} attributes, more than {MOST_TABLES:,}; use another k")
    parts = sum(comb(attributes, size) for size in range(k + 1))
    if parts > MOST_PARTS:
        raise PlanError(f"marginals over {k} of {attributes} attributes overlap in {parts:,} parts; use a smaller k")
    return tables


def component_eigenvalues(shape: Sequence[int], tables: Sequence[Axes], components: Sequence[Axes]) -> Floats:
    """Return what each table adds to λ_R for each unit of its squared multiplier: (components, tables)."""
    folded = [float(prod(shape[axis] for axis in _outside(table, len(shape)))) for table in tables]
    return np.array(
        [
            [cells if set(component) <= set(table) else 0.0 for table, cells in zip(tables, folded, strict=True)]
            for component in components
        ]
    )


def component_norms(shape: Sequence[int], components: Sequence[Axes], lengths: Floats, weights: Floats) -> Floats:
    """Return for each block Σ_R weight_R · (squared norm of its part on R); ``lengths`` are its cells on each axis.

    On one attribute a run of l of n cells has the squared norms l²/n (mean part) and l - l²/n (residual part).
    """
    sizes = np.array(shape, dtype=np.float64)
    base = np.prod(np.square(lengths) / sizes, axis=1)
    ratios = sizes / np.maximum(lengths, 1) - 1
    total = np.zeros(len(lengths))
    for component, weight in zip(components, weights.tolist(), strict=True):
        total += weight * ratios[:, component].prod(axis=1)
    norms: Floats = base * total
    return norms


def read_marginals(data: Mapping[str, object]) -> MarginalsOperator:
    """Rebuild from ``to_dict``; the data is untrusted."""
    shape, attributes, k, multipliers = (data[key] for key in ("shape", "attributes", "k", "multipliers"))
    if not isinstance(shape, list) or not isinstance(attributes, list) or not isinstance(multipliers, list):
        raise ValueError("shape, attributes and multipliers must be lists")
    if not all(type(size) is int and size > 0 for size in shape) or prod(shape) > LARGEST_CUBE:
        raise ValueError("sizes must be whole numbers above 0 of a cube that exists")
    if type(k) is not int or len(shape) > MOST_AXES:
        raise ValueError("k must be a whole number")
    try:
        return MarginalsOperator(tuple(shape), tuple(str(name) for name in attributes), k, tuple(multipliers))
    except PlanError as problem:
        raise ValueError(str(problem)) from problem


def _outside(axes: Axes, dimensions: int) -> Axes:
    return tuple(axis for axis in range(dimensions) if axis not in axes)


def _spread(part: NDArray[Any], axes: Axes, dimensions: int) -> NDArray[Any]:
    """Give a table over some axes length 1 on the others, so that it spreads over the cube."""
    return np.expand_dims(part, _outside(axes, dimensions))
