"""Kinds of linear queries, each written as a sum of products of one-attribute weights (section 3.2 of the paper)."""

from collections.abc import Mapping, Sequence
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from veilcube.errors import QueryError
from veilcube.query.linear_factors import Floats, Term
from veilcube.schema import Attribute, Ordinal, Schema

# Singular values below this share of the largest are rounding.
_NEGLIGIBLE = 1e-12
_HIGHEST_POWER = 1000


def moment_term(schema: Schema, powers: Mapping[str, int]) -> Term:
    """Return the query whose answer is the sum over the rows of a product of powers of attributes."""
    if not isinstance(powers, Mapping):
        raise QueryError('a moment is a mapping from attributes to powers, such as {"height": 1, "weight": 1}')
    term: dict[int, Floats] = {}
    for axis, (name, power) in zip(schema.axes(powers), powers.items(), strict=True):
        if isinstance(power, bool) or not isinstance(power, Integral) or power < 0:
            raise QueryError(f"the power of '{name}' in a moment must be a whole number, 0 or more")
        term[axis] = _powers(schema.attributes[axis], int(power))
    return term


def _powers(attribute: Attribute, power: int) -> Floats:
    with np.errstate(over="ignore"):
        found = np.power(_numbers(attribute), float(min(power, _HIGHEST_POWER)))
    if power > _HIGHEST_POWER or not np.isfinite(found).all():
        raise QueryError(f"the power of '{attribute.name}' in a moment leads beyond all numbers; ask for a lower one")
    return np.asarray(found)


def _numbers(attribute: Attribute) -> Floats:
    """Return the number that stands for each cell; stray values have none, and count as 0."""
    if not isinstance(attribute, Ordinal):
        raise QueryError(f"'{attribute.name}' is nominal and has no moments; ask for counts of its values")
    found = np.zeros(attribute.size)
    found[: attribute.regular_size] = attribute.centres()
    return found


def fourier_term(schema: Schema, names: Sequence[str]) -> Term:
    """Return the coefficient Π (-1)^t over the named attributes, t being the number of the cell."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise QueryError("a Fourier term is a list of attributes; put a single name into a list")
    return {axis: np.where(np.arange(schema.shape[axis]) % 2 == 0, 1.0, -1.0) for axis in schema.axes(names)}


def wavelet_term(schema: Schema, nodes: Mapping[str, tuple[int, int, int]]) -> Term:
    """Return the coefficient that is +1 from ``first`` to before ``middle`` and -1 from there to before ``end``.

    Each named attribute has its triple of cell numbers; cells outside of it weigh 0.
    """
    if not isinstance(nodes, Mapping):
        raise QueryError('a wavelet term is a mapping such as {"age": (first, middle, end)} of cell numbers')
    term: dict[int, Floats] = {}
    for axis, (name, node) in zip(schema.axes(nodes), nodes.items(), strict=True):
        size = schema.shape[axis]
        if (
            not isinstance(node, Sequence | np.ndarray)
            or len(node) != 3
            or not all(isinstance(cell, Integral) for cell in node)
        ):
            raise QueryError(f"a wavelet node of '{name}' is three cell numbers: first, middle, end")
        first, middle, end = (int(cell) for cell in node)
        if not 0 <= first < middle < end <= size:
            raise QueryError(f"a wavelet node of '{name}' needs 0 <= first < middle < end <= {size}")
        weights = np.zeros(size)
        weights[first:middle], weights[middle:end] = 1.0, -1.0
        term[axis] = weights
    return term


def function_terms(schema: Schema, names: Sequence[str], table: ArrayLike) -> list[Term]:
    """Return an arbitrary function of one or two attributes as few products.

    A table of rank r needs r of them (its singular value decomposition); one of whole numbers whose smaller side is no
    longer than that is kept row by row, so that its weights stay exact.
    """
    listed = [names] if isinstance(names, str) else names
    axes = [schema.axis(name) for name in listed] if isinstance(listed, Sequence) else []
    sizes = tuple(schema.shape[axis] for axis in axes)
    if len(axes) not in (1, 2) or len(set(axes)) != len(axes):
        raise QueryError("a function is given on one or two different attributes; write others as conditions")
    try:
        values = np.array(table, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.full(sizes, np.nan)
    if values.shape != sizes or not np.isfinite(values).all():
        raise QueryError(f"a function on {', '.join(listed)} needs a finite table of shape {sizes}")
    if len(axes) == 1:
        return [{axes[0]: values}]
    if values.shape[0] > values.shape[1]:
        axes, values = axes[::-1], values.T
    largest = max(float(np.abs(values).max()), 1e-300)  # the squares of larger or smaller numbers would leave floats
    left, strengths, right = np.linalg.svd(values / largest, full_matrices=False)
    rank = int((strengths > _NEGLIGIBLE * max(strengths[0], 1e-300)).sum())
    filled = np.flatnonzero(values.any(axis=1))
    if rank < filled.size:
        return [{axes[0]: left[:, i] * strengths[i], axes[1]: right[i] * largest} for i in range(rank)]
    points = np.eye(values.shape[0])
    return [{axes[0]: points[row], axes[1]: values[row]} for row in filled]
