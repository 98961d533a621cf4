"""Weighted marginals: every cell of some tables over few attributes, each table with a whole multiplier.

A stacks, for each set S of attributes, m_S times the table over S. Least squares estimates each component of the tables
(``components``) from all tables that hold it; components that no table holds are not measured, their minimum-norm
estimate is 0, and a query that has any of them cannot be answered from the marginals. Only ``apply``, ``adjoint`` and
``solve`` need the cube; everything else works on tables, so that a cube of sixty attributes is no obstacle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError, QueryError
from veilcube.operators.base import Moments, NeighbourName, OperatorDefaults, other_tables
from veilcube.operators.marginals.components import (
    Axes,
    block_norms,
    centred,
    components_of,
    lengths_of,
    outside,
    pair_products,
    require_distinct,
    require_few_tables,
    spread,
    table_precisions,
)
from veilcube.operators.marginals.rows import queries_of_tables
from veilcube.query import LinearQueries
from veilcube.schema import Region, Schema
from veilcube.system import Floats, Integers

LARGEST_MULTIPLIER = 2**31
# What is left of a query outside the measured components, relative to its size, before it counts as not measured.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class MarginalsOperator(OperatorDefaults):
    """Tables over at most ``k`` attributes, one after the other: by default all over ``k``, in the usual order."""

    cell_shape: tuple[int, ...]
    attributes: tuple[str, ...]
    k: int
    multipliers: tuple[int, ...]
    chosen: tuple[Axes, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.attributes) != len(self.cell_shape) or not 1 <= self.k <= len(self.cell_shape):
            raise PlanError(f"marginals over {self.k} attributes do not exist; the cube has {len(self.cell_shape)}")
        if self.chosen is None:
            tables = require_few_tables(len(self.cell_shape), self.k)
        else:
            tables = require_distinct(self.chosen, len(self.cell_shape), self.k)
        is_whole = all(type(times) is int and 1 <= times <= LARGEST_MULTIPLIER for times in self.multipliers)
        if len(self.multipliers) != tables or not is_whole:
            raise PlanError(f"marginals need {tables} whole multipliers from 1 to {LARGEST_MULTIPLIER:,}")

    @cached_property
    def tables(self) -> tuple[Axes, ...]:
        """The sets S of attributes that are measured."""
        return self.chosen if self.chosen is not None else tuple(combinations(range(len(self.cell_shape)), self.k))

    @cached_property
    def components(self) -> tuple[Axes, ...]:
        """The sets R whose component is measured."""
        return components_of(self.tables)

    @cached_property
    def precisions(self) -> dict[Axes, float]:
        """π_R of each measured component."""
        squares = np.square(np.array(self.multipliers, dtype=np.float64))
        summed = table_precisions(self.cell_shape, self.tables, self.components) @ squares
        return dict(zip(self.components, summed.tolist(), strict=True))

    @property
    def measurement_shape(self) -> tuple[int, ...]:
        """One axis: the cells of all tables."""
        return (int(self._starts[-1]),)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The name of the one axis."""
        return ("marginal_cell",)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for table in self.tables:
            starts.append(starts[-1] + prod(self.sizes(table)))
        return starts

    def sizes(self, axes: Axes) -> tuple[int, ...]:
        """Return the shape of the table over some attributes."""
        return tuple(self.cell_shape[axis] for axis in axes)

    @property
    def words_to_apply(self) -> int:
        """How many 64-bit words ``apply`` holds at most: all tables, and two copies of the one that is summed."""
        return 3 * prod(self.measurement_shape)

    def apply(self, cells: Integers) -> Integers:
        """Return multiplier times count of every cell of every table."""
        measured = np.empty(self.measurement_shape, dtype=np.int64)
        for table, times, part in zip(self.tables, self.multipliers, self.parts(measured), strict=True):
            part[...] = times * cells.sum(axis=outside(table, cells.ndim))
        return measured

    def apply_to_tables(self, tables: Sequence[Axes], counts: Integers) -> Integers:
        """Return the same from the counts of its tables alone, one table after the other."""
        if tuple(tables) != self.tables:
            raise other_tables()
        measured = counts.copy()
        for times, part in zip(self.multipliers, self.parts(measured), strict=True):
            part[...] *= times
        return measured

    def adjoint(self, measurements: Floats) -> Floats:
        """Return for each cell the sum over the tables of multiplier times measurement."""
        summed = np.zeros(self.cell_shape)
        for table, times, part in zip(self.tables, self.multipliers, self.parts(measurements), strict=True):
            summed += times * spread(part, table, summed.ndim)
        return summed

    def residuals(self, measurements: Integers | Floats) -> dict[Axes, Floats]:
        """Return the least-squares estimate of r_R for each measured component R."""
        summed = {component: np.zeros(self.sizes(component)) for component in self.components}
        for table, times, part in zip(self.tables, self.multipliers, self.parts(measurements), strict=True):
            for component in components_of([table]):
                within = tuple(position for position, axis in enumerate(table) if axis not in component)
                summed[component] += times * part.mean(axis=within)
        return {component: centred(part) / self.precisions[component] for component, part in summed.items()}

    def solve(self, measurements: Integers | Floats) -> Floats:
        """Return the least-squares estimate of least norm: every component spread evenly over the cube."""
        estimate, cells = np.zeros(self.cell_shape), prod(self.cell_shape)
        for component, part in self.residuals(measurements).items():
            estimate += spread(part / (cells // part.size), component, estimate.ndim)
        return estimate

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^+ q for a query that weighs every cell; refuses one that the marginals do not determine."""
        found, parts = 0.0, {}
        for component in self.components:
            part = centred(query.mean(axis=outside(component, query.ndim)))
            found += float(np.square(part).sum()) * (query.size / part.size)
            parts[component] = part
        self._require_measured(float(np.square(query).sum()), found)
        return self._weights_of(parts)

    def noise_weights_of_products(self, factors: Sequence[Sequence[Floats]]) -> Floats:
        """Return the noise weights of a sum of products of one factor an attribute; refuses what is not determined."""
        sizes = np.array(self.cell_shape, dtype=np.float64)
        means = np.array([[float(factor.mean()) for factor in one] for one in factors]).reshape(-1, len(sizes))
        stacked = [
            np.array([one[axis] for one in factors]).reshape(-1, size) for axis, size in enumerate(self.cell_shape)
        ]
        inner = np.array([rows @ rows.T / size for rows, size in zip(stacked, sizes, strict=True)])
        constant = means.T[:, :, None] * means.T[:, None, :]
        self._require_measured(float(inner.prod(axis=0).sum()), self._measured_part(constant, inner - constant))
        parts = {component: np.zeros(self.sizes(component)) for component in self.components}
        for number, one in enumerate(factors):
            narrowed = {axis for axis, factor in enumerate(one) if np.ptp(factor) > 0}
            for component in self.components:
                if narrowed.issuperset(component):
                    part = np.full((), np.delete(means[number], list(component)).prod())
                    for axis in component:
                        part = part[..., None] * (one[axis] - means[number, axis])
                    parts[component] += part
        return self._weights_of(parts)

    def _weights_of(self, parts: Mapping[Axes, Floats]) -> Floats:
        """Return the weights on all measurements of a query with these parts (means outside R, centred on R)."""
        weights = np.zeros(self.measurement_shape)
        for table, times, rows in zip(self.tables, self.multipliers, self.parts(weights), strict=True):
            for component in components_of([table]):
                share = times * prod(self.sizes(component)) / rows.size / self.precisions[component]
                inner = tuple(position for position, axis in enumerate(table) if axis not in component)
                rows[...] += np.expand_dims(parts[component] * share, inner)
        return weights

    @property
    def answers(self) -> "MarginalsOperator":
        """Itself: it answers what its tables determine, and refuses the rest."""
        return self

    @property
    def weights_of_queries(self) -> int:
        """None: a table's cell weighs one cell of each of its attributes."""
        return 0

    def queries(self, schema: Schema) -> tuple[LinearQueries, Floats]:
        """Return a query for each cell of each table, and the table's multiplier."""
        return queries_of_tables(schema, self.tables, self.multipliers)

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
        return 2 * (sum(self._moved) or self.column_sum)

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        """Return the largest squared L2 change: the same cells change, each by its table's multiplier."""
        if neighbours == "add-remove":
            return sum(times**2 for times in self.multipliers)
        return 2 * sum(times**2 for times in self._moved or self.multipliers)

    @property
    def _moved(self) -> list[int]:
        """The multipliers of the tables that an exchanged row can leave its cell in."""
        tables = zip(self.tables, self.multipliers, strict=True)
        return [times for table, times in tables if any(size > 1 for size in self.sizes(table))]

    def variance_of_rectangles(self, low: Integers, high: Integers) -> Floats:
        """Return the variance of the least-squares estimate of each block; refuses blocks that are not determined."""
        lengths = lengths_of(low, high)
        found = np.empty(len(lengths))
        for narrowed, chosen in self.by_narrowed(low, high):
            found[chosen] = self._block_variances(narrowed, lengths[chosen])
        return found

    def moments_of_rectangles(self, low: Integers, high: Integers) -> Moments:
        """Return the moments of each block's noise weights; the second is its variance."""
        lengths, found = lengths_of(low, high), np.empty((3, len(low)))
        for narrowed, chosen in self.by_narrowed(low, high):
            # Blocks of one size have the same moments wherever they lie; those without cells narrow nothing either.
            own = lengths[chosen]
            sizes = np.column_stack([own[:, list(narrowed)], own.all(axis=1)])
            _, first, owner = np.unique(sizes, axis=0, return_index=True, return_inverse=True)
            each = np.array([self._block_variances(narrowed, own[first]), *self._higher_powers(narrowed, own[first])])
            found[:, chosen] = each[:, owner.ravel()]
        return Moments(*found)

    def holds(self, low: Integers, high: Integers) -> NDArray[np.bool_]:
        """Return which blocks narrow only attributes that stand together in a table."""
        is_narrowed = self._is_narrowed(low, high)
        kinds, owner = np.unique(is_narrowed, axis=0, return_inverse=True)
        held = np.array([tuple(np.flatnonzero(kind).tolist()) in self.precisions for kind in kinds], dtype=np.bool_)
        return held[owner.ravel()]

    def _is_narrowed(self, low: Integers, high: Integers) -> NDArray[np.bool_]:
        lengths = lengths_of(low, high)
        return (lengths < np.array(self.cell_shape)) & (lengths > 0).all(axis=1, keepdims=True)

    def by_narrowed(self, low: Integers, high: Integers) -> list[tuple[Axes, Integers]]:
        """Return the positions of the blocks that narrow each set of attributes; refuses sets that no table holds."""
        is_narrowed = self._is_narrowed(low, high)
        kinds = is_narrowed @ (np.uint64(1) << np.arange(len(self.cell_shape), dtype=np.uint64))
        order = np.argsort(kinds, kind="stable")
        cuts = np.flatnonzero(np.diff(kinds[order])) + 1
        found = []
        for chosen in np.split(order, cuts) if len(order) else []:
            narrowed = tuple(np.flatnonzero(is_narrowed[chosen[0]]).tolist())
            if narrowed not in self.precisions:
                raise QueryError(self._refusal(f"a condition on {len(narrowed)} attributes at once"))
            found.append((narrowed, chosen))
        return found

    def variance_of_region(self, region: Region) -> float:
        """Return the variance of the least-squares estimate of the count in a region, by pairs of its boxes."""
        if not region.boxes:
            return 0.0
        if len(region.boxes) == 1 and (narrowed := self._narrowed_by(region)) in self.precisions:
            return float(self._block_variances(narrowed, np.array([region.boxes[0].sizes], dtype=np.float64))[0])
        constant, residual = pair_products(self.cell_shape, region)
        total = self._measured_part(constant, residual, by_precision=True)
        shares = np.prod([np.diagonal(part) for part in constant + residual], axis=0)
        self._require_measured(float(shares.sum()), self._measured_part(constant, residual))
        return max(total, 0.0)

    def _narrowed_by(self, region: Region) -> Axes:
        """Return the attributes that the first box of a region narrows."""
        sizes = zip(region.boxes[0].sizes, self.cell_shape, strict=True)
        return tuple(axis for axis, (chosen, size) in enumerate(sizes) if chosen < size)

    def _measured_part(self, constant: Floats, residual: Floats, *, by_precision: bool = False) -> float:
        """Sum over measured components R and pairs Π_{i∉R} constant_i Π_{i∈R} residual_i, as a share of the cells.

        By precision, each component counts as its variance. Axes without a residual part are in no component.
        """
        is_narrowed = np.abs(residual).max(axis=(1, 2), initial=0.0) > 0
        total = 0.0
        for component, precision in self.precisions.items():
            axes = list(component)
            if is_narrowed[axes].all():
                rest = [axis for axis in range(len(constant)) if axis not in component]
                norm = float((constant[rest].prod(axis=0) * residual[axes].prod(axis=0)).sum())
                total += norm * prod(self.sizes(component)) / precision if by_precision else norm
        return total

    def moments_of_region(self, region: Region) -> Moments:
        """Return the moments of the noise weights of a region.

        Exact for one box; for a union the higher ones are bounded by powers of the variance.
        """
        second = np.asarray(self.variance_of_region(region))
        if len(region.boxes) != 1:
            return Moments(second, second**2, second**3, bounded=True)
        lengths = np.array([region.boxes[0].sizes], dtype=np.float64)
        fourth, sixth = self._higher_powers(self._narrowed_by(region), lengths)
        return Moments(second, fourth.reshape(()), sixth.reshape(()))

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        plain: dict[str, object] = {
            "kind": "marginals",
            "shape": list(self.cell_shape),
            "attributes": list(self.attributes),
            "k": self.k,
            "multipliers": list(self.multipliers),
        }
        return plain if self.chosen is None else plain | {"tables": [list(table) for table in self.chosen]}

    def parts(self, measured: NDArray[np.generic]) -> list[NDArray[Any]]:
        """Return the table of each set of attributes as a view of the measurements."""
        pieces = pairwise(self._starts)
        return [
            measured[start:end].reshape(self.sizes(table))
            for (start, end), table in zip(pieces, self.tables, strict=True)
        ]

    def _block_variances(self, narrowed: Axes, lengths: Floats) -> Floats:
        held = components_of([narrowed])
        precisions = np.array([self.precisions[component] for component in held])
        variances: Floats = (1 / precisions) @ block_norms(self.cell_shape, held, lengths)
        return variances

    def _higher_powers(self, narrowed: Axes, lengths: Floats) -> tuple[Floats, Floats]:
        """Sum the fourth and sixth powers of the noise weights of boxes with so many cells on each axis.

        A cell's weight depends only on which of its coordinates lie inside the box: few kinds of cells in each table.
        """
        shares = lengths / np.array(self.cell_shape, dtype=np.float64)
        fourth, sixth = self._powers_apart(narrowed, shares)
        for table, times in zip(self.tables, self.multipliers, strict=True):
            if set(narrowed).isdisjoint(table):
                continue
            outer = times * shares[:, outside(table, shares.shape[1])].prod(axis=1)
            inner, sizes = lengths[:, table], np.array(self.sizes(table))
            for inside in product(*((True, False) if axis in narrowed else (True,) for axis in table)):
                cells = np.where(np.array(inside), inner, sizes - inner).prod(axis=1)
                squares = np.square(outer * self._kind_weight(table, narrowed, inside, shares))
                fourth += cells * squares**2
                sixth += cells * squares**3
        return fourth, sixth

    def _powers_apart(self, narrowed: Axes, shares: Floats) -> tuple[Floats, Floats]:
        """Sum the same over the tables without a narrowed attribute, which know only the total."""
        apart = [position for position, table in enumerate(self.tables) if set(narrowed).isdisjoint(table)]
        times = np.array([self.multipliers[position] for position in apart], dtype=np.float64)
        cells = np.array([prod(self.sizes(self.tables[position])) for position in apart], dtype=np.float64)
        weights = times / cells / self.precisions[()]
        base = shares.prod(axis=1)
        return base**4 * (cells @ weights**4), base**6 * (cells @ weights**6)

    def _kind_weight(self, table: Axes, narrowed: Axes, inside: Sequence[bool], shares: Floats) -> Floats:
        """Sum over R within S of Π_{i in R} (1 or 0 less the share) Π_{i in S∖R} share, over n_{S∖R} π_R."""
        weight, cells = np.zeros(len(shares)), prod(self.sizes(table))
        for component in components_of([tuple(axis for axis in table if axis in narrowed)]):
            term = np.full(len(shares), prod(self.sizes(component)) / cells / self.precisions[component])
            for axis, is_inside in zip(table, inside, strict=True):
                term = term * (float(is_inside) - shares[:, axis] if axis in component else shares[:, axis])
            weight += term
        return weight

    def _require_measured(self, size: float, found: float) -> None:
        if size - found > _ROUNDING * size:
            raise QueryError(self._refusal(f"a condition that ties more than {self.k} attributes together"))

    def _refusal(self, asked: str) -> str:
        held = f"marginals over {self.k} attributes" if self.chosen is None else f"{len(self.chosen)} chosen marginals"
        allowed = f"at most {self.k}" if self.chosen is None else "those that stand together in one of them"
        return f"the release holds {held}, which do not determine {asked}; ask about {allowed}"
