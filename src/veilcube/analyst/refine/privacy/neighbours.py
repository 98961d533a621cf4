"""Differences between the true answers on two neighbouring tables: from given pairs, or all of a histogram query."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from veilcube.analyst.refine.facts import read_numbers
from veilcube.errors import CapacityError, QueryError
from veilcube.privacy import Neighbours
from veilcube.system import Floats

# Squares of larger weights would leave floating point.
LARGEST_WEIGHT = 1e150
_MOST_ENTRIES = 20_000_000


def differences_of_pairs(pairs: ArrayLike, answers: int) -> Floats:
    """Return μ - μ' of each given pair (μ, μ'), one per row; a single pair is taken too."""
    given = read_numbers(pairs, "pairs")
    given = given[None] if given.ndim == 2 else given
    if given.ndim != 3 or given.shape[1:] != (2, answers) or not len(given):
        raise QueryError(
            f"pairs must be a list of pairs (answers, answers of a neighbour) with {answers} numbers each, "
            f"not of the shape {given.shape}"
        )
    return np.unique(given[:, 0] - given[:, 1], axis=0)


def differences_of_query(query: Floats, neighbours: Neighbours) -> Floats:
    """Return μ - μ' over all neighbouring histograms, up to sign: the query's columns, or differences of two of them.

    ``query`` (answers, cells) has the weight of each cell in each answer.
    """
    columns = np.unique(query.T, axis=0)
    if neighbours is Neighbours.ADD_REMOVE:
        return columns
    if len(columns) * (len(columns) - 1) // 2 * len(query) > _MOST_ENTRIES:
        raise CapacityError(
            f"the query tells {len(columns):,} kinds of cells apart, too many to compare each with each; "
            "give the pairs that matter, or neighbours='add-remove'"
        )
    first, second = np.triu_indices(len(columns), 1)
    return np.unique(columns[first] - columns[second], axis=0) if len(first) else np.zeros((1, len(query)))


def read_query(query: Mapping[str, ArrayLike] | ArrayLike | None) -> tuple[tuple[str, ...] | None, Floats | None]:
    """Return the names (of a mapping) and the matrix (answers, cells) of a histogram query."""
    if query is None:
        return None, None
    names: tuple[str, ...] | None = None
    if isinstance(query, Mapping):
        names, rows = tuple(query), [read_numbers(row, "query") for row in query.values()]
        if len({row.shape for row in rows}) > 1:
            raise QueryError("every answer of the query needs as many numbers as the others: one for each cell")
        query = np.array(rows)
    matrix = read_numbers(query, "query")
    if matrix.size and np.abs(matrix).max() > LARGEST_WEIGHT:
        raise QueryError(f"query must hold numbers of at most {LARGEST_WEIGHT:g} in size; choose a larger unit")
    if matrix.ndim != 2 or not matrix.size:
        raise QueryError(f"query must have one row per answer and one column per cell, not the shape {matrix.shape}")
    return names, matrix
