"""Weighted sums of cells as weighted sums of groups: which attributes matter, and the weight of each combination.

A difference of two counts is one linear query. Its noise is that of the difference, in which what both share cancels,
and not the sum of two widths.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from veilcube.errors import QueryError
from veilcube.query import LinearQueries
from veilcube.schema import Region, Schema
from veilcube.system import Floats

# Weights are written out over the attributes that a question names, and carried through what was measured.
MOST_WEIGHTS = 2**22


def named_axes(regions: Sequence[Region]) -> tuple[int, ...]:
    """Return the attributes that some regions narrow; the first one if there is none."""
    found = {
        axis
        for region in regions
        for box in region.boxes
        for axis, mask in enumerate(box.axes)
        if mask is not None and not mask.all()
    }
    return tuple(sorted(found)) or (0,)


def weights_of_regions(schema: Schema, axes: Sequence[int], weighted: Sequence[tuple[float, Region]]) -> Floats:
    """Return Σ weight x (1 inside a region) over the cells of the axes that the regions narrow."""
    found = np.zeros(_shape(schema, axes))
    for weight, region in weighted:
        for box in region.boxes:
            found[np.ix_(*(box.indices(axis) for axis in axes))] += weight
    return found


def weights_of_query(queries: LinearQueries, number: int, axes: Sequence[int]) -> Floats:
    """Return the weights of one linear query over the cells of the axes that it names."""
    single = queries[[number]]
    found = np.zeros(_shape(queries.schema, axes))
    for term in range(single.owner.size):
        product = np.ones(())
        for axis in axes:
            part = single.parts[axis]
            place = np.flatnonzero(part.terms == term)
            row = part.written(place)[0] if place.size else np.ones(queries.schema.shape[axis])
            product = np.multiply.outer(product, row)
        found += product
    return found


def axes_of_query(queries: LinearQueries, number: int) -> tuple[int, ...]:
    """Return the attributes that one linear query weighs; the first one if there is none."""
    return tuple(sorted({axis for term in queries[[number]].supports() for axis in term})) or (0,)


def _shape(schema: Schema, axes: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(schema.shape[axis] for axis in axes)
    if prod(shape) > MOST_WEIGHTS:
        names = ", ".join(schema.names[axis] for axis in axes)
        raise QueryError(
            f"the question names {names}, which have {prod(shape):,} combinations, more than the {MOST_WEIGHTS:,} that "
            "are weighed at once; name fewer attributes, or ask for single counts"
        )
    return shape
