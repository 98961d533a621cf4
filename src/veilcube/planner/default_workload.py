"""The questions that are planned for when nobody names any."""

from functools import lru_cache

from veilcube.query import Workload
from veilcube.schema import Schema

DEFAULT_QUERIES = 2000


@lru_cache(maxsize=64)
def default_workload(schema: Schema) -> Workload:
    """Return random ranges over all attributes, always the same ones."""
    return Workload.random_ranges(schema, DEFAULT_QUERIES, seed=0)
