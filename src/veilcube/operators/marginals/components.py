"""The components into which tables over some attributes fall: what each tells once, however many tables hold it.

On one attribute of n cells every vector is its mean part (constant) plus a residual part (of sum 0). So a table over
the attributes S falls into orthogonal parts r_R, one for each R within S: residual on R, constant on the rest,

    x_S = Σ_{R ⊆ S} r_R / n_{S∖R},    n_T = Π_{i in T} n_i,

with r_R the table over R, centred on every axis. A table S that is measured m_S times tells r_R with the precision
m_S² / n_{S∖R}, and π_R is their sum. A query Π q_i has the answer Σ_R Π_{i∉R} mean(q_i) <⊗_{i∈R} q_i, r_R> and, in
units of the noise's, the variance Σ_R c_R / π_R with c_R = Π_{i∉R} mean(q_i)² Π_{i∈R} |q_i - mean(q_i)|². A block that
narrows the attributes T has parts U ⊆ T, the blocks that narrow U only; the answers to the parts U and V have the
covariance Σ_{R ⊆ U∩V} c_R(U, V) / π_R with c_R(U, V) = Π_{i∈U∖R} s_i Π_{i∈V∖R} s_i Π_{i∈R} n_i s_i (1 - s_i), s_i the
share of the cells. Nothing here depends on the number of cells of the whole cube.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError
from veilcube.schema import Region
from veilcube.system import Floats, Integers

Axes: TypeAlias = tuple[int, ...]

MOST_TABLES = 2000
MOST_PARTS = 2**12


def components_of(tables: Sequence[Axes]) -> tuple[Axes, ...]:
    """Return every set of attributes that lies within a table, smaller ones first."""
    found = {chosen for table in tables for size in range(len(table) + 1) for chosen in combinations(table, size)}
    return tuple(sorted(found, key=lambda axes: (len(axes), axes)))


def table_precisions(shape: Sequence[int], tables: Sequence[Axes], components: Sequence[Axes]) -> Floats:
    """Return 1 / n_{S∖R} for each component R (rows) and each table S that holds it, 0 for those that do not."""
    of_tables, of_components = _bits(tables), _bits(components)
    sizes = np.array(shape, dtype=np.float64)
    cells_of_table = np.array([sizes[list(table)].prod() for table in tables])
    cells_of_component = np.array([sizes[list(component)].prod() for component in components])
    is_within = (of_components[:, None] & ~of_tables[None, :]) == 0
    return np.where(is_within, cells_of_component[:, None] / cells_of_table[None, :], 0.0)


def block_norms(shape: Sequence[int], components: Sequence[Axes], lengths: Floats) -> Floats:
    """Return c_R of each block with so many cells on each axis: (components, blocks)."""
    sizes = np.array(shape, dtype=np.float64)
    base = np.square(lengths / sizes).prod(axis=1)
    ratios = np.square(sizes) / np.maximum(lengths, 1) - sizes
    return np.array([base * ratios[:, component].prod(axis=1) for component in components])


def centred(table: Floats) -> Floats:
    """Return a table with the mean along every axis taken off: its part that is residual on all of them."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def require_few_tables(attributes: int, k: int) -> int:
    """Return how many sets of k attributes there are; refuses so many that nothing could be planned for them."""
    tables = comb(attributes, k)
    if tables > MOST_TABLES:
        raise PlanError(f"there are {tables:,} marginals over {k} attributes, more than {MOST_TABLES:,}; use another k")
    parts = sum(comb(attributes, size) for size in range(k + 1))
    if parts > MOST_PARTS:
        raise PlanError(f"marginals over {k} of {attributes} attributes overlap in {parts:,} parts; use a smaller k")
    return tables


def require_distinct(tables: Sequence[Axes], attributes: int, k: int) -> int:
    """Return how many tables were chosen; refuses empty, repeated, unsorted or too many ones."""
    known = range(attributes)
    is_sorted = all(all(type(axis) is int for axis in table) and list(table) == sorted(set(table)) for table in tables)
    if not is_sorted or not all(1 <= len(table) <= k and table[0] >= 0 and table[-1] in known for table in tables):
        raise PlanError(f"every chosen marginal names 1 to {k} different attributes in the order of the schema")
    if not tables or len(set(tables)) < len(tables) or len(tables) > MOST_TABLES:
        raise PlanError(f"choose between 1 and {MOST_TABLES:,} different marginals")
    if sum(2 ** len(table) for table in tables) > 4 * MOST_PARTS:
        raise PlanError("the chosen marginals overlap in too many parts; choose fewer, or over fewer attributes")
    return len(tables)


def _bits(sets: Sequence[Axes]) -> NDArray[np.uint64]:
    return np.array([sum(1 << axis for axis in axes) for axes in sets], dtype=np.uint64)


def part_covariances(
    shape: Sequence[int], precisions: Mapping[Axes, float], parts: Sequence[Axes], lengths: Floats
) -> Floats:
    """Return (blocks, parts, parts) for blocks with so many cells on each axis."""
    sizes = np.array(shape, dtype=np.float64)
    shares = lengths / sizes
    found = np.zeros((len(lengths), len(parts), len(parts)))
    for row, first in enumerate(parts):
        for column, second in enumerate(parts[: row + 1]):
            common = tuple(axis for axis in first if axis in second)
            total = np.zeros(len(lengths))
            for component in components_of([common]):
                outside = [axis for part in (first, second) for axis in part if axis not in component]
                spread = sizes[list(component)] * shares[:, component] * (1 - shares[:, component])
                total += shares[:, outside].prod(axis=1) * spread.prod(axis=1) / precisions[component]
            found[:, row, column] = found[:, column, row] = total
    return found


def pair_products(shape: Sequence[int], region: Region) -> tuple[Floats, Floats]:
    """Return per axis and pair of boxes the products of their mean parts and of their residual parts, as shares."""
    constant, residual = [], []
    for axis, size in enumerate(shape):
        masks = np.stack([box.mask(axis) for box in region.boxes]).astype(np.float64)
        shares = masks.sum(axis=1) / size
        constant.append(np.outer(shares, shares))
        residual.append(masks @ masks.T / size - constant[-1] if (shares < 1).any() else np.zeros_like(constant[-1]))
    return np.array(constant), np.array(residual)


def lengths_of(low: Integers, high: Integers) -> Floats:
    """Return how many cells inclusive ranges hold."""
    return np.asarray(np.maximum(high - low + 1, 0), dtype=np.float64)


def outside(axes: Axes, dimensions: int) -> Axes:
    """Return the axes of a cube that a table does not have."""
    return tuple(axis for axis in range(dimensions) if axis not in axes)


def spread(part: NDArray[Any], axes: Axes, dimensions: int) -> NDArray[Any]:
    """Give a table over some axes length 1 on the others, so that it spreads over the cube."""
    return np.expand_dims(part, outside(axes, dimensions))
