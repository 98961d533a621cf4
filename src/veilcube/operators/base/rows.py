"""The rows of an operator as linear queries: what each published number measured, in product form."""

import numpy as np

from veilcube.query import Factor, LinearQueries
from veilcube.schema import Schema
from veilcube.system import Floats


def queries_of_one_term(schema: Schema, factors: list[Factor], queries: int) -> LinearQueries:
    """Return queries that are one product each: query k is term k of every factor."""
    return LinearQueries(schema, tuple(factors), np.arange(queries, dtype=np.int64), queries)


def queries_of_products(schema: Schema, matrices: list[Floats]) -> LinearQueries:
    """Return one query for every combination of the rows of one matrix (rows, cells) for each attribute."""
    combinations = np.indices(tuple(len(matrix) for matrix in matrices)).reshape(len(matrices), -1)
    queries = combinations.shape[1]
    factors = [
        Factor.of_rows(np.arange(queries), matrix[chosen])
        for matrix, chosen in zip(matrices, combinations, strict=True)
    ]
    return queries_of_one_term(schema, factors, queries)
