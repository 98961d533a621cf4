"""Stored answers as measurements: every moment and mean as linear queries with the variance of their noise."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.protected.moment import Moment, Weights
from veilcube.query import LinearQueries
from veilcube.schema import Box

Floats = NDArray[np.float64]


def linear_queries(moment: Moment) -> LinearQueries:
    """Return what was measured, in the order of the stored integers and in the attributes' own units."""
    terms = [
        [_term(moment, weights, box, group) for box in moment.region.boxes if _holds(moment, box, group)]
        for weights in moment.measures
        for group in _groups(moment)
    ]
    return LinearQueries.of_terms(moment.schema, terms)


def _groups(moment: Moment) -> Iterator[tuple[int, ...]]:
    return product(*(cells.tolist() for cells in moment.groups))


def _holds(moment: Moment, box: Box, group: Sequence[int]) -> bool:
    return all(bool(box.mask(axis)[cell]) for axis, cell in zip(moment.by, group, strict=True))


def _term(moment: Moment, weights: Weights, box: Box, group: Sequence[int]) -> Mapping[int, Floats]:
    """Return the weights of the cells on every axis that a box, a group or a power makes other than 1."""
    term: dict[int, Floats] = {axis: mask.astype(np.float64) for axis, mask in enumerate(box.axes) if mask is not None}
    for axis, cell in zip(moment.by, group, strict=True):
        term[axis] = np.zeros(moment.schema.shape[axis])
        term[axis][cell] = 1.0
    scale = float(moment.unit)
    for axis, row in weights.items():
        term[axis] = term.get(axis, np.ones(row.size)) * row.astype(np.float64) * scale
        scale = 1.0
    return term
